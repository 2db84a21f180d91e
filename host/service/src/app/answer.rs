//! Chooses the version of an area that serves a request or a job, and records how the call ended.
//!
//! While a canary runs, it serves requests and jobs of the workspaces it covers. The live version's
//! manifest still decides which requests are valid: it routed, authorized and checked the request
//! before this module is called.

use std::sync::Arc;
use std::time::Instant;

use super::call::{AreaRequest, AreaRequestExecutor, CallRefusal, CommittedResponse};
use super::{App, shadow};
use crate::jobs::{RunObserver, RunnableArea};
use crate::registry::{AreaVersion, RouteMatch, Snapshot, TrialStats, VersionOnTrial};
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
            figures.failure.notify_one();
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

/// Returns the version of an area that runs a workspace's jobs; `None` if the area is not live.
/// During a canary, its observer adds these runs to the statistics of the version.
#[must_use]
pub fn runs_jobs(snapshot: &Snapshot, area: &str, workspace: WorkspaceId) -> Option<RunnableArea> {
    let live = snapshot.area(area)?;
    let trial = snapshot.trial(area).filter(|trial| trial.trial.mode == TrialMode::Canary);
    let canary = trial.filter(|trial| trial.trial.covers(workspace));
    let version = canary.map_or(live, |canary| &canary.version);
    let is_canary = canary.is_some();
    let observer = trial.map(|trial| {
        let figures = Arc::clone(&trial.figures);
        Arc::new(move |failed: bool| count_run(&figures, is_canary, failed)) as Arc<RunObserver>
    });
    let (code, scope) = (Arc::clone(&version.code), Arc::clone(&version.scope));
    Some(RunnableArea { code, scope, observer })
}

/// Counts a job run that has ended; `failed` is true for a fault of the area's code.
fn count_run(figures: &TrialStats, canary: bool, failed: bool) {
    let side = if canary { &figures.candidate } else { &figures.live };
    side.ran(failed);
    if failed {
        figures.failure.notify_one();
    }
}
