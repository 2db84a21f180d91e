//! Converts types of the interface `queue`.

use super::super::bindings::assurance::area::queue as wit;
use super::same;
use assurance_core::domain::job::{JobStatus, Lane};
use assurance_core::domain::queue::{JobFilter, JobForMembers, WorkspaceLaneLoad};

pub(in super::super) fn lane(lane: Lane, capacity: u32, load: WorkspaceLaneLoad) -> wit::Lane {
    let WorkspaceLaneLoad { active, queued } = load;
    wit::Lane { name: lane.as_str().to_owned(), capacity, active, queued }
}

pub(in super::super) fn job(job: JobForMembers) -> wit::Job {
    wit::Job {
        id: job.id.to_string(),
        area: job.area,
        kind: job.kind,
        lane: job.lane.as_str().to_owned(),
        resource: job.resource.map(|id| id.to_string()),
        status: job.status.into(),
        attempts: job.attempts,
        max_attempts: job.max_attempts,
        available_at: job.available_at.0,
        created_at: job.created_at.0,
        updated_at: job.updated_at.0,
        last_error: job.last_error,
        position: job.position,
    }
}

same!(JobStatus => wit::Status { Queued, Running, Retrying, Succeeded, Failed, Dead });
same!(wit::Status => JobStatus { Queued, Running, Retrying, Succeeded, Failed, Dead });

/// Converts a guest's filter of jobs; `None` if no job can match it.
pub(in super::super) fn filter(filter: wit::Filter) -> Option<JobFilter> {
    Some(JobFilter {
        lane: filter.lane.map(|lane| lane.parse()).transpose().ok()?,
        kind: filter.kind,
        status: filter.status.map(JobStatus::from),
        resource: filter.resource.map(|id| id.parse()).transpose().ok()?,
    })
}
