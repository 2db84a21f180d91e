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

/// Workspace and resource of jobs. Jobs of a lane with the same ones form a
/// flow; the flows of a lane share its capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobFairnessKey {
    /// Workspace of all jobs of the flow.
    pub workspace: WorkspaceId,
    /// Resource of all jobs of the flow; `None` for jobs without a resource.
    pub resource: Option<uuid::Uuid>,
}

/// A job to enqueue, inserted in the transaction of the call that enqueues it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Id of the job, the same at every attempt.
    pub id: JobId,
    /// Workspace that the job belongs to.
    pub workspace: WorkspaceId,
    /// Name of the area that runs the job.
    pub area: String,
    /// Job kind from the area's manifest, or `event`.
    pub kind: String,
    /// Lane of the job.
    pub lane: Lane,
    /// Payload of the job, a JSON object.
    pub payload: String,
    /// Resource that the job concerns, such as a webhook; `None` if it concerns
    /// none. A lane's capacity is shared between workspaces and resources.
    pub resource: Option<uuid::Uuid>,
    /// Earliest time at which the job runs.
    pub available_at: Timestamp,
    /// Number of attempts after which the job is dead.
    pub max_attempts: u32,
    /// Wall-clock limit of one attempt, in milliseconds.
    pub timeout_ms: u32,
    /// Deduplication key: of a workspace's jobs of this kind with the same key,
    /// at most one waits or runs. `None`: no deduplication.
    pub dedupe_key: Option<String>,
}

impl NewJob {
    /// Returns the flow of the job: its workspace and resource.
    #[must_use]
    pub fn flow(&self) -> JobFairnessKey {
        JobFairnessKey { workspace: self.workspace, resource: self.resource }
    }

    /// Returns whether the job is one notice of all events that were published
    /// before its run.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.kind == MERGED_EVENTS_KIND
    }
}

/// Job that delivers an event, enqueued once for each document of the
/// workspace that requests the event: with an id of its own, the document as
/// its resource if its id is a UUID, and the document's id as member
/// `requested_by` of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDeliveryJobTemplate {
    /// Job that delivers the event to an area.
    pub job: NewJob,
    /// Name of the event to deliver.
    pub event: String,
    /// Documents in which the workspace lists the events that it requests. Each
    /// that lists this event gets a job.
    pub requests: RequestedEventsDocumentField,
}

/// Place where workspaces list the events that they request: a member of a
/// collection's documents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestedEventsDocumentField {
    /// Name of the collection whose documents list events, as `area.name`.
    pub collection: String,
    /// Name of the document member that contains the list of event names.
    pub member: String,
}

/// A job that a worker claimed under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedJob {
    /// The job that the worker claimed.
    pub job: NewJob,
    /// Number of this attempt of the job, from 1.
    pub attempt: u32,
    /// Checkpoint of the job's last finished step; `None` if no step has
    /// finished.
    pub checkpoint: Option<String>,
    /// Id of the lease under which the worker has the job. The job can be
    /// completed only while its row still has this lease.
    pub lease: uuid::Uuid,
}

impl LeasedJob {
    /// Returns whether the job delivers an event, or merged events.
    #[must_use]
    pub fn is_event(&self) -> bool {
        delivers_events(&self.job.kind)
    }
}

/// Job kind of the host's jobs that deliver one event.
pub const EVENT_KIND: &str = "event";
/// Job kind of the host's jobs that deliver merged events. An area that
/// declares this kind and subscribes to `*` receives one notice that events
/// were published, instead of each event.
pub const MERGED_EVENTS_KIND: &str = "events_merged";

/// Returns whether jobs of this kind deliver an event, or merged events.
#[must_use]
pub fn delivers_events(kind: &str) -> bool {
    kind == EVENT_KIND || kind == MERGED_EVENTS_KIND
}

/// Outcome of a job's run whose effects are committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The job is finished.
    Done,
    /// The job runs again at once, from this checkpoint.
    Continue(String),
    /// The job runs again at this time, as a new attempt, for the given reason.
    Retry(Timestamp, String),
}

/// Outcome of a job's run whose effects are discarded.
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
    /// Number of finished units, at most `total`.
    pub done: u64,
    /// Number of all units that are known so far.
    pub total: u64,
}

/// New state of some jobs after one run, the same for all of them. It is
/// written in the transaction of the run's effects, and only if the jobs still
/// have the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRunEnd {
    /// Workspace of the jobs that ran.
    pub workspace: WorkspaceId,
    /// Ids of the jobs, at least one.
    pub jobs: Vec<JobId>,
    /// Id of the lease under which the jobs ran.
    pub lease: uuid::Uuid,
    /// New state of the jobs after the run.
    pub how: JobRunEndKind,
    /// Progress that the run reported; `None` keeps the former one.
    pub progress: Option<JobProgress>,
}

/// New state of a job after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRunEndKind {
    /// The job succeeded.
    Done {
        /// Whether the job's row stays visible in the queue for
        /// `jobs.keep_succeeded_minutes`; otherwise it is deleted at once.
        keep: bool,
    },
    /// The run finished a step. The next step begins from this checkpoint and
    /// does not count as an attempt.
    Continue {
        /// Checkpoint from which the job's next step begins.
        checkpoint: String,
        /// True: the job goes to the end of the lane, for any worker. False: the
        /// worker keeps the lease and continues with the next step.
        requeue: bool,
    },
    /// The job waits for its next attempt.
    Retry {
        /// Earliest time of the job's next attempt.
        at: Timestamp,
        /// Reason why the job is attempted again.
        error: String,
    },
    /// The job returns to the queue as if it had not run; the attempt does not
    /// count.
    Release {
        /// Earliest time at which the job runs again.
        at: Timestamp,
    },
    /// The area reported that no attempt can succeed.
    Failed {
        /// Reason that the area gave for the failure.
        error: String,
    },
    /// The job has used all attempts.
    Dead {
        /// Error of the job's last attempt.
        error: String,
    },
}

impl JobRunEndKind {
    /// Returns whether the job's row is deleted after the run.
    #[must_use]
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Done { keep: false })
    }

    /// Returns whether the job is back in the queue after the run.
    #[must_use]
    pub fn is_requeued(&self) -> bool {
        matches!(
            self,
            Self::Continue { requeue: true, .. } | Self::Retry { .. } | Self::Release { .. }
        )
    }
}
