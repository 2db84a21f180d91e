//! Packages of the npm registry that tests run or that build components. Each
//! set is installed once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

use crate::process;

/// Returns the `node_modules` folder with these packages (`NAME@VERSION`). It
/// is stored in `test-node` below this folder and reused.
///
/// # Errors
/// npm is missing or cannot reach the registry; says how to fix it.
pub fn with_packages(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    // One at a time, because concurrent tests may need the same set.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder.join("test-node").join(packages.join("+").replace('/', "_"));
    let (modules, done) = (folder.join("node_modules"), folder.join("packages"));
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(modules);
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("package.json"), "{\"private\": true}")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    process::run_quietly(npm.arg(&folder).args(packages))
        .context("nothing from npm; where it is missing, on Debian: apt-get install npm")?;
    fs::write(done, wanted)?;
    Ok(modules)
}
