//! Outcomes of recent writes of this process, for readiness. A small test write
//! can succeed while the calls' writes fail, for example on a nearly full disk
//! or when another client has locked their tables.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Error;

/// Number of consecutive failed writes that indicate a problem of the database;
/// fewer may be caused by one workspace.
const MIN_FAILURES: u32 = 5;
/// Time after the last failed write for which the failures count. It is limited
/// because a node that is not ready receives no writes that could succeed.
const RECENT: Duration = Duration::from_secs(10);

/// Consecutive failed writes of calls since the last successful one.
#[derive(Debug, Default)]
pub struct WriteFailureTracker(Mutex<Option<ConsecutiveFailures>>);

#[derive(Debug)]
struct ConsecutiveFailures {
    count: u32,
    last: Instant,
    why: String,
}

impl WriteFailureTracker {
    /// Records that a call's write was committed, which resets the count of
    /// consecutive failed writes.
    pub fn succeeded(&self) {
        *self.0.lock() = None;
    }

    /// Records that a call's write failed. Errors caused by the content or by a
    /// write conflict do not count.
    pub fn failed(&self, error: &Error) {
        if matches!(error, Error::Unavailable(_) | Error::Full(_)) {
            let mut failures = self.0.lock();
            let count = failures.as_ref().map_or(0, |before| before.count).saturating_add(1);
            let (last, why) = (Instant::now(), error.to_string());
            *failures = Some(ConsecutiveFailures { count, last, why });
        }
    }

    /// Returns why writes fail; `None` if fewer than 5 writes in a row have
    /// failed, or if the last of them failed more than 10 seconds ago.
    pub fn failing(&self) -> Option<String> {
        let failures = self.0.lock();
        let failures = failures.as_ref()?;
        let counts = failures.count >= MIN_FAILURES && failures.last.elapsed() < RECENT;
        counts.then(|| {
            let ConsecutiveFailures { count, why, .. } = failures;
            format!("the last {count} writes of calls failed: {why}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Error {
        Error::Full(sqlx::Error::WorkerCrashed)
    }

    #[test]
    fn failures_in_a_row_are_told_until_a_write_succeeds() {
        let outcomes = WriteFailureTracker::default();
        for _ in 1..MIN_FAILURES {
            outcomes.failed(&full());
            assert_eq!(outcomes.failing(), None);
        }
        outcomes.failed(&Error::VersionConflict(1));
        outcomes.failed(&full());
        let text = outcomes.failing().expect("five in a row");
        assert!(
            text.starts_with("the last 5 writes of calls failed: the database's disk"),
            "{text}"
        );
        outcomes.succeeded();
        outcomes.failed(&full());
        assert_eq!(outcomes.failing(), None);
    }

    #[test]
    fn what_was_long_ago_is_not_told() {
        let outcomes = WriteFailureTracker::default();
        (0..MIN_FAILURES).for_each(|_| outcomes.failed(&full()));
        if let Some(failures) = outcomes.0.lock().as_mut() {
            failures.last = failures.last.checked_sub(RECENT).expect("a machine up for 10 s");
        }
        assert_eq!(outcomes.failing(), None);
    }
}
