//! The workspace's jobs, whichever area runs them, and what people want done
//! with them.

use std::collections::BTreeMap;

use super::reading::What;
use super::{Fault, QueueError, UnitOfWork};
use crate::domain::id::JobId;
use crate::domain::job::{EVENT_KIND, Lane, Status};
use crate::domain::queue::{JobChange, JobChangeKind, JobFilter, LaneLoad, QueuedJob};
use crate::store::{Error, jobs};

type Answer<T> = Result<T, Fault<QueueError>>;

/// Jobs of one page, or of one lane and status of an overview.
const MAX_JOBS: u32 = 500;
/// Characters of a reason.
const MAX_REASON: usize = 1_000;

impl UnitOfWork {
    /// What the workspace has in each lane.
    pub async fn lane_loads(&mut self) -> Result<BTreeMap<Lane, LaneLoad>, Error> {
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let loads = jobs::loads(lease.connection(), workspace).await?;
        self.done(lease);
        Ok(loads)
    }

    /// The workspace's jobs by lane and position, then those without one.
    pub async fn queue_overview(&mut self, limit: u32) -> Answer<Vec<QueuedJob>> {
        check_limit(limit)?;
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let jobs = jobs::overview(lease.connection(), workspace, limit).await?;
        self.done(lease);
        Ok(jobs)
    }

    /// One page of the workspace's jobs, newest first, and the next page's
    /// cursor.
    pub async fn queue_page(
        &mut self,
        filter: &JobFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Answer<(Vec<QueuedJob>, Option<String>)> {
        check_limit(limit)?;
        let workspace = self.spec.call.workspace;
        let key = self.keys.derive("query cursor");
        let mut lease = self.lease(What::Other, 1).await?;
        let page = jobs::page(lease.connection(), workspace, filter, cursor, limit, &key).await;
        match page {
            Ok(page) => {
                self.done(lease);
                Ok(page)
            }
            Err(Error::InvalidCursor) => {
                self.done(lease);
                Err(Fault::Refused(QueueError::InvalidCursor))
            }
            Err(error) => Err(Fault::Abort(error)),
        }
    }

    /// One of the workspace's jobs.
    pub async fn queued_job(&mut self, job: JobId) -> Result<Option<QueuedJob>, Error> {
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let found = jobs::find(lease.connection(), workspace, job).await?;
        self.done(lease);
        Ok(found)
    }

    /// Puts a failed or dead job back into its lane with all its attempts; the
    /// job as it will be then.
    pub async fn retry_job(&mut self, job: JobId) -> Answer<QueuedJob> {
        let mut found = self.job_to_change(job).await?;
        if !matches!(found.status, Status::Failed | Status::Dead) {
            return Err(Fault::Refused(QueueError::WrongStatus(found.status)));
        }
        let workspace = self.spec.call.workspace;
        let mut lease = self.lease(What::Other, 1).await?;
        let superseded = jobs::is_superseded(lease.connection(), workspace, job).await?;
        self.done(lease);
        if superseded {
            return Err(Fault::Refused(QueueError::Superseded));
        }
        self.job_changes.push(JobChange { job, lane: found.lane, how: JobChangeKind::Retry });
        found.status = Status::Queued;
        found.attempts = 0;
        found.available_at = self.spec.call.now;
        found.updated_at = self.spec.call.now;
        found.position = None;
        Ok(found)
    }

    /// Ends a job that waits or runs; the job as it will be then.
    pub async fn cancel_job(&mut self, job: JobId, reason: String) -> Answer<QueuedJob> {
        if reason.chars().count() > MAX_REASON || reason.contains('\0') {
            let what = format!("a reason has at most {MAX_REASON} characters, without U+0000");
            return Err(Fault::Refused(QueueError::Misuse(what)));
        }
        let mut found = self.job_to_change(job).await?;
        if found.status.is_final() {
            return Err(Fault::Refused(QueueError::WrongStatus(found.status)));
        }
        if found.kind == EVENT_KIND {
            return Err(Fault::Refused(QueueError::NotCancellable));
        }
        let how = JobChangeKind::Cancel(reason.clone());
        self.job_changes.push(JobChange { job, lane: found.lane, how });
        found.status = Status::Failed;
        found.last_error = Some(reason);
        found.updated_at = self.spec.call.now;
        found.position = None;
        Ok(found)
    }

    async fn job_to_change(&mut self, job: JobId) -> Answer<QueuedJob> {
        if !self.spec.writes {
            let what = "the route writes nothing".to_owned();
            return Err(Fault::Refused(QueueError::Misuse(what)));
        }
        if self.job_changes.iter().any(|change| change.job == job) {
            let what = "a call changes a job once".to_owned();
            return Err(Fault::Refused(QueueError::Misuse(what)));
        }
        let found = self.queued_job(job).await?;
        found.ok_or(Fault::Refused(QueueError::NotFound))
    }
}

fn check_limit(limit: u32) -> Answer<()> {
    if (1..=MAX_JOBS).contains(&limit) {
        return Ok(());
    }
    Err(Fault::Refused(QueueError::Misuse(format!("a limit is 1 to {MAX_JOBS}"))))
}
