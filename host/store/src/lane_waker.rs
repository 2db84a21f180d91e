//! Wakes this process's workers when a job is enqueued to their lane, so that
//! it does not wait for the next poll. Other processes find it by polling.

use tokio::sync::Notify;

use assurance_core::domain::job::Lane;

/// One notifier for each lane.
#[derive(Debug, Default)]
pub struct LaneWaker([Notify; Lane::ALL.len()]);

impl LaneWaker {
    /// Wakes a worker of the lane; call it after the commit. Without a waiting
    /// worker, the next one to wait is woken at once.
    pub fn wake(&self, lane: Lane) {
        self.0[lane as usize].notify_one();
    }

    /// Waits until [`LaneWaker::wake`] is called for the lane.
    pub async fn wait(&self, lane: Lane) {
        self.0[lane as usize].notified().await;
    }
}
