//! Jobs that run together: a job whose kind takes batches brings further jobs of its flow with it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use super::WorkerState;
use super::dispatch::release_lease;
use assurance_core::domain::id::JobId;
use assurance_core::domain::job::{JobFairnessKey, LeasedJob};
use assurance_store as store;
use assurance_store::jobs::ClaimRequest;

/// Time for which jobs of a flow (of one workspace and resource) run one by one after a batch of
/// them has failed.
const ALONE: Duration = Duration::from_secs(60);

/// Flows of jobs whose batch has failed, with the time of the failure. Their jobs run one by one
/// for a minute.
#[derive(Debug, Default)]
pub(super) struct UnbatchedFlows(Mutex<HashMap<UnbatchedFlowKey, Instant>>);

/// Area, kind and flow of the jobs that run one by one after their batch has failed.
type UnbatchedFlowKey = (String, String, JobFairnessKey);

impl UnbatchedFlows {
    /// Makes the jobs of this kind in this flow run one by one for a minute.
    pub(super) fn pause(&self, job: &LeasedJob) {
        let mut until = self.0.lock();
        until.retain(|_, since| since.elapsed() < ALONE);
        until.insert(key(job), Instant::now());
    }

    fn is_paused(&self, job: &LeasedJob) -> bool {
        self.0.lock().get(&key(job)).is_some_and(|since| since.elapsed() < ALONE)
    }
}

fn key(leased: &LeasedJob) -> UnbatchedFlowKey {
    (leased.job.area.clone(), leased.job.kind.clone(), leased.job.flow())
}

/// Claims further due jobs of the job's flow if its kind takes batches. Returns the jobs that run
/// together, the given one first. Those of other kinds are released, because they need slots of
/// their own. `lease` is for the further jobs.
pub(super) async fn gather(shared: &WorkerState, leased: LeasedJob, lease: Uuid) -> Vec<LeasedJob> {
    let most = max_batch(shared, &leased);
    if most <= 1 {
        return vec![leased];
    }
    let claimed = claim(shared, &leased, most - 1, lease).await.unwrap_or_default();
    // A job that continues runs by itself.
    let fits = |one: &LeasedJob| one.job.kind == leased.job.kind && one.checkpoint.is_none();
    let (fitting, others): (Vec<_>, Vec<_>) = claimed.into_iter().partition(fits);
    release(shared, &others).await;
    std::iter::once(leased).chain(fitting).collect()
}

/// Returns the maximum number of jobs that run together with this job, itself included.
fn max_batch(shared: &WorkerState, leased: &LeasedJob) -> u32 {
    if leased.checkpoint.is_some() || leased.job.is_merged() || shared.batches.is_paused(leased) {
        return 1;
    }
    let area = (shared.deps.areas.find)(&leased.job.area, leased.job.workspace);
    area.map_or(1, |area| area.code.max_batch(&leased.job.kind))
}

async fn claim(
    shared: &WorkerState,
    leased: &LeasedJob,
    most: u32,
    lease: Uuid,
) -> Result<Vec<LeasedJob>, store::Error> {
    let deps = &shared.deps;
    let request = ClaimRequest {
        lane: leased.job.lane,
        flows: &[(leased.job.flow(), most)],
        areas: std::slice::from_ref(&leased.job.area),
        worker: shared.worker,
        lease,
    };
    let mut connection = deps.store.writer().await?;
    let claimed = store::jobs::claim(&mut connection, request, deps.clock.now()).await;
    if let Err(error) = &claimed {
        drop(connection);
        tracing::warn!(lane = %leased.job.lane, %error, "cannot claim jobs");
        release_lease(shared, leased.job.lane, lease).await;
    } else {
        connection.release();
    }
    claimed
}

/// Releases claimed jobs of one flow and lease, so that free slots of their lane run them. If this
/// fails, the search for lost jobs releases them once the lease is not in use.
async fn release(shared: &WorkerState, jobs: &[LeasedJob]) {
    let (deps, Some(first)) = (&shared.deps, jobs.first()) else { return };
    let ids: Vec<JobId> = jobs.iter().map(|leased| leased.job.id).collect();
    let (workspace, lease, now) = (first.job.workspace, first.lease, deps.clock.now());
    let released =
        deps.store.write(async |c| store::jobs::release_jobs(c, workspace, &ids, lease, now).await);
    match released.await {
        Ok(_) => deps.store.wake().wake(first.job.lane, now),
        Err(error) => {
            tracing::warn!(lane = %first.job.lane, %error, "cannot release claimed jobs");
        }
    }
}
