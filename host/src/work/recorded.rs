//! A call that is written down, and how its end is told in a recording.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{CallError, UnitOfWork};
use crate::domain::area::{Problem, Reply};
use crate::domain::job::{Failure, Outcome as JobOutcome};
use crate::recordings::{Fault, Outcome, Recorder};

impl UnitOfWork {
    /// Has the call written down, every host call of it.
    #[must_use]
    pub fn recorded(mut self, recorder: Option<&Arc<Recorder>>) -> Self {
        self.recorder = recorder.cloned();
        self
    }

    /// Who writes the call down, if anybody does.
    #[must_use]
    pub fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref()
    }
}

impl CallError {
    /// As a recording tells it; nothing where it is not the area's fault.
    #[must_use]
    pub fn to_fault(&self) -> Option<Fault> {
        let kind = match self {
            Self::Trap(_) => "trap",
            Self::Deadline(_) => "deadline",
            Self::CpuTime(_) => "cpu_time",
            Self::OutOfMemory(_) => "out_of_memory",
            Self::Turn { .. } | Self::Limit(_) => "limit",
            Self::Contract(_) => "contract",
            Self::Replaced
            | Self::Overloaded
            | Self::OverBudget(_)
            | Self::Store(_)
            | Self::Host(_) => return None,
        };
        Some(Fault { kind: kind.to_owned(), message: Some(self.to_string()), frames: Vec::new() })
    }
}

/// The end of a request, of a route that answers successes with `status`;
/// nothing where it is not the area's.
#[must_use]
pub fn end_of_request(
    status: u16,
    result: &Result<Result<Reply, Problem>, CallError>,
) -> Option<Outcome> {
    match result {
        Ok(Ok(reply)) => Some(Outcome::Answered(Some(json!({
            "status": status,
            "etag": reply.version,
            "replayed": reply.replayed,
            "body": reply.body,
        })))),
        Ok(Err(problem)) => Some(Outcome::Answered(Some(told_problem(problem)))),
        Err(error) => error.to_fault().map(Outcome::Fault),
    }
}

/// The end of a job's run; nothing where it is not the area's.
#[must_use]
pub fn end_of_run(result: &Result<Result<JobOutcome, Failure>, CallError>) -> Option<Outcome> {
    let told = match result {
        Ok(Ok(JobOutcome::Done)) => json!({"done": {}}),
        Ok(Ok(JobOutcome::Continue(checkpoint))) => json!({"continue": checkpoint}),
        Ok(Ok(JobOutcome::Retry(at, why))) => json!({"retry": {"at": at, "why": why}}),
        Ok(Err(Failure::Retry(why))) => json!({"failed": {"retry": true, "why": why}}),
        Ok(Err(Failure::Fail(why))) => json!({"failed": {"retry": false, "why": why}}),
        Err(error) => return error.to_fault().map(Outcome::Fault),
    };
    Some(Outcome::Answered(Some(told)))
}

fn told_problem(problem: &Problem) -> Json {
    let violations = problem.violations.iter();
    let violations = violations.map(|one| json!({"pointer": one.pointer, "message": one.message}));
    json!({"problem": {
        "kind": format!("{:?}", problem.kind),
        "code": problem.code,
        "detail": problem.detail,
        "hint": problem.hint,
        "violations": violations.collect::<Vec<_>>(),
    }})
}
