//! Brings this node to the state that the rows name. A node that cannot load a
//! version keeps the old one, reports the failure, and tries again.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::super::App;
use super::error::InstallError;
use super::install::install;
use super::node_plan::{NodeStep, node_plan};
use super::state::{DesiredArea, DesiredAreas};
use super::{load, rows, unloaded};
use crate::registry::{AreaTargetState, AreaVersion};
use assurance_core::domain::deployment::{LivePointer, VersionStage};
use assurance_core::domain::trial::Trial;
use assurance_store as store;

/// Time to wait for the loading of versions before their routes are installed
/// without code.
const QUICK: Duration = Duration::from_millis(250);

/// Ends the trials that have no row, then runs the live versions. Returns true
/// if the node changed, or failed to change.
pub(super) async fn run_live(app: &App, desired: &DesiredAreas) -> bool {
    app.node.forget_resolved(&app.registry.snapshot(), desired);
    let steps = steps(app, desired);
    for (area, step) in steps.iter().filter(|(_, step)| *step == NodeStep::EndTrial) {
        if let Err(error) = execute_step(app, area, *step, AreaTargetState::NoTrial).await {
            tracing::error!(area.name = area, %error, "cannot end a trial on this node");
        }
    }
    let behind = steps.iter().filter_map(|(_, step)| match step {
        NodeStep::GoLive(pointer) => Some(*pointer),
        _ => None,
    });
    go_live(app, &behind.collect::<Vec<_>>()).await;
    steps.iter().any(|(_, step)| !matches!(step, NodeStep::BeginTrial(_)))
}

/// Begins the trials that do not run on this node yet. Returns true if there
/// were any.
pub(super) async fn begin_trials(app: &App, desired: &DesiredAreas) -> bool {
    let steps = steps(app, desired);
    let due = steps.iter().filter_map(|(_, step)| match step {
        NodeStep::BeginTrial(trial) => Some(*trial),
        _ => None,
    });
    let mut any = false;
    for trial in due {
        any = true;
        if let Err(error) = begin_trial(app, trial).await {
            let (area, digest) = (&trial.area, &trial.digest);
            tracing::error!(
                area.name = area,
                candidate = digest,
                %error,
                "cannot begin a trial on this node"
            );
            app.node.trial_failed(area, digest, error.to_string());
        }
    }
    any
}

/// Returns the steps of all areas that have a row, or a trial on this node.
fn steps<'a>(app: &App, desired: &'a DesiredAreas) -> Vec<(String, NodeStep<'a>)> {
    static WITHOUT_ROWS: DesiredArea = DesiredArea { pointer: None, trial: None };
    let live = app.registry.snapshot();
    let tried = live.trials().map(|on_trial| &on_trial.trial.area);
    let names: BTreeSet<&String> = desired.keys().chain(tried).collect();
    let steps = names.into_iter().flat_map(|name| {
        let desired = desired.get(name).unwrap_or(&WITHOUT_ROWS);
        let steps = node_plan(desired, &app.node.running(&live, name));
        steps.into_iter().map(move |step| (name.clone(), step))
    });
    steps.collect()
}

/// Loads versions concurrently and installs them one after the other.
async fn go_live(app: &App, behind: &[&LivePointer]) {
    let mut loading = Box::pin(join_all(behind.iter().map(|pointer| load_named(app, pointer))));
    let loaded = match tokio::time::timeout(QUICK, &mut loading).await {
        Ok(loaded) => loaded,
        Err(_) => tokio::join!(unloaded::install_unloaded(app, behind), loading).1,
    };
    for (pointer, version) in behind.iter().zip(loaded) {
        let done = match version {
            Ok(version) => go_live_with(app, pointer, version).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            keep_running(app, pointer, &error).await;
        }
    }
}

/// Loads the version that a row names; `None` if the row has no version.
async fn load_named(
    app: &App,
    pointer: &LivePointer,
) -> Result<Option<Arc<AreaVersion>>, InstallError> {
    let Some(digest) = &pointer.digest else { return Ok(None) };
    load::stored(app, &pointer.area, digest).await.map(Some)
}

async fn go_live_with(
    app: &App,
    pointer: &LivePointer,
    version: Option<Arc<AreaVersion>>,
) -> Result<(), InstallError> {
    if let Some(version) = &version {
        load::ensure_collections(app, version).await?;
    }
    let target = version.as_ref().map_or(AreaTargetState::Removed, AreaTargetState::Live);
    execute_step(app, &pointer.area, NodeStep::GoLive(pointer), target).await
}

pub(super) async fn begin_trial(app: &App, trial: &Trial) -> Result<(), InstallError> {
    let version = load::stored(app, &trial.area, &trial.digest).await?;
    load::ensure_collections(app, &version).await?;
    let target = AreaTargetState::Trial(trial, &version);
    execute_step(app, &trial.area, NodeStep::BeginTrial(trial), target).await
}

/// Executes a step if it is still needed: an operator at this node may have
/// executed it, or the rows may have changed.
async fn execute_step(
    app: &App,
    area: &str,
    step: NodeStep<'_>,
    target: AreaTargetState<'_>,
) -> Result<(), InstallError> {
    let _one_at_a_time = app.installing.lock().await;
    let state = rows::area(app, area).await?;
    if node_plan(&state.desired, &state.running).contains(&step) {
        install(app, app.registry.plan(area, target)?);
    }
    Ok(())
}

/// Handles a failed load: the running version keeps serving, unless it was
/// withdrawn. The area returns 503 if its version was withdrawn or none is
/// loaded.
async fn keep_running(app: &App, pointer: &LivePointer, error: &InstallError) {
    let digest = pointer.digest.as_deref().unwrap_or_default();
    tracing::error!(
        area.name = pointer.area,
        area.digest = digest,
        %error,
        "cannot run a live version on this node"
    );
    app.node.failed(&pointer.area, digest, error.to_string());
    unloaded::install_unloaded(app, from_ref(&pointer)).await;
    match is_withdrawn(app, &pointer.area).await {
        Ok(withdrawn) => app.node.staleness.set_withdrawn(&pointer.area, withdrawn),
        Err(error) => tracing::warn!(%error, "cannot check if the running version was withdrawn"),
    }
}

/// Returns whether the version that runs on this node was withdrawn.
async fn is_withdrawn(app: &App, area: &str) -> Result<bool, store::Error> {
    let live = app.registry.snapshot();
    let Some(running) = live.running(area) else { return Ok(false) };
    let found = rows::find(app, area, &running.digest).await?;
    Ok(found.is_some_and(|version| version.stage == VersionStage::Withdrawn))
}
