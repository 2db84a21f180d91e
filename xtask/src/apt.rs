//! Debian packages: installed if possible; otherwise prints the command.

use std::path::Path;
use std::process::Command;

use anyhow::bail;

use crate::process;

/// Installs Debian packages and prints a note that names them and says why.
///
/// # Errors
/// Installing is not possible; has the command for a person to run.
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

/// Unpacks the files of Debian packages below a folder without installing them.
///
/// # Errors
/// Unpacking is not possible; says what a person must do.
pub(crate) fn unpack(packages: &[&str], folder: &Path, why: &str) -> anyhow::Result<()> {
    if !Path::new("/etc/debian_version").exists() {
        bail!("{why}: install {}, or put it to {}", packages.join(" "), folder.display());
    }
    eprintln!("{why}: unpacking Debian's {}", packages.join(" "));
    std::fs::create_dir_all(folder)?;
    let mut download = apt();
    download.current_dir(folder).arg("download").args(packages);
    if process::run_quietly(&mut download).is_err() {
        if !rustix::process::geteuid().is_root() {
            bail!("{why}; run `apt-get update` as root, then try again");
        }
        process::run_quietly(apt().arg("update"))?;
        process::run_quietly(&mut download)?;
    }
    for file in std::fs::read_dir(folder)? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            process::run_quietly(Command::new("dpkg").arg("-x").arg(&file).arg(folder))?;
            std::fs::remove_file(file)?;
        }
    }
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive");
    command
}
