//! The workspace's jobs, of every area, for the area that shows them.

use uuid::Uuid;

use crate::context::Scope;
use crate::documents::Page;
pub use crate::wit::assurance::area::queue::{Error, Filter, Job, Lane, Status};

/// The queue, as the workspace sees it.
#[derive(Debug)]
pub struct Queue<'a>(&'a Scope);

impl Scope {
    /// The workspace's jobs, whichever area runs them.
    #[must_use]
    pub fn queue(&self) -> Queue<'_> {
        Queue(self)
    }
}

#[expect(clippy::missing_errors_doc, reason = "documented with the error in wit/queue.wit")]
impl Queue<'_> {
    /// Every lane, by name.
    #[must_use]
    pub fn lanes(&self) -> Vec<Lane> {
        self.0.host.queue_lanes()
    }

    /// The jobs by lane and position, then those without one; of each lane at
    /// most so many of each kind of status.
    pub fn overview(&self, limit: u32) -> Result<Vec<Job>, Error> {
        self.0.host.queue_overview(limit)
    }

    /// All jobs, newest first, a page at a time.
    pub fn page(
        &self,
        filter: &Filter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Job>, Error> {
        let page = self.0.host.queue_find(filter, cursor, limit)?;
        Ok(Page { items: page.jobs, next_cursor: page.next })
    }

    /// The job, where there is one.
    #[must_use]
    pub fn get(&self, job: Uuid) -> Option<Job> {
        self.0.host.queue_get(&job.to_string())
    }

    /// Puts a failed or dead job back into its lane; as it will be then.
    pub fn retry(&self, job: Uuid) -> Result<Job, Error> {
        self.0.host.queue_retry(&job.to_string())
    }

    /// Ends a job that waits or runs, with this text as its last error; as it
    /// will be then.
    pub fn cancel(&self, job: Uuid, reason: &str) -> Result<Job, Error> {
        self.0.host.queue_cancel(&job.to_string(), reason)
    }
}
