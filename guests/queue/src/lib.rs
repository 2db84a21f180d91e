//! The workspace's queue (operation 22): what waits, runs and has failed, in
//! lanes, whichever area's work it is; and what an admin can do about it.

mod actions;
mod jobs;
mod overview;

use area_sdk::prelude::*;

use actions::{JobCancelled, JobRetried};

/// The area.
pub fn area() -> Area {
    Area::new("queue", env!("CARGO_PKG_VERSION"))
        .summary("The workspace's jobs, of every area")
        .uses(&[Capability::Queue])
        .event::<JobRetried>("Somebody put a failed job back into the queue")
        .event::<JobCancelled>("Somebody cancelled a job")
        .route(
            get("get_workspace_queue", "/v1/workspaces/{workspace_id}/queue")
                .summary("Show the workspace's lanes and jobs")
                .description(overview::DESCRIPTION)
                .in_contract()
                .handler(overview::show),
        )
        .route(
            get("list_queue_jobs", "/v1/workspaces/{workspace_id}/queue/jobs")
                .summary("Page through the workspace's jobs")
                .description("Every job that is not forgotten yet, newest first.")
                .handler(jobs::list),
        )
        .route(
            get("get_queue_job", "/v1/workspaces/{workspace_id}/queue/jobs/{job_id}")
                .summary("Read one of the workspace's jobs")
                .handler(jobs::show),
        )
        .route(
            post("retry_queue_job", "/v1/workspaces/{workspace_id}/queue/jobs/{job_id}/retry")
                .summary("Put a failed job back into the queue")
                .description(
                    "A job that is `failed` or `dead` waits again in its lane, with all its \
                     attempts; one that had come some way goes on from there. Refused while \
                     another job has taken its place.",
                )
                .role(Role::Admin)
                .problems(&["job_status", "job_superseded"])
                .handler(actions::retry),
        )
        .route(
            post("cancel_queue_job", "/v1/workspaces/{workspace_id}/queue/jobs/{job_id}/cancel")
                .summary("Cancel a job")
                .description(
                    "A job that waits or runs becomes `failed`. What a run under way has not \
                     kept yet is dropped; what it has sent cannot be taken back. The delivery of \
                     an event to an area (kind `event`) cannot be cancelled: areas rely on it.",
                )
                .role(Role::Admin)
                .problems(&["job_status", "job_not_cancellable"])
                .handler(actions::cancel),
        )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
