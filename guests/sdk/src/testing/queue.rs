//! The workspace's job queue in memory, with the behavior that `wit/queue.wit` defines.

use std::cmp::Reverse;

use super::FakeHost;
use crate::MERGED_EVENTS;
use crate::wit::assurance::area::queue::{Error, Filter, Job, Lane, Page, Status};

/// Name and capacity of each lane; the capacity is the number of jobs that run at a time.
const LANES: [(&str, u32); 5] =
    [("assistant", 4), ("delivery", 8), ("ingest", 4), ("maintenance", 2), ("scanner", 2)];

/// The jobs of all areas in the workspace.
#[derive(Clone, Default)]
pub(super) struct QueueCapabilityState(Vec<Job>);

impl FakeHost {
    /// Adds a job to the queue that the `queue` capability shows. Its `position` is ignored and
    /// computed by the host.
    pub fn put_job(&self, job: Job) {
        self.0.state.borrow_mut().queue.0.push(job);
    }
}

/// Returns the sort rank of a status within a lane.
fn rank(status: Status) -> u8 {
    match status {
        Status::Queued => 0,
        Status::Running => 1,
        Status::Retrying => 2,
        Status::Succeeded | Status::Failed | Status::Dead => 3,
    }
}

impl QueueCapabilityState {
    pub(super) fn lanes(&self, now: i64) -> Vec<Lane> {
        let count = |name: &str, status: Status| {
            let counts =
                |job: &&Job| job.lane == name && job.status == status && !is_timer(job, now);
            self.0.iter().filter(counts).count() as u64
        };
        let lane = |(name, capacity): (&str, u32)| Lane {
            name: name.to_owned(),
            capacity,
            active: count(name, Status::Running),
            queued: count(name, Status::Queued),
        };
        LANES.into_iter().map(lane).collect()
    }

    pub(super) fn overview(&self, now: i64) -> Vec<Job> {
        let shown = self.0.iter().filter(|job| !is_timer(job, now));
        let mut jobs: Vec<Job> = shown.map(|job| self.placed(job, now)).collect();
        jobs.sort_by_key(|job| {
            let rank = rank(job.status);
            let at = if rank == 3 { -job.updated_at } else { job.available_at };
            (job.lane.clone(), rank, at, job.id.clone())
        });
        jobs
    }

    /// Returns a page of the jobs that match a filter, in descending order of id. The cursor is the
    /// last id of the previous page.
    pub(super) fn page(
        &self,
        filter: &Filter,
        cursor: Option<&str>,
        limit: u32,
        now: i64,
    ) -> Result<Page, Error> {
        if cursor.is_some_and(|cursor| !self.0.iter().any(|job| job.id == cursor)) {
            return Err(Error::InvalidCursor);
        }
        let below = |job: &&Job| cursor.is_none_or(|cursor| job.id.as_str() < cursor);
        let passing = self.0.iter().filter(|job| passes(job, filter)).filter(below);
        let mut jobs: Vec<Job> = passing.map(|job| self.placed(job, now)).collect();
        jobs.sort_by_key(|job| Reverse(job.id.clone()));
        let more = jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        let next = jobs.last().filter(|_| more).map(|job| job.id.clone());
        Ok(Page { jobs, next })
    }

    pub(super) fn get(&self, id: &str, now: i64) -> Option<Job> {
        self.0.iter().find(|job| job.id == id).map(|job| self.placed(job, now))
    }

    pub(super) fn retry(&mut self, id: &str, now: i64) -> Result<Job, Error> {
        let job = self.find(id)?;
        if !matches!(job.status, Status::Failed | Status::Dead) {
            return Err(Error::WrongStatus(job.status));
        }
        job.status = Status::Queued;
        job.attempts = 0;
        (job.available_at, job.updated_at) = (now, now);
        Ok(job.clone())
    }

    pub(super) fn cancel(&mut self, id: &str, reason: &str, now: i64) -> Result<Job, Error> {
        let job = self.find(id)?;
        if rank(job.status) == 3 {
            return Err(Error::WrongStatus(job.status));
        }
        if matches!(job.kind.as_str(), "event" | MERGED_EVENTS) && job.resource.is_none() {
            return Err(Error::NotCancellable);
        }
        job.status = Status::Failed;
        job.last_error = Some(reason.to_owned());
        job.updated_at = now;
        Ok(job.clone())
    }

    fn find(&mut self, id: &str) -> Result<&mut Job, Error> {
        self.0.iter_mut().find(|job| job.id == id).ok_or(Error::NotFound)
    }

    /// Returns the job with its position among the queued jobs of its lane that are due.
    fn placed(&self, job: &Job, now: i64) -> Job {
        let is_due = |job: &Job| job.status == Status::Queued && !is_timer(job, now);
        let place = |other: &&Job| {
            is_due(other)
                && other.lane == job.lane
                && (other.available_at, &other.id) <= (job.available_at, &job.id)
        };
        let position = is_due(job).then(|| self.0.iter().filter(place).count() as u64);
        Job { position, ..job.clone() }
    }
}

/// Returns whether the job is queued for a later time.
fn is_timer(job: &Job, now: i64) -> bool {
    job.status == Status::Queued && job.available_at > now
}

fn passes(job: &Job, filter: &Filter) -> bool {
    filter.lane.as_ref().is_none_or(|lane| *lane == job.lane)
        && filter.kind.as_ref().is_none_or(|kind| *kind == job.kind)
        && filter.status.is_none_or(|status| status == job.status)
        && filter.resource.as_ref().is_none_or(|id| job.resource.as_ref() == Some(id))
}
