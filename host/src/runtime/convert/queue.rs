//! The queue's words.

use super::super::bindings::assurance::area::queue as wit;
use crate::domain::job::{Lane, Status};
use crate::domain::queue::{JobFilter, LaneLoad, QueuedJob};

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

pub(in super::super) fn status(status: Status) -> wit::Status {
    match status {
        Status::Queued => wit::Status::Queued,
        Status::Running => wit::Status::Running,
        Status::Retrying => wit::Status::Retrying,
        Status::Succeeded => wit::Status::Succeeded,
        Status::Failed => wit::Status::Failed,
        Status::Dead => wit::Status::Dead,
    }
}

/// Nothing where no job can pass it.
pub(in super::super) fn filter(filter: wit::Filter) -> Option<JobFilter> {
    Some(JobFilter {
        lane: filter.lane.map(|lane| lane.parse()).transpose().ok()?,
        kind: filter.kind,
        status: filter.status.map(|status| match status {
            wit::Status::Queued => Status::Queued,
            wit::Status::Running => Status::Running,
            wit::Status::Retrying => Status::Retrying,
            wit::Status::Succeeded => Status::Succeeded,
            wit::Status::Failed => Status::Failed,
            wit::Status::Dead => Status::Dead,
        }),
        resource: filter.resource.map(|id| id.parse()).transpose().ok()?,
    })
}
