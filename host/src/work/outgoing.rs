//! Events and jobs that go out with the commit.

use uuid::Uuid;

use super::{UnitOfWork, WorkError};
use crate::domain::id::{EventId, JobId};
use crate::domain::time::Timestamp;

/// A job a guest wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// A kind of the area's manifest.
    pub kind: String,
    /// A JSON object.
    pub payload: String,
    /// What it is about.
    pub resource: Option<Uuid>,
    /// Not before; nothing: at once.
    pub available_at: Option<Timestamp>,
    /// Of jobs of one kind with one key only one waits or runs.
    pub dedupe_key: Option<String>,
}

impl UnitOfWork {
    /// Tells an event to its subscribers: one job each.
    pub fn publish(&mut self, _name: &str, _data: String) -> Result<EventId, WorkError> {
        Err(WorkError::LimitExceeded)
    }

    /// Puts a job into the queue.
    pub fn enqueue(&mut self, _wish: Wish) -> Result<JobId, WorkError> {
        Err(WorkError::LimitExceeded)
    }
}
