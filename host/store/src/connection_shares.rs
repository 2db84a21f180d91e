//! Limits on connections that calls hold while an area's code runs.
//!
//! A call with an open transaction holds a connection until it ends, however
//! long its code computes. To keep such calls from using the whole pool, some
//! connections are reserved for single statements (sign-in, commits of calls
//! without a transaction). Of the others, one area, one workspace, and all jobs
//! together may each hold only a share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::keyed_locks::KeyedLocks;
use assurance_core::domain::id::WorkspaceId;

/// Area, workspace and kind of the call that holds a connection while the
/// area's code runs.
#[derive(Clone, Debug)]
pub struct ConnectionHolder {
    /// Name of the area whose code runs.
    pub area: String,
    /// Workspace of the request or job.
    pub workspace: WorkspaceId,
    /// Whether a job holds the connection; otherwise a request holds it.
    pub in_job: bool,
}

/// Permits to hold connections of one pool while an area's code runs.
#[derive(Debug)]
pub(super) struct ConnectionShares {
    all: Arc<Semaphore>,
    jobs: Arc<Semaphore>,
    /// Maximum number of permits that one area, one workspace, or all jobs
    /// together hold.
    share: usize,
    areas: KeyedLocks<String, Semaphore>,
    workspaces: KeyedLocks<WorkspaceId, Semaphore>,
}

/// Permit to hold one connection; dropping it releases the permit.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    _permits: [Option<OwnedSemaphorePermit>; 4],
}

impl ConnectionShares {
    /// Creates the permits for a pool of this size. A quarter of the
    /// connections is reserved; one area, one workspace, or all jobs together
    /// may hold half of the others.
    pub(super) fn of(connections: u32) -> Self {
        let connections = connections.max(1) as usize;
        let held = (connections - connections.div_ceil(4)).max(1);
        let share = held.div_ceil(2);
        Self {
            all: Arc::new(Semaphore::new(held)),
            jobs: Arc::new(Semaphore::new(share)),
            share,
            areas: KeyedLocks::default(),
            workspaces: KeyedLocks::default(),
        }
    }

    /// Waits for a permit to hold a connection; the caller limits the time. The
    /// workspace's own share comes first, so that a waiting workspace delays
    /// only its own calls.
    pub(super) async fn place(&self, holder: ConnectionHolder) -> ConnectionPermit {
        let share = || Semaphore::new(self.share);
        // These semaphores are never closed, so acquiring cannot fail.
        let workspace = self.workspaces.of(holder.workspace, share).acquire_owned().await.ok();
        let area = self.areas.of(holder.area, share).acquire_owned().await.ok();
        let jobs = match holder.in_job {
            true => Arc::clone(&self.jobs).acquire_owned().await.ok(),
            false => None,
        };
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        ConnectionPermit { _permits: [workspace, area, jobs, all] }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holder(area: &str, workspace: WorkspaceId, in_job: bool) -> ConnectionHolder {
        ConnectionHolder { area: area.into(), workspace, in_job }
    }

    async fn is_granted(
        shares: &ConnectionShares,
        holder: ConnectionHolder,
    ) -> Option<ConnectionPermit> {
        tokio::time::timeout(Duration::from_millis(20), shares.place(holder)).await.ok()
    }

    #[tokio::test]
    async fn one_area_and_one_workspace_take_half_of_what_may_be_held() {
        let shares = ConnectionShares::of(8);
        let (a, b) = (WorkspaceId::new(), WorkspaceId::new());
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(is_granted(&shares, holder("one", a, false)).await.unwrap());
        }
        assert!(is_granted(&shares, holder("one", b, false)).await.is_none(), "the area's share");
        assert!(is_granted(&shares, holder("two", a, false)).await.is_none(), "the workspace's");
        for _ in 0..3 {
            held.push(is_granted(&shares, holder("two", b, false)).await.unwrap());
        }
        assert!(is_granted(&shares, holder("six", WorkspaceId::new(), false)).await.is_none());
        held.pop();
        assert!(is_granted(&shares, holder("six", WorkspaceId::new(), false)).await.is_some());
    }

    #[tokio::test]
    async fn jobs_leave_places_for_requests() {
        let shares = ConnectionShares::of(8);
        let mut held = Vec::new();
        for n in 0..3 {
            let job = holder(&format!("area{n}"), WorkspaceId::new(), true);
            held.push(is_granted(&shares, job).await.unwrap());
        }
        assert!(is_granted(&shares, holder("x", WorkspaceId::new(), true)).await.is_none());
        assert!(is_granted(&shares, holder("x", WorkspaceId::new(), false)).await.is_some());
    }
}
