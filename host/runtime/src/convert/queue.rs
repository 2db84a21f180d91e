//! Converts types of the interface `queue`.

use super::super::bindings::assurance::area::queue as wit;
use assurance_core::domain::job::{JobStatus, Lane};
use assurance_core::domain::queue::{JobFilter, LaneLoad, QueuedJob};

pub(in super::super) fn lane(lane: Lane, capacity: u32, load: LaneLoad) -> wit::Lane {
    let LaneLoad { active, queued } = load;
    wit::Lane { name: lane.as_str().to_owned(), capacity, active, queued }
}

pub(in super::super) fn job(job: QueuedJob) -> wit::Job {
    wit::Job {
        id: job.id.to_string(),
        area: job.area,
        kind: job.kind,
        lane: job.lane.as_str().to_owned(),
        resource: job.resource.map(|id| id.to_string()),
        status: status(job.status),
        attempts: job.attempts,
        max_attempts: job.max_attempts,
        available_at: job.available_at.0,
        created_at: job.created_at.0,
        updated_at: job.updated_at.0,
        last_error: job.last_error,
        position: job.position,
    }
}

pub(in super::super) fn status(status: JobStatus) -> wit::Status {
    match status {
        JobStatus::Queued => wit::Status::Queued,
        JobStatus::Running => wit::Status::Running,
        JobStatus::Retrying => wit::Status::Retrying,
        JobStatus::Succeeded => wit::Status::Succeeded,
        JobStatus::Failed => wit::Status::Failed,
        JobStatus::Dead => wit::Status::Dead,
    }
}

/// Converts a filter; `None` if no job can match it.
pub(in super::super) fn filter(filter: wit::Filter) -> Option<JobFilter> {
    Some(JobFilter {
        lane: filter.lane.map(|lane| lane.parse()).transpose().ok()?,
        kind: filter.kind,
        status: filter.status.map(|status| match status {
            wit::Status::Queued => JobStatus::Queued,
            wit::Status::Running => JobStatus::Running,
            wit::Status::Retrying => JobStatus::Retrying,
            wit::Status::Succeeded => JobStatus::Succeeded,
            wit::Status::Failed => JobStatus::Failed,
            wit::Status::Dead => JobStatus::Dead,
        }),
        resource: filter.resource.map(|id| id.parse()).transpose().ok()?,
    })
}
