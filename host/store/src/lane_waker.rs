//! Wakes this process's workers when a job is enqueued to their lane, so that
//! it does not wait for the next poll. Other processes find it by polling.
//!
//! A dispatcher that is to be woken at some time anyway is not woken for a job
//! that is due later: under load, most calls enqueue a job that is merged with
//! others at the end of the second, and each would cost a scan of the queue.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

use assurance_core::domain::job::Lane;
use assurance_core::domain::time::Timestamp;

/// Wakes this process's dispatchers when jobs are enqueued to their lanes; has
/// one signal for each lane.
#[derive(Debug, Default)]
pub struct LaneWaker([LaneSignal; Lane::ALL.len()]);

#[derive(Debug)]
struct LaneSignal {
    /// Earliest due time of the jobs announced since the last scan, in
    /// microseconds of Unix time.
    earliest: AtomicI64,
    notify: Notify,
}

impl Default for LaneSignal {
    fn default() -> Self {
        Self { earliest: AtomicI64::new(i64::MAX), notify: Notify::new() }
    }
}

impl LaneWaker {
    /// Announces a job of the lane that is due at `due`; call it after the
    /// commit. Wakes the lane's dispatcher, unless a job that is due no later
    /// was announced since its last scan. If the dispatcher does not wait, its
    /// next wait ends at once.
    pub fn wake(&self, lane: Lane, due: Timestamp) {
        let signal = &self.0[lane as usize];
        if due.0 < signal.earliest.fetch_min(due.0, Ordering::AcqRel) {
            signal.notify.notify_one();
        }
    }

    /// Waits until a job of the lane is announced. Returns the earliest due
    /// time of the jobs announced since the last scan.
    pub async fn wait(&self, lane: Lane) -> Timestamp {
        let signal = &self.0[lane as usize];
        signal.notify.notified().await;
        Timestamp(signal.earliest.load(Ordering::Acquire))
    }

    /// Forgets the announced jobs of a lane; call it before a scan of the lane,
    /// which finds those jobs. Later announcements wake again.
    pub fn forget(&self, lane: Lane) {
        // A read and write, so that the scan sees the commit of each
        // announcement that is forgotten.
        self.0[lane as usize].earliest.swap(i64::MAX, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const LANE: Lane = Lane::ALL[0];

    /// Returns the due time if the lane is woken.
    fn woken(waker: &LaneWaker) -> Option<i64> {
        waker.wait(LANE).now_or_never().map(|due| due.0)
    }

    #[test]
    fn a_lane_is_woken_for_the_first_job_and_for_each_that_is_due_earlier() {
        let waker = LaneWaker::default();
        assert_eq!(woken(&waker), None);
        for (due, expected) in [(50, Some(50)), (50, None), (60, None), (40, Some(40))] {
            waker.wake(LANE, Timestamp(due));
            assert_eq!(woken(&waker), expected, "{due}");
        }
        waker.wake(Lane::ALL[1], Timestamp(1));
        assert_eq!(woken(&waker), None, "another lane");
    }

    #[test]
    fn after_a_scan_the_next_job_wakes_whatever_its_time() {
        let waker = LaneWaker::default();
        waker.wake(LANE, Timestamp(50));
        waker.wake(LANE, Timestamp(40));
        assert_eq!(woken(&waker), Some(40), "once for both");
        waker.forget(LANE);
        waker.wake(LANE, Timestamp(60));
        assert_eq!(woken(&waker), Some(60));
    }
}
