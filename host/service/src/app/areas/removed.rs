//! Stores a version that runs from this node's folder before its area is
//! removed, so that a rollback can bring it back on every node.

use super::super::App;
use super::super::folder;
use super::error::AreaActionError;
use super::install::with_writers_ended;
use super::rows;
use super::trust::Signature;
use crate::registry::AreaVersion;
use assurance_core::domain::deployment::{StoredVersion, VersionStage};
use assurance_store::{TransactionAccess, deployments};

/// Stores the area's version that runs from this node's component folder as if
/// operators had deployed it, and returns its digest. Returns `None` if the
/// area does not run from the folder, its file has changed since, or the
/// version cannot be stored.
pub(super) async fn keep_from_folder(app: &App, who: &str, area: &str) -> Option<String> {
    if !app.node.is_from_file(area) {
        return None;
    }
    let version = app.registry.snapshot().running(area).cloned()?;
    match keep(app, who, &version).await {
        Ok(true) => Some(version.digest.clone()),
        Ok(false) => None,
        Err(error) => {
            tracing::warn!(
                area.name = area,
                %error,
                "cannot store the version; a rollback cannot restore it"
            );
            None
        }
    }
}

async fn keep(app: &App, who: &str, version: &AreaVersion) -> Result<bool, AreaActionError> {
    let found = folder::component_of(&app.config.areas_dir(), &version.digest).await;
    let Some((component, signature)) = found else { return Ok(false) };
    let signature = signature.map(|text| Signature::read(&text)).transpose()?;
    let size = component.len();
    // Stores the bytes first, so that no row names a missing object.
    let object = app.store.blobs().write_component(&version.digest, component).await?;
    let (signature, stage) = (signature.as_ref(), VersionStage::Withdrawn);
    let (row, manifest) = rows::new_version(app, who, version, (object, size), signature, stage)?;
    let row = StoredVersion { live_at: Some(app.clock.now()), ..row };
    let beginning = app.store.begin(TransactionAccess::WriteLocked);
    let mut tx = with_writers_ended(app, &version.manifest.name, beginning).await?;
    deployments::insert(&mut tx, &row, &manifest).await?;
    tx.commit().await?;
    Ok(true)
}
