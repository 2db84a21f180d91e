//! Where things are: the repository, cargo's target directory and the guest
//! crates, as cargo itself tells them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// The repository this `xtask` belongs to.
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's target directory, `CARGO_TARGET_DIR` respected.
    pub(crate) target: PathBuf,
    /// Every guest crate.
    pub(crate) guests: Vec<Guest>,
    /// Names of the packages and of what they compile to, as cargo names files.
    pub(crate) names: BTreeSet<String>,
}

/// A crate below `guests/` that becomes a component.
pub(crate) struct Guest {
    /// The cargo package.
    pub(crate) package: String,
    /// The library file's stem: `area_support`.
    pub(crate) library: String,
    /// What the component is called: the crate's folder.
    pub(crate) name: String,
    /// Where it belongs.
    pub(crate) kind: GuestKind,
}

/// What a guest is for, told by its place below `guests/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestKind {
    /// Served: `guests/<area>`.
    Area,
    /// Shown: `guests/examples/<name>`, and `guests/notes`.
    Example,
    /// Hostile, broken or made for one test: `guests/fixtures/<name>`.
    Fixture,
}

impl Workspace {
    /// Asks cargo; no network is needed for it.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let manifest = own_folder().join("../Cargo.toml");
        let output = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version=1", "--offline", "--manifest-path"])
            .arg(&manifest)
            .output()
            .context("cargo metadata does not start")?;
        ensure!(
            output.status.success(),
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let root = PathBuf::from(text(&metadata, "workspace_root")?);
        let target = PathBuf::from(text(&metadata, "target_directory")?);
        let packages = metadata["packages"].as_array().context("no packages")?;
        let mut guests: Vec<Guest> = packages.iter().filter_map(|p| guest(&root, p)).collect();
        guests.sort_by(|a, b| a.name.cmp(&b.name));
        let names = packages.iter().flat_map(names).collect();
        Ok(Self { root, target, guests, names })
    }

    /// Where built areas are put; what `serve` loads.
    pub(crate) fn areas(&self) -> PathBuf {
        self.target.join("areas")
    }

    /// Where built guests of a kind are put.
    pub(crate) fn components(&self, kind: GuestKind) -> PathBuf {
        match kind {
            GuestKind::Area => self.areas(),
            GuestKind::Example => self.areas().join("examples"),
            GuestKind::Fixture => self.areas().join("fixtures"),
        }
    }
}

/// The folder of this crate, as the cargo that runs it says: several clones may
/// share one target directory, and this program with it.
fn own_folder() -> PathBuf {
    let told = std::env::var_os("CARGO_MANIFEST_DIR");
    told.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
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

/// A package's name, and those of its targets as they are in file names.
fn names(package: &Value) -> Vec<String> {
    let targets = package["targets"].as_array().into_iter().flatten();
    let named = targets.chain([package]).filter_map(|one| one["name"].as_str());
    named.flat_map(|name| [name.to_owned(), name.replace('-', "_")]).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo metadata has no {key}"))
}
