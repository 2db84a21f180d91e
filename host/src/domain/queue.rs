//! The queue as the people of a workspace see it.

use uuid::Uuid;

use super::id::JobId;
use super::job::{Lane, Status};
use super::time::Timestamp;

/// A job as the queue shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedJob {
    /// Its id.
    pub id: JobId,
    /// The area that runs it.
    pub area: String,
    /// A kind of the area's manifest, or `event`.
    pub kind: String,
    /// Where it waits.
    pub lane: Lane,
    /// What it is about.
    pub resource: Option<Uuid>,
    /// Where it stands.
    pub status: Status,
    /// Runs so far.
    pub attempts: u32,
    /// Runs it may have.
    pub max_attempts: u32,
    /// Not before.
    pub available_at: Timestamp,
    /// Why the last run failed.
    pub last_error: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When something last happened to it.
    pub updated_at: Timestamp,
    /// Its place among the workspace's queued jobs of the lane, from 1.
    /// Other workspaces' jobs are not counted: how busy they are is theirs.
    pub position: Option<u64>,
}

/// What a workspace has in one lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneLoad {
    /// Running.
    pub active: u64,
    /// Waiting for the first run, or for the rest of one.
    pub queued: u64,
}

/// Which jobs are asked for; all that is said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In this lane.
    pub lane: Option<Lane>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Standing so.
    pub status: Option<Status>,
    /// About this.
    pub resource: Option<Uuid>,
}

/// What somebody wants done with a job, kept until the call commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChange {
    /// Which job.
    pub job: JobId,
    /// Where it waits, then or already.
    pub lane: Lane,
    /// What is to be done.
    pub how: JobChangeKind,
}

/// What is to be done with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobChangeKind {
    /// Put back into its lane, where its last finished step ended.
    Retry,
    /// Ended, with this text as its last error.
    Cancel(String),
}
