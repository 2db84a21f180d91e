//! Whether a call keeps others from writing while its code runs. The unit of
//! work says so; the runtime bounds for how long.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The turn to write of one call. On SQLite there is one for the whole
/// database, on PostgreSQL one for each workspace.
#[derive(Debug, Default)]
pub struct Turn {
    held: AtomicBool,
    taken: Notify,
}

impl Turn {
    /// True from the first write that was sent to the database to the commit.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Waits until the call holds the turn.
    pub async fn until_taken(&self) {
        while !self.is_held() {
            self.taken.notified().await;
        }
    }

    pub(super) fn take(&self) {
        self.held.store(true, Ordering::Relaxed);
        self.taken.notify_one();
    }

    pub(super) fn give_back(&self) {
        self.held.store(false, Ordering::Relaxed);
    }
}
