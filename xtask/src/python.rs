//! Python packages that other people verify with, serve with or make
//! components with: virtual environments, each made once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

use crate::process;

/// The interpreter of an environment that has these packages of PyPI; it is in
/// `test-python` below this folder and stays there for the next time.
///
/// # Errors
/// Python is not here or PyPI is out of reach: what to do about it.
pub fn with_packages(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    // One at a time: tests side by side may want the same one.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder.join("test-python").join(packages.join("+"));
    let (python, done) = (folder.join("bin/python"), folder.join("packages"));
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    process::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
        .context("no virtual environment of Python; on Debian: apt-get install python3-venv")?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    process::run_quietly(&mut pip)?;
    fs::write(done, wanted)?;
    Ok(python)
}
