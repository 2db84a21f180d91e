//! Chooses the version of an area that serves a request or a job, and records how the call ended.
//!
//! While a canary runs, it serves requests and jobs of the workspaces it covers. The live version's
//! manifest still decides which requests are valid: it routed, authorized and checked the request
//! before this module is called.

use std::sync::Arc;
use std::time::Instant;

use super::call::{AreaRequest, Call, CallRefusal, CommittedResponse};
use super::{App, shadow};
use crate::registry::{AreaVersion, OnTrial, RouteMatch, Snapshot, TrialSide};
use assurance_contract::RouteContract;
use assurance_core::domain::area::ProblemKind;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::trial::TrialMode;

/// Executes one operation on the version that serves the request's workspace.
///
/// # Errors
/// See [`CallRefusal`]. No effect of the call is stored.
pub async fn answer(
    app: &App,
    snapshot: &Snapshot,
    found: &RouteMatch<'_, '_>,
    request: AreaRequest,
) -> Result<CommittedResponse, CallRefusal> {
    let (live, route) = (found.area, found.route);
    let Some(trial) = snapshot.trial(&live.manifest.name) else {
        return Call { app, area: live, route, capture: None }.run(request).await;
    };
    if trial.trial.mode == TrialMode::Shadow {
        return Box::pin(shadow::answer(app, trial, found, request)).await;
    }
    let candidate = candidate(trial, route, request.workspace);
    let side = if candidate.is_some() { &trial.figures.candidate } else { &trial.figures.live };
    let (area, contract) = candidate.unwrap_or((live, route));
    let begun = Instant::now();
    let call = Call { app, area, route: contract, capture: None };
    let answered = call.run(request).await;
    let failed = has_failed(&answered);
    side.answered(&route.route.operation_id, begun.elapsed(), failed);
    if failed {
        trial.figures.notify_failure();
    }
    answered
}

/// Returns the canary and its route if the canary serves this workspace and has the operation.
fn candidate<'t>(
    trial: &'t OnTrial,
    route: &RouteContract,
    workspace: WorkspaceId,
) -> Option<(&'t AreaVersion, &'t RouteContract)> {
    if !trial.trial.covers(workspace) {
        return None;
    }
    Some((&trial.version, trial.route(&route.route.operation_id)?))
}

/// Whether the version failed: a fault of its code, or a reply of kind `unavailable`.
fn has_failed(answered: &Result<CommittedResponse, CallRefusal>) -> bool {
    match answered {
        Err(CallRefusal::Failed(error)) => error.is_areas_fault(),
        Err(CallRefusal::Problem(problem)) => problem.kind == ProblemKind::Unavailable,
        _ => false,
    }
}

/// Returns the version that runs a workspace's jobs. During a canary it also returns the counter
/// for the runs.
#[must_use]
pub fn runs_jobs(
    snapshot: &Snapshot,
    area: &str,
    workspace: WorkspaceId,
) -> Option<(Arc<AreaVersion>, Option<TrialJobRunCounter>)> {
    let live = snapshot.area(area)?;
    let Some(trial) = snapshot.trial(area) else { return Some((Arc::clone(live), None)) };
    if trial.trial.mode == TrialMode::Shadow {
        return Some((Arc::clone(live), None));
    }
    let canary = trial.trial.covers(workspace);
    let version = if canary { &trial.version } else { live };
    Some((Arc::clone(version), Some(TrialJobRunCounter { trial: Arc::clone(trial), canary })))
}

/// Counts the runs of one version's jobs during a canary.
#[derive(Clone, Debug)]
pub struct TrialJobRunCounter {
    trial: Arc<OnTrial>,
    canary: bool,
}

impl TrialJobRunCounter {
    /// Records the end of a run; `failed` is true for a fault of the area's code.
    pub fn ran(&self, failed: bool) {
        let figures = &self.trial.figures;
        let side: &TrialSide = if self.canary { &figures.candidate } else { &figures.live };
        side.ran(failed);
        if failed {
            figures.notify_failure();
        }
    }
}
