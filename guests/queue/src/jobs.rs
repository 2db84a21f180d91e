//! Operations that read jobs: one, or a page of them.

use area_sdk::prelude::*;
use area_sdk::{Progress, queue};

/// A job of the workspace's queue.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QueueJob {
    id: Uuid,
    /// Name of the area that runs the job.
    area: String,
    kind: String,
    lane: String,
    status: JobStatus,
    dispatch_status: DispatchStatus,
    /// Number of runs of the job so far.
    attempts: u32,
    /// Maximum number of runs before the job is dead.
    max_attempts: u32,
    last_error: Option<String>,
    /// Earliest time of the job's next run.
    available_at: Timestamp,
    /// Position among the workspace's queued jobs of the lane that are due, from 1.
    #[schemars(range(min = 1))]
    position: Option<u64>,
    resource_id: Option<Uuid>,
    workspace_id: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// A job of the workspace's queue, with the progress that the job reports.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QueueJobDetails {
    #[serde(flatten)]
    job: QueueJob,
    /// Progress at the end of the job's last finished step; null if it reports none.
    progress: Option<Progress>,
}

/// Status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobStatus {
    /// The job waits for its first run, or for the next step after a successful one.
    Queued,
    /// A worker runs the job.
    Running,
    /// The job waits for its next attempt.
    Retrying,
    /// The job succeeded.
    Succeeded,
    /// The job does not run again: its area reported a permanent failure, or a user cancelled it.
    Failed,
    /// The job does not run again, because all attempts failed.
    Dead,
}

/// Position of a job on its way to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DispatchStatus {
    /// The job is not due before `available_at`.
    Scheduled,
    /// The job is due and waits for a free worker of its lane.
    Waiting,
    /// A worker runs the job.
    Dispatched,
    /// The job has ended: it succeeded, failed or is dead, and waits for no worker.
    Settled,
}

impl DispatchStatus {
    pub(crate) fn of(job: &queue::Job, now: Timestamp) -> Self {
        match job.status {
            queue::Status::Queued | queue::Status::Retrying if job.available_at > now.0 => {
                Self::Scheduled
            }
            queue::Status::Queued | queue::Status::Retrying => Self::Waiting,
            queue::Status::Running => Self::Dispatched,
            queue::Status::Succeeded | queue::Status::Failed | queue::Status::Dead => Self::Settled,
        }
    }
}

impl QueueJob {
    pub(crate) fn new(scope: &Scope, job: queue::Job) -> Self {
        Self {
            dispatch_status: DispatchStatus::of(&job, scope.now()),
            id: uuid(&job.id),
            resource_id: optional_uuid(job.resource.as_deref()),
            area: job.area,
            kind: job.kind,
            lane: job.lane,
            status: job.status.into(),
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            last_error: job.last_error,
            available_at: Timestamp(job.available_at),
            position: job.position,
            workspace_id: scope.workspace_id(),
            created_at: Timestamp(job.created_at),
            updated_at: Timestamp(job.updated_at),
        }
    }
}

/// Query parameters that filter the list of jobs.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only jobs of this lane.
    lane: Option<String>,
    /// Only jobs of this kind.
    kind: Option<String>,
    /// Only jobs with this status.
    status: Option<JobStatus>,
    /// Only jobs about the resource with this id.
    resource_id: Option<Uuid>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<QueueJob>> {
    let filter = queue::Filter {
        lane: params.lane,
        kind: params.kind,
        status: params.status.map(Into::into),
        resource: params.resource_id.map(|id| id.to_string()),
    };
    match ctx.queue().page(&filter, paging.cursor.as_deref(), paging.limit) {
        Ok(page) => Ok(page.map(|job| QueueJob::new(ctx, job))),
        Err(queue::Error::InvalidCursor) => Err(Problem::validation(
            "cursor",
            "This cursor was altered or belongs to another list; begin without one.",
        )),
        Err(error) => misused(&error),
    }
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<QueueJobDetails> {
    let job = ctx.queue().get(id).ok_or_else(Problem::not_found)?;
    let progress = ctx.queue().progress(id);
    Ok(QueueJobDetails { job: QueueJob::new(ctx, job), progress })
}

pub(crate) fn misused(error: &queue::Error) -> ! {
    panic!("queue misused: {error:?}")
}

pub(crate) fn uuid(text: &str) -> Uuid {
    text.parse().unwrap_or_else(|_| panic!("the host gave {text:?} for a UUID"))
}

pub(crate) fn optional_uuid(text: Option<&str>) -> Option<Uuid> {
    text.map(uuid)
}

impl From<queue::Status> for JobStatus {
    fn from(status: queue::Status) -> Self {
        match status {
            queue::Status::Queued => Self::Queued,
            queue::Status::Running => Self::Running,
            queue::Status::Retrying => Self::Retrying,
            queue::Status::Succeeded => Self::Succeeded,
            queue::Status::Failed => Self::Failed,
            queue::Status::Dead => Self::Dead,
        }
    }
}

impl From<JobStatus> for queue::Status {
    fn from(status: JobStatus) -> Self {
        match status {
            JobStatus::Queued => Self::Queued,
            JobStatus::Running => Self::Running,
            JobStatus::Retrying => Self::Retrying,
            JobStatus::Succeeded => Self::Succeeded,
            JobStatus::Failed => Self::Failed,
            JobStatus::Dead => Self::Dead,
        }
    }
}
