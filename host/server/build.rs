//! Sets the environment variable `ASSURANCE_VERSION` for the build: the package
//! version, with the commit if the sources are a git checkout. Runs again only
//! after a commit or a checkout.

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

/// Returns the abbreviated commit id. `None` if this workspace is not the root
/// of a git checkout, or git is not installed. A repository that merely
/// contains this workspace in a subfolder is ignored.
fn commit() -> Option<String> {
    let package = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let root = Path::new(&package).join("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        // Skips missing files, because cargo would rerun this script at every
        // build for them.
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && Path::new(&path).is_file()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=9", "HEAD"])
}

/// Returns the output of a git command; `None` if it fails or prints nothing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
