//! Python packages of third parties that verify, serve or build components. Each virtual
//! environment is created once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

use crate::process;

/// Returns the interpreter of an environment with these PyPI packages. The environment is stored in
/// `test-python` below this folder.
///
/// # Errors
/// Python is missing or PyPI cannot be reached; says how to fix it.
pub fn with_packages(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    // One at a time, because concurrent tests may need the same environment.
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
