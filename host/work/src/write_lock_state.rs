//! Shared state that shows whether a running call blocks other writers. The
//! unit of work sets it; the runtime reads it to limit the time.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether one call holds the database's write lock. On SQLite there is one
/// lock for the whole database, on PostgreSQL one for each workspace.
#[derive(Debug, Default)]
pub struct WriteLockState {
    held: AtomicBool,
    taken: Notify,
}

impl WriteLockState {
    /// Returns whether the call holds the write lock until its commit: from its
    /// first write sent to the database, or in a locked call from the begin of
    /// its transaction.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Waits until the call holds the database's write lock.
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
