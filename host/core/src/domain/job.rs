//! Jobs of the durable queue, their states and outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{JobId, WorkspaceId};
use super::time::Timestamp;
use super::words::words;

words! {
    /// A named share of the workers with its own capacity.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Lane, "a lane" {
        /// Jobs that run audits.
        Scanner = "scanner",
        /// Jobs that import uploads and submitted evidence.
        Ingest = "ingest",
        /// Jobs that call language models.
        Assistant = "assistant",
        /// Jobs that send outgoing messages: webhooks, mail.
        Delivery = "delivery",
        /// Maintenance jobs without urgency.
        Maintenance = "maintenance",
        /// Event deliveries to subscribers. Reserved for the host: areas cannot use
        /// it for their jobs.
        Events = "events",
    }
}

/// Jobs of one workspace about one resource within a lane. The flows of a lane
/// share its capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobFlow {
    /// Workspace of all jobs of the flow.
    pub workspace: WorkspaceId,
    /// Resource of all jobs of the flow; `None` for jobs without a resource.
    pub resource: Option<uuid::Uuid>,
}

/// A job to insert with the transaction that enqueues it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Id of the job, the same at every attempt.
    pub id: JobId,
    /// The workspace of the job.
    pub workspace: WorkspaceId,
    /// Name of the area that runs the job.
    pub area: String,
    /// Job kind from the area's manifest, or `event`.
    pub kind: String,
    /// Lane of the job.
    pub lane: Lane,
    /// Payload that the job kind receives, a JSON object.
    pub payload: String,
    /// Resource that the job concerns. It orders jobs within a lane and is
    /// shown in the queue.
    pub resource: Option<uuid::Uuid>,
    /// Earliest time at which the job runs.
    pub available_at: Timestamp,
    /// Number of attempts after which the job is dead.
    pub max_attempts: u32,
    /// Wall-clock limit of one attempt, in milliseconds.
    pub timeout_ms: u32,
    /// Of a workspace's jobs of this kind with the same key, at most one waits
    /// or runs.
    pub dedupe_key: Option<String>,
}

impl NewJob {
    /// Returns the job's flow in its lane.
    #[must_use]
    pub fn flow(&self) -> JobFlow {
        JobFlow { workspace: self.workspace, resource: self.resource }
    }

    /// Returns whether the job stands for all events that were published before
    /// its run.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.kind == MERGED_EVENTS_KIND
    }
}

/// Delivery of an event that is enqueued once for each document of the
/// workspace that requests the event: with an id of its own, the document as
/// its resource if its id is a UUID, and the document's id as member
/// `requested_by` of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFanOut {
    /// Job that delivers the event to an area.
    pub job: NewJob,
    /// Name of the event.
    pub event: String,
    /// Documents in which the workspace lists the events that it requests.
    pub requests: RequestedEventsField,
}

/// Collection with documents that list names of events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestedEventsField {
    /// `area.name` of the collection.
    pub collection: String,
    /// Member of a document with the list.
    pub member: String,
}

/// A job that a worker claimed under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// The job that the worker claimed.
    pub job: NewJob,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Checkpoint of the last finished step; `None` if no step has finished.
    pub checkpoint: Option<String>,
    /// Id of this lease. A job can be completed only while its row still has
    /// this lease.
    pub lease: uuid::Uuid,
}

impl LeasedJob {
    /// Returns whether the job delivers an event, or merged events.
    #[must_use]
    pub fn is_event(&self) -> bool {
        delivers_events(&self.job.kind)
    }
}

/// Job kind of event deliveries.
pub const EVENT_KIND: &str = "event";
/// Job kind of merged events. An area that declares it and subscribes to `*`
/// receives one notice that events were published, instead of each of them.
pub const MERGED_EVENTS_KIND: &str = "events_merged";

/// Returns whether jobs of this kind deliver an event, or merged events.
#[must_use]
pub fn delivers_events(kind: &str) -> bool {
    kind == EVENT_KIND || kind == MERGED_EVENTS_KIND
}

/// Outcome of a run whose effects are committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The job is finished.
    Done,
    /// The job runs again at once, from this checkpoint.
    Continue(String),
    /// The job runs again at this time, as a new attempt, for the given reason.
    Retry(Timestamp, String),
}

/// Outcome of a run whose effects are discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobFailure {
    /// The job runs again after the lane's backoff; contains the reason.
    Retry(String),
    /// The job does not run again; contains the reason.
    Fail(String),
}

words! {
    /// State of a job in the queue.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum JobStatus, "a status of a job" {
        /// Waiting for its first run, or for the next step after a successful one.
        Queued = "queued",
        /// A worker runs the job under a lease.
        Running = "running",
        /// Waiting for the next attempt; an earlier attempt has failed.
        Retrying = "retrying",
        /// The job finished successfully.
        Succeeded = "succeeded",
        /// The area reported that no attempt can succeed, or a member cancelled the
        /// job.
        Failed = "failed",
        /// All attempts failed. The job runs again only if a member retries it.
        Dead = "dead",
    }
}

impl JobStatus {
    /// Returns whether the job will not run again.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Dead)
    }
}

/// How much of a job's work is done, in units that its area chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Finished units, at most `total`.
    pub done: u64,
    /// All units that are known so far.
    pub total: u64,
}

/// The end of one run of some jobs, all in the same way. It is written in the
/// transaction of the run's effects, and only if the jobs still have the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Workspace of the jobs.
    pub workspace: WorkspaceId,
    /// Ids of the jobs, at least one.
    pub jobs: Vec<JobId>,
    /// Lease under which the jobs ran.
    pub lease: uuid::Uuid,
    /// New state of the jobs.
    pub how: JobEndKind,
    /// Progress that the run reported; `None` keeps the former one.
    pub progress: Option<JobProgress>,
}

/// New state of a job after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEndKind {
    /// The job succeeded.
    Done {
        /// Whether the job's row stays visible in the queue for
        /// `jobs.keep_succeeded_minutes`; otherwise it is deleted at once.
        keep: bool,
    },
    /// A step is finished. The next step begins from this checkpoint and does
    /// not count as an attempt.
    Continue {
        /// Checkpoint for the next step.
        checkpoint: String,
        /// True: the job goes to the end of the lane, for any worker. False:
        /// the worker keeps the lease and continues with the next step.
        requeue: bool,
    },
    /// The job waits for its next attempt.
    Retry {
        /// Earliest time at which the job runs.
        at: Timestamp,
        /// Reason for the retry.
        error: String,
    },
    /// The job returns to the queue as if it had not run; the attempt does not
    /// count.
    Release {
        /// Earliest time at which the job runs.
        at: Timestamp,
    },
    /// The area reported that no attempt can succeed.
    Failed {
        /// Reason that the area gave.
        error: String,
    },
    /// The job has used all attempts.
    Dead {
        /// Error of the last attempt.
        error: String,
    },
}

impl JobEndKind {
    /// Returns whether the job's row is deleted.
    #[must_use]
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Done { keep: false })
    }

    /// Returns whether the job is back in the queue.
    #[must_use]
    pub fn is_requeued(&self) -> bool {
        matches!(
            self,
            Self::Continue { requeue: true, .. } | Self::Retry { .. } | Self::Release { .. }
        )
    }
}
