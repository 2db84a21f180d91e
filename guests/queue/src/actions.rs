//! What an admin can do about a job.

use area_sdk::prelude::*;
use area_sdk::queue;

use crate::jobs::{JobStatus, QueueJob, misused, optional_uuid};

/// Told when a failed job is put back into the queue.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobRetried(Changed);

/// Told when a job is cancelled; its area may want to know.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobCancelled(Changed);

/// Which job, and whose doing.
#[derive(Serialize, JsonSchema)]
struct Changed {
    job_id: Uuid,
    area: String,
    kind: String,
    resource_id: Option<Uuid>,
    actor_id: Uuid,
}

impl Event for JobRetried {
    const NAME: &'static str = "job.retried";
}

impl Event for JobCancelled {
    const NAME: &'static str = "job.cancelled";
}

impl Changed {
    fn new(ctx: &Ctx, id: Uuid, job: &queue::Job) -> Self {
        Self {
            job_id: id,
            area: job.area.clone(),
            kind: job.kind.clone(),
            resource_id: optional_uuid(job.resource.as_deref()),
            actor_id: ctx.user(),
        }
    }
}

pub(crate) fn retry(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<QueueJob> {
    let job = ctx.queue().retry(id).map_err(|error| refused(&error))?;
    ctx.publish(JobRetried(Changed::new(ctx, id, &job)));
    Ok(QueueJob::new(ctx, job))
}

pub(crate) fn cancel(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<QueueJob> {
    let reason = format!("cancelled by user {}", ctx.user());
    let job = ctx.queue().cancel(id, &reason).map_err(|error| refused(&error))?;
    ctx.publish(JobCancelled(Changed::new(ctx, id, &job)));
    Ok(QueueJob::new(ctx, job))
}

fn refused(error: &queue::Error) -> Problem {
    match error {
        queue::Error::NotFound => Problem::not_found(),
        queue::Error::WrongStatus(status) => {
            let status = word(JobStatus::from(*status));
            Problem::conflict("job_status", format!("The job is {status}, which rules this out."))
                .hint("Failed and dead jobs can be retried; jobs that wait or run, cancelled.")
        }
        queue::Error::Superseded => Problem::conflict(
            "job_superseded",
            "Another job that does the same waits or runs already.",
        ),
        queue::Error::NotCancellable => Problem::conflict(
            "job_not_cancellable",
            "The delivery of an event cannot be cancelled.",
        ),
        queue::Error::InvalidCursor | queue::Error::Misuse(_) => misused(error),
    }
}

fn word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued => "queued",
        JobStatus::Running => "running",
        JobStatus::Retrying => "retrying",
        JobStatus::Succeeded => "succeeded",
        JobStatus::Failed => "failed",
        JobStatus::Dead => "dead",
    }
}
