//! An operator brings a version: received, compiled, checked, kept, and put
//! into service where that is wished. Nothing has changed where it fails; the
//! audit log says so either way.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::super::App;
use super::trail::Trail;
use super::{InstallError, ensure_indexes, load, switch};
use crate::domain::deployment::{Deployment, Stage, Step};
use crate::registry::{AreaVersion, Change};
use crate::store::{self, Access};

/// What an operator brings.
#[derive(Clone, Debug)]
pub struct Received {
    /// As the operator calls it.
    pub area: String,
    /// The component.
    pub component: Bytes,
    /// Let it answer at once.
    pub activate: bool,
}

/// What became of it.
#[derive(Clone, Debug)]
pub enum Deployed {
    /// It answers already.
    Unchanged,
    /// It is kept, and waits to be activated.
    Staged,
    /// It answers from now on.
    Live(Change),
}

/// Takes a version in, and lets it answer where that is wished.
///
/// # Errors
/// Every way in which a version can be refused.
pub async fn deploy(app: &App, who: &str, received: Received) -> Result<Deployed, InstallError> {
    let digest = hex::encode(Sha256::digest(&received.component));
    let mut trail = Trail::new(app, who, &received.area, Some(&digest));
    trail.note(Step::Received, None, Some(json!({"bytes": received.component.len()})));
    trail.keep().await?;
    if let Err(error) = stage(app, who, &received, &digest, &mut trail).await {
        return Err(trail.refuse(error).await);
    }
    if !received.activate {
        return Ok(Deployed::Staged);
    }
    let change = switch::activate(app, who, &received.area, &digest, None).await?;
    Ok(change.map_or(Deployed::Unchanged, Deployed::Live))
}

async fn stage(
    app: &App,
    who: &str,
    received: &Received,
    digest: &str,
    trail: &mut Trail<'_>,
) -> Result<(), InstallError> {
    let loaded = load(app, Arc::from(&received.component[..])).await?;
    if loaded.manifest.name != received.area {
        let (expected, found) = (received.area.clone(), loaded.manifest.name);
        return Err(InstallError::OtherArea { expected, found });
    }
    let took_ms = loaded.compiled_in.map(|took| took.as_millis());
    trail.note(Step::Compiled, None, Some(json!({"took_ms": took_ms})));
    let _one_at_a_time = app.installing.lock().await;
    let plan = app.registry.plan(loaded)?;
    ensure_indexes(app, plan.change()).await?;
    trail.note(Step::Checked, None, None);
    let Some(version) = &plan.change().now else { return Ok(()) };
    keep(app, who, received, digest, version, trail).await?;
    app.node.keep_warm(version);
    Ok(())
}

/// The bytes first, so that a row never names what is not there.
async fn keep(
    app: &App,
    who: &str,
    received: &Received,
    digest: &str,
    version: &AreaVersion,
    trail: &mut Trail<'_>,
) -> Result<(), InstallError> {
    let object = app.store.blobs().write_component(digest, received.component.clone()).await?;
    let deployment = Deployment {
        number: 0,
        area: received.area.clone(),
        digest: digest.to_owned(),
        version: version.manifest.version.to_string(),
        size: received.component.len() as u64,
        object,
        publisher: None,
        signature: None,
        stage: Stage::Staged,
        received_at: app.clock.now(),
        received_by: who.to_owned(),
        approved_at: None,
        approved_by: None,
        live_at: None,
    };
    let manifest = serde_json::to_string(&version.manifest)
        .map_err(|error| crate::runtime::LoadError::Host(error.into()))?;
    trail.note(Step::Staged, None, Some(json!({"version": deployment.version})));
    let mut tx = app.store.begin(Access::WriteLocked).await?;
    store::deployments::insert(&mut tx, &deployment, &manifest).await?;
    trail.keep_with(&mut tx).await?;
    Ok(tx.commit().await?)
}
