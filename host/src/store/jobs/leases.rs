//! Leases: given while a process lives, taken back when it is lost.

use uuid::Uuid;

use super::super::connection::{Connection, Raw, on};
use super::super::error::Error;
use super::super::sql::DATABASE_NOW;
use crate::domain::time::Timestamp;

/// A job whose worker was lost this often beyond its attempts takes its
/// workers down with it, and is dead.
const LOSSES_FORGIVEN: i64 = 3;

/// The moment that leases are told by: the database's own on PostgreSQL, which
/// processes on machines with clocks of their own share; else this process's.
pub async fn lease_clock(connection: &mut Connection, own: Timestamp) -> Result<Timestamp, Error> {
    let Raw::Postgres(connection) = connection.raw() else { return Ok(own) };
    let statement = format!("SELECT {DATABASE_NOW}");
    let now = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(connection).await?;
    Ok(Timestamp(now))
}

/// Says that a process lives, and its leases with it, until a moment by the
/// [`lease_clock`].
pub async fn heartbeat(
    connection: &mut Connection,
    worker: Uuid,
    expires_at: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query(
            "INSERT INTO job_workers (id, expires_at) VALUES ($1, $2) \
             ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at",
        )
        .bind(worker)
        .bind(expires_at.0)
        .execute(&mut *c)
        .await?;
    });
    Ok(())
}

/// Makes the jobs of lost processes runnable again, at once; one that was lost
/// too often is dead. `now` is the [`lease_clock`]'s. Answers how many there
/// were.
pub async fn recover(connection: &mut Connection, now: Timestamp) -> Result<u64, Error> {
    on!(connection, c => {
        let recovered = sqlx::query(
            "UPDATE jobs SET lease_id = NULL, worker_id = NULL, updated_at = $1, \
             available_at = $1, last_error = 'the worker was lost', \
             status = CASE WHEN attempts >= max_attempts + $2 THEN 'dead' ELSE 'retrying' END \
             WHERE status = 'running' AND NOT EXISTS (SELECT 1 FROM job_workers \
             WHERE job_workers.id = jobs.worker_id AND expires_at > $1)",
        )
        .bind(now.0)
        .bind(LOSSES_FORGIVEN)
        .execute(&mut *c)
        .await?
        .rows_affected();
        Ok(recovered)
    })
}

/// Gives back what a process holds, all of it or what one claim took, as if it
/// had not been run. Answers how many jobs there were.
pub async fn release(
    connection: &mut Connection,
    worker: Uuid,
    lease: Option<Uuid>,
    now: Timestamp,
) -> Result<u64, Error> {
    on!(connection, c => {
        let released = sqlx::query(
            "UPDATE jobs SET lease_id = NULL, worker_id = NULL, updated_at = $1, \
             status = CASE WHEN attempts > 1 THEN 'retrying' ELSE 'queued' END, \
             attempts = attempts - 1 \
             WHERE status = 'running' AND worker_id = $2 AND lease_id = coalesce($3, lease_id)",
        )
        .bind(now.0)
        .bind(worker)
        .bind(lease)
        .execute(&mut *c)
        .await?
        .rows_affected();
        Ok(released)
    })
}

/// Forgets a process that has given back everything, and those that were lost
/// so long ago, by the [`lease_clock`], that nothing of theirs is left.
pub async fn forget_worker(
    connection: &mut Connection,
    worker: Uuid,
    lost_before: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("DELETE FROM job_workers WHERE id = $1 OR expires_at < $2")
            .bind(worker)
            .bind(lost_before.0)
            .execute(&mut *c)
            .await?;
    });
    Ok(())
}
