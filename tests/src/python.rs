//! Python packages that other people verify with, or serve with: virtual
//! environments in the target folder, each made once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::place;

/// The interpreter of an environment that has these packages of PyPI.
///
/// # Panics
/// Where the environment cannot be made, with what to install.
#[must_use]
pub fn with_packages(packages: &[&str]) -> PathBuf {
    // One at a time: tests side by side may want the same one.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    make(packages)
}

fn make(packages: &[&str]) -> PathBuf {
    let folder = place::areas().with_file_name("test-python").join(packages.join("+"));
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
