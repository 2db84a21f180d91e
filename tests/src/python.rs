//! Python packages that other people verify with, or serve with: virtual
//! environments in the target folder, each made once.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place;

/// The interpreter of an environment that has these packages of PyPI.
///
/// # Panics
/// Where the environment cannot be made, with what to install.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    let made = xtask::python::with_packages(&place::tools(), packages);
    made.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Runs a script that must succeed; its standard output.
#[must_use]
pub fn run(python: &Path, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python).args(["-c", script]).args(arguments).output();
    let output = output.expect("python starts");
    assert!(output.status.success(), "python: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
