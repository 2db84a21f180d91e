//! Versions that run from this node's folder and have no database row. Such a
//! version is stored before another one replaces it or its area is removed, so
//! that a rollback can bring it back on every node.

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
/// operators had deployed it and it had this stage, and returns its digest. A
/// version that is stored already keeps its stage. Returns `None` if the area
/// does not run from the folder, its file has changed since, or the version
/// cannot be stored.
pub(super) async fn keep(app: &App, who: &str, area: &str, stage: VersionStage) -> Option<String> {
    if !app.node.is_from_file(area) {
        return None;
    }
    let version = app.registry.snapshot().running(area).cloned()?;
    match store(app, who, &version, stage).await {
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

async fn store(
    app: &App,
    who: &str,
    version: &AreaVersion,
    stage: VersionStage,
) -> Result<bool, AreaActionError> {
    let found = folder::component_of(&app.config.areas_dir(), &version.digest).await;
    let Some((component, signature)) = found else { return Ok(false) };
    let signature = signature.map(|text| Signature::read(&text)).transpose()?;
    let size = component.len();
    // Stores the bytes first, so that no row names a missing object.
    let object = app.store.blobs().write_component(&version.digest, component).await?;
    let stored = (object, size);
    let (row, manifest) = rows::new_version(app, who, version, stored, signature.as_ref(), stage)?;
    let row = StoredVersion { live_at: Some(app.clock.now()), ..row };
    let beginning = app.store.begin(TransactionAccess::WriteLocked);
    let mut tx = with_writers_ended(app, &version.manifest.name, beginning).await?;
    deployments::insert(&mut tx, &row, &manifest).await?;
    tx.commit().await?;
    Ok(true)
}

/// Returns the area's version that runs from this node's component folder as a
/// live version with this number. Without the file, its size is 0 and its
/// publisher `None`. Returns `None` if the area does not run from the folder.
pub(super) async fn unstored(app: &App, area: &str, number: i64) -> Option<StoredVersion> {
    let live = app.registry.snapshot();
    let version = live.running(area)?;
    let written_at = app.node.running(&live, area).file_written_at?;
    let found = folder::component_of(&app.config.areas_dir(), &version.digest).await;
    let (size, signature) = found.map_or((0, None), |(bytes, signature)| (bytes.len(), signature));
    let signature = signature.and_then(|text| Signature::read(&text).ok());
    Some(StoredVersion {
        number,
        area: area.to_owned(),
        digest: version.digest.clone(),
        version: version.manifest.version.to_string(),
        size: size as u64,
        object: String::new(),
        publisher: signature.map(|signature| signature.publisher),
        signature: None,
        stage: VersionStage::Live,
        received_at: written_at,
        received_by: "folder".to_owned(),
        approved_at: None,
        approved_by: None,
        live_at: Some(written_at),
    })
}
