//! Decides a job's next state after a run. Does no I/O.

use assurance_core::domain::job::{JobFailure, JobOutcome, JobRunEndKind, LeasedJob};
use assurance_core::domain::time::Timestamp;
use assurance_store as store;
use assurance_work::CallError;

/// Maximum length of the error text that is stored with a job, in characters.
const MAX_ERROR_CHARS: usize = 1_000;

/// Input of the decision about a job's next state, in addition to the job and its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerdictInput {
    /// Time at which the job's run ended.
    pub(super) now: Timestamp,
    /// Wait before the job's next attempt, from the lane's backoff, in milliseconds.
    pub(super) backoff_ms: i64,
    /// Whether a job that continues releases its slot first.
    pub(super) requeue: bool,
}

/// Returns a job's next state after a run whose effects are committed.
pub(super) fn kept(job: &LeasedJob, outcome: JobOutcome, with: VerdictInput) -> JobRunEndKind {
    match outcome {
        JobOutcome::Done => JobRunEndKind::Done { keep: !job.is_event() },
        JobOutcome::Continue(checkpoint) => {
            JobRunEndKind::Continue { checkpoint, requeue: with.requeue }
        }
        JobOutcome::Retry(at, error) => again(job, at, error),
    }
}

/// Returns a job's next state after a run that returned a failure, so that its effects are
/// discarded.
pub(super) fn dropped(job: &LeasedJob, failure: JobFailure, with: VerdictInput) -> JobRunEndKind {
    match failure {
        JobFailure::Retry(error) => again(job, with.now.plus_ms(with.backoff_ms), error),
        JobFailure::Fail(error) => JobRunEndKind::Failed { error: shortened(error) },
    }
}

/// Returns a job's next state after a fault: the run counts as a failed attempt.
pub(super) fn faulted(job: &LeasedJob, what: &str, with: VerdictInput) -> JobRunEndKind {
    again(job, with.now.plus_ms(with.backoff_ms), what.to_owned())
}

/// Returns the next state of a job whose attempt failed: another attempt, or the end of the job if
/// no attempt is left.
fn again(job: &LeasedJob, at: Timestamp, error: String) -> JobRunEndKind {
    let error = shortened(error);
    if job.attempt >= job.job.max_attempts {
        JobRunEndKind::Dead { error }
    } else {
        JobRunEndKind::Retry { at, error }
    }
}

/// Returns the error text that workspace members see after a job's run failed with a fault.
pub(super) fn public_text(error: &CallError) -> &'static str {
    match error {
        CallError::Trap(_) | CallError::Panic(_) => "the area's code failed",
        CallError::Deadline(_) | CallError::CpuTime(_) => "the area's code ran out of time",
        CallError::OutOfMemory(_) => "the area's code ran out of memory",
        CallError::Turn { .. } | CallError::Limit(_) => "the area's code exceeded a limit",
        CallError::Contract(_) => "the area's code broke its contract with the host",
        CallError::Replaced => "the area's version was replaced or removed",
        CallError::Overloaded => "the area is overloaded",
        CallError::OverBudget(_) => "budget exhausted",
        CallError::Store(store::Error::OverQuota(_)) => {
            "the workspace has reached its storage limit for this data; delete data that is not \
             needed, or ask the operators for a higher limit"
        }
        CallError::Store(error) if error.is_timeout() => {
            "a step of the job exceeded a timeout of the database; let the area's code end with \
             `continue` more often"
        }
        CallError::Store(_) | CallError::Host(_) => "the host failed",
    }
}

/// Makes a job's error text storable: limits its length and replaces the null character, which
/// PostgreSQL does not accept.
fn shortened(error: String) -> String {
    let mut error = if error.contains('\0') { error.replace('\0', "\u{fffd}") } else { error };
    if let Some((end, _)) = error.char_indices().nth(MAX_ERROR_CHARS) {
        error.truncate(end);
    }
    error
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use assurance_core::domain::id::{JobId, WorkspaceId};
    use assurance_core::domain::job::{Lane, NewJob};

    fn leased(kind: &str, attempt: u32, max_attempts: u32) -> LeasedJob {
        LeasedJob {
            job: NewJob {
                id: JobId(uuid::Uuid::nil()),
                workspace: WorkspaceId(uuid::Uuid::nil()),
                area: "notes".into(),
                kind: kind.into(),
                lane: Lane::Delivery,
                payload: "{}".into(),
                resource: None,
                available_at: Timestamp(0),
                max_attempts,
                timeout_ms: 1_000,
                dedupe_key: None,
            },
            attempt,
            checkpoint: None,
            lease: uuid::Uuid::nil(),
        }
    }

    const WITH: VerdictInput =
        VerdictInput { now: Timestamp(7_000), backoff_ms: 5, requeue: false };

    #[test]
    fn a_succeeded_event_is_forgotten_and_any_other_job_kept() {
        let event = kept(&leased("event", 1, 3), JobOutcome::Done, WITH);
        assert_eq!(event, JobRunEndKind::Done { keep: false });
        let other = kept(&leased("audit", 1, 3), JobOutcome::Done, WITH);
        assert_eq!(other, JobRunEndKind::Done { keep: true });
    }

    #[test]
    fn a_failure_that_asks_for_it_waits_for_the_backoff() {
        let end = dropped(&leased("audit", 1, 3), JobFailure::Retry("later".into()), WITH);
        assert_eq!(end, JobRunEndKind::Retry { at: Timestamp(12_000), error: "later".into() });
    }

    #[test]
    fn a_failure_that_rules_out_success_is_final_at_once() {
        let end = dropped(&leased("audit", 1, 3), JobFailure::Fail("no".into()), WITH);
        assert_eq!(end, JobRunEndKind::Failed { error: "no".into() });
    }

    #[test]
    fn a_long_error_is_cut_between_characters() {
        let JobRunEndKind::Dead { error } =
            faulted(&leased("audit", 1, 1), &"é".repeat(2_000), WITH)
        else {
            panic!("the only attempt failed");
        };
        assert_eq!(error.chars().count(), MAX_ERROR_CHARS);
    }

    proptest! {
        #[test]
        fn a_job_is_dead_exactly_when_its_last_attempt_failed(
            attempt in 1_u32..30, max_attempts in 1_u32..30, how in 0..3,
        ) {
            let job = leased("audit", attempt, max_attempts);
            let end = match how {
                0 => kept(&job, JobOutcome::Retry(Timestamp(9), "e".into()), WITH),
                1 => dropped(&job, JobFailure::Retry("e".into()), WITH),
                _ => faulted(&job, "e", WITH),
            };
            let dead = matches!(end, JobRunEndKind::Dead { .. });
            prop_assert_eq!(dead, attempt >= max_attempts);
        }
    }
}
