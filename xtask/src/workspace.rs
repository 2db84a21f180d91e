//! Locations: the repository, cargo's target directory and the guest crates, from cargo's metadata.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use crate::process;

/// The cargo workspace of the repository to which this `xtask` belongs.
pub(crate) struct Workspace {
    /// Folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's target directory; respects `CARGO_TARGET_DIR`.
    pub(crate) target: PathBuf,
    /// Every crate below `guests/` that becomes a component.
    pub(crate) guests: Vec<Guest>,
    /// Names of the workspace's packages and targets, as they occur in file names of build
    /// products.
    pub(crate) names: BTreeSet<String>,
}

/// A crate below `guests/` that becomes a component.
pub(crate) struct Guest {
    /// Name of the guest's cargo package.
    pub(crate) package: String,
    /// Stem of the guest's library file, for example `area_support`.
    pub(crate) library: String,
    /// Name of the guest's component: the name of the crate's folder.
    pub(crate) name: String,
    /// Kind of the guest, by its folder.
    pub(crate) kind: GuestKind,
}

/// Kind of a guest, by its folder below `guests/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestKind {
    /// An area that is served: `guests/<area>`.
    Area,
    /// An example area: `guests/examples/<name>`, and `guests/notes`.
    Example,
    /// A hostile, broken or test-specific guest: `guests/fixtures/<name>`.
    Fixture,
}

impl Workspace {
    /// Finds the workspace and its guests in cargo's metadata; needs no network.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let manifest = own_folder().join("../Cargo.toml");
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
        let output = process::run_quietly(command.arg("--manifest-path").arg(manifest))?;
        let metadata: Value = serde_json::from_str(&output)?;
        let root = PathBuf::from(text(&metadata, "workspace_root")?);
        let target = PathBuf::from(text(&metadata, "target_directory")?);
        let packages = metadata["packages"].as_array().context("no packages")?;
        let mut guests: Vec<Guest> = packages.iter().filter_map(|p| guest(&root, p)).collect();
        guests.sort_by(|a, b| a.name.cmp(&b.name));
        let names = packages.iter().flat_map(names).collect();
        Ok(Self { root, target, guests, names })
    }

    /// Returns the folder of built guests of this kind.
    pub(crate) fn components(&self, kind: GuestKind) -> PathBuf {
        let areas = self.target.join("areas");
        match kind {
            GuestKind::Area => areas,
            GuestKind::Example => areas.join("examples"),
            GuestKind::Fixture => areas.join("fixtures"),
        }
    }
}

/// Returns the folder of this crate from cargo's environment: several clones may share one target
/// directory, and so this program.
fn own_folder() -> PathBuf {
    let told = std::env::var_os("CARGO_MANIFEST_DIR");
    told.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Returns the path of the cargo that runs this task.
pub(crate) fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Returns a command of the cargo that runs this task, without the variables that `cargo run` sets
/// for its package: build scripts of dependencies read them, and would run again each time that
/// cargo is called from a task and then by hand.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(cargo_program());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

fn guest(root: &Path, package: &Value) -> Option<Guest> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let folder = manifest.parent()?.strip_prefix(root.join("guests")).ok()?;
    let library = package["targets"].as_array()?.iter().find(|target| {
        target["crate_types"].as_array().is_some_and(|types| types.iter().any(|t| t == "cdylib"))
    })?;
    let name = folder.file_name()?.to_str()?.to_owned();
    let kind = match folder.iter().next()?.to_str()? {
        "fixtures" => GuestKind::Fixture,
        "examples" | "notes" => GuestKind::Example,
        _ => GuestKind::Area,
    };
    let library = library["name"].as_str()?.replace('-', "_");
    Some(Guest { package: package["name"].as_str()?.to_owned(), library, name, kind })
}

/// Returns a package's name, and its targets' names in file names.
fn names(package: &Value) -> Vec<String> {
    let targets = package["targets"].as_array().into_iter().flatten();
    let named = targets.chain([package]).filter_map(|one| one["name"].as_str());
    named.flat_map(|name| [name.to_owned(), name.replace('-', "_")]).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo metadata has no {key}"))
}
