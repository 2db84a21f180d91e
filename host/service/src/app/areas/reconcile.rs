//! Brings this node to the state that the rows name. A node that cannot load a
//! version keeps the old one, reports the failure, and tries again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::super::App;
use super::super::claimed_keys::ClaimedKey;
use super::error::AreaActionError;
use super::install::install;
use super::node_plan::{NodeStep, node_plan};
use super::state::{AreaRevisions, DesiredArea, DesiredAreas};
use super::{load, rows, searched, unloaded};
use crate::registry::{AreaTargetState, AreaVersion, Snapshot};
use assurance_core::domain::deployment::{LivePointer, VersionStage};
use assurance_core::domain::trial::Trial;
use assurance_store as store;

/// Time to wait for the loading of a live version before its routes are
/// installed without code, so that they return 503.
const QUICK: Duration = Duration::from_millis(250);

/// Starts a task for each area whose state on this node differs from its rows,
/// unless a task applies the same rows already. So a slow load delays no other
/// area, and no later change of its own. Returns the tasks.
pub(super) fn run(app: &App, desired: &DesiredAreas) -> Vec<JoinHandle<()>> {
    let live = app.registry.snapshot();
    app.node.forget_resolved(&live, desired);
    app.node.forget_unused_files(desired);
    let tried = live.trials().map(|on_trial| &on_trial.trial.area);
    let names: BTreeSet<&String> = desired.keys().chain(tried).collect();
    let changes = names.into_iter().filter_map(|name| {
        let desired = desired.get(name).cloned().unwrap_or_default();
        if node_plan(&desired, &app.node.running(&live, name)).is_empty() {
            return None;
        }
        let live = desired.pointer.as_ref().map_or(0, |row| row.revision);
        let trial = desired.running_trial().map_or(0, |trial| trial.revision);
        let claim = app.node.applying.claim(&(name.clone(), live, trial))?;
        Some(tokio::spawn(apply(app.clone(), name.clone(), desired, claim)))
    });
    changes.collect()
}

/// Returns whether this node runs the live versions, or failed to load them.
pub(super) fn runs_live(app: &App, desired: &DesiredAreas) -> bool {
    let live = app.registry.snapshot();
    let ignored = |step: &NodeStep<'_>| matches!(step, NodeStep::BeginTrial(_));
    !desired.iter().any(|(name, area)| has_steps(app, &live, name, area, ignored))
}

/// Returns whether this node must take steps to reach the state in the area's
/// rows, other than the ignored ones.
pub(super) fn has_steps(
    app: &App,
    live: &Snapshot,
    name: &str,
    area: &DesiredArea,
    ignored: impl Fn(&NodeStep<'_>) -> bool,
) -> bool {
    node_plan(area, &app.node.running(live, name)).iter().any(|step| !ignored(step))
}

/// Brings one area on this node to the state in the area's rows. A trial begins
/// in a background task, for which no caller waits, and which keeps the claim.
async fn apply(app: App, area: String, desired: DesiredArea, claim: ClaimedKey<AreaRevisions>) {
    let running = app.node.running(&app.registry.snapshot(), &area);
    for step in node_plan(&desired, &running) {
        match step {
            NodeStep::EndTrial => {
                let ended = execute_step(&app, &area, step, AreaTargetState::NoTrial).await;
                if let Err(error) = ended {
                    tracing::error!(area.name = area, %error, "cannot end a trial on this node");
                }
            }
            NodeStep::GoLive(pointer) => go_live(&app, pointer).await,
            NodeStep::BeginTrial(trial) => {
                let (app, trial) = (app.clone(), trial.clone());
                tokio::spawn(async move {
                    try_trial(&app, &trial).await;
                    drop(claim);
                });
                return;
            }
        }
    }
}

/// Begins a trial on this node. Logs and records the reason if this fails.
async fn try_trial(app: &App, trial: &Trial) {
    if let Err(error) = begin_trial(app, trial).await {
        let (area, digest) = (&trial.area, &trial.digest);
        tracing::error!(
            area.name = area,
            candidate = digest,
            %error,
            "cannot begin a trial on this node"
        );
        app.node.trial_failed(area, digest, error.to_string());
        app.node.changed();
    }
}

/// Loads a version and makes it live on this node. If that takes longer than
/// [`QUICK`], installs its routes without code meanwhile.
async fn go_live(app: &App, pointer: &LivePointer) {
    let mut loading = Box::pin(async {
        let Some(digest) = &pointer.digest else { return Ok(None) };
        load::stored(app, &pointer.area, digest).await.map(Some)
    });
    let loaded = match tokio::time::timeout(QUICK, &mut loading).await {
        Ok(loaded) => loaded,
        Err(_) => tokio::join!(unloaded::install_unloaded(app, pointer), loading).1,
    };
    let done = match loaded {
        Ok(version) => go_live_with(app, pointer, version).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        keep_running(app, pointer, &error).await;
    }
}

async fn go_live_with(
    app: &App,
    pointer: &LivePointer,
    version: Option<Arc<AreaVersion>>,
) -> Result<(), AreaActionError> {
    if let Some(version) = &version {
        load::ensure_collections(app, version).await?;
    }
    let target = version.as_ref().map_or(AreaTargetState::Removed, AreaTargetState::Live);
    execute_step(app, &pointer.area, NodeStep::GoLive(pointer), target).await
}

pub(super) async fn begin_trial(app: &App, trial: &Trial) -> Result<(), AreaActionError> {
    let version = load::stored(app, &trial.area, &trial.digest).await?;
    load::ensure_trial_collections(app, &version, trial.mode).await?;
    let target = AreaTargetState::Trial(trial, &version);
    execute_step(app, &trial.area, NodeStep::BeginTrial(trial), target).await
}

/// Executes a step on this node if it is still needed: an operator at this node
/// may have executed it, or the rows may have changed.
async fn execute_step(
    app: &App,
    area: &str,
    step: NodeStep<'_>,
    target: AreaTargetState<'_>,
) -> Result<(), AreaActionError> {
    let _one_at_a_time = app.installing.lock().await;
    let state = rows::area(app, area).await?;
    if node_plan(&state.desired, &state.running).contains(&step)
        && let Some(change) = install(app, app.registry.plan(area, target)?)
    {
        searched::complete_later(app, &change);
    }
    Ok(())
}

/// Handles the failure to load an area's live version: the running version
/// keeps serving, unless it was withdrawn. The area returns 503 if its version
/// was withdrawn or none is loaded.
async fn keep_running(app: &App, pointer: &LivePointer, error: &AreaActionError) {
    let digest = pointer.digest.as_deref().unwrap_or_default();
    tracing::error!(
        area.name = pointer.area,
        area.digest = digest,
        %error,
        "cannot run a live version on this node"
    );
    app.node.failed(&pointer.area, digest, error.to_string());
    unloaded::install_unloaded(app, pointer).await;
    match is_withdrawn(app, &pointer.area).await {
        Ok(withdrawn) => app.node.staleness.set_withdrawn(&pointer.area, withdrawn),
        Err(error) => tracing::warn!(%error, "cannot check if the running version was withdrawn"),
    }
    // A removal is tried again at the next poll, not at once.
    if pointer.digest.is_some() {
        app.node.changed();
    }
}

/// Returns whether the version of the area that runs on this node was
/// withdrawn.
async fn is_withdrawn(app: &App, area: &str) -> Result<bool, store::Error> {
    let live = app.registry.snapshot();
    let Some(running) = live.running(area) else { return Ok(false) };
    let found = rows::find(app, area, &running.digest).await?;
    Ok(found.is_some_and(|version| version.stage == VersionStage::Withdrawn))
}
