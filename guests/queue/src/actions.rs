//! Operations with which admins retry and cancel jobs.

use area_sdk::prelude::*;
use area_sdk::queue;
use area_sdk::text::name;

use crate::jobs::{JobStatus, QueueJob, misused, optional_uuid};

/// Published when an admin enqueued a failed or dead job again.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobRetried(JobEvent);

/// Published when an admin cancelled a job.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JobCancelled(JobEvent);

/// Data of the events `job.retried` and `job.cancelled`: the job, and the user who acted.
#[derive(Serialize, JsonSchema)]
struct JobEvent {
    job_id: Uuid,
    area: String,
    kind: String,
    resource_id: Option<Uuid>,
    actor_id: Uuid,
}

event!(JobRetried, "job.retried");
event!(JobCancelled, "job.cancelled");

impl JobEvent {
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
    ctx.publish(JobRetried(JobEvent::new(ctx, id, &job)));
    Ok(QueueJob::new(ctx, job))
}

pub(crate) fn cancel(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<QueueJob> {
    let reason = format!("cancelled by user {}", ctx.user());
    let job = ctx.queue().cancel(id, &reason).map_err(|error| refused(&error))?;
    ctx.publish(JobCancelled(JobEvent::new(ctx, id, &job)));
    Ok(QueueJob::new(ctx, job))
}

fn refused(error: &queue::Error) -> Problem {
    match error {
        queue::Error::NotFound => Problem::not_found(),
        queue::Error::WrongStatus(status) => {
            let status = name(&JobStatus::from(*status));
            Problem::conflict(
                "job_status",
                format!("The job is {status}, so this is not possible."),
            )
            .hint("Failed and dead jobs can be retried; jobs that wait or run, cancelled.")
        }
        queue::Error::Superseded => Problem::conflict(
            "job_superseded",
            "Another job with the same work is already waiting or running.",
        ),
        queue::Error::NotCancellable => Problem::conflict(
            "job_not_cancellable",
            "The delivery of an event to an area cannot be cancelled.",
        ),
        queue::Error::InvalidCursor | queue::Error::Misuse(_) => misused(error),
    }
}
