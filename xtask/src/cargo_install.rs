//! Programs of the crate registry that tests run. Each is built once, without optimization.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process;

/// Returns the program of this crate and version. It is stored in `cargo-install` below the folder
/// that CI keeps between runs (`CI_CACHE_DIR`), otherwise below this folder.
///
/// # Errors
/// The registry cannot be reached, or the crate does not compile.
pub fn program(folder: &Path, name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let kept = std::env::var_os("CI_CACHE_DIR").filter(|folder| !folder.is_empty());
    let folder = kept.map_or_else(|| folder.to_owned(), PathBuf::from).join("cargo-install");
    let root = folder.join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    let target = root.join("target");
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&root);
    cargo.arg(format!("{name}@{version}")).env("CARGO_TARGET_DIR", &target);
    process::run_quietly(&mut cargo).with_context(|| format!("cannot build {name} {version}"))?;
    fs::remove_dir_all(target)?;
    Ok(program)
}
