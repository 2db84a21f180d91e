//! Access to the workspace's jobs of all areas, for the area that shows the job queue.

use uuid::Uuid;

use crate::context::Scope;
use crate::documents::Page;
use crate::job::Progress;
pub use crate::wit::assurance::area::queue::{Error, Filter, Job, Lane, Status};

/// The jobs of one workspace, of all areas. Created by [`Scope::queue`].
#[derive(Debug)]
pub struct WorkspaceJobs<'a>(&'a Scope);

impl Scope {
    /// Returns access to the workspace's jobs of all areas.
    #[must_use]
    pub fn queue(&self) -> WorkspaceJobs<'_> {
        WorkspaceJobs(self)
    }
}

impl WorkspaceJobs<'_> {
    /// Returns every lane with its load, ordered by name.
    #[must_use]
    pub fn lanes(&self) -> Vec<Lane> {
        self.0.host.queue_lanes()
    }

    /// Returns the jobs ordered by lane and position, then those without a position: running,
    /// retrying and ended. Each of these groups has at most `limit` jobs (1 to 500) in each lane.
    pub fn overview(&self, limit: u32) -> Result<Vec<Job>, Error> {
        self.0.host.queue_overview(limit)
    }

    /// Returns a page of the jobs that match the filter, newest first.
    pub fn page(
        &self,
        filter: &Filter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Job>, Error> {
        let page = self.0.host.queue_find(filter, cursor, limit)?;
        Ok(Page { items: page.jobs, next_cursor: page.next })
    }

    /// Returns the job with this id; `None` if the workspace has no such job.
    #[must_use]
    pub fn get(&self, job: Uuid) -> Option<Job> {
        self.0.host.queue_get(&job.to_string())
    }

    /// Returns the progress that the job's last finished step reported; `None` if it reported none.
    #[must_use]
    pub fn progress(&self, job: Uuid) -> Option<Progress> {
        let progress = self.0.host.queue_progress_of(&job.to_string())?;
        Some(Progress { done: progress.done, total: progress.total })
    }

    /// Enqueues a failed or dead job again. Returns the job after the change.
    pub fn retry(&self, job: Uuid) -> Result<Job, Error> {
        self.0.host.queue_retry(&job.to_string())
    }

    /// Ends a waiting or running job with the status `failed` and `reason` as its last error.
    /// Returns the job after the change.
    pub fn cancel(&self, job: Uuid, reason: &str) -> Result<Job, Error> {
        self.0.host.queue_cancel(&job.to_string(), reason)
    }
}
