//! What takes long about a version, done before it is wanted: its schemas are
//! compiled, and its indexes are made before it has any traffic. Nothing else waits meanwhile: who holds
//! `App::installing` only plans once more what is ready.

use std::sync::Arc;

use super::super::App;
use super::follow::Candidate;
use super::{InstallError, ensure_indexes};
use crate::domain::trial::Trial;
use crate::registry::{AreaVersion, Plan};
use crate::runtime::{LoadError, Loaded};

/// A version that could answer: its schemas are compiled, away from the serving
/// threads. What it needs in the database is not made yet.
pub(super) async fn planned(
    app: &App,
    candidate: Candidate,
) -> Result<Arc<AreaVersion>, InstallError> {
    let loaded = match candidate {
        Candidate::Warm(version) => return Ok(version),
        Candidate::Fresh(loaded) => *loaded,
    };
    let area = loaded.manifest.name.clone();
    let plan = plan(app, loaded).await?;
    plan.change().now.clone().ok_or(InstallError::Overtaken { area })
}

/// Plans a version that may have to be compiled, which takes time.
pub(super) async fn plan(app: &App, loaded: Loaded) -> Result<Plan, InstallError> {
    let registry = Arc::clone(&app.registry);
    let planning = tokio::task::spawn_blocking(move || registry.plan(loaded));
    Ok(planning.await.map_err(|error| LoadError::Host(error.into()))??)
}

/// A version that is to answer, with its indexes.
pub(super) async fn to_answer(
    app: &App,
    candidate: Candidate,
) -> Result<Arc<AreaVersion>, InstallError> {
    let version = planned(app, candidate).await?;
    ensure_indexes(app, &version).await?;
    Ok(version)
}

/// A version that is to be tried beside the live one.
pub(super) async fn to_be_tried(
    app: &App,
    trial: &Trial,
    candidate: Candidate,
) -> Result<Arc<AreaVersion>, InstallError> {
    let version = match candidate {
        Candidate::Warm(version) => version,
        Candidate::Fresh(loaded) => {
            let (registry, planned) = (Arc::clone(&app.registry), trial.clone());
            let planning =
                tokio::task::spawn_blocking(move || registry.plan_trial(&planned, *loaded));
            let plan: Plan = planning.await.map_err(|error| LoadError::Host(error.into()))??;
            let area = trial.area.clone();
            let version = plan.trial().map(|on_trial| Arc::clone(&on_trial.version));
            version.ok_or(InstallError::Overtaken { area })?
        }
    };
    ensure_indexes(app, &version).await?;
    Ok(version)
}
