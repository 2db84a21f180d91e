//! Runs the durable queue's jobs.
//!
//! Each lane has a dispatcher that claims due jobs, as many as the lane has
//! free places, in turns between workspaces, and a task for each job. A run is one transaction: what the
//! area's code wanted written is committed together with the job's end, and
//! only while the job is still under this process's lease. So a job's effects
//! are kept once, however often it is run.
//!
//! Invariant: every job that is `running` in the database is either being run
//! by a live process or will be runnable again within a lease.

mod backoff;
mod dispatch;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod turns;
mod upkeep;
mod verdict;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config;
use crate::domain::id::WorkspaceId;
use crate::domain::job::Lane;
use crate::domain::time::Clock;
use crate::recordings::Recordings;
use crate::secrets::Keys;
use crate::store::{self, Store};
use crate::work::{AreaCode, AreaScope};

/// What running jobs needs.
#[derive(Clone, Debug)]
pub struct Deps {
    /// Holds the queue.
    pub store: Store,
    /// For the units of work.
    pub keys: Arc<Keys>,
    /// The time.
    pub clock: Clock,
    /// Who runs what.
    pub areas: Areas,
    /// What the operator set.
    pub settings: config::Jobs,
    /// Where jobs that end in an area's fault are written down.
    pub recordings: Recordings,
}

/// The live areas, as far as jobs need them.
#[derive(Clone)]
pub struct Areas {
    /// The names of all; jobs of others wait.
    pub names: Arc<Names>,
    /// The version that runs a workspace's job beginning now.
    pub find: Arc<Find>,
}

/// Tells the live areas' names.
pub type Names = dyn Fn() -> Vec<String> + Send + Sync;

/// Finds the version of an area that is for a workspace.
pub type Find = dyn Fn(&str, WorkspaceId) -> Option<Runnable> + Send + Sync;

/// Told how each run of a job ended: whether it failed by the area's fault.
pub type Witness = dyn Fn(bool) + Send + Sync;

impl fmt::Debug for Areas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((self.names)()).finish()
    }
}

/// One area's code, and what it may reach.
#[derive(Clone)]
pub struct Runnable {
    /// Runs its jobs.
    pub code: Arc<dyn AreaCode>,
    /// What they may reach.
    pub scope: Arc<AreaScope>,
    /// Who wants to know how they end.
    pub witness: Option<Arc<Witness>>,
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable").field("area", &self.scope.area).finish_non_exhaustive()
    }
}

/// What this process's workers share.
#[derive(Debug)]
struct Shared {
    deps: Deps,
    /// Names this process in the database.
    worker: Uuid,
    /// Claim no more.
    stop: CancellationToken,
    /// Let go of what is running.
    abandon: CancellationToken,
}

/// This process's workers.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    /// Dispatchers and running jobs.
    working: TaskTracker,
    /// Keeps the leases; ends last.
    upkeep: TaskTracker,
    upkeep_stop: CancellationToken,
}

/// Begins to run jobs. The process is announced first, so that no job is
/// claimed by one whose leases are not good.
pub async fn start(deps: Deps) -> Result<Workers, store::Error> {
    report::describe();
    let shared = Arc::new(Shared {
        deps,
        worker: Uuid::new_v4(),
        stop: CancellationToken::new(),
        abandon: CancellationToken::new(),
    });
    upkeep::beat(&shared).await?;
    let workers = Workers {
        shared: Arc::clone(&shared),
        working: TaskTracker::new(),
        upkeep: TaskTracker::new(),
        upkeep_stop: CancellationToken::new(),
    };
    let stop = &workers.upkeep_stop;
    workers.upkeep.spawn(stop.clone().run_until_cancelled_owned(upkeep::heart(shared.clone())));
    workers.upkeep.spawn(stop.clone().run_until_cancelled_owned(upkeep::tidying(shared.clone())));
    for lane in Lane::ALL {
        let share = shared.deps.settings.lanes.of(lane);
        if share.capacity > 0 {
            let lane = dispatch::Dispatcher::new(&shared, &workers.working, lane, share);
            workers.working.spawn(lane.run());
        }
    }
    Ok(workers)
}

impl Workers {
    /// Claims no more, waits for what is running, and gives back what has not
    /// ended within the grace, so that another process takes it at once.
    pub async fn drain(self, grace: Duration) {
        self.shared.stop.cancel();
        self.working.close();
        if tokio::time::timeout(grace, self.working.wait()).await.is_err() {
            tracing::warn!(
                running = self.working.len(),
                "jobs outlast the grace; giving them back"
            );
            self.shared.abandon.cancel();
            self.working.wait().await;
        }
        self.upkeep_stop.cancel();
        self.upkeep.close();
        self.upkeep.wait().await;
        if let Err(error) = upkeep::sign_off(&self.shared).await {
            tracing::warn!(%error, "jobs could not be given back; their leases will run out");
        }
    }
}
