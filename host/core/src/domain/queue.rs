//! Jobs as the members of a workspace see them.

use uuid::Uuid;

use super::id::JobId;
use super::job::{JobProgress, JobStatus, Lane};
use super::time::Timestamp;

/// A job of a workspace, as the queue page shows it to members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobForMembers {
    /// Id of the job.
    pub id: JobId,
    /// Name of the area that runs the job.
    pub area: String,
    /// Job kind from the area's manifest, or `event`.
    pub kind: String,
    /// Lane of the job.
    pub lane: Lane,
    /// Resource that the job concerns; `None` if it concerns none.
    pub resource: Option<Uuid>,
    /// State of the job.
    pub status: JobStatus,
    /// Number of attempts of the job since it was enqueued or a member last
    /// retried it, including the current one.
    pub attempts: u32,
    /// Number of attempts after which the job is dead.
    pub max_attempts: u32,
    /// Earliest time at which the job runs.
    pub available_at: Timestamp,
    /// Error of the job's last failed run; `None` if no run failed.
    pub last_error: Option<String>,
    /// Time at which the job was enqueued.
    pub created_at: Timestamp,
    /// Time at which the job's row was last changed.
    pub updated_at: Timestamp,
    /// Position among the workspace's queued jobs of the lane that are due,
    /// from 1; `None` if the job is not one of them. Jobs of other workspaces
    /// are not counted, so the position does not reveal them.
    pub position: Option<u64>,
    /// Progress that the job's last finished step reported.
    pub progress: Option<JobProgress>,
}

/// Number of a workspace's jobs in one lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkspaceLaneLoad {
    /// Number of jobs that workers are running.
    pub active: u64,
    /// Number of due jobs that wait for the first run or for the next step.
    pub queued: u64,
}

/// Filter of a list of jobs. All members that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Lane that the jobs must be in; `None`: any.
    pub lane: Option<Lane>,
    /// Kind that the jobs must have; `None`: any.
    pub kind: Option<String>,
    /// Status that the jobs must have; `None`: any.
    pub status: Option<JobStatus>,
    /// Resource that the jobs must concern; `None`: any.
    pub resource: Option<Uuid>,
}

/// Retry or cancellation of a job by a member, written when the call commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingMemberJobAction {
    /// Id of the job that the member retries or cancels.
    pub job: JobId,
    /// Lane of the job.
    pub lane: Lane,
    /// Whether the member retries or cancels the job.
    pub how: MemberJobAction,
}

/// Changes that a member can make to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberJobAction {
    /// The member returns the job to its lane; it continues after its last
    /// finished step.
    Retry,
    /// The member ends the job; the text becomes the job's last error.
    Cancel(String),
}
