//! What is kept of an area that is taken out, so that a rollback can bring it
//! back on every node.

use serde_json::to_string;

use super::super::App;
use super::super::folder;
use super::InstallError;
use super::trust::Signature;
use crate::domain::deployment::{Deployment, Stage};
use crate::registry::AreaVersion;
use crate::runtime::LoadError;
use crate::store::{Access, deployments};

/// Keeps the version that answers from this node's folder as if operators had
/// deployed it, and returns its digest. `None` if the area does not answer
/// from the folder, or its file is another by now.
pub(super) async fn keep_from_folder(app: &App, who: &str, area: &str) -> Option<String> {
    if !app.node.is_from_file(area) {
        return None;
    }
    let version = app.registry.snapshot().running(area).cloned()?;
    match keep(app, who, &version).await {
        Ok(true) => Some(version.digest.clone()),
        Ok(false) => None,
        Err(error) => {
            tracing::warn!(area.name = area, %error, "a rollback cannot bring this version back");
            None
        }
    }
}

async fn keep(app: &App, who: &str, version: &AreaVersion) -> Result<bool, InstallError> {
    let found = folder::component_of(&app.config.areas_dir(), &version.digest).await;
    let Some((component, signature)) = found else { return Ok(false) };
    let signature = signature.map(|text| Signature::read(&text)).transpose()?;
    let size = component.len() as u64;
    // The bytes first, so that a row never names what is not there.
    let object = app.store.blobs().write_component(&version.digest, component).await?;
    let manifest = to_string(&version.manifest).map_err(|error| LoadError::Host(error.into()))?;
    let deployment = Deployment {
        number: 0,
        area: version.manifest.name.clone(),
        digest: version.digest.clone(),
        version: version.manifest.version.to_string(),
        size,
        object,
        publisher: signature.as_ref().map(|signature| signature.publisher.clone()),
        signature: signature.as_ref().map(Signature::bytes).transpose()?,
        stage: Stage::Withdrawn,
        received_at: app.clock.now(),
        received_by: who.to_owned(),
        approved_at: None,
        approved_by: None,
        live_at: None,
    };
    let mut tx = app.store.begin(Access::WriteLocked).await?;
    deployments::insert(&mut tx, &deployment, &manifest).await?;
    tx.commit().await?;
    Ok(true)
}
