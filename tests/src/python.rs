//! Python packages that other people verify with: a virtual environment in the
//! target folder, made once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::place;

/// The interpreter of an environment that has these packages of PyPI.
///
/// # Panics
/// Where the environment cannot be made, with what to install.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| make(packages)).clone()
}

fn make(packages: &[&str]) -> PathBuf {
    let folder = place::areas().with_file_name("test-python");
    let python = folder.join("bin/python");
    let done = folder.join("packages");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return python;
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).output();
    assert!(
        made.as_ref().is_ok_and(|output| output.status.success()),
        "python3 -m venv does not work ({made:?}); on Debian: apt-get install python3-venv"
    );
    install(&python, packages);
    std::fs::write(done, wanted).expect("a note of what is installed");
    python
}

fn install(python: &Path, packages: &[&str]) {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    let output = pip.output().expect("pip starts");
    assert!(output.status.success(), "pip: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a script that must succeed; its standard output.
#[must_use]
pub fn run(python: &Path, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python).args(["-c", script]).args(arguments).output();
    let output = output.expect("python starts");
    assert!(output.status.success(), "python: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
