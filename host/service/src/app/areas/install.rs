//! Changes the areas that run on this node, after a decision of an operator at this node or a
//! change of the rows by another node.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::App;
use crate::registry::{AreaVersion, LiveVersionChange, RegistryChangePlan};
use assurance_work::RunningCallSelector;

/// Time for which calls of a version may still run after the version was replaced or removed, or
/// its trial ended.
const LAST_CALLS: Duration = Duration::from_millis(1_000);

/// Activates a planned change of the registry that follows the database rows. Running requests
/// finish with the version they began with. Returns `None` if another change was activated first;
/// that does not happen while the caller holds `App::installing`.
pub(super) fn install(app: &App, plan: RegistryChangePlan) -> Option<LiveVersionChange> {
    let of_trial = plan.of_trial;
    let change = app.registry.activate(plan)?;
    if of_trial {
        trial_changed(app, &change.area);
    } else {
        live_changed(app, &change);
    }
    if let Some(tried) = &change.tried {
        end_last_calls(app, tried);
    }
    Some(change)
}

/// Activates a planned change of the registry that no database row names: a version from the
/// folder, or a manifest without code. Returns `None` like [`install`].
pub(super) fn install_unnamed(app: &App, plan: RegistryChangePlan) -> Option<LiveVersionChange> {
    let change = app.registry.activate(plan)?;
    end_replaced(app, &change);
    announce(app, &change);
    Some(change)
}

fn live_changed(app: &App, change: &LiveVersionChange) {
    app.node.forget_file(&change.area);
    app.node.recovered(&change.area);
    for version in change.before.iter().chain(&change.now).filter(|version| version.is_loaded()) {
        app.node.keep_warm(version);
    }
    end_replaced(app, change);
    announce(app, change);
}

/// Ends the last calls of the version that a change has replaced or removed.
fn end_replaced(app: &App, change: &LiveVersionChange) {
    let replaced = |before: &&Arc<AreaVersion>| {
        change.now.as_ref().is_none_or(|now| now.digest != before.digest)
    };
    if let Some(before) = change.before.as_ref().filter(replaced) {
        end_last_calls(app, before);
    }
}

fn trial_changed(app: &App, area: &str) {
    app.node.trial_recovered(area);
    app.node.changed();
    let snapshot = app.registry.snapshot();
    let digest = snapshot.trial(area).map(|on_trial| {
        app.node.keep_warm(&on_trial.version);
        on_trial.version.digest.as_str()
    });
    tracing::info!(area.name = area, candidate = digest, "trial changed");
}

/// Logs a change of an area's version and requests a new report of this node.
fn announce(app: &App, change: &LiveVersionChange) {
    app.node.changed();
    let version = |area: &Arc<AreaVersion>| match area.is_loaded() {
        true => area.manifest.version.to_string(),
        false => format!("{}, not loaded", area.manifest.version),
    };
    let digest = change.now.as_ref().map(|area| area.digest.as_str());
    tracing::info!(
        area.name = change.area,
        area.digest = digest,
        before = change.before.as_ref().map(version),
        now = change.now.as_ref().map(version),
        "area changed"
    );
}

/// First wait of an operator's change before it ends the area's calls that block other writers.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// Wait of an operator's change between further attempts to end the area's calls that block other
/// writers.
const NEXT_WAIT: Duration = Duration::from_millis(250);

/// Runs `change`, the database writes of an operator's change of an area. While it waits, ends the
/// calls of this area on this node that block other writers.
pub(super) async fn with_writers_ended<T>(
    app: &App,
    area: &str,
    change: impl Future<Output = T>,
) -> T {
    let mut change = pin!(change);
    let mut wait = FIRST_WAIT;
    loop {
        tokio::select! {
            biased;
            changed = &mut change => return changed,
            () = tokio::time::sleep(wait) => end_turns(app, area),
        }
        wait = NEXT_WAIT;
    }
}

fn end_turns(app: &App, area: &str) {
    let live = app.registry.snapshot();
    let tried = live.trial(area).map(|trial| &trial.version);
    for version in live.running(area).into_iter().chain(tried) {
        version.code.end_calls(RunningCallSelector::HoldingWriteLock);
    }
}

/// Ends the remaining calls of a version after [`LAST_CALLS`], unless the version is live or on
/// trial again. Called when a version was replaced or removed, or its trial ended.
fn end_last_calls(app: &App, version: &Arc<AreaVersion>) {
    let (app, version, replaced) = (app.clone(), Arc::clone(version), Instant::now());
    tokio::spawn(async move {
        tokio::time::sleep(LAST_CALLS).await;
        let (live, name) = (app.registry.snapshot(), &version.manifest.name);
        let tried = live.trial(name).map(|trial| &trial.version);
        let mut serving = live.area(name).into_iter().chain(tried);
        if !serving.any(|serving| serving.digest == version.digest) {
            version.code.end_calls(RunningCallSelector::BegunBefore(replaced));
        }
    });
}
