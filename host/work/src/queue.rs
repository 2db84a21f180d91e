//! Reads and changes jobs of the call's workspace, of all areas.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::error::READ_ONLY;
use super::reading::ReadKind;
use super::{HostCallError, QueueError, UnitOfWork};
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::job::{JobProgress, JobStatus, Lane, delivers_events};
use assurance_core::domain::queue::{
    JobFilter, JobForMembers, MemberJobAction, PendingMemberJobAction, WorkspaceLaneLoad,
};
use assurance_core::domain::time::Timestamp;
use assurance_store::{Error, jobs};

type QueueHostCallResult<T> = Result<T, HostCallError<QueueError>>;

/// Maximum number of jobs in one page of the queue, or of one lane and status in an overview.
const MAX_JOBS: u32 = 500;
/// Maximum length of the reason for a job's cancellation, in characters.
const MAX_REASON: usize = 1_000;

impl UnitOfWork {
    /// Returns the number of the workspace's running and due jobs in each lane.
    pub async fn lane_loads(&mut self) -> Result<BTreeMap<Lane, WorkspaceLaneLoad>, Error> {
        let (workspace, now) = self.workspace_and_now();
        self.read(ReadKind::Other, async |c| jobs::loads(c, workspace, now).await).await
    }

    /// Returns the workspace's jobs by lane and position in the queue, then those without a
    /// position. `limit` applies to each lane and status.
    pub async fn queue_overview(&mut self, limit: u32) -> QueueHostCallResult<Vec<JobForMembers>> {
        check_limit(limit)?;
        let (workspace, now) = self.workspace_and_now();
        let jobs =
            self.read(ReadKind::Other, async |c| jobs::overview(c, workspace, now, limit).await);
        Ok(jobs.await?)
    }

    /// Returns one page of the workspace's jobs, newest first, and the next
    /// page's cursor.
    pub async fn queue_page(
        &mut self,
        filter: &JobFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> QueueHostCallResult<(Vec<JobForMembers>, Option<String>)> {
        check_limit(limit)?;
        let scope = self.workspace_and_now();
        let key = self.keys.derive("query cursor");
        let mut lease = self.lease(ReadKind::Other, 1).await?;
        let page = match jobs::page(lease.connection(), scope, filter, cursor, limit, &key).await {
            Err(Error::InvalidCursor) => Err(HostCallError::Refused(QueueError::InvalidCursor)),
            page => Ok(page?),
        };
        self.done(lease);
        page
    }

    /// Returns one of the workspace's jobs by its id; `None` if there is none.
    pub async fn queued_job(&mut self, job: JobId) -> Result<Option<JobForMembers>, Error> {
        let (workspace, now) = self.workspace_and_now();
        self.read(ReadKind::Other, async |c| jobs::find(c, workspace, now, job).await).await
    }

    /// Returns area, kind and progress of the jobs about a resource that have
    /// reported progress and have not ended.
    pub async fn progress_of(
        &mut self,
        resource: Uuid,
    ) -> Result<Vec<(String, String, JobProgress)>, Error> {
        let workspace = self.spec.call.workspace;
        self.read(ReadKind::Other, async |c| jobs::progress_of(c, workspace, resource).await).await
    }

    /// Returns a failed or dead job to its lane with all its attempts. Returns
    /// the job as it will be after the commit.
    pub async fn retry_job(&mut self, job: JobId) -> QueueHostCallResult<JobForMembers> {
        let mut found = self.job_to_change(job).await?;
        if !matches!(found.status, JobStatus::Failed | JobStatus::Dead) {
            return Err(HostCallError::Refused(QueueError::WrongStatus(found.status)));
        }
        let workspace = self.spec.call.workspace;
        let superseded =
            self.read(ReadKind::Other, async |c| jobs::is_superseded(c, workspace, job).await);
        if superseded.await? {
            return Err(HostCallError::Refused(QueueError::Superseded));
        }
        let how = MemberJobAction::Retry;
        self.job_changes.push(PendingMemberJobAction { job, lane: found.lane, how });
        found.status = JobStatus::Queued;
        found.attempts = 0;
        found.available_at = self.spec.call.now;
        found.updated_at = self.spec.call.now;
        found.position = None;
        Ok(found)
    }

    /// Ends a job that waits or runs. Returns the job as it will be after the
    /// commit.
    pub async fn cancel_job(
        &mut self,
        job: JobId,
        reason: String,
    ) -> QueueHostCallResult<JobForMembers> {
        if reason.chars().count() > MAX_REASON || reason.contains('\0') {
            return misuse(format!("a reason has at most {MAX_REASON} characters, without U+0000"));
        }
        let mut found = self.job_to_change(job).await?;
        if found.status.is_final() {
            return Err(HostCallError::Refused(QueueError::WrongStatus(found.status)));
        }
        // An area relies on an event, but not on its delivery for one document.
        if delivers_events(&found.kind) && found.resource.is_none() {
            return Err(HostCallError::Refused(QueueError::NotCancellable));
        }
        let how = MemberJobAction::Cancel(reason.clone());
        self.job_changes.push(PendingMemberJobAction { job, lane: found.lane, how });
        found.status = JobStatus::Failed;
        found.last_error = Some(reason);
        found.updated_at = self.spec.call.now;
        found.position = None;
        Ok(found)
    }

    /// Returns the call's workspace and time. A view of the queue depends on both, because a job is
    /// due or not at a time.
    fn workspace_and_now(&self) -> (WorkspaceId, Timestamp) {
        (self.spec.call.workspace, self.spec.call.now)
    }

    async fn job_to_change(&mut self, job: JobId) -> QueueHostCallResult<JobForMembers> {
        if !self.spec.writes {
            return misuse(READ_ONLY);
        }
        if self.job_changes.iter().any(|change| change.job == job) {
            return misuse("a call can change a job only once");
        }
        let found = self.queued_job(job).await?;
        found.ok_or(HostCallError::Refused(QueueError::NotFound))
    }
}

fn check_limit(limit: u32) -> QueueHostCallResult<()> {
    if (1..=MAX_JOBS).contains(&limit) {
        return Ok(());
    }
    misuse(format!("a limit is 1 to {MAX_JOBS}"))
}

fn misuse<T>(what: impl Into<String>) -> QueueHostCallResult<T> {
    Err(HostCallError::Refused(QueueError::Misuse(what.into())))
}
