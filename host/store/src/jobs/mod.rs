//! The durable job queue.
//!
//! A running job has a lease: `lease_id` identifies one claim of it and is
//! required to end the job. Leases do not expire one by one. They expire with
//! the heartbeat of the process that holds them (`job_workers.expires_at`).
//! Processes that share a PostgreSQL database use its clock, because their own
//! clocks may differ by more than a lease.

mod change;
mod claim;
mod flows;
mod leases;
#[cfg(test)]
mod tests;
mod view;
mod waiting;

use std::fmt::Write as _;
use std::str::FromStr;

use sqlx::AssertSqlSafe;

use super::connection::{Connection, Raw, on};
use super::error::Error;
use assurance_core::domain::job::{JobEnd, JobEndKind, NewJob};
use assurance_core::domain::time::Timestamp;

pub use change::{change, is_superseded};
pub use claim::{ClaimRequest, claim, next_due};
pub use flows::{FlowScan, OLDEST, WaitingJob, oldest, walk};
pub use leases::{forget_worker, heartbeat, lease_clock, recover, release};
pub use view::{LaneDepth, depths, failed, find, loads, overview, page};
pub(super) use waiting::WaitingJobs;

/// Maximum number of rows in one insert. Each row has 12 values, so the number
/// of parameters is well below both databases' limits.
const ROWS_PER_INSERT: usize = 500;

/// Maximum number of rows that one sweep deletes.
pub const ROWS_PER_SWEEP: u64 = 1_000;

/// Inserts jobs in one statement. A job whose dedupe key belongs to a waiting
/// or running job is silently skipped.
pub async fn insert(
    connection: &mut Connection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<(), Error> {
    for rows in jobs.chunks(ROWS_PER_INSERT) {
        let sql = insert_sql(rows.len());
        on!(connection, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for job in rows {
                query = query
                    .bind(job.workspace.0)
                    .bind(job.id.0)
                    .bind(&job.area)
                    .bind(&job.kind)
                    .bind(job.lane.as_str())
                    .bind(&job.payload)
                    .bind(job.resource)
                    .bind(i64::from(job.max_attempts))
                    .bind(i64::from(job.timeout_ms))
                    .bind(job.available_at.0)
                    .bind(&job.dedupe_key)
                    .bind(now.0);
            }
            query.execute(&mut *c).await?;
        });
    }
    Ok(())
}

fn insert_sql(rows: usize) -> String {
    let mut sql = String::from(
        "INSERT INTO jobs (workspace_id, id, area, kind, lane, payload, resource_id, \
         max_attempts, timeout_ms, available_at, dedupe_key, created_at, updated_at, \
         status, attempts) VALUES ",
    );
    for row in 0..rows {
        let comma = if row == 0 { "" } else { ", " };
        let at = |column: usize| row * 12 + column;
        write!(
            sql,
            "{comma}(${}, ${}, ${}, ${}, ${}, ${}, ${}, ${}, ${}, ${}, ${}, ${now}, ${now}, \
             'queued', 0)",
            at(1),
            at(2),
            at(3),
            at(4),
            at(5),
            at(6),
            at(7),
            at(8),
            at(9),
            at(10),
            at(11),
            now = at(12),
        )
        .expect("writing to a string does not fail");
    }
    sql + " ON CONFLICT DO NOTHING"
}

/// Ends a run of a job. Returns [`Error::LeaseLost`] if the job does not have
/// the run's lease any more.
pub async fn end(connection: &mut Connection, end: &JobEnd, now: Timestamp) -> Result<(), Error> {
    let (workspace, job, lease) = (end.workspace.0, end.job.0, end.lease);
    let ended = on!(connection, c => {
        let query = sqlx::query(end_sql(&end.how)).bind(workspace).bind(job).bind(lease);
        let query = match &end.how {
            JobEndKind::Done { keep: false } => query,
            JobEndKind::Done { keep: true } => query.bind(now.0),
            JobEndKind::Continue { checkpoint, .. } => query.bind(now.0).bind(checkpoint),
            JobEndKind::Retry { at, error } => query.bind(now.0).bind(at.0).bind(error),
            JobEndKind::Release { at } => query.bind(now.0).bind(at.0),
            JobEndKind::Failed { error } | JobEndKind::Dead { error } => {
                query.bind(now.0).bind(error)
            }
        };
        query.execute(&mut *c).await?.rows_affected()
    });
    if ended == 1 { Ok(()) } else { Err(Error::LeaseLost) }
}

/// Returns the statement that ends a run. Parameters: `$1` workspace, `$2` job,
/// `$3` lease, `$4` now, then those of the end.
fn end_sql(how: &JobEndKind) -> &'static str {
    match how {
        JobEndKind::Done { keep: false } => {
            "DELETE FROM jobs WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Done { keep: true } => {
            "UPDATE jobs SET status = 'succeeded', lease_id = NULL, worker_id = NULL, \
             last_error = NULL, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Continue { requeue: false, .. } => {
            "UPDATE jobs SET checkpoint = $5, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Continue { requeue: true, .. } => {
            "UPDATE jobs SET status = 'queued', lease_id = NULL, worker_id = NULL, \
             attempts = attempts - 1, checkpoint = $5, available_at = $4, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Retry { .. } => {
            "UPDATE jobs SET status = 'retrying', lease_id = NULL, worker_id = NULL, \
             available_at = $5, last_error = $6, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Release { .. } => {
            "UPDATE jobs SET lease_id = NULL, worker_id = NULL, \
             status = CASE WHEN attempts > 1 THEN 'retrying' ELSE 'queued' END, \
             attempts = attempts - 1, available_at = $5, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Failed { .. } => {
            "UPDATE jobs SET status = 'failed', lease_id = NULL, worker_id = NULL, \
             last_error = $5, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
        JobEndKind::Dead { .. } => {
            "UPDATE jobs SET status = 'dead', lease_id = NULL, worker_id = NULL, \
             last_error = $5, updated_at = $4 \
             WHERE workspace_id = $1 AND id = $2 AND lease_id = $3"
        }
    }
}

/// Deletes a batch of jobs: succeeded ones that ended before
/// `succeeded_before`, others that ended before `ended_before`. Returns their
/// number.
pub async fn sweep(
    connection: &mut Connection,
    succeeded_before: Timestamp,
    ended_before: Timestamp,
) -> Result<u64, Error> {
    // Deletes by physical row id, which avoids an index lookup for each row.
    let sql = match connection.raw() {
        Raw::Sqlite(_) => {
            "DELETE FROM jobs WHERE rowid IN (SELECT rowid FROM jobs \
             WHERE status IN ('succeeded', 'failed', 'dead') \
             AND (status = 'succeeded' AND updated_at < $1 \
             OR status IN ('failed', 'dead') AND updated_at < $2) LIMIT $3)"
        }
        Raw::Postgres(_) => {
            "DELETE FROM jobs WHERE ctid = ANY (ARRAY(SELECT ctid FROM jobs \
             WHERE status IN ('succeeded', 'failed', 'dead') \
             AND (status = 'succeeded' AND updated_at < $1 \
             OR status IN ('failed', 'dead') AND updated_at < $2) LIMIT $3))"
        }
    };
    on!(connection, c => {
        let swept = sqlx::query(sql)
        .bind(succeeded_before.0)
        .bind(ended_before.0)
        .bind(ROWS_PER_SWEEP.cast_signed())
        .execute(&mut *c)
        .await?
        .rows_affected();
        Ok(swept)
    })
}

/// Parses a column that only this module writes.
fn parsed<T: FromStr<Err = String>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|what: String| Error::Database(sqlx::Error::Decode(what.into())))
}

fn count(column: i64) -> u32 {
    u32::try_from(column).unwrap_or(if column < 0 { 0 } else { u32::MAX })
}
