//! How the last writes of this process ended. A small write may still succeed
//! where calls' writes do not: the disk has a few bytes left, or another client
//! holds the tables that they need.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Error;

/// Failures in a row that say something of the database; fewer may be one
/// workspace's.
const MANY: u32 = 5;
/// For how long a failure says something: a node that balancers pass over gets
/// no write that could succeed.
const RECENT: Duration = Duration::from_secs(10);

/// The failures since the last write that succeeded.
#[derive(Debug, Default)]
pub struct WriteOutcomes(Mutex<Option<Failures>>);

#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
    why: String,
}

impl WriteOutcomes {
    /// A call's write was committed.
    pub fn succeeded(&self) {
        *self.0.lock() = None;
    }

    /// A call that writes failed for this. What the database refuses for its
    /// content, or for a lost race, is no failure of the database.
    pub fn failed(&self, error: &Error) {
        if matches!(error, Error::Unavailable(_) | Error::Full(_)) {
            let mut failures = self.0.lock();
            let count = failures.as_ref().map_or(0, |before| before.count).saturating_add(1);
            let (last, why) = (Instant::now(), error.to_string());
            *failures = Some(Failures { count, last, why });
        }
    }

    /// Why writes fail; `None` if they do not, or none was tried lately.
    pub fn failing(&self) -> Option<String> {
        let failures = self.0.lock();
        let failures = failures.as_ref()?;
        let counts = failures.count >= MANY && failures.last.elapsed() < RECENT;
        counts.then(|| {
            let Failures { count, why, .. } = failures;
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
        let outcomes = WriteOutcomes::default();
        for _ in 1..MANY {
            outcomes.failed(&full());
            assert_eq!(outcomes.failing(), None);
        }
        outcomes.failed(&Error::VersionConflict(1));
        outcomes.failed(&full());
        let told = outcomes.failing().expect("five in a row");
        assert!(
            told.starts_with("the last 5 writes of calls failed: the database's disk"),
            "{told}"
        );
        outcomes.succeeded();
        outcomes.failed(&full());
        assert_eq!(outcomes.failing(), None);
    }

    #[test]
    fn what_was_long_ago_is_not_told() {
        let outcomes = WriteOutcomes::default();
        (0..MANY).for_each(|_| outcomes.failed(&full()));
        if let Some(failures) = outcomes.0.lock().as_mut() {
            failures.last = failures.last.checked_sub(RECENT).expect("a machine up for 10 s");
        }
        assert_eq!(outcomes.failing(), None);
    }
}
