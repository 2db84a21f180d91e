//! Changes that members make to jobs.

use super::super::connection::{Connection, on, scalar};
use super::super::error::Error;
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::queue::{MemberJobAction, PendingMemberJobAction};
use assurance_core::domain::time::Timestamp;

/// Retries or cancels a job, as a member requested. Returns [`Error::RunAgain`]
/// if the job's state no longer allows it; the caller has checked the state
/// before.
pub async fn change(
    connection: &mut Connection,
    workspace: WorkspaceId,
    change: &PendingMemberJobAction,
    now: Timestamp,
) -> Result<(), Error> {
    let changed = on!(connection, c => {
        let query = sqlx::query(change_sql(&change.how)).bind(workspace.0).bind(change.job.0);
        let query = match &change.how {
            MemberJobAction::Retry => query.bind(now.0),
            MemberJobAction::Cancel(reason) => query.bind(now.0).bind(reason),
        };
        query.execute(&mut *c).await.map_err(lost_race)?.rows_affected()
    });
    if changed == 1 { Ok(()) } else { Err(Error::RunAgain) }
}

/// Returns the statement that retries or cancels a job. Parameters: `$1`
/// workspace, `$2` job, `$3` now, `$4` the reason of a cancellation.
fn change_sql(how: &MemberJobAction) -> &'static str {
    match how {
        // Keeps the checkpoint, so that the job continues after its last
        // finished step.
        MemberJobAction::Retry => {
            "UPDATE jobs SET status = 'queued', attempts = 0, available_at = $3, updated_at = $3 \
             WHERE workspace_id = $1 AND id = $2 AND status IN ('failed', 'dead')"
        }
        // Removes the lease, so that a running attempt cannot commit.
        MemberJobAction::Cancel(_) => {
            "UPDATE jobs SET status = 'failed', lease_id = NULL, worker_id = NULL, \
             last_error = $4, updated_at = $3 WHERE workspace_id = $1 AND id = $2 \
             AND status IN ('queued', 'running', 'retrying')"
        }
    }
}

/// Converts a violated unique index into a write conflict: another job with the
/// same dedupe key was enqueued between check and change.
fn lost_race(error: sqlx::Error) -> Error {
    let error = Error::from(error);
    if error.broken_constraint().is_some() { Error::RunAgain } else { error }
}

/// Returns whether another job with the same dedupe key waits or runs.
pub async fn is_superseded(
    connection: &mut Connection,
    workspace: WorkspaceId,
    job: JobId,
) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM jobs j JOIN jobs other ON other.workspace_id = j.workspace_id \
               AND other.area = j.area AND other.kind = j.kind \
               AND other.dedupe_key = j.dedupe_key AND other.id <> j.id \
               AND other.status IN ('queued', 'running', 'retrying') \
               WHERE j.workspace_id = $1 AND j.id = $2";
    let others: i64 = scalar!(connection, sql, workspace.0, job.0);
    Ok(others > 0)
}
