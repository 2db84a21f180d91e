//! Leases of jobs: renewed while a process lives, and revoked when it is lost.

use uuid::Uuid;

use super::super::connection::{Connection, execute, scalars};
use super::super::error::Error;
use super::super::sql::{Sql, changed_rows, database_time};
use super::push_leased;
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::time::Timestamp;

/// Number of lost workers, beyond the job's attempts, after which the job is
/// dead: it probably crashes its workers.
const MAX_LOST_WORKERS: i64 = 3;

/// Returns the time that leases are compared with: the database's clock on
/// PostgreSQL, because the clocks of machines differ; otherwise this process's
/// clock.
pub async fn lease_clock(connection: &mut Connection, own: Timestamp) -> Result<Timestamp, Error> {
    Ok(database_time(connection).await?.unwrap_or(own))
}

/// Renews all leases of a process until `expires_at`, a time of the
/// [`lease_clock`].
pub async fn heartbeat(
    connection: &mut Connection,
    worker: Uuid,
    expires_at: Timestamp,
) -> Result<(), Error> {
    let sql = "INSERT INTO job_workers (id, expires_at) VALUES ($1, $2) \
               ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at";
    execute!(connection, sql, worker, expires_at.0);
    Ok(())
}

/// Makes the jobs of lost processes runnable again at once; a job whose workers
/// were lost too often is dead. `now` is a time of the [`lease_clock`]. The
/// calling process, `own`, is not lost, however late its heartbeat is. Returns
/// the number of jobs.
pub async fn recover(connection: &mut Connection, own: Uuid, now: Timestamp) -> Result<u64, Error> {
    let sql = "UPDATE jobs SET lease_id = NULL, worker_id = NULL, updated_at = $1, \
               available_at = $1, last_error = 'the worker was lost', \
               status = CASE WHEN attempts >= max_attempts + $2 THEN 'dead' ELSE 'retrying' END \
               WHERE status = 'running' AND worker_id IS DISTINCT FROM $3 \
               AND NOT EXISTS (SELECT 1 FROM job_workers \
               WHERE job_workers.id = jobs.worker_id AND expires_at > $1)";
    Ok(execute!(connection, sql, now.0, MAX_LOST_WORKERS, own))
}

/// Returns the leases of a process's running jobs.
pub async fn leases_of(connection: &mut Connection, worker: Uuid) -> Result<Vec<Uuid>, Error> {
    let sql = "SELECT DISTINCT lease_id FROM jobs WHERE status = 'running' AND worker_id = $1";
    Ok(scalars!(connection, sql, worker))
}

/// Releases the jobs of a process, all or those of one lease, as if they had
/// not run. Returns the number of jobs.
pub async fn release(
    connection: &mut Connection,
    worker: Uuid,
    lease: Option<Uuid>,
    now: Timestamp,
) -> Result<u64, Error> {
    let sql = "UPDATE jobs SET lease_id = NULL, worker_id = NULL, updated_at = $1, \
               status = CASE WHEN attempts > 1 THEN 'retrying' ELSE 'queued' END, \
               attempts = attempts - 1 \
               WHERE status = 'running' AND worker_id = $2 AND lease_id = coalesce($3, lease_id)";
    Ok(execute!(connection, sql, now.0, worker, lease))
}

/// Releases these jobs of a workspace if they have the lease, as if they had
/// not run. Returns the number of jobs.
pub async fn release_jobs(
    connection: &mut Connection,
    workspace: WorkspaceId,
    jobs: &[JobId],
    lease: Uuid,
    now: Timestamp,
) -> Result<u64, Error> {
    let mut sql = Sql::new(
        connection.backend(),
        "UPDATE jobs SET lease_id = NULL, worker_id = NULL, attempts = attempts - 1, \
         status = CASE WHEN attempts > 1 THEN 'retrying' ELSE 'queued' END, updated_at = ",
    );
    push_leased(sql.bind(now.0), workspace, jobs, lease);
    changed_rows(connection, sql).await
}

/// Deletes the row of a process that has released all jobs, and those of
/// processes lost before `lost_before`, a time of the [`lease_clock`].
pub async fn forget_worker(
    connection: &mut Connection,
    worker: Uuid,
    lost_before: Timestamp,
) -> Result<(), Error> {
    let sql = "DELETE FROM job_workers WHERE id = $1 OR expires_at < $2";
    execute!(connection, sql, worker, lost_before.0);
    Ok(())
}
