//! Runs the jobs of the durable queue.
//!
//! Each lane has a dispatcher. It claims as many due jobs as the lane has free slots, in turns
//! between workspaces. Each job runs in its own task. A run is one transaction: the effects of the
//! area's code are committed together with the job's new state, and only while this process holds
//! the job's lease. So a job's effects are stored once, however often it runs.
//!
//! Invariant: every job that is `running` in the database is being run by a live process, or can be
//! claimed again after its lease expires, or after the process that holds the lease finds that none
//! of its tasks uses it.

mod backoff;
mod batch;
mod dispatch;
mod leases;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod upkeep;
mod verdict;
mod workspace_turns;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::batch::UnbatchedFlows;
use self::leases::LeasesInUse;
use assurance_core::config;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::Lane;
use assurance_core::domain::time::Clock;
use assurance_core::recordings::Recordings;
use assurance_core::secrets::Keys;
use assurance_store::{self as store, Store};
use assurance_work::{AreaCode, AreaPolicy};

/// What the job workers need from the rest of the service.
#[derive(Clone)]
pub struct WorkerDeps {
    /// Database with the job queue.
    pub store: Store,
    /// Keys derived from the master key, for the units of work of job runs.
    pub keys: Arc<Keys>,
    /// Source of the current time.
    pub clock: Clock,
    /// Gives access to the code of the live areas.
    pub areas: AreaLookupFns,
    /// Configuration of the job workers.
    pub settings: config::JobsConfig,
    /// Records job runs that end with an area's fault.
    pub recordings: Recordings,
}

/// Gives the job workers access to the live areas.
#[derive(Clone)]
pub struct AreaLookupFns {
    /// Returns the names of the live areas. Jobs of other areas are not claimed.
    pub names: Arc<AreaNamesFn>,
    /// Finds the version of an area that runs a workspace's jobs.
    pub find: Arc<AreaFinderFn>,
}

/// Function that returns the names of the live areas.
pub type AreaNamesFn = dyn Fn() -> Vec<String> + Send + Sync;

/// Function that finds the version of an area that runs a workspace's jobs; `None` if the area is
/// not live.
pub type AreaFinderFn = dyn Fn(&str, WorkspaceId) -> Option<RunnableArea> + Send + Sync;

/// Function that receives the end of each job run: true if the run failed by the area's fault.
pub type RunObserver = dyn Fn(bool) + Send + Sync;

/// Code and scope of the area version that runs a workspace's jobs.
#[derive(Clone)]
pub struct RunnableArea {
    /// Code that runs the area's jobs.
    pub code: Arc<dyn AreaCode>,
    /// Collections, events and jobs that a job run can reach.
    pub scope: Arc<AreaPolicy>,
    /// Receives the end of each job run; `None` if the area has no canary.
    pub observer: Option<Arc<RunObserver>>,
}

/// State that all job workers of this process share.
struct WorkerState {
    deps: WorkerDeps,
    /// Id of this process in the database, to which jobs are leased.
    worker: Uuid,
    batches: UnbatchedFlows,
    leases: LeasesInUse,
    /// Cancelled when this process must stop claiming jobs.
    stop: CancellationToken,
    /// Cancelled when this process must abandon its running jobs.
    abandon: CancellationToken,
}

impl WorkerState {
    fn new(deps: WorkerDeps) -> Self {
        Self {
            deps,
            worker: Uuid::new_v4(),
            batches: UnbatchedFlows::default(),
            leases: LeasesInUse::default(),
            stop: CancellationToken::new(),
            abandon: CancellationToken::new(),
        }
    }
}

/// The job workers of this process.
pub struct Workers {
    shared: Arc<WorkerState>,
    /// Tasks of the lanes' dispatchers and of running jobs.
    working: TaskTracker,
    /// Maintenance tasks of the job queue, of which one renews the leases; they stop last.
    upkeep: TaskTracker,
    upkeep_stop: CancellationToken,
}

/// Starts the job workers of this process. The process sends its first heartbeat before it claims a
/// job.
pub async fn start(deps: WorkerDeps) -> Result<Workers, store::Error> {
    report::describe();
    let shared = Arc::new(WorkerState::new(deps));
    upkeep::send_heartbeat(&shared).await?;
    let workers = Workers {
        shared: Arc::clone(&shared),
        working: TaskTracker::new(),
        upkeep: TaskTracker::new(),
        upkeep_stop: CancellationToken::new(),
    };
    workers.keep_up(upkeep::renew_leases(shared.clone()));
    workers.keep_up(upkeep::maintain(shared.clone()));
    workers.keep_up(upkeep::delete_old_rows(shared.clone()));
    workers.keep_up(upkeep::delete_old_blobs(shared.clone()));
    for lane in Lane::ALL {
        let share = shared.deps.settings.lanes.of(lane);
        if share.capacity > 0 {
            let lane = dispatch::LaneDispatcher::new(&shared, &workers.working, lane, share);
            workers.working.spawn(lane.run());
        }
    }
    Ok(workers)
}

impl Workers {
    /// Spawns a maintenance task, which stops after the last job has ended.
    fn keep_up(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.upkeep_stop.clone();
        self.upkeep.spawn(stop.run_until_cancelled_owned(task));
    }

    /// Stops claiming jobs and waits for the running ones. Releases the jobs that have not ended
    /// after `grace`, so that another process can claim them at once.
    pub async fn drain(self, grace: Duration) {
        self.shared.stop.cancel();
        self.working.close();
        if tokio::time::timeout(grace, self.working.wait()).await.is_err() {
            tracing::warn!(
                running = self.working.len(),
                "jobs did not end in time; releasing them"
            );
            self.shared.abandon.cancel();
            self.working.wait().await;
        }
        self.upkeep_stop.cancel();
        self.upkeep.close();
        self.upkeep.wait().await;
        if let Err(error) = upkeep::deregister(&self.shared).await {
            tracing::warn!(
                %error,
                "cannot release jobs; other nodes can claim them when their leases expire"
            );
        }
    }
}
