//! Jobs, and how they end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::{JobId, WorkspaceId};
use super::time::Timestamp;

/// A named share of the workers, with a capacity of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Audits.
    Scanner,
    /// Bringing in what was uploaded or submitted.
    Ingest,
    /// Model calls.
    Assistant,
    /// Events and webhooks.
    Delivery,
    /// Everything that can wait.
    Maintenance,
}

impl Lane {
    /// Every lane, in the order of their names in the contract.
    pub const ALL: [Self; 5] =
        [Self::Scanner, Self::Ingest, Self::Assistant, Self::Delivery, Self::Maintenance];

    /// The name as stored and sent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scanner => "scanner",
            Self::Ingest => "ingest",
            Self::Assistant => "assistant",
            Self::Delivery => "delivery",
            Self::Maintenance => "maintenance",
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Lane {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text).ok_or_else(|| {
            format!("{text:?} is no lane; one of scanner, ingest, assistant, delivery, maintenance")
        })
    }
}

/// A job to be written with its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its id, the same at every attempt.
    pub id: JobId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// The area that runs it.
    pub area: String,
    /// A kind of the area's manifest, or `event`.
    pub kind: String,
    /// Where it waits.
    pub lane: Lane,
    /// A JSON object.
    pub payload: String,
    /// What it is about.
    pub resource: Option<uuid::Uuid>,
    /// Not before.
    pub available_at: Timestamp,
    /// Attempts before it is dead.
    pub max_attempts: u32,
    /// Wall-clock limit of one attempt.
    pub timeout_ms: u32,
    /// At most one waiting or running job of the kind has this key.
    pub dedupe_key: Option<String>,
}

/// A job taken from the queue under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// What is to be done.
    pub job: NewJob,
    /// 1 at the first run.
    pub attempt: u32,
    /// What the last `Continue` left.
    pub checkpoint: Option<String>,
    /// Names this lease; whoever completes the job must hold it.
    pub lease: uuid::Uuid,
}

/// How a run that keeps its effects ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Finished.
    Done,
    /// Run again from this checkpoint, at once.
    Continue(String),
    /// Run again at that moment, as a new attempt.
    Retry(Timestamp, String),
}

/// How a run that drops its effects ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Run again after the lane's backoff.
    Retry(String),
    /// Never run again.
    Fail(String),
}
