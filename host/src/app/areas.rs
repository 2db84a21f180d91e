//! Taking versions of areas in and out while the service answers.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::App;
use crate::registry::{Change, Refusal};
use crate::runtime::{LoadError, Loaded};
use crate::store;

/// Why a version is not taken in, or not taken out.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The component is not one this host can run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its manifest does not fit.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It calls itself something else than the caller says.
    #[error("the component is the area {found:?}, not {expected:?}; send it to /areas/{found}")]
    OtherArea {
        /// As the caller says.
        expected: String,
        /// As the component says.
        found: String,
    },
    /// Its indexes could not be made.
    #[error("the indexes of area {area:?} could not be made: {source}")]
    Indexes {
        /// Which area.
        area: String,
        /// What the store said.
        source: store::Error,
    },
    /// The component could not be kept for the next start.
    #[error("{path} could not be written: {source}")]
    Keep {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What an installation came to.
#[derive(Clone, Debug)]
pub enum Installed {
    /// This very version was live already.
    Unchanged {
        /// Its name.
        area: String,
        /// Its digest.
        digest: String,
    },
    /// It answers from now on.
    Live(Change),
}

/// Loads a component: compiled, its imports granted, its manifest read.
///
/// # Errors
/// It is not one this host can run.
pub async fn load(app: &App, component: Arc<[u8]>) -> Result<Loaded, LoadError> {
    let loaded = app.runtime.load(component, |area| app.config.areas.granted(area)).await?;
    Ok((app.code_of)(loaded))
}

/// Takes a loaded version in: checks it against the live areas, makes its
/// indexes, and lets it answer. Requests under way end on the version they
/// began with.
///
/// # Errors
/// Nothing has changed where it fails.
pub async fn install(app: &App, loaded: Loaded) -> Result<Installed, InstallError> {
    let _one_at_a_time = app.installing.lock().await;
    let live = app.registry.snapshot();
    if live.area(&loaded.manifest.name).is_some_and(|area| area.digest == loaded.digest) {
        let area = loaded.manifest.name;
        return Ok(Installed::Unchanged { area, digest: loaded.digest });
    }
    loop {
        let plan = app.registry.plan(loaded.clone())?;
        ensure_indexes(app, plan.change()).await?;
        if let Some(change) = app.registry.activate(plan) {
            announce(&change);
            return Ok(Installed::Live(change));
        }
    }
}

/// Takes a component in and keeps it for the next start.
///
/// # Errors
/// As [`load`] and [`install`]; and where it could not be kept, though it
/// answers now.
pub async fn install_and_keep(
    app: &App,
    expected: &str,
    component: Vec<u8>,
) -> Result<Installed, InstallError> {
    let component: Arc<[u8]> = component.into();
    let loaded = load(app, Arc::clone(&component)).await?;
    if loaded.manifest.name != expected {
        let found = loaded.manifest.name;
        return Err(InstallError::OtherArea { expected: expected.to_owned(), found });
    }
    let installed = install(app, loaded).await?;
    keep(&file_of(app, expected), &component)?;
    Ok(installed)
}

/// Takes an area out: from now on nothing answers at its routes. What it has
/// stored stays.
///
/// # Errors
/// It is not live.
pub async fn remove(app: &App, name: &str) -> Result<Change, InstallError> {
    let _one_at_a_time = app.installing.lock().await;
    loop {
        let plan = app.registry.plan_removal(name)?;
        if let Some(change) = app.registry.activate(plan) {
            let path = file_of(app, name);
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(InstallError::Keep { path, source });
                }
                _ => {}
            }
            announce(&change);
            return Ok(change);
        }
    }
}

async fn ensure_indexes(app: &App, change: &Change) -> Result<(), InstallError> {
    let Some(now) = &change.now else { return Ok(()) };
    let own: Vec<_> = now.scope.collections.values().filter(|c| c.own).cloned().collect();
    let made = store::indexes::ensure_indexes(&app.store, &own).await;
    made.map_err(|source| InstallError::Indexes { area: change.area.clone(), source })
}

fn announce(change: &Change) {
    let version = |area: &Arc<crate::registry::AreaVersion>| area.manifest.version.to_string();
    let digest = change.now.as_ref().map(|area| area.digest.as_str());
    tracing::info!(
        area.name = change.area,
        area.digest = digest,
        before = change.before.as_ref().map(version),
        now = change.now.as_ref().map(version),
        "area changed"
    );
}

fn file_of(app: &App, area: &str) -> PathBuf {
    app.areas_dir.join(format!("{area}.wasm"))
}

/// The whole file or the old one, never half of it.
fn keep(path: &Path, component: &[u8]) -> Result<(), InstallError> {
    let unique = hex::encode(&Sha256::digest(component)[..8]);
    let beside = path.with_extension(format!("{unique}.new"));
    let written = (|| {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(component)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    })();
    written.map_err(|source| InstallError::Keep { path: path.to_path_buf(), source })
}
