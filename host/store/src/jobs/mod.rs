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

use uuid::Uuid;

use super::Backend;
use super::connection::{Connection, execute};
use super::error::Error;
use super::sql::{Sql, changed_rows};
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::job::{JobProgress, JobRunEnd, JobRunEndKind, NewJob};
use assurance_core::domain::time::Timestamp;

pub use change::{change, is_superseded};
pub use claim::{ClaimRequest, absorb, claim, next_due};
pub use flows::{FlowWalkProgress, OLDEST, PendingJob, oldest, walk};
pub use leases::{
    forget_worker, heartbeat, lease_clock, leases_of, recover, release, release_jobs,
};
pub use view::{
    LaneDepth, depths, failed, find, loads, overview, page, progress_of, refresh_statistics,
};
pub(super) use waiting::WaitingJobCounts;
pub use waiting::is_requested;

/// Maximum number of jobs that one statement inserts. Each has 13 values, so
/// the number of parameters is well below both databases' limits.
pub(super) const ROWS_PER_INSERT: usize = 500;

/// Maximum number of ended jobs that one call of [`sweep`] deletes.
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
        push_insert(&mut sql, &rows.iter().map(|job| (job, now)).collect::<Vec<_>>());
        changed_rows(connection, sql).await?;
    }
    Ok(())
}

/// Appends the statement that inserts up to [`ROWS_PER_INSERT`] jobs, each with
/// the time at which it is enqueued.
pub(super) fn push_insert(sql: &mut Sql, jobs: &[(&NewJob, Timestamp)]) {
    sql.push(INSERT);
    push_rows(sql, jobs.iter().copied());
    sql.push(" ON CONFLICT DO NOTHING");
}

/// Appends the statement that inserts jobs of merged events, except those for
/// which an equal one waits: of the same area, due no later, not attempted yet,
/// and without a checkpoint. Only for SQLite, where no job is claimed between
/// this statement and the commit: the run of the other job begins after it.
pub(super) fn push_insert_merged(sql: &mut Sql, jobs: &[(&NewJob, Timestamp)]) {
    sql.push(INSERT).push("SELECT * FROM (");
    // The number of rows, and so the statement's text, is that of the jobs: the
    // row of a superfluous job is that of the other one, which conflicts.
    push_rows(sql, jobs.iter().map(|job| *jobs.iter().find(|one| covers(one, job)).unwrap_or(job)));
    // The conditions are those of the index of flows.
    sql.push(
        ") AS new WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE status IN ('queued', 'retrying') \
         AND attempts = 0 AND checkpoint IS NULL \
         AND coalesce(resource_id, zeroblob(16)) = zeroblob(16) AND lane = new.column5 \
         AND workspace_id = new.column1 AND available_at > new.column12 \
         AND available_at <= new.column10 AND area = new.column3 AND kind = new.column4) \
         ON CONFLICT DO NOTHING",
    );
}

/// Whether a job of merged events makes another one superfluous that is
/// enqueued at the same time: if it is due no later, but not before the other
/// one was enqueued.
fn covers((one, _): &(&NewJob, Timestamp), (other, now): &(&NewJob, Timestamp)) -> bool {
    (one.workspace, one.lane) == (other.workspace, other.lane)
        && (&one.area, &one.kind) == (&other.area, &other.kind)
        && (one.available_at > *now && one.available_at <= other.available_at)
}

/// Appends `VALUES` and a row for each job, in the order of [`INSERT`].
fn push_rows<'j>(sql: &mut Sql, jobs: impl Iterator<Item = (&'j NewJob, Timestamp)>) {
    for (at, (job, now)) in jobs.enumerate() {
        sql.push(if at == 0 { "VALUES (" } else { ", (" });
        push_values(sql, job, now);
        sql.push(")");
    }
}

/// Appends a new job's values, in the order of [`INSERT`].
fn push_values(sql: &mut Sql, job: &NewJob, now: Timestamp) {
    sql.bind(job.workspace.0).push(", ");
    sql.bind(job.id.0).push(", ");
    sql.bind(job.area.as_str()).push(", ");
    sql.bind(job.kind.as_str()).push(", ");
    sql.bind(job.lane.as_str()).push(", ");
    sql.bind(job.payload.as_str()).push(", ");
    sql.bind(job.resource).push(", ");
    sql.bind(i64::from(job.max_attempts)).push(", ");
    sql.bind(i64::from(job.timeout_ms)).push(", ");
    sql.bind(job.available_at.0).push(", ");
    sql.bind(job.dedupe_key.clone()).push(", ");
    sql.bind(now.0).push(", ");
    sql.bind(now.0).push(", 'queued', 0");
}

/// Ends a run of jobs. Returns [`Error::LeaseLost`] if one of them does not have
/// the run's lease any more.
pub async fn end(
    connection: &mut Connection,
    end: &JobRunEnd,
    now: Timestamp,
) -> Result<(), Error> {
    let mut sql = Sql::new(connection.backend(), "");
    push_end(&mut sql, end, now);
    let ended = changed_rows(connection, sql).await?;
    if ended == end.jobs.len() as u64 { Ok(()) } else { Err(Error::LeaseLost) }
}

/// Appends the statement that ends a run. It does not change jobs that do not
/// have the run's lease any more.
pub(super) fn push_end(sql: &mut Sql, end: &JobRunEnd, now: Timestamp) {
    push_change(sql, end, now);
    push_leased(sql, end.workspace, &end.jobs, end.lease);
}

/// Appends the beginning of the statement that ends a run: all of it but the
/// condition.
fn push_change(sql: &mut Sql, end: &JobRunEnd, now: Timestamp) {
    if end.how.deletes() {
        sql.push("DELETE FROM jobs");
        return;
    }
    sql.push("UPDATE jobs SET updated_at = ").bind(now.0);
    match &end.how {
        JobRunEndKind::Done { .. } => sql.push(", status = 'succeeded', last_error = NULL"),
        JobRunEndKind::Continue { checkpoint, requeue: false } => {
            sql.push(", checkpoint = ").bind(checkpoint.as_str())
        }
        JobRunEndKind::Continue { checkpoint, requeue: true } => {
            sql.push(", checkpoint = ").bind(checkpoint.as_str());
            sql.push(", status = 'queued', attempts = attempts - 1, available_at = ").bind(now.0)
        }
        JobRunEndKind::Retry { at, error } => {
            sql.push(", status = 'retrying', available_at = ").bind(at.0);
            sql.push(", last_error = ").bind(error.as_str())
        }
        JobRunEndKind::Release { at } => sql
            .push(", status = CASE WHEN attempts > 1 THEN 'retrying' ELSE 'queued' END")
            .push(", attempts = attempts - 1, available_at = ")
            .bind(at.0),
        JobRunEndKind::Failed { error } => {
            sql.push(", status = 'failed', last_error = ").bind(error.as_str())
        }
        JobRunEndKind::Dead { error } => {
            sql.push(", status = 'dead', last_error = ").bind(error.as_str())
        }
    };
    if !matches!(end.how, JobRunEndKind::Continue { requeue: false, .. }) {
        sql.push(", lease_id = NULL, worker_id = NULL");
    }
    if let Some(JobProgress { done, total }) = end.progress {
        sql.push(", progress_done = ").bind(done.cast_signed());
        sql.push(", progress_total = ").bind(total.cast_signed());
    }
}

/// Appends the condition that a job is one of these and has the lease.
fn push_leased(sql: &mut Sql, workspace: WorkspaceId, jobs: &[JobId], lease: Uuid) {
    sql.push(" WHERE workspace_id = ").bind(workspace.0);
    match (jobs, sql.backend) {
        ([job], _) => {
            sql.push(" AND id = ").bind(job.0);
        }
        (jobs, Backend::Postgres) => {
            let ids: Vec<_> = jobs.iter().map(|job| job.0).collect();
            sql.push(" AND id = ANY(").bind(ids).push(")");
        }
        (jobs, Backend::Sqlite) => {
            for (at, job) in jobs.iter().enumerate() {
                sql.push(if at == 0 { " AND id IN (" } else { ", " });
                sql.bind(job.0);
            }
            sql.push(")");
        }
    }
    sql.push(" AND lease_id = ").bind(lease);
}

/// Deletes a batch of ended jobs: succeeded ones that ended before
/// `succeeded_before`, failed and dead ones that ended before `ended_before`.
/// Returns their number.
pub async fn sweep(
    connection: &mut Connection,
    succeeded_before: Timestamp,
    ended_before: Timestamp,
) -> Result<u64, Error> {
    // Deletes by physical row id, which avoids an index lookup for each row.
    let sql = match connection.backend() {
        Backend::Sqlite => {
            "DELETE FROM jobs WHERE rowid IN (SELECT rowid FROM jobs \
             WHERE status IN ('succeeded', 'failed', 'dead') \
             AND (status = 'succeeded' AND updated_at < $1 \
             OR status IN ('failed', 'dead') AND updated_at < $2) LIMIT $3)"
        }
        // The last condition keeps a job that a member retries meanwhile. Releases of PostgreSQL
        // before November 2025 do not test `ctid` again after they waited for a change.
        Backend::Postgres => {
            "DELETE FROM jobs WHERE ctid = ANY (ARRAY(SELECT ctid FROM jobs \
             WHERE status IN ('succeeded', 'failed', 'dead') \
             AND (status = 'succeeded' AND updated_at < $1 \
             OR status IN ('failed', 'dead') AND updated_at < $2) LIMIT $3)) \
             AND updated_at < greatest($1, $2)"
        }
    };
    Ok(execute!(connection, sql, succeeded_before.0, ended_before.0, ROWS_PER_SWEEP.cast_signed()))
}

fn count(column: i64) -> u32 {
    u32::try_from(column).unwrap_or(if column < 0 { 0 } else { u32::MAX })
}
