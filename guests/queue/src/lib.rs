//! The workspace's queue (operation 22): waiting, running and ended jobs of all areas, by lane, and
//! operations of admins on them.

mod actions;
mod jobs;
mod overview;

use area_sdk::prelude::*;

use actions::{JobCancelled, JobRetried};

/// Declares the area `queue`: its operations and events.
pub fn area() -> Area {
    Area::new("queue", env!("CARGO_PKG_VERSION"))
        .summary("The workspace's jobs, of every area")
        .uses(&[Capability::Queue])
        .event::<JobRetried>("A user queued a failed job again")
        .event::<JobCancelled>("A user cancelled a job")
        .routes([
get("get_workspace_queue", "/v1/workspaces/{workspace_id}/queue")
                .summary("Show the workspace's lanes and jobs")
                .description(overview::DESCRIPTION)
                .in_contract()
                .example(include_str!("../examples/get_workspace_queue.json"))
                .handler(overview::show),
get("list_queue_jobs", "/v1/workspaces/{workspace_id}/queue/jobs")
                .summary("Page through the workspace's jobs")
                .description("Returns every stored job, newest first.")
                .example(include_str!("../examples/list_queue_jobs.json"))
                .handler(jobs::list),
get("get_queue_job", "/v1/workspaces/{workspace_id}/queue/jobs/{job_id}")
                .summary("Read one of the workspace's jobs")
                .description(
                    "With its attempts, its last error and the progress that it reports. `position` \
                     is its place among the workspace's jobs of its lane that are due, from 1 on.",
                )
                .example(include_str!("../examples/get_queue_job.json"))
                .handler(jobs::show),
post("retry_queue_job", "/v1/workspaces/{workspace_id}/queue/jobs/{job_id}/retry")
                .summary("Queue a failed job again")
                .description(
                    "A job that is `failed` or `dead` is queued again with all its attempts. It \
                    continues after its last completed step. Refused while another job with the \
                    same work exists.",
                )
                .role(Role::Admin)
                .problems(&["job_status", "job_superseded"])
                .example(include_str!("../examples/retry_queue_job.json"))
                .handler(actions::retry),
post("cancel_queue_job", "/v1/workspaces/{workspace_id}/queue/jobs/{job_id}/cancel")
                .summary("Cancel a job")
                .description(
                    "A waiting or running job becomes `failed`. Uncommitted effects of a run are \
                    discarded; requests that it has sent cannot be undone. Retry the job to \
                    continue.\n\n\
                    A schedule skips the due time of a cancelled `schedule_dispatch` and waits for \
                    the next one; to stop it, pause it. A cancelled `expire_acceptance` or \
                    `audit_deadline` is queued again for its time. The run of a cancelled \
                    `answer_message` fails with `cancelled`. An audit whose job is cancelled fails \
                    24 hours after its creation unless the job is retried before. The delivery of \
                    an event to an area (kind `event` without `resource_id`) cannot be cancelled: \
                    areas rely on it.",
                )
                .role(Role::Admin)
                .problems(&["job_status", "job_not_cancellable"])
                .example(include_str!("../examples/cancel_queue_job.json"))
                .handler(actions::cancel),
])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
