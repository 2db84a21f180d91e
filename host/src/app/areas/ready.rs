//! What takes long about a version, done before it is wanted: it is compiled,
//! and its indexes are made. Nothing else waits meanwhile: who holds
//! `App::installing` only plans once more what is ready.

use std::sync::Arc;

use super::super::App;
use super::follow::Candidate;
use super::{InstallError, ensure_indexes};
use crate::domain::trial::Trial;
use crate::registry::{AreaVersion, Plan};

/// A version that is to answer. What is kept warm has been made ready before.
pub(super) async fn to_answer(
    app: &App,
    candidate: Candidate,
) -> Result<Arc<AreaVersion>, InstallError> {
    let loaded = match candidate {
        Candidate::Warm(version) => return Ok(version),
        Candidate::Fresh(loaded) => *loaded,
    };
    let area = loaded.manifest.name.clone();
    let plan = app.registry.plan(loaded)?;
    with_indexes(app, area, plan.change().now.as_ref()).await
}

/// A version that is to be tried beside the live one.
pub(super) async fn to_be_tried(
    app: &App,
    trial: &Trial,
    candidate: Candidate,
) -> Result<Arc<AreaVersion>, InstallError> {
    let loaded = match candidate {
        Candidate::Warm(version) => return Ok(version),
        Candidate::Fresh(loaded) => *loaded,
    };
    let plan: Plan = app.registry.plan_trial(trial, loaded)?;
    let version = plan.trial().map(|on_trial| &on_trial.version);
    with_indexes(app, trial.area.clone(), version).await
}

async fn with_indexes(
    app: &App,
    area: String,
    version: Option<&Arc<AreaVersion>>,
) -> Result<Arc<AreaVersion>, InstallError> {
    let version = version.ok_or(InstallError::Overtaken { area })?;
    ensure_indexes(app, version).await?;
    Ok(Arc::clone(version))
}
