//! How many of a pool's connections calls may hold while their code runs.
//!
//! A call that has opened a transaction keeps a connection until it ends,
//! however long its code computes. So that such calls never take a whole pool,
//! some connections are left for single statements (sign-in, commits of calls
//! that hold none), and one area, one workspace, and all jobs together have a
//! share each of the others.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::keyed::Keyed;
use crate::domain::id::WorkspaceId;

/// Who holds a connection while its code runs.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The area's name.
    pub area: String,
    /// The workspace whose data it is.
    pub workspace: WorkspaceId,
    /// Whether it is a job, not a request.
    pub in_job: bool,
}

/// The places among those that may hold connections of one pool.
#[derive(Debug)]
pub(super) struct Shares {
    all: Arc<Semaphore>,
    jobs: Arc<Semaphore>,
    /// Permits of one area, and of one workspace.
    share: usize,
    areas: Keyed<String, Semaphore>,
    workspaces: Keyed<WorkspaceId, Semaphore>,
}

/// A place, given up when dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permits: [Option<OwnedSemaphorePermit>; 4],
}

impl Shares {
    /// The shares of a pool with so many connections: a quarter stays free, and
    /// a share is half of the rest.
    pub(super) fn of(connections: u32) -> Self {
        let connections = connections.max(1) as usize;
        let held = (connections - connections.div_ceil(4)).max(1);
        let share = held.div_ceil(2);
        Self {
            all: Arc::new(Semaphore::new(held)),
            jobs: Arc::new(Semaphore::new(share)),
            share,
            areas: Keyed::default(),
            workspaces: Keyed::default(),
        }
    }

    /// Waits for a place; the caller bounds the time. The workspace's share is
    /// waited for first: while a workspace waits for anything else, only its
    /// own calls wait for it.
    pub(super) async fn place(&self, holder: Holder) -> Place {
        let share = || Semaphore::new(self.share);
        // These semaphores are never closed.
        let workspace = self.workspaces.of(holder.workspace, share).acquire_owned().await.ok();
        let area = self.areas.of(holder.area, share).acquire_owned().await.ok();
        let jobs = match holder.in_job {
            true => Arc::clone(&self.jobs).acquire_owned().await.ok(),
            false => None,
        };
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Place { _permits: [workspace, area, jobs, all] }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holder(area: &str, workspace: WorkspaceId, in_job: bool) -> Holder {
        Holder { area: area.into(), workspace, in_job }
    }

    async fn is_granted(shares: &Shares, holder: Holder) -> Option<Place> {
        tokio::time::timeout(Duration::from_millis(20), shares.place(holder)).await.ok()
    }

    #[tokio::test]
    async fn one_area_and_one_workspace_take_half_of_what_may_be_held() {
        let shares = Shares::of(8);
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
        let shares = Shares::of(8);
        let mut held = Vec::new();
        for n in 0..3 {
            let job = holder(&format!("area{n}"), WorkspaceId::new(), true);
            held.push(is_granted(&shares, job).await.unwrap());
        }
        assert!(is_granted(&shares, holder("x", WorkspaceId::new(), true)).await.is_none());
        assert!(is_granted(&shares, holder("x", WorkspaceId::new(), false)).await.is_some());
    }
}
