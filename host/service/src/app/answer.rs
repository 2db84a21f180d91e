//! Chooses the version of an area that serves a request or a job, and records how the call ended.
//!
//! While a canary runs, it serves requests and jobs of the workspaces it covers. The live version's
//! manifest still decides which requests are valid: it routed, authorized and checked the request
//! before this module is called.

use std::sync::Arc;
use std::time::Instant;

use super::call::{AreaRequest, AreaRequestExecutor, CallRefusal, CommittedResponse};
use super::{App, shadow};
use crate::registry::{AreaVersion, RouteMatch, Snapshot, TrialSideCounters, VersionOnTrial};
use assurance_contract::CompiledRoute;
use assurance_core::budgets::BudgetOwnerKind;
use assurance_core::domain::area::ProblemKind;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::trial::TrialMode;
use assurance_work::CallError;

/// Executes a request to an area, on the version that serves the request's workspace: the live
/// version, or the canary if one runs.
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
        return AreaRequestExecutor { app, area: live, route, capture: None }.run(request).await;
    };
    if trial.trial.mode == TrialMode::Shadow {
        return Box::pin(shadow::answer(app, trial, found, request)).await;
    }
    let candidate = candidate(trial, route, request.workspace);
    let mut counter = TrialCallCounter {
        trial,
        canary: candidate.is_some(),
        operation: &route.route.operation_id,
        begun: Instant::now(),
        end: CallEnd::Abandoned,
    };
    let (area, contract) = candidate.unwrap_or((live, route));
    let call = AreaRequestExecutor { app, area, route: contract, capture: None };
    let answered = call.run(request).await;
    counter.end = end_of(&answered);
    answered
}

/// Adds one request to the statistics of a running canary. It counts on drop, so a request whose
/// client disconnects before the response counts, too.
struct TrialCallCounter<'a> {
    trial: &'a VersionOnTrial,
    canary: bool,
    operation: &'a str,
    begun: Instant,
    end: CallEnd,
}

/// How a request to an area ended, as the comparison of a canary with the live version counts it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    Answered,
    /// The client disconnected before the response. The time until then counts as latency, so a
    /// version that hangs is slower. It is no fault, because the version was within its deadline.
    Abandoned,
    /// The version failed: a fault of its code, or a reply of kind `unavailable`.
    Failed,
    /// The area had no free instance or no budget. This counts as a fault without a latency: a
    /// version that needs more than the other one is refused more often.
    Refused,
    /// The workspace had used up its own budget. The request is not counted, because that does not
    /// depend on the version.
    OverWorkspaceBudget,
}

impl Drop for TrialCallCounter<'_> {
    fn drop(&mut self) {
        let (figures, failed) = (&self.trial.figures, self.end == CallEnd::Failed);
        let side = if self.canary { &figures.candidate } else { &figures.live };
        match self.end {
            CallEnd::OverWorkspaceBudget => return,
            CallEnd::Refused => side.ran(true),
            _ => side.answered(self.operation, self.begun.elapsed(), failed),
        }
        if matches!(self.end, CallEnd::Failed | CallEnd::Refused) {
            figures.notify_failure();
        }
    }
}

/// Returns the canary and its route if the canary serves this workspace and has the operation.
fn candidate<'t>(
    trial: &'t VersionOnTrial,
    route: &CompiledRoute,
    workspace: WorkspaceId,
) -> Option<(&'t AreaVersion, &'t CompiledRoute)> {
    if !trial.trial.covers(workspace) {
        return None;
    }
    Some((&trial.version, trial.route(&route.route.operation_id)?))
}

fn end_of(answered: &Result<CommittedResponse, CallRefusal>) -> CallEnd {
    match answered {
        Err(CallRefusal::Failed(CallError::OverBudget(over)))
            if over.whose == BudgetOwnerKind::Workspace =>
        {
            CallEnd::OverWorkspaceBudget
        }
        Err(CallRefusal::Failed(CallError::Overloaded | CallError::OverBudget(_))) => {
            CallEnd::Refused
        }
        Err(CallRefusal::Failed(error)) if error.is_areas_fault() => CallEnd::Failed,
        Err(CallRefusal::Problem(problem)) if problem.kind == ProblemKind::Unavailable => {
            CallEnd::Failed
        }
        _ => CallEnd::Answered,
    }
}

/// Returns the version of an area that runs a workspace's jobs, and during a canary also the
/// counter for these runs. Returns `None` if the area is not live.
#[must_use]
pub fn runs_jobs(
    snapshot: &Snapshot,
    area: &str,
    workspace: WorkspaceId,
) -> Option<(Arc<AreaVersion>, Option<TrialJobRunObserver>)> {
    let live = snapshot.area(area)?;
    let Some(trial) = snapshot.trial(area) else { return Some((Arc::clone(live), None)) };
    if trial.trial.mode == TrialMode::Shadow {
        return Some((Arc::clone(live), None));
    }
    let canary = trial.trial.covers(workspace);
    let version = if canary { &trial.version } else { live };
    Some((Arc::clone(version), Some(TrialJobRunObserver { trial: Arc::clone(trial), canary })))
}

/// Adds runs of an area's jobs to the statistics of a running canary: to the canary's or to the
/// live version's.
#[derive(Clone, Debug)]
pub struct TrialJobRunObserver {
    trial: Arc<VersionOnTrial>,
    canary: bool,
}

impl TrialJobRunObserver {
    /// Counts a job run that has ended; `failed` is true for a fault of the area's code.
    pub fn ran(&self, failed: bool) {
        let figures = &self.trial.figures;
        let side: &TrialSideCounters = if self.canary { &figures.candidate } else { &figures.live };
        side.ran(failed);
        if failed {
            figures.notify_failure();
        }
    }
}
