//! Which version of an area a request or a job is for, and what is learned
//! from how that went.
//!
//! While a canary is tried, it answers for the workspaces it covers, requests
//! and jobs alike. What clients may send stays what the live version says:
//! its manifest routed, admitted and checked the request before it comes here.

use std::sync::Arc;
use std::time::Instant;

use super::call::{self, Answered, Caller, Incoming, Refused};
use super::{App, shadow};
use crate::domain::area::ProblemKind;
use crate::domain::id::WorkspaceId;
use crate::domain::trial::Mode;
use crate::registry::{AreaVersion, Match, OnTrial, RouteContract, Side, Snapshot};

/// Answers one operation by the version that is for the request's workspace.
///
/// # Errors
/// See [`Refused`]; in every case nothing of the call is kept.
pub async fn answer(
    app: &App,
    snapshot: &Snapshot,
    found: &Match<'_, '_>,
    caller: Caller,
    incoming: Incoming,
    request_id: &str,
) -> Result<Answered, Refused> {
    let (live, route) = (found.area, found.route);
    let Some(trial) = snapshot.trial(&live.manifest.name) else {
        return call::handle(app, live, route, caller, incoming, request_id).await;
    };
    if trial.trial.mode == Mode::Shadow {
        let asked = shadow::answer(app, trial, found, caller, incoming, request_id);
        return Box::pin(asked).await;
    }
    let candidate = candidate(trial, route, incoming.workspace);
    let side = if candidate.is_some() { &trial.figures.candidate } else { &trial.figures.live };
    let (version, contract) = candidate.unwrap_or((live, route));
    let begun = Instant::now();
    let answered = call::handle(app, version, contract, caller, incoming, request_id).await;
    let failed = has_failed(&answered);
    side.answered(&route.route.operation_id, begun.elapsed(), failed);
    if failed {
        trial.figures.doubt();
    }
    answered
}

/// The canary, where it is for this workspace and has the operation.
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

/// The area answers for it: a fault of its code, or it says itself that it
/// cannot.
fn has_failed(answered: &Result<Answered, Refused>) -> bool {
    match answered {
        Err(Refused::Failed(error)) => error.is_areas_fault(),
        Err(Refused::Problem(problem)) => problem.kind == ProblemKind::Unavailable,
        _ => false,
    }
}

/// The version that runs a workspace's jobs, and where their ends are counted
/// while a trial goes on.
#[must_use]
pub fn runs_jobs(
    snapshot: &Snapshot,
    area: &str,
    workspace: WorkspaceId,
) -> Option<(Arc<AreaVersion>, Option<Counted>)> {
    let live = snapshot.area(area)?;
    let Some(trial) = snapshot.trial(area) else { return Some((Arc::clone(live), None)) };
    if trial.trial.mode == Mode::Shadow {
        return Some((Arc::clone(live), None));
    }
    let canary = trial.trial.covers(workspace);
    let version = if canary { &trial.version } else { live };
    Some((Arc::clone(version), Some(Counted { trial: Arc::clone(trial), canary })))
}

/// Where the ends of a version's jobs are counted.
#[derive(Clone, Debug)]
pub struct Counted {
    trial: Arc<OnTrial>,
    canary: bool,
}

impl Counted {
    /// A run has ended.
    pub fn ran(&self, failed: bool) {
        let figures = &self.trial.figures;
        let side: &Side = if self.canary { &figures.candidate } else { &figures.live };
        side.ran(failed);
        if failed {
            figures.doubt();
        }
    }
}
