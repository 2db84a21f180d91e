//! Attaches a recording to a call and converts the call's outcome for it.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{CallError, UnitOfWork};
use assurance_core::domain::area::{Problem, SuccessReply};
use assurance_core::domain::job::{JobFailure, JobOutcome};
use assurance_core::recordings::{RecordedFault, RecordedOutcome, Recorder};

impl UnitOfWork {
    /// Sets the recorder that records the call and all its host calls; `None`
    /// if the call is not recorded.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Option<&Arc<Recorder>>) -> Self {
        self.recorder = recorder.cloned();
        self
    }

    /// Returns the recorder of the call; `None` if it is not recorded.
    #[must_use]
    pub fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref()
    }
}

impl CallError {
    /// Converts the error of a call for its recording; `None` if the area did
    /// not cause the error.
    #[must_use]
    pub fn to_fault(&self) -> Option<RecordedFault> {
        Some(RecordedFault {
            kind: self.fault_kind()?.to_owned(),
            message: Some(self.to_string()),
            frames: Vec::new(),
        })
    }
}

/// Converts the result of a request for its recording; `None` if the call
/// failed for a reason that the area did not cause. `status` is the HTTP status
/// of the route's successes.
#[must_use]
pub fn request_outcome(
    status: u16,
    result: &Result<Result<SuccessReply, Problem>, CallError>,
) -> Option<RecordedOutcome> {
    match result {
        Ok(Ok(reply)) => Some(RecordedOutcome::Answered(Some(json!({
            "status": status,
            "etag": reply.version,
            "replayed": reply.replayed,
            "body": reply.body,
        })))),
        Ok(Err(problem)) => Some(RecordedOutcome::Answered(Some(problem_json(problem)))),
        Err(error) => error.to_fault().map(RecordedOutcome::Fault),
    }
}

/// Converts the result of a job's run for its recording; `None` if the run
/// failed for a reason that the area did not cause.
#[must_use]
pub fn run_outcome(
    result: &Result<Result<JobOutcome, JobFailure>, CallError>,
) -> Option<RecordedOutcome> {
    let told = match result {
        Ok(Ok(JobOutcome::Done)) => json!({"done": {}}),
        Ok(Ok(JobOutcome::Continue(checkpoint))) => json!({"continue": checkpoint}),
        Ok(Ok(JobOutcome::Retry(at, why))) => json!({"retry": {"at": at, "why": why}}),
        Ok(Err(JobFailure::Retry(why))) => json!({"failed": {"retry": true, "why": why}}),
        Ok(Err(JobFailure::Fail(why))) => json!({"failed": {"retry": false, "why": why}}),
        Err(error) => return error.to_fault().map(RecordedOutcome::Fault),
    };
    Some(RecordedOutcome::Answered(Some(told)))
}

fn problem_json(problem: &Problem) -> Json {
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
