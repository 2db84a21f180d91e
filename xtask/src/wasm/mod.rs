//! A toolchain that makes components: which of the ways works on this machine
//! is found out here, and set up.
//!
//! Everything is linked by rustup's own `wasm-component-ld`, which writes a
//! component directly. Two compilers can feed it: rustup's, once its
//! `wasm32-unknown-unknown` target is installed; or Debian's `rustc-web`, whose
//! standard library `sysroot` compiles from its source, once.

mod sysroot;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::workspace::Workspace;
use crate::{apt, process};

/// The target every guest is built for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// A guest's shadow stack. Small, so that an instance starts with few pages.
const STACK_BYTES: u32 = 65_536;

/// A compiler and linker for components.
pub(crate) struct Toolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Where the standard library is, if not where the compiler looks.
    sysroot: Option<PathBuf>,
    linker: Linker,
}

struct Linker {
    component: PathBuf,
    wasm: PathBuf,
}

impl Toolchain {
    /// Finds a way that works, installing and building what it needs.
    pub(crate) fn set_up(workspace: &Workspace) -> anyhow::Result<Self> {
        let rustup = sysroot_of(&rustc())?;
        let linker = Linker::find(&rustup)?;
        if standard_library_in(&rustup) {
            let cargo = crate::workspace::cargo();
            return Ok(Self { cargo, rustc: rustc(), sysroot: None, linker });
        }
        let debian = debian()?;
        let sysroot = sysroot::prepare(workspace, &debian, &linker.component)?;
        Ok(Self { cargo: debian.cargo, rustc: debian.rustc, sysroot: Some(sysroot), linker })
    }

    /// A cargo command that builds for `TARGET` below the given target folder.
    pub(crate) fn cargo(&self, workspace: &Workspace, target: &Path) -> Command {
        let mut flags = vec![
            format!("-Clink-arg=--wasm-ld-path={}", self.linker.wasm.display()),
            format!("-Clink-arg=-zstack-size={STACK_BYTES}"),
            // Reading UUIDs and scanning texts, 16 bytes at a time, is much of
            // what an area does.
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

impl Linker {
    fn find(sysroot: &Path) -> anyhow::Result<Self> {
        let tools = sysroot.join("lib/rustlib").join(native_target()?).join("bin");
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

/// Debian's compiler with its standard library's source.
struct Debian {
    cargo: PathBuf,
    rustc: PathBuf,
}

fn debian() -> anyhow::Result<Debian> {
    let found = Debian { cargo: "/usr/bin/cargo".into(), rustc: "/usr/bin/rustc".into() };
    if !found.is_complete() {
        let why = format!("the {TARGET} target is not installed (`rustup target add {TARGET}`)");
        apt::install(&["rustc-web", "cargo-web", "rust-web-src"], &why)?;
        ensure!(found.is_complete(), "rust-web-src brought no standard library's source");
    }
    Ok(found)
}

impl Debian {
    fn is_complete(&self) -> bool {
        let source = Path::new("/usr/lib/rustlib/src/rust/library/std/Cargo.toml");
        self.cargo.exists() && self.rustc.exists() && source.exists()
    }
}

/// A cargo command without what the outer cargo has put into the environment.
fn clean_cargo(cargo: &Path, rustc: &Path) -> Command {
    let mut command = Command::new(cargo);
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_BOOTSTRAP"] {
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

/// The triple of the compiler that compiled this task: the one rustup runs.
fn native_target() -> anyhow::Result<String> {
    version_line(&rustc(), "host: ")
}

/// One line of `rustc -vV`, without its label.
fn version_line(rustc: &Path, label: &str) -> anyhow::Result<String> {
    let version = process::run_quietly(Command::new(rustc).arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix(label));
    line.map(str::to_owned).with_context(|| format!("rustc -vV has no `{label}`"))
}
