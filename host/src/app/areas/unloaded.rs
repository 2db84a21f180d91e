//! Live versions that this process has not loaded: their routes answer 503
//! instead of 404, and what the others know of them stays true: which events
//! there are and who receives them, which documents may be read, what OpenAPI
//! describes. All of that is in the manifest, which the database has.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::super::App;
use super::{InstallError, announce, ready};
use crate::domain::area::{JobRun, Problem, Reply, Request};
use crate::domain::deployment::Pointer;
use crate::domain::job::{Failure, Outcome};
use crate::runtime::{LoadError, Loaded};
use crate::store::deployments;
use crate::work::{AreaCode, CallError, Ended, UnitOfWork};

/// Stands for the code of a version whose manifest is all that is here. It is
/// never called: its area is closed.
struct Unloaded;

impl AreaCode for Unloaded {
    fn is_loaded(&self) -> bool {
        false
    }

    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        _: &'a Request,
        _: Duration,
    ) -> BoxFuture<'a, Ended<Result<Reply, Problem>>> {
        Box::pin(async { Ended { unit: Some(unit), result: Err(not_loaded()) } })
    }

    fn run<'a>(
        &'a self,
        unit: UnitOfWork,
        _: &'a JobRun,
        _: Duration,
    ) -> BoxFuture<'a, Ended<Result<Outcome, Failure>>> {
        Box::pin(async { Ended { unit: Some(unit), result: Err(not_loaded()) } })
    }
}

fn not_loaded() -> CallError {
    CallError::Host(anyhow::anyhow!("the version is not loaded on this node"))
}

/// Puts the manifests of these live versions in place where no version of
/// their area runs. What that fails for has no routes here: until it has, a
/// path that is not known may be one of its.
pub(super) async fn stand_in(app: &App, pointers: &[Pointer]) {
    for pointer in pointers {
        if let Err(error) = stand_in_for(app, pointer).await {
            let area = &pointer.area;
            tracing::error!(area.name = area, %error, "the routes of a live version are not known");
        }
    }
}

async fn stand_in_for(app: &App, pointer: &Pointer) -> Result<(), InstallError> {
    let Some(digest) = &pointer.digest else { return Ok(()) };
    let stored = stored_manifest(app, &pointer.area, digest).await?;
    let unknown = || InstallError::NotKnown { area: pointer.area.clone(), digest: digest.clone() };
    let manifest = serde_json::from_str(&stored.ok_or_else(unknown)?)
        .map_err(|error| LoadError::Host(error.into()))?;
    let _one_at_a_time = app.installing.lock().await;
    let live = app.registry.snapshot();
    if live.area(&pointer.area).is_some_and(|now| now.is_loaded() || now.digest == *digest) {
        return Ok(());
    }
    let loaded = Loaded {
        manifest,
        digest: digest.clone(),
        code: Arc::new(Unloaded),
        generation: "",
        imports: Vec::new(),
        compiled_in: None,
    };
    let plan = ready::plan(app, loaded).await?;
    if let Some(change) = app.registry.activate(plan) {
        announce(app, &change);
    }
    Ok(())
}

async fn stored_manifest(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<Option<String>, InstallError> {
    let asked = app.store.in_time(async {
        let mut connection = app.store.reader().await?;
        let manifest = deployments::manifest(&mut connection, area, digest).await?;
        connection.release();
        Ok(manifest)
    });
    Ok(asked.await?)
}
