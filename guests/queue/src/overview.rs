//! Operation 22: an overview of the workspace's job queue.

use area_sdk::prelude::*;
use area_sdk::queue;

use crate::jobs::{DispatchStatus, JobStatus, misused, optional_uuid};

/// Maximum number of jobs that the overview shows in each lane for each group: queued, running,
/// retrying and ended.
const SHOWN: u32 = 100;

pub(crate) const DESCRIPTION: &str = "By lane and position. Of each lane the first 100 queued \
    jobs that are due, then up to 100 each of those that run, wait for their next attempt (soonest \
    first) and have ended (latest first). `/queue/jobs` has all of them, and those that are \
    scheduled for later. By default a \
    succeeded job is shown for an hour, a failed or dead one for 30 days, the successful delivery \
    of an event (kind `event`) not at all.\n\n\
    The lane `events` delivers events to the areas of the service, `delivery` messages to the \
    outside. Workspaces take turns in a lane, and none can use all of its capacity.\n\n\
    `capacity` is how many calls of the lane run at a time in one process of the service. A call \
    runs one job, in the lane `delivery` up to 64 together, so `active` can exceed `capacity` \
    there. `active` and `queued` count this workspace's jobs that run and those that are due. \
    `position` is a job's place among the workspace's queued jobs of its lane that are due, from \
    1, otherwise null. `dispatch_status` is `scheduled` before `available_at`, `waiting` for a \
    place in the lane, `dispatched` to a worker, or `settled`.";

/// Overview of the workspace's job queue.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceQueue {
    jobs: Vec<OverviewJob>,
    lanes: Vec<Lane>,
    /// Time at which this overview was created.
    updated_at: Timestamp,
}

/// A lane of the job queue: a share of the service's workers.
#[derive(Serialize, JsonSchema)]
struct Lane {
    active: u64,
    capacity: u32,
    name: String,
    queued: u64,
}

/// A job in the overview of the workspace's queue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Job")]
struct OverviewJob {
    attempts: u32,
    available_at: Timestamp,
    created_at: Timestamp,
    dispatch_status: DispatchStatus,
    kind: String,
    lane: String,
    last_error: Option<String>,
    #[schemars(range(min = 1))]
    position: Option<u64>,
    resource_id: Option<Uuid>,
    status: JobStatus,
    workspace_id: Uuid,
}

pub(crate) fn show(ctx: &Ctx) -> Result<WorkspaceQueue> {
    let jobs = ctx.queue().overview(SHOWN).unwrap_or_else(|error| misused(&error));
    Ok(WorkspaceQueue {
        jobs: jobs.into_iter().map(|job| OverviewJob::new(ctx, job)).collect(),
        lanes: ctx.queue().lanes().into_iter().map(Lane::from).collect(),
        updated_at: ctx.now(),
    })
}

impl OverviewJob {
    fn new(ctx: &Ctx, job: queue::Job) -> Self {
        Self {
            attempts: job.attempts,
            available_at: Timestamp(job.available_at),
            created_at: Timestamp(job.created_at),
            dispatch_status: DispatchStatus::of(&job, ctx.now()),
            resource_id: optional_uuid(job.resource.as_deref()),
            kind: job.kind,
            lane: job.lane,
            last_error: job.last_error,
            position: job.position,
            status: job.status.into(),
            workspace_id: ctx.workspace_id(),
        }
    }
}

impl From<queue::Lane> for Lane {
    fn from(lane: queue::Lane) -> Self {
        let queue::Lane { name, capacity, active, queued } = lane;
        Self { active, capacity, name, queued }
    }
}
