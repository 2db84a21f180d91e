//! Shared state that shows whether a running call blocks other writers. The
//! unit of work sets it; the runtime reads it to limit the time.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Whether one call holds the database's write lock. On SQLite there is one
/// lock for the whole database, on PostgreSQL one for each workspace.
#[derive(Debug, Default)]
pub struct WriteLockState {
    /// Time since which the call holds the lock; `None` if it does not hold it.
    held_since: Mutex<Option<Instant>>,
    taken: Notify,
}

impl WriteLockState {
    /// Returns whether the call holds the write lock until its commit: from its
    /// first write sent to the database, or in a locked call from the begin of
    /// its transaction.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_since.lock().is_some()
    }

    /// Returns for how long the call has held the write lock without a break;
    /// `None` if it does not hold it.
    fn held_for(&self) -> Option<Duration> {
        let since = *self.held_since.lock();
        since.map(|since| since.elapsed())
    }

    /// Waits until the call has held the database's write lock for at least this
    /// time without a break. Returns for how long it has held the lock.
    pub async fn until_held_for(&self, time: Duration) -> Duration {
        loop {
            match self.held_for() {
                None => self.taken.notified().await,
                Some(held) if held >= time => return held,
                Some(held) => tokio::time::sleep(time.saturating_sub(held)).await,
            }
        }
    }

    pub(super) fn take(&self) {
        self.held_since.lock().get_or_insert_with(Instant::now);
        self.taken.notify_one();
    }

    pub(super) fn give_back(&self) {
        *self.held_since.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join;

    use super::*;

    #[tokio::test]
    async fn the_time_before_a_lock_was_given_back_does_not_count() {
        let (state, time) = (WriteLockState::default(), Duration::from_millis(40));
        state.take();
        let take_again = async {
            tokio::time::sleep(time / 2).await;
            let again = Instant::now();
            state.give_back();
            state.take();
            again
        };
        let exceed = async {
            state.until_held_for(time).await;
            Instant::now()
        };
        let (again, exceeded) = join(take_again, exceed).await;
        assert!(exceeded.duration_since(again) >= time, "{:?}", exceeded.duration_since(again));
    }
}
