//! Debian packages: installed where this may be done, otherwise asked for.

use std::path::Path;
use std::process::Command;

use anyhow::bail;

use crate::process;

/// Installs packages, saying so; where that is not possible, fails with the
/// command that a person should run.
pub(crate) fn install(packages: &[&str], why: &str) -> anyhow::Result<()> {
    let list = packages.join(" ");
    let by_hand = format!("apt-get update && apt-get install -y --no-install-recommends {list}");
    if !Path::new("/etc/debian_version").exists() {
        bail!("{why}: on Debian that is `{by_hand}`; on another system, its equivalent");
    }
    if !rustix::process::geteuid().is_root() {
        bail!("{why}; run this as root, then try again:\n    {by_hand}");
    }
    eprintln!("{why}: installing Debian's {list}");
    process::run_quietly(apt().arg("update"))?;
    process::run_quietly(apt().args(["install", "-y", "--no-install-recommends"]).args(packages))?;
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive");
    command
}
