//! Packages of the registries of npm, Python and Rust that tests run or that build components. Each
//! set is installed once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

use crate::process;

/// Returns the `node_modules` folder with these packages (`NAME@VERSION`). It is stored in
/// `test-node` below this folder and reused.
///
/// # Errors
/// npm is missing or cannot reach the registry; says how to fix it.
pub fn npm(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = folder.join("test-node").join(packages.join("+").replace('/', "_"));
    install_once(&folder, packages, || {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("package.json"), "{\"private\": true}")?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        process::run_quietly(npm.arg(&folder).args(packages))
            .context("nothing from npm; where it is missing, on Debian: apt-get install npm")
    })?;
    Ok(folder.join("node_modules"))
}

/// Returns the interpreter of a virtual environment with these PyPI packages. The environment is
/// stored in `test-python` below this folder and reused.
///
/// # Errors
/// Python is missing or PyPI cannot be reached; says how to fix it.
pub fn pypi(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = folder.join("test-python").join(packages.join("+"));
    let python = folder.join("bin/python");
    install_once(&folder, packages, || {
        process::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
            .context("no virtual environment of Python; on Debian: apt-get install python3-venv")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        process::run_quietly(pip.args(packages))
    })?;
    Ok(python)
}

/// Installs a set of packages unless its folder has it. One at a time, because concurrent tests may
/// need the same set.
fn install_once(
    folder: &Path,
    packages: &[&str],
    install: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, wanted) = (folder.join("packages"), packages.join("\n"));
    if !fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        install()?;
        fs::write(done, wanted)?;
    }
    Ok(())
}

/// Returns the program of this crate and version, built without optimization and without debugging
/// information, which take longest. It is stored in `cargo-install` below the folder that CI keeps between runs, otherwise below this folder.
///
/// # Errors
/// The registry cannot be reached, or the crate does not compile.
pub fn crates_io(folder: &Path, name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let root = ci_cache_or(folder).join("cargo-install").join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    let target = root.join("target");
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&root);
    cargo.arg(format!("{name}@{version}")).env("CARGO_TARGET_DIR", &target);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "none");
    process::run_quietly(&mut cargo).with_context(|| format!("cannot build {name} {version}"))?;
    fs::remove_dir_all(target)?;
    Ok(program)
}

/// Returns the folder that CI keeps between runs (`CI_CACHE_DIR`), otherwise this folder.
#[must_use]
pub fn ci_cache_or(folder: &Path) -> PathBuf {
    let kept = std::env::var_os("CI_CACHE_DIR").filter(|folder| !folder.is_empty());
    kept.map_or_else(|| folder.to_owned(), PathBuf::from)
}
