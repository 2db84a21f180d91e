//! Jobs, and how they end.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{JobId, WorkspaceId};
use super::time::Timestamp;

/// A named share of the workers, with a capacity of its own.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Audits.
    Scanner,
    /// Bringing in what was uploaded or submitted.
    Ingest,
    /// Model calls.
    Assistant,
    /// Messages to the outside: webhooks, mail.
    Delivery,
    /// Everything that can wait.
    Maintenance,
    /// Events to the areas that subscribe to them. The host's own: no area
    /// puts jobs of its own here.
    Events,
}

impl Lane {
    /// Every lane, in the order of declaration.
    pub const ALL: [Self; 6] = [
        Self::Scanner,
        Self::Ingest,
        Self::Assistant,
        Self::Delivery,
        Self::Maintenance,
        Self::Events,
    ];

    /// The name as stored and sent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scanner => "scanner",
            Self::Ingest => "ingest",
            Self::Assistant => "assistant",
            Self::Delivery => "delivery",
            Self::Maintenance => "maintenance",
            Self::Events => "events",
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
            format!("{text:?} is no lane; one of scanner, ingest, assistant, delivery, maintenance, events")
        })
    }
}

/// A workspace's jobs about one resource, within a lane. The flows of a lane
/// share its capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flow {
    /// The workspace of all its jobs.
    pub workspace: WorkspaceId,
    /// The resource that all its jobs name; `None` for jobs that name none.
    pub resource: Option<uuid::Uuid>,
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

impl NewJob {
    /// The flow it waits in.
    #[must_use]
    pub fn flow(&self) -> Flow {
        Flow { workspace: self.workspace, resource: self.resource }
    }
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

impl LeasedJob {
    /// Delivers an event, rather than doing what an area enqueued.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.job.kind == EVENT_KIND
    }
}

/// The kind of every job that delivers an event to a subscriber.
pub const EVENT_KIND: &str = "event";

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

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for its first run, or for the rest of a run that went well so far.
    Queued,
    /// A worker has it.
    Running,
    /// Waits for its next attempt.
    Retrying,
    /// Finished.
    Succeeded,
    /// Its area said that no attempt will ever succeed.
    Failed,
    /// Out of attempts.
    Dead,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Retrying, Self::Succeeded, Self::Failed, Self::Dead];

    /// The name as stored and sent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }

    /// Nothing more will happen to it.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Dead)
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no status of a job"))
    }
}

/// The end of one run of a job, written in the transaction of what the run
/// did. It takes effect only while the job is still under the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Whose job.
    pub workspace: WorkspaceId,
    /// Which job.
    pub job: JobId,
    /// The lease that it was run under.
    pub lease: uuid::Uuid,
    /// What becomes of it.
    pub how: JobEndKind,
}

/// What becomes of a job after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEndKind {
    /// Succeeded. `keep` leaves it to be seen in the queue for a while.
    Done {
        /// False: the row goes at once.
        keep: bool,
    },
    /// A step is done; the next begins from this checkpoint. The attempt does
    /// not count.
    Continue {
        /// What the next step is given.
        checkpoint: String,
        /// True: to the end of the lane, for another worker; false: the worker
        /// keeps the lease and goes on.
        requeue: bool,
    },
    /// Waits for its next attempt.
    Retry {
        /// Not before.
        at: Timestamp,
        /// Why.
        error: String,
    },
    /// Given back as if it had not been run: the attempt does not count.
    Release {
        /// Not before.
        at: Timestamp,
    },
    /// Never again, by the area's own word.
    Failed {
        /// Why.
        error: String,
    },
    /// Never again, for want of attempts.
    Dead {
        /// Why the last one failed.
        error: String,
    },
}

impl JobEndKind {
    /// The job is back in the queue.
    #[must_use]
    pub fn waits_again(&self) -> bool {
        matches!(
            self,
            Self::Continue { requeue: true, .. } | Self::Retry { .. } | Self::Release { .. }
        )
    }
}
