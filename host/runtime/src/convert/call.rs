//! Converts requests and jobs to WIT types, and replies and outcomes from them.

use sha2::{Digest as _, Sha256};

use super::super::bindings;
use super::super::bindings::assurance::area::types;
use super::same;
use assurance_core::domain::area::{
    CallContext, JobRun, Problem, ProblemKind, ReceivedBlob, ReceivedFormPart, Request,
    RequestBody, SuccessReply, Violation,
};
use assurance_core::domain::job::{JobFailure, JobOutcome};
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_work::CallError;

pub(in super::super) fn request(request: &Request) -> types::Request {
    types::Request {
        call: call(&request.call),
        actor: types::Actor { user: request.user.to_string(), role: request.role.into() },
        operation: request.operation.clone(),
        parameters: request
            .parameters
            .iter()
            .map(|p| types::Parameter { name: p.name.clone(), value: p.value.clone() })
            .collect(),
        body: body(&request.body),
        idempotency_key: request.idempotency_key.clone(),
        if_match: request.if_match,
        base_url: request.base_url.clone(),
        link: request.link.clone(),
    }
}

pub(in super::super) fn job(job: &JobRun) -> bindings::Job {
    bindings::Job {
        call: call(&job.call),
        id: job.id.to_string(),
        kind: job.kind.clone(),
        payload: job.payload.clone(),
        attempt: job.attempt,
        checkpoint: job.checkpoint.clone(),
    }
}

fn call(call: &CallContext) -> types::Call {
    types::Call {
        workspace: call.workspace.to_string(),
        now: call.now.0,
        seed: guest_seed(&call.seed),
    }
}

/// Derives the guest's seed. It reveals nothing about the host's seed, from
/// which secrets are derived, because ids created by the guest are public.
fn guest_seed(seed: &[u8; 32]) -> (u64, u64) {
    let digest = Sha256::new().chain_update("guest seed").chain_update(seed).finalize();
    let word = |at: usize| {
        let bytes = digest.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    (word(0), word(8))
}

same!(Role => types::Role { Viewer, Member, Admin, Owner });
same!(types::Role => Role { Viewer, Member, Admin, Owner });

fn body(body: &RequestBody) -> types::Body {
    match body {
        RequestBody::None => types::Body::None,
        RequestBody::Json(text) => types::Body::Json(text.clone()),
        RequestBody::Form(parts) => types::Body::Form(parts.iter().map(part).collect()),
        RequestBody::Blob(blob) => types::Body::Blob(received(blob)),
    }
}

fn part(part: &ReceivedFormPart) -> types::Part {
    types::Part {
        name: part.name.clone(),
        filename: part.filename.clone(),
        content_type: part.content_type.clone(),
        content: part.content.clone(),
    }
}

fn received(blob: &ReceivedBlob) -> types::ReceivedBlob {
    types::ReceivedBlob {
        name: blob.name.clone(),
        size: blob.size,
        sha256: blob.sha256.clone(),
        content_type: blob.content_type.clone(),
    }
}

/// Converts a handler's result, which must not exceed `max_bytes`.
pub(in super::super) fn answer(
    answer: Result<types::Reply, types::Problem>,
    max_bytes: usize,
) -> Result<Result<SuccessReply, Problem>, CallError> {
    match answer {
        Ok(reply) => {
            let body = reply.body.as_ref();
            fits("reply", body.map_or(0, String::len), max_bytes)?;
            Ok(Ok(SuccessReply {
                body: reply.body,
                version: reply.version,
                replayed: reply.replayed,
            }))
        }
        Err(problem) => {
            fits("problem", problem_bytes(&problem), max_bytes)?;
            Ok(Err(refusal(problem)))
        }
    }
}

/// Converts a job's outcome, whose texts must not exceed `max_bytes`.
pub(in super::super) fn outcome(
    outcome: Result<bindings::Outcome, bindings::JobError>,
    max_bytes: usize,
) -> Result<Result<JobOutcome, JobFailure>, CallError> {
    use bindings::{JobError as E, Outcome as O};
    let text = match &outcome {
        Ok(O::Done) => 0,
        Ok(O::Continue(text) | O::Retry((_, text))) | Err(E::Retry(text) | E::Fail(text)) => {
            text.len()
        }
    };
    fits("job's outcome", text, max_bytes)?;
    Ok(match outcome {
        Ok(O::Done) => Ok(JobOutcome::Done),
        Ok(O::Continue(checkpoint)) => Ok(JobOutcome::Continue(json(checkpoint, "checkpoint")?)),
        Ok(O::Retry((at, why))) => Ok(JobOutcome::Retry(Timestamp(at), why)),
        Err(E::Retry(why)) => Err(JobFailure::Retry(why)),
        Err(E::Fail(why)) => Err(JobFailure::Fail(why)),
    })
}

/// Converts the outcomes of a batch of jobs, one for each.
pub(in super::super) fn outcomes(
    outcomes: Result<Vec<bindings::Outcome>, bindings::JobError>,
    jobs: usize,
    max_bytes: usize,
) -> Result<Result<Vec<JobOutcome>, JobFailure>, CallError> {
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(error) => return Ok(outcome(Err(error), max_bytes)?.map(|one| vec![one])),
    };
    if outcomes.len() != jobs {
        let what = format!("{} outcomes for {jobs} jobs", outcomes.len());
        return Err(CallError::Contract(what));
    }
    outcomes.into_iter().map(|one| outcome(Ok(one), max_bytes)).collect()
}

fn json(text: String, what: &str) -> Result<String, CallError> {
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(CallError::Contract(format!("the {what} is not JSON: {error}"))),
    }
}

fn fits(what: &str, bytes: usize, max: usize) -> Result<(), CallError> {
    if bytes <= max {
        return Ok(());
    }
    Err(CallError::Limit(format!(
        "a {what} of {bytes} bytes; at most {max} (runtime.max_reply_bytes)"
    )))
}

fn problem_bytes(problem: &types::Problem) -> usize {
    let texts = [&problem.code, &problem.hint].into_iter().flatten().map(String::len);
    let violations = problem.violations.iter().map(|v| v.pointer.len() + v.message.len());
    problem.detail.len() + texts.sum::<usize>() + violations.sum::<usize>()
}

same!(types::ProblemKind => ProblemKind {
    ValidationFailed, PermissionDenied, NotFound, Conflict, VersionConflict, Unavailable
});

fn refusal(problem: types::Problem) -> Problem {
    let violations = problem.violations.into_iter();
    Problem {
        kind: problem.kind.into(),
        code: problem.code,
        detail: problem.detail,
        hint: problem.hint,
        violations: violations
            .map(|v| Violation { pointer: v.pointer, message: v.message })
            .collect(),
    }
}
