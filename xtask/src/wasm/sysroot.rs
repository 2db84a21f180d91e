//! The standard library for wasm, compiled once from Debian's source. It is stored as a sysroot
//! next to the other build products, or in the folder that CI keeps between runs: its path is a
//! compiler flag, so dependencies compiled with another path are compiled again.
//!
//! Guests are built with `--sysroot`. The folder's name contains the compiler's release and commit.
//! The folder is renamed into place when it is complete.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::packages::ci_cache_or;

use super::{DEBIAN_CARGO, DEBIAN_RUSTC, TARGET, clean_cargo, version_line};
use crate::process;
use crate::workspace::Workspace;

/// `Cargo.toml` of an empty crate that is compiled as library and cdylib with LTO, so that the
/// standard library has both object code and the bitcode that a guest's LTO needs.
const MANIFEST: &str = r#"[package]
name = "seed"
version = "0.0.0"
edition = "2024"

[lib]
crate-type = ["cdylib", "rlib"]

[profile.release]
opt-level = 3
lto = true
codegen-units = 1
panic = "abort"

[workspace]
"#;

/// Returns the sysroot with the standard library for guests that this compiler needs; creates it if
/// it is missing.
pub(super) fn prepare(workspace: &Workspace, linker: &Path) -> anyhow::Result<PathBuf> {
    let rustc = Path::new(DEBIAN_RUSTC);
    let release = version_line(rustc, "release: ")?;
    let commit = version_line(rustc, "commit-hash: ")?;
    let key = format!("{release}-{}", commit.get(..9).unwrap_or(&commit));
    let home = ci_cache_or(&workspace.target).join("wasm-sysroot");
    let sysroot = home.join(&key);
    if !sysroot.exists() {
        eprintln!("compiling the standard library for {TARGET} (once, about a minute)");
        let work = home.join(format!("{key}.{}", std::process::id()));
        build(&work, linker)?;
        collect(&work)?;
        // Two tasks may get here at once; the second one's work is not needed.
        if fs::rename(work.join("sysroot"), &sysroot).is_err() && !sysroot.exists() {
            anyhow::bail!("cannot put the sysroot to {}", sysroot.display());
        }
        fs::remove_dir_all(&work)?;
    }
    Ok(sysroot)
}

fn build(work: &Path, linker: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(work.join("src"))?;
    fs::write(work.join("Cargo.toml"), MANIFEST)?;
    fs::write(work.join("src/lib.rs"), "//! Nothing: only its standard library is wanted.\n")?;
    let wasm_ld = linker.with_file_name("gcc-ld/wasm-ld");
    process::run(
        clean_cargo(Path::new(DEBIAN_CARGO), Path::new(DEBIAN_RUSTC))
            .current_dir(work)
            .args(["build", "--quiet", "--release", "-Zbuild-std=std,panic_abort"])
            .args(["--target", TARGET])
            .env("CARGO_TARGET_DIR", work.join("target"))
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                format!("-Clink-arg=--wasm-ld-path={}", wasm_ld.display()),
            )
            .env("RUSTC_BOOTSTRAP", "1"),
    )
}

/// Copies the compiled standard library's files to a folder with the layout of a sysroot.
fn collect(work: &Path) -> anyhow::Result<()> {
    let libraries = work.join("sysroot/lib/rustlib").join(TARGET).join("lib");
    fs::create_dir_all(&libraries)?;
    let built = work.join("target").join(TARGET).join("release/deps");
    for file in fs::read_dir(built)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libseed") {
            fs::copy(file.path(), libraries.join(name))?;
        }
    }
    Ok(())
}
