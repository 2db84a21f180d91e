//! `cargo xtask guests`: builds every area as a component in `target/areas`.
//!
//! Cargo decides what is out of date. A finished component is renamed into place only if it
//! differs, so that a watching host sees complete files and only real changes.

use std::fs;
use std::path::Path;

use clap::Args;

use crate::process;
use crate::wasm::{GuestToolchain, TARGET};
use crate::workspace::{Guest, GuestKind, Workspace};

/// The cargo profile with which guests are built quickly: for tests and the demonstration.
pub(crate) const PROFILE: &str = "guest";
/// The cargo profile of guests whose calls run fastest.
const RELEASE_PROFILE: &str = "guest-release";

#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Also build the hostile and broken guests of the tests
    #[arg(long)]
    pub(crate) fixtures: bool,
    /// Build what is deployed: the two largest areas optimized for speed
    #[arg(long)]
    pub(crate) release: bool,
    /// The host is built at the same time, and only its build shows progress
    #[arg(skip)]
    pub(crate) beside_host: bool,
}

/// Builds the guests and copies their components to the folder that the host loads.
pub(crate) fn build(workspace: &Workspace, options: Options) -> anyhow::Result<()> {
    let wanted: Vec<&Guest> = workspace
        .guests
        .iter()
        .filter(|guest| options.fixtures || guest.kind != GuestKind::Fixture)
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let toolchain = GuestToolchain::set_up(workspace)?;
    let target = workspace.target.join("wasm");
    let profile = if options.release { RELEASE_PROFILE } else { PROFILE };
    let mut cargo = toolchain.cargo(workspace, &target);
    cargo.args(["build", "--lib", "--profile", profile, "--target", TARGET]);
    for guest in &wanted {
        cargo.args(["--package", &guest.package]);
    }
    if options.beside_host {
        eprintln!("building {} areas beside the host", wanted.len());
        cargo.arg("--quiet");
    }
    process::run(&mut cargo)?;
    let built = target.join(TARGET).join(profile);
    for guest in wanted {
        publish(workspace, &built, guest)?;
    }
    // Copies the areas' grants to the folder, for the host.
    let needs = workspace.components(GuestKind::Area).join("areas.toml");
    fs::copy(workspace.root.join("guests/areas.toml"), needs)?;
    Ok(())
}

fn publish(workspace: &Workspace, built: &Path, guest: &Guest) -> anyhow::Result<()> {
    let folder = workspace.components(guest.kind);
    fs::create_dir_all(&folder)?;
    let component = fs::read(built.join(&guest.library).with_extension("wasm"))?;
    let place = folder.join(&guest.name).with_extension("wasm");
    if fs::read(&place).is_ok_and(|old| old == component) {
        return Ok(());
    }
    let fresh = folder.join(format!(".{}.{}", guest.name, std::process::id()));
    fs::write(&fresh, &component)?;
    fs::rename(&fresh, &place)?;
    eprintln!("{} ({} KiB)", place.display(), component.len() / 1024);
    Ok(())
}
