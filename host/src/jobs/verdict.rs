//! What becomes of a job after a run: the rules, and nothing that does I/O.

use crate::domain::job::{Failure, JobEndKind, LeasedJob, Outcome};
use crate::domain::time::Timestamp;
use crate::work::CallError;

/// The longest error text that is kept with a job.
const MAX_ERROR_CHARS: usize = 1_000;

/// What the rules need to know beside the job itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// When the run ended.
    pub(super) now: Timestamp,
    /// What the lane waits before the next attempt.
    pub(super) backoff_ms: i64,
    /// A job that goes on gives its slot back first.
    pub(super) requeue: bool,
}

/// The area answered that what it did is to be kept.
pub(super) fn kept(job: &LeasedJob, outcome: Outcome, with: Circumstances) -> JobEndKind {
    match outcome {
        Outcome::Done => JobEndKind::Done { keep: !job.is_event() },
        Outcome::Continue(checkpoint) => JobEndKind::Continue { checkpoint, requeue: with.requeue },
        Outcome::Retry(at, error) => again(job, at, error),
    }
}

/// The area answered that what it did is to be dropped.
pub(super) fn dropped(job: &LeasedJob, failure: Failure, with: Circumstances) -> JobEndKind {
    match failure {
        Failure::Retry(error) => again(job, with.now.plus_ms(with.backoff_ms), error),
        Failure::Fail(error) => JobEndKind::Failed { error: shortened(error) },
    }
}

/// There is no answer: the run is an attempt that failed.
pub(super) fn faulted(job: &LeasedJob, what: &str, with: Circumstances) -> JobEndKind {
    again(job, with.now.plus_ms(with.backoff_ms), what.to_owned())
}

/// Another attempt, if there is one left.
fn again(job: &LeasedJob, at: Timestamp, error: String) -> JobEndKind {
    let error = shortened(error);
    if job.attempt >= job.job.max_attempts {
        JobEndKind::Dead { error }
    } else {
        JobEndKind::Retry { at, error }
    }
}

/// What members are told of a run that has no answer.
pub(super) fn public_text(error: &CallError) -> &'static str {
    match error {
        CallError::Trap(_) => "the area's code failed",
        CallError::Deadline(_) | CallError::CpuTime(_) => "the area's code ran out of time",
        CallError::OutOfMemory(_) => "the area's code ran out of memory",
        CallError::Turn { .. } | CallError::Limit(_) => "the area's code exceeded a limit",
        CallError::Contract(_) => "the area's code broke its contract with the host",
        CallError::Replaced => "the area's version was replaced or removed",
        CallError::Overloaded => "the area is overloaded",
        CallError::OverBudget(_) => "a budget is used up",
        CallError::Store(_) | CallError::Host(_) => "the host failed",
    }
}

/// Fit to be stored: not too long, and without the one character that
/// PostgreSQL keeps in no text.
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
    use crate::domain::id::{JobId, WorkspaceId};
    use crate::domain::job::{Lane, NewJob};

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

    const WITH: Circumstances =
        Circumstances { now: Timestamp(7_000), backoff_ms: 5, requeue: false };

    #[test]
    fn a_succeeded_event_is_forgotten_and_any_other_job_kept() {
        let event = kept(&leased("event", 1, 3), Outcome::Done, WITH);
        assert_eq!(event, JobEndKind::Done { keep: false });
        let other = kept(&leased("audit", 1, 3), Outcome::Done, WITH);
        assert_eq!(other, JobEndKind::Done { keep: true });
    }

    #[test]
    fn a_failure_that_asks_for_it_waits_for_the_backoff() {
        let end = dropped(&leased("audit", 1, 3), Failure::Retry("later".into()), WITH);
        assert_eq!(end, JobEndKind::Retry { at: Timestamp(12_000), error: "later".into() });
    }

    #[test]
    fn a_failure_that_rules_out_success_is_final_at_once() {
        let end = dropped(&leased("audit", 1, 3), Failure::Fail("no".into()), WITH);
        assert_eq!(end, JobEndKind::Failed { error: "no".into() });
    }

    #[test]
    fn a_long_error_is_cut_between_characters() {
        let JobEndKind::Dead { error } = faulted(&leased("audit", 1, 1), &"é".repeat(2_000), WITH)
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
                0 => kept(&job, Outcome::Retry(Timestamp(9), "e".into()), WITH),
                1 => dropped(&job, Failure::Retry("e".into()), WITH),
                _ => faulted(&job, "e", WITH),
            };
            let dead = matches!(end, JobEndKind::Dead { .. });
            prop_assert_eq!(dead, attempt >= max_attempts);
        }
    }
}
