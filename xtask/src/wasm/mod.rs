//! Finds and sets up a toolchain for components that works on this machine.
//!
//! rustup's `wasm-component-ld` links and writes a component directly. Two compilers can be used:
//! rustup's with its `wasm32-unknown-unknown` target, which is added if it is missing, or Debian's
//! `rustc-web`, whose standard library is compiled once from its source by `sysroot`.

mod sysroot;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::workspace::Workspace;
use crate::{apt, process};

/// Compilation target of every guest.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Size of a guest's shadow stack in bytes; small, so that an instance starts with few pages.
const STACK_BYTES: u32 = 65_536;

/// Debian's compiler.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Source of the standard library of Debian's compiler.
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";

/// Compiler and linker that build guests as components.
pub(crate) struct GuestToolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Folder of the standard library for guests; `None` if the compiler's default folder has it.
    sysroot: Option<PathBuf>,
    linker: LinkerPaths,
}

struct LinkerPaths {
    component: PathBuf,
    wasm: PathBuf,
}

impl GuestToolchain {
    /// Finds a toolchain that can build guests; installs and builds what is missing.
    pub(crate) fn set_up(workspace: &Workspace) -> anyhow::Result<Self> {
        let rustup = sysroot_of(&rustc())?;
        let linker = LinkerPaths::find(&rustup)?;
        if standard_library_in(&rustup) || rustup_adds_target(&rustup) {
            let cargo = crate::workspace::cargo_program();
            return Ok(Self { cargo, rustc: rustc(), sysroot: None, linker });
        }
        require_debian()?;
        let sysroot = Some(sysroot::prepare(workspace, &linker.component)?);
        Ok(Self { cargo: DEBIAN_CARGO.into(), rustc: DEBIAN_RUSTC.into(), sysroot, linker })
    }

    /// Returns a cargo command that builds for `TARGET` in this target folder.
    pub(crate) fn cargo(&self, workspace: &Workspace, target: &Path) -> Command {
        let mut flags = vec![
            format!("-Clink-arg=--wasm-ld-path={}", self.linker.wasm.display()),
            format!("-Clink-arg=-zstack-size={STACK_BYTES}"),
            // 16 bytes at a time: areas spend much time on parsing UUIDs and scanning texts.
            "-Ctarget-feature=+simd128".to_owned(),
        ];
        flags.extend(self.sysroot.iter().map(|s| format!("--sysroot={}", s.display())));
        let mut command = clean_cargo(&self.cargo, &self.rustc);
        command
            .current_dir(&workspace.root)
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker.component)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        command
    }
}

impl LinkerPaths {
    fn find(sysroot: &Path) -> anyhow::Result<Self> {
        let host = version_line(&rustc(), "host: ")?;
        let tools = sysroot.join("lib/rustlib").join(host).join("bin");
        let found =
            Self { component: tools.join("wasm-component-ld"), wasm: tools.join("gcc-ld/wasm-ld") };
        ensure!(
            found.component.exists() && found.wasm.exists(),
            "no wasm-component-ld in {}: it comes with rustup's toolchains from 1.82 on; \
             install one (`rustup toolchain install stable`)",
            tools.display()
        );
        Ok(found)
    }
}

/// Installs Debian's compiler and its standard library's source if they are missing.
fn require_debian() -> anyhow::Result<()> {
    let is_complete =
        || [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_STD].iter().all(|file| Path::new(file).exists());
    if !is_complete() {
        let why = format!("the {TARGET} target is not installed (`rustup target add {TARGET}`)");
        apt::install(&["rustc-web", "cargo-web", "rust-web-src"], &why)?;
        ensure!(is_complete(), "rust-web-src brought no standard library's source");
    }
    Ok(())
}

/// Returns a command of this cargo and rustc without the environment variables of the cargo that
/// runs the task.
fn clean_cargo(cargo: &Path, rustc: &Path) -> Command {
    let mut command = Command::new(cargo);
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "RUSTC_BOOTSTRAP"] {
        command.env_remove(name);
    }
    for name in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        command.env_remove(name);
    }
    command.env("RUSTC", rustc);
    command
}

fn rustc() -> PathBuf {
    std::env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from)
}

fn sysroot_of(rustc: &Path) -> anyhow::Result<PathBuf> {
    let printed = process::run_quietly(Command::new(rustc).args(["--print", "sysroot"]))?;
    Ok(PathBuf::from(printed.trim()))
}

fn standard_library_in(sysroot: &Path) -> bool {
    let folder = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    folder.read_dir().is_ok_and(|mut files| files.next().is_some())
}

/// Downloads the standard library for guests with rustup. Returns whether this succeeded: there may
/// be no rustup, or no connection to its server.
fn rustup_adds_target(sysroot: &Path) -> bool {
    eprintln!("rustup target add {TARGET} (otherwise Debian's rustc-web is used)");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).env("RUSTUP_MAX_RETRIES", "1");
    process::run_quietly(&mut rustup).is_ok() && standard_library_in(sysroot)
}

/// Returns one line of `rustc -vV` without its label.
fn version_line(rustc: &Path, label: &str) -> anyhow::Result<String> {
    let version = process::run_quietly(Command::new(rustc).arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix(label));
    line.map(str::to_owned).with_context(|| format!("rustc -vV has no `{label}`"))
}
