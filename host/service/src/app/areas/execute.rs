//! Executes a decision about an area.
//!
//! Changes the database rows and writes the audit log entry in one transaction,
//! then changes this node; the other nodes read the rows. Slow work is done
//! before `App::installing` is locked. Under the lock the decision is planned
//! again, because the area may have changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::super::App;
use super::audit_trail::PendingAuditEntries;
use super::checks::{self, PlannedVersionUse};
use super::error::AreaActionError;
use super::install::{install, with_writers_ended};
use super::node_plan::NodeStep;
use super::plan::{AreaAction, AreaRowsChange, plan, stage_after_trial, stage_on_trial};
use super::state::DesiredAndRunningArea;
use super::{folder_version, load, reconcile, rows, searched};
use crate::registry::{AreaTargetState, AreaVersion, LiveVersionChange};
use assurance_core::domain::deployment::VersionStage;
use assurance_core::domain::trial::{Trial, TrialMode};
use assurance_store::deployments::{self, PointerMove};
use assurance_store::trials::{self, TrialEnd};
use assurance_store::{self as store, Connection, TransactionAccess};

/// An action on an area, with its author, reason and statistics for the audit
/// log.
pub(super) struct AreaActionRequest<'a> {
    pub(super) area: &'a str,
    pub(super) event: AreaAction<'a>,
    /// Author for the audit log: the operator, or `assurance` for the host
    /// itself.
    pub(super) who: &'a str,
    pub(super) why: Option<&'a str>,
    /// Statistics of the canary that led the host to end it; `None` for an
    /// operator's action.
    pub(super) figures: Option<Json>,
}

/// Change of an area that an action made.
#[derive(Clone, Debug)]
pub enum AreaChange {
    /// The area has another live version, or was removed.
    Live(LiveVersionChange),
    /// A trial was begun or ended; its new state.
    Trial(Trial),
}

/// Maximum time for which a decision waits until this node runs the versions
/// that were decided about other areas at other nodes.
const CATCH_UP: Duration = Duration::from_secs(10);
/// Interval at which a waiting decision checks whether this node runs the versions that were
/// decided about other areas.
const CATCH_UP_POLL: Duration = Duration::from_millis(100);

/// Executes a decision about an area on all nodes: changes the database rows,
/// then this node; the other nodes read the rows. Returns `None` if the area was
/// already in the requested state.
///
/// # Errors
/// See [`AreaActionError`]; nothing has changed.
pub(super) async fn execute(
    app: &App,
    decision: &AreaActionRequest<'_>,
) -> Result<Option<AreaChange>, AreaActionError> {
    let AreaActionRequest { area, event, .. } = decision;
    let state = rows::area(app, area).await?;
    if plan(&state, event)?.is_none() {
        return Ok(None);
    }
    let version = prepare(app, &state, event).await?;
    if let AreaAction::Activate { .. } = event {
        // A rollback can then make it live again.
        folder_version::keep(app, decision.who, area, VersionStage::Retired).await;
    }
    let begun = Instant::now();
    loop {
        match decide_locked(app, decision, version.as_ref()).await {
            Err(AreaActionError::NotCaughtUp { .. }) if begun.elapsed() < CATCH_UP => {
                tokio::time::sleep(CATCH_UP_POLL).await;
            }
            decided => return decided,
        }
    }
}

/// Plans and executes a decision while no other decision is made.
async fn decide_locked(
    app: &App,
    decision: &AreaActionRequest<'_>,
    version: Option<&Arc<AreaVersion>>,
) -> Result<Option<AreaChange>, AreaActionError> {
    let AreaActionRequest { area, event, .. } = decision;
    let _one_at_a_time = app.installing.lock().await;
    let state = rows::area(app, area).await?;
    let Some(transition) = plan(&state, event)? else { return Ok(None) };
    if let Some(version) = version {
        permit(app, &state, event, version).await?;
    }
    let next = app.registry.plan(area, target(&transition, version))?;
    commit(app, decision, &state, &transition).await?;
    let change = install(app, next).ok_or_else(|| state.overtaken())?;
    searched::complete_later(app, &change);
    Ok(Some(match transition {
        AreaRowsChange::MoveLive { .. } => AreaChange::Live(change),
        AreaRowsChange::BeginTrial(trial) | AreaRowsChange::EndTrial { trial, .. } => {
            AreaChange::Trial(trial)
        }
    }))
}

/// Loads the version that the decision is about and creates its indexes, if the
/// version is permitted. Returns `None` if the action needs no version.
async fn prepare(
    app: &App,
    state: &DesiredAndRunningArea,
    event: &AreaAction<'_>,
) -> Result<Option<Arc<AreaVersion>>, AreaActionError> {
    let Some(digest) = event.loads() else { return Ok(None) };
    let version = load::stored(app, &state.area, digest).await?;
    permit(app, state, event, &version).await?;
    match event {
        AreaAction::BeginTrial { request, .. } => {
            load::ensure_trial_collections(app, &version, request.mode).await?;
        }
        _ => load::ensure_collections(app, &version).await?,
    }
    Ok(Some(version))
}

/// Refuses a version that is not compatible with the live one or waits for
/// approval. A rollback is always permitted, because operators use it to fix
/// incidents.
async fn permit(
    app: &App,
    state: &DesiredAndRunningArea,
    event: &AreaAction<'_>,
    version: &AreaVersion,
) -> Result<(), AreaActionError> {
    let comparison = match event {
        AreaAction::Activate { force, .. } => PlannedVersionUse::Live { force: *force, kept: true },
        AreaAction::BeginTrial { request, .. } => match request.mode {
            TrialMode::Canary => PlannedVersionUse::Canary,
            TrialMode::Shadow => PlannedVersionUse::Shadow,
        },
        _ => return Ok(()),
    };
    let stage = rows::version(app, &state.area, &version.digest).await?.stage;
    let checked = checks::check(app, &state.desired, version, comparison).await?;
    if checks::waits_for_approval(stage, &checked) {
        return Err(checks::needs_approval(version, &checked));
    }
    Ok(())
}

/// Returns the target state of the registry on this node after the transition.
fn target<'a>(
    transition: &'a AreaRowsChange,
    version: Option<&'a Arc<AreaVersion>>,
) -> AreaTargetState<'a> {
    match (transition, version) {
        (AreaRowsChange::MoveLive { .. }, Some(version)) => AreaTargetState::Live(version),
        (AreaRowsChange::MoveLive { .. }, None) => AreaTargetState::Removed,
        (AreaRowsChange::BeginTrial(trial), Some(version)) => {
            AreaTargetState::Trial(trial, version)
        }
        // A trial without a loaded version does not begin.
        (AreaRowsChange::BeginTrial(_) | AreaRowsChange::EndTrial { .. }, _) => {
            AreaTargetState::NoTrial
        }
    }
}

/// Changes the rows of the area and writes the audit log entry in one
/// transaction.
async fn commit(
    app: &App,
    decision: &AreaActionRequest<'_>,
    state: &DesiredAndRunningArea,
    transition: &AreaRowsChange,
) -> Result<(), AreaActionError> {
    let AreaActionRequest { area, event, who, why, .. } = decision;
    let mut trail = PendingAuditEntries::new(app, who, area, event.digest());
    trail.note(event.step(), *why, details(decision, state, transition));
    let committed = async {
        let mut tx = app.store.begin(TransactionAccess::WriteLocked).await?;
        if let Some(area) = changed_elsewhere(app, &mut tx, decision).await? {
            return Ok(Some(area));
        }
        write(&mut tx, decision, state, transition).await?;
        trail.keep_with(&mut tx).await?;
        tx.commit().await.map(|()| None)
    };
    match with_writers_ended(app, area, committed).await {
        Ok(None) => Ok(()),
        Ok(Some(other)) => Err(AreaActionError::NotCaughtUp { area: (*area).to_owned(), other }),
        Err(store::Error::RunAgain) => Err(state.overtaken()),
        Err(error) => Err(error.into()),
    }
}

/// Locks the rows of areas against decisions at other nodes. Returns the name
/// of another area if this node does not run the version of that area's row
/// yet, because the decision was planned without it; else `None`. Versions that
/// failed to load here do not count. A rollback, the end of a trial and a forced
/// removal are always permitted.
async fn changed_elsewhere(
    app: &App,
    tx: &mut Connection,
    decision: &AreaActionRequest<'_>,
) -> Result<Option<String>, store::Error> {
    deployments::lock(tx).await?;
    if let AreaAction::RollBack { .. }
    | AreaAction::EndTrial { .. }
    | AreaAction::Remove { force: true, .. } = decision.event
    {
        return Ok(None);
    }
    let (live, rows) = (app.registry.snapshot(), rows::desired(tx).await?);
    let ignored =
        |step: &NodeStep<'_>| matches!(step, NodeStep::EndTrial) || app.node.has_failed(step);
    let mut others = rows.into_iter().filter(|(name, _)| name != decision.area);
    let behind = others.find(|(name, area)| reconcile::has_steps(app, &live, name, area, ignored));
    Ok(behind.map(|(name, _)| name))
}

/// Returns the changed values for the audit log entry.
fn details(
    decision: &AreaActionRequest<'_>,
    state: &DesiredAndRunningArea,
    transition: &AreaRowsChange,
) -> Option<Json> {
    match transition {
        AreaRowsChange::MoveLive { digest, .. } => {
            Some(json!({"live": digest, "before": state.desired.live()}))
        }
        AreaRowsChange::BeginTrial(trial) => {
            Some(json!({"share": trial.share, "workspaces": trial.workspaces}))
        }
        AreaRowsChange::EndTrial { .. } => decision.figures.clone(),
    }
}

/// Writes the rows of the area that the transition changes. Returns
/// [`store::Error::RunAgain`] if another node has changed them since they were
/// read.
pub(super) async fn write(
    tx: &mut Connection,
    decision: &AreaActionRequest<'_>,
    state: &DesiredAndRunningArea,
    transition: &AreaRowsChange,
) -> Result<(), store::Error> {
    refuse_overtaken(tx, &decision.event, state).await?;
    let (area, by, at) = (decision.area, decision.who, state.now);
    match transition {
        AreaRowsChange::MoveLive { digest, left, from_folder } => {
            let (digest, answered) = (digest.as_deref(), from_folder.as_deref());
            let revision = state.desired.pointer.as_ref().map_or(0, |row| row.revision);
            let moved = PointerMove { area, digest, answered, at, by };
            if let (Some(digest), VersionStage::Withdrawn) = (digest, left) {
                deployments::withdraw_later(tx, area, digest).await?;
            }
            deployments::point(tx, &moved, revision, *left).await
        }
        AreaRowsChange::BeginTrial(trial) => {
            trials::begin(tx, trial, stage_on_trial(trial.mode)).await
        }
        AreaRowsChange::EndTrial { trial, end } => {
            let stage = stage_after_trial(trial.mode);
            let ending = TrialEnd { state: *end, why: decision.why, at, stage };
            let ended = trials::end(tx, trial, &ending).await?;
            if ended { Ok(()) } else { Err(store::Error::RunAgain) }
        }
    }
}

/// Returns [`store::Error::RunAgain`] if another node has changed a row that the decision depends
/// on and does not write: the live version next to which a trial begins, or the trial whose version
/// goes live.
async fn refuse_overtaken(
    tx: &mut Connection,
    event: &AreaAction<'_>,
    state: &DesiredAndRunningArea,
) -> Result<(), store::Error> {
    let overtaken = match event {
        AreaAction::BeginTrial { .. } => {
            deployments::pointer_of(tx, &state.area).await? != state.desired.pointer
        }
        AreaAction::Activate { on_trial: true, .. } => {
            trials::of(tx, &state.area).await? != state.desired.trial
        }
        _ => false,
    };
    if overtaken { Err(store::Error::RunAgain) } else { Ok(()) }
}
