//! Tells this process's workers that a lane has something new, so that a job
//! enqueued here does not wait for the next look at the queue. Other processes
//! find it when they look.

use tokio::sync::Notify;

use crate::domain::job::Lane;

/// One bell for each lane.
#[derive(Debug, Default)]
pub struct Wake([Notify; Lane::ALL.len()]);

impl Wake {
    /// Rings; to be called after the commit. Rung while nobody listens, it
    /// wakes the next who does.
    pub fn ring(&self, lane: Lane) {
        self.0[lane as usize].notify_one();
    }

    /// Waits for the bell.
    pub async fn rung(&self, lane: Lane) {
        self.0[lane as usize].notified().await;
    }
}
