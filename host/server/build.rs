//! Sets `ASSURANCE_VERSION`: the package's version, with the commit if this is
//! a git checkout. Runs again only after a commit or a checkout.

use std::path::Path;
use std::process::Command;

fn main() {
    let mut version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(commit) = commit() {
        version = format!("{version} ({commit})");
    }
    println!("cargo::rustc-env=ASSURANCE_VERSION={version}");
}

/// `None` if the sources are not the checkout of a repository, or there is no
/// git. A repository that only contains them says nothing about them.
fn commit() -> Option<String> {
    let package = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let root = Path::new(&package).join("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        // Of a file that is not there cargo would run this each time.
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && Path::new(&path).is_file()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=9", "HEAD"])
}

/// What git prints, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
