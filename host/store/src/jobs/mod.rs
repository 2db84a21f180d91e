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

use std::str::FromStr;

use super::Backend;
use super::connection::{Connection, Raw, on};
use super::error::Error;
use super::sql::{Sql, SqlParameter};
use assurance_core::domain::job::{JobEnd, JobEndKind, JobProgress, NewJob};
use assurance_core::domain::time::Timestamp;

pub use change::{change, is_superseded};
pub use claim::{ClaimRequest, absorb, claim, next_due};
pub use flows::{FlowScanResult, OLDEST, PendingJob, oldest, walk};
pub use leases::{forget_worker, heartbeat, lease_clock, recover, release};
pub use view::{
    LaneDepth, depths, failed, find, loads, overview, page, progress_of, refresh_statistics,
};
pub(super) use waiting::WaitingJobs;

/// Maximum number of rows in one insert. Each row has 13 values, so the number
/// of parameters is well below both databases' limits.
pub(super) const ROWS_PER_INSERT: usize = 500;

/// Maximum number of rows that one sweep deletes.
pub const ROWS_PER_SWEEP: u64 = 1_000;

/// Beginning of the statements that insert jobs.
const INSERT: &str = "INSERT INTO jobs (workspace_id, id, area, kind, lane, payload, resource_id, \
    max_attempts, timeout_ms, available_at, dedupe_key, created_at, updated_at, status, \
    attempts) ";

/// Inserts jobs. A job whose dedupe key belongs to a waiting or running job is
/// silently skipped.
pub async fn insert(
    connection: &mut Connection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<(), Error> {
    for rows in jobs.chunks(ROWS_PER_INSERT) {
        let mut sql = Sql::new(connection.backend(), "");
        push_insert(&mut sql, rows, now);
        match connection.raw() {
            Raw::Sqlite(c) => {
                sql.sqlite()?.execute(c).await?;
            }
            Raw::Postgres(c) => {
                sql.postgres()?.execute(c).await?;
            }
        }
    }
    Ok(())
}

/// Appends the statement that inserts up to [`ROWS_PER_INSERT`] jobs.
pub(super) fn push_insert(sql: &mut Sql, jobs: &[NewJob], now: Timestamp) {
    sql.push(INSERT).push("VALUES ");
    for (at, job) in jobs.iter().enumerate() {
        sql.push(if at == 0 { "(" } else { ", (" });
        push_values(sql, job, now);
        sql.push(")");
    }
    sql.push(" ON CONFLICT DO NOTHING");
}

/// Appends the statement that inserts a job of merged events, unless one that
/// stands for the same events waits: of the same area, due in the same second,
/// and with all its attempts. Only for SQLite, where no job is claimed between
/// this statement and the commit: the run of the other job begins after it.
pub(super) fn push_insert_merged(sql: &mut Sql, job: &NewJob, now: Timestamp) {
    sql.push(INSERT).push("SELECT ");
    push_values(sql, job, now);
    // The conditions are those of the index of flows.
    sql.push(
        " WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE status IN ('queued', 'retrying') \
         AND attempts = 0 AND coalesce(resource_id, zeroblob(16)) = zeroblob(16) AND lane = ",
    );
    sql.bind(SqlParameter::Text(job.lane.as_str().to_owned())).push(" AND workspace_id = ");
    sql.bind(SqlParameter::Uuid(job.workspace.0)).push(" AND available_at > ");
    sql.bind(SqlParameter::Integer(now.0)).push(" AND available_at <= ");
    sql.bind(SqlParameter::Integer(job.available_at.0)).push(" AND area = ");
    sql.bind(SqlParameter::Text(job.area.clone())).push(" AND kind = ");
    sql.bind(SqlParameter::Text(job.kind.clone())).push(")");
}

/// Appends a new job's values, in the order of [`INSERT`].
fn push_values(sql: &mut Sql, job: &NewJob, now: Timestamp) {
    let text = |text: &str| SqlParameter::Text(text.to_owned());
    sql.bind(SqlParameter::Uuid(job.workspace.0)).push(", ");
    sql.bind(SqlParameter::Uuid(job.id.0)).push(", ");
    sql.bind(text(&job.area)).push(", ");
    sql.bind(text(&job.kind)).push(", ");
    sql.bind(text(job.lane.as_str())).push(", ");
    sql.bind(text(&job.payload)).push(", ");
    sql.bind(SqlParameter::MaybeUuid(job.resource)).push(", ");
    sql.bind(SqlParameter::Integer(job.max_attempts.into())).push(", ");
    sql.bind(SqlParameter::Integer(job.timeout_ms.into())).push(", ");
    sql.bind(SqlParameter::Integer(job.available_at.0)).push(", ");
    sql.bind(SqlParameter::MaybeText(job.dedupe_key.clone())).push(", ");
    sql.bind(SqlParameter::Integer(now.0)).push(", ");
    sql.bind(SqlParameter::Integer(now.0)).push(", 'queued', 0");
}

/// Ends a run of jobs. Returns [`Error::LeaseLost`] if one of them does not have
/// the run's lease any more.
pub async fn end(connection: &mut Connection, end: &JobEnd, now: Timestamp) -> Result<(), Error> {
    let mut sql = Sql::new(connection.backend(), "");
    push_end(&mut sql, end, now);
    let ended = match connection.raw() {
        Raw::Sqlite(c) => sql.sqlite()?.execute(c).await?.rows_affected(),
        Raw::Postgres(c) => sql.postgres()?.execute(c).await?.rows_affected(),
    };
    if ended == end.jobs.len() as u64 { Ok(()) } else { Err(Error::LeaseLost) }
}

/// Appends the statement that ends a run. It does not change jobs that do not
/// have the run's lease any more.
pub(super) fn push_end(sql: &mut Sql, end: &JobEnd, now: Timestamp) {
    let text = |error: &String| SqlParameter::Text(error.clone());
    let time = |at: Timestamp| SqlParameter::Integer(at.0);
    let released = "lease_id = NULL, worker_id = NULL, updated_at = ";
    if end.how.deletes() {
        sql.push("DELETE FROM jobs");
    } else {
        sql.push("UPDATE jobs SET ");
    }
    match &end.how {
        JobEndKind::Done { keep: false } => {}
        JobEndKind::Done { keep: true } => {
            sql.push("status = 'succeeded', last_error = NULL, ").push(released).bind(time(now));
        }
        JobEndKind::Continue { checkpoint, requeue: false } => {
            sql.push("checkpoint = ").bind(text(checkpoint));
            sql.push(", updated_at = ").bind(time(now));
        }
        JobEndKind::Continue { checkpoint, requeue: true } => {
            sql.push("status = 'queued', attempts = attempts - 1, checkpoint = ");
            sql.bind(text(checkpoint)).push(", available_at = ").bind(time(now));
            sql.push(", ").push(released).bind(time(now));
        }
        JobEndKind::Retry { at, error } => {
            sql.push("status = 'retrying', available_at = ").bind(time(*at));
            sql.push(", last_error = ").bind(text(error));
            sql.push(", ").push(released).bind(time(now));
        }
        JobEndKind::Release { at } => {
            sql.push(
                "status = CASE WHEN attempts > 1 THEN 'retrying' ELSE 'queued' END, \
                 attempts = attempts - 1, available_at = ",
            );
            sql.bind(time(*at)).push(", ").push(released).bind(time(now));
        }
        JobEndKind::Failed { error } => {
            sql.push("status = 'failed', last_error = ").bind(text(error));
            sql.push(", ").push(released).bind(time(now));
        }
        JobEndKind::Dead { error } => {
            sql.push("status = 'dead', last_error = ").bind(text(error));
            sql.push(", ").push(released).bind(time(now));
        }
    }
    if let (Some(JobProgress { done, total }), false) = (end.progress, end.how.deletes()) {
        sql.push(", progress_done = ").bind(SqlParameter::Integer(done.cast_signed()));
        sql.push(", progress_total = ").bind(SqlParameter::Integer(total.cast_signed()));
    }
    sql.push(" WHERE workspace_id = ").bind(SqlParameter::Uuid(end.workspace.0));
    match (end.jobs.as_slice(), sql.backend) {
        ([job], _) => {
            sql.push(" AND id = ").bind(SqlParameter::Uuid(job.0));
        }
        (jobs, Backend::Postgres) => {
            let ids = jobs.iter().map(|job| job.0).collect();
            sql.push(" AND id = ANY(").bind(SqlParameter::Uuids(ids)).push(")");
        }
        (jobs, Backend::Sqlite) => {
            for (at, job) in jobs.iter().enumerate() {
                sql.push(if at == 0 { " AND id IN (" } else { ", " });
                sql.bind(SqlParameter::Uuid(job.0));
            }
            sql.push(")");
        }
    }
    sql.push(" AND lease_id = ").bind(SqlParameter::Uuid(end.lease));
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
