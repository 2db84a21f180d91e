//! Python packages of third parties for verification and as servers. Each virtual environment is
//! created once in the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place;

/// Returns the interpreter of an environment with these PyPI packages.
///
/// # Panics
/// The environment cannot be created; says what to install.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    let made = xtask::python::with_packages(&place::tools(), packages);
    made.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Runs a script that must succeed. Returns its standard output.
#[must_use]
pub fn run(python: &Path, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python).args(["-c", script]).args(arguments).output();
    let output = output.expect("python starts");
    assert!(output.status.success(), "python: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
