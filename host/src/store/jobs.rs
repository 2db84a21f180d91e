//! The durable queue.
//!
//! A job that is running is under a lease: `lease_id` names one claim of it,
//! and whoever ends the job must show it. How long a lease is good hangs on
//! the row of the process that holds it (`job_workers`), renewed while the
//! process lives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::connection::{Connection, Raw, on};
use super::error::Error;
use crate::domain::id::{JobId, WorkspaceId};
use crate::domain::job::{JobEnd, JobEndKind, Lane, LeasedJob, NewJob, Status};
use crate::domain::time::Timestamp;

/// Rows of one insert: 15 values each, well below either database's limit on
/// the parameters of a statement.
const ROWS_PER_INSERT: usize = 500;

/// Rows of one sweep.
pub const ROWS_PER_SWEEP: u64 = 1_000;

/// A job whose worker was lost this often beyond its attempts takes its
/// workers down with it, and is dead.
const LOSSES_FORGIVEN: i64 = 3;

/// Writes jobs in one statement. One whose dedupe key is held by a job that
/// still waits or runs is dropped without a word.
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

/// Ends a run, if the job is still under the run's lease.
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

/// `$1` workspace, `$2` job, `$3` lease, `$4` now, then what the end brings.
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

/// What a lane's dispatcher takes.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// From which lane.
    pub lane: Lane,
    /// At most so many.
    pub limit: u32,
    /// Jobs of other areas are left where they are.
    pub areas: &'a [String],
    /// The process that takes them; its row must be alive.
    pub worker: Uuid,
    /// Names this claim; chosen by the claimer, so that a claim whose answer
    /// was lost can be given back.
    pub lease: Uuid,
}

const CLAIM_SQLITE: &str = "UPDATE jobs SET status = 'running', attempts = attempts + 1, \
     lease_id = $1, worker_id = $2, updated_at = $3 \
     WHERE rowid IN (SELECT rowid FROM jobs \
     WHERE lane = $4 AND status IN ('queued', 'retrying') AND available_at <= $3 \
     AND instr($5, ',' || area || ',') > 0 ORDER BY available_at LIMIT $6) RETURNING *";

// Materialized, so that the rows are picked and locked once.
const CLAIM_POSTGRES: &str = "WITH picked AS MATERIALIZED (SELECT workspace_id, id FROM jobs \
     WHERE lane = $4 AND status IN ('queued', 'retrying') AND available_at <= $3 \
     AND strpos($5, ',' || area || ',') > 0 ORDER BY available_at LIMIT $6 \
     FOR UPDATE SKIP LOCKED) \
     UPDATE jobs SET status = 'running', attempts = attempts + 1, \
     lease_id = $1, worker_id = $2, updated_at = $3 \
     FROM picked WHERE jobs.workspace_id = picked.workspace_id AND jobs.id = picked.id \
     RETURNING jobs.*";

/// Takes due jobs, oldest first. No job is ever taken twice.
pub async fn claim(
    connection: &mut Connection,
    claim: Claim<'_>,
    now: Timestamp,
) -> Result<Vec<LeasedJob>, Error> {
    let areas = listed(claim.areas);
    let sql = match connection.raw() {
        Raw::Sqlite(_) => CLAIM_SQLITE,
        Raw::Postgres(_) => CLAIM_POSTGRES,
    };
    let rows: Vec<Row> = on!(connection, c => {
        sqlx::query_as(sql)
            .bind(claim.lease)
            .bind(claim.worker)
            .bind(now.0)
            .bind(claim.lane.as_str())
            .bind(&areas)
            .bind(i64::from(claim.limit))
            .fetch_all(&mut *c)
            .await?
    });
    let mut jobs = rows.into_iter().map(Row::leased).collect::<Result<Vec<_>, _>>()?;
    // Neither database returns the rows in the order they were picked.
    jobs.sort_by_key(|leased| (leased.job.available_at, leased.job.id.0));
    Ok(jobs)
}

/// When the lane's next job of these areas is due, if one waits.
pub async fn next_due(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
) -> Result<Option<Timestamp>, Error> {
    let sql = match connection.raw() {
        Raw::Sqlite(_) => {
            "SELECT available_at FROM jobs WHERE lane = $1 \
             AND status IN ('queued', 'retrying') AND instr($2, ',' || area || ',') > 0 \
             ORDER BY available_at LIMIT 1"
        }
        Raw::Postgres(_) => {
            "SELECT available_at FROM jobs WHERE lane = $1 \
             AND status IN ('queued', 'retrying') AND strpos($2, ',' || area || ',') > 0 \
             ORDER BY available_at LIMIT 1"
        }
    };
    let due: Option<i64> = on!(connection, c => {
        sqlx::query_scalar(sql)
            .bind(lane.as_str())
            .bind(listed(areas))
            .fetch_optional(&mut *c)
            .await?
    });
    Ok(due.map(Timestamp))
}

/// `,a,b,`; an area's name holds no comma.
fn listed(areas: &[String]) -> String {
    areas.iter().fold(String::from(","), |list, area| list + area + ",")
}

/// Says that a process lives, and its leases with it.
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
/// too often is dead. Answers how many there were.
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
/// so long ago that nothing of theirs is left.
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

/// Deletes up to a thousand jobs that succeeded, or else ended, before these
/// moments. Answers how many.
pub async fn sweep(
    connection: &mut Connection,
    succeeded_before: Timestamp,
    ended_before: Timestamp,
) -> Result<u64, Error> {
    on!(connection, c => {
        let swept = sqlx::query(
            "DELETE FROM jobs WHERE (workspace_id, id) IN (SELECT workspace_id, id FROM jobs \
             WHERE status IN ('succeeded', 'failed', 'dead') \
             AND (status = 'succeeded' AND updated_at < $1 \
             OR status IN ('failed', 'dead') AND updated_at < $2) LIMIT 1000)",
        )
        .bind(succeeded_before.0)
        .bind(ended_before.0)
        .execute(&mut *c)
        .await?
        .rows_affected();
        Ok(swept)
    })
}

/// How full one lane is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Depth {
    /// Waiting, due or not.
    pub waiting: u64,
    /// Under a lease.
    pub running: u64,
}

/// How full each lane is, of one workspace or of all.
pub async fn depths(
    connection: &mut Connection,
    workspace: Option<WorkspaceId>,
) -> Result<BTreeMap<Lane, Depth>, Error> {
    let rows: Vec<(String, String, i64)> = on!(connection, c => {
        match workspace {
            Some(workspace) => sqlx::query_as(
                "SELECT lane, status, count(*) FROM jobs WHERE workspace_id = $1 \
                 AND status IN ('queued', 'retrying', 'running') GROUP BY lane, status",
            )
            .bind(workspace.0)
            .fetch_all(&mut *c)
            .await?,
            // Two questions, each answered from its index alone.
            None => sqlx::query_as(
                "SELECT lane, 'queued', count(*) FROM jobs \
                 WHERE status IN ('queued', 'retrying') GROUP BY lane \
                 UNION ALL SELECT lane, 'running', count(*) FROM jobs \
                 WHERE status = 'running' GROUP BY lane",
            )
            .fetch_all(&mut *c)
            .await?,
        }
    });
    let mut depths: BTreeMap<Lane, Depth> =
        Lane::ALL.into_iter().map(|lane| (lane, Depth::default())).collect();
    for (lane, status, count) in rows {
        let depth = depths.entry(parsed(&lane)?).or_default();
        let count = u64::try_from(count).unwrap_or_default();
        match status.as_str() {
            "running" => depth.running += count,
            _ => depth.waiting += count,
        }
    }
    Ok(depths)
}

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
    /// Not before.
    pub available_at: Timestamp,
    /// Why the last run failed.
    pub last_error: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Its place among the workspace's waiting jobs of the lane, from 1.
    /// Other workspaces' jobs are not counted: how busy they are is theirs.
    pub position: Option<u64>,
}

/// A workspace's jobs, by lane and position; those that do not wait come after
/// those that do, the latest first.
pub async fn list(
    connection: &mut Connection,
    workspace: WorkspaceId,
    limit: u32,
) -> Result<Vec<QueuedJob>, Error> {
    let rows: Vec<ListedRow> = on!(connection, c => {
        sqlx::query_as(
            "SELECT id, area, kind, lane, resource_id, status, attempts, available_at, \
             last_error, created_at, \
             CASE WHEN waits = 1 THEN row_number() \
             OVER (PARTITION BY lane, waits ORDER BY available_at, id) END AS position \
             FROM (SELECT *, CASE WHEN status IN ('queued', 'retrying') THEN 1 ELSE 0 END \
             AS waits FROM jobs WHERE workspace_id = $1) AS mine \
             ORDER BY lane, waits DESC, position, updated_at DESC, id LIMIT $2",
        )
        .bind(workspace.0)
        .bind(i64::from(limit))
        .fetch_all(&mut *c)
        .await?
    });
    rows.into_iter().map(ListedRow::queued).collect()
}

/// A row of the table, as both databases give it.
#[derive(sqlx::FromRow)]
struct Row {
    workspace_id: Uuid,
    id: Uuid,
    area: String,
    kind: String,
    lane: String,
    payload: String,
    resource_id: Option<Uuid>,
    attempts: i64,
    max_attempts: i64,
    timeout_ms: i64,
    available_at: i64,
    dedupe_key: Option<String>,
    checkpoint: Option<String>,
    lease_id: Uuid,
}

impl Row {
    fn leased(self) -> Result<LeasedJob, Error> {
        Ok(LeasedJob {
            attempt: count(self.attempts),
            checkpoint: self.checkpoint,
            lease: self.lease_id,
            job: NewJob {
                id: JobId(self.id),
                workspace: WorkspaceId(self.workspace_id),
                area: self.area,
                kind: self.kind,
                lane: parsed(&self.lane)?,
                payload: self.payload,
                resource: self.resource_id,
                available_at: Timestamp(self.available_at),
                max_attempts: count(self.max_attempts),
                timeout_ms: count(self.timeout_ms),
                dedupe_key: self.dedupe_key,
            },
        })
    }
}

#[derive(sqlx::FromRow)]
struct ListedRow {
    id: Uuid,
    area: String,
    kind: String,
    lane: String,
    resource_id: Option<Uuid>,
    status: String,
    attempts: i64,
    available_at: i64,
    last_error: Option<String>,
    created_at: i64,
    position: Option<i64>,
}

impl ListedRow {
    fn queued(self) -> Result<QueuedJob, Error> {
        Ok(QueuedJob {
            id: JobId(self.id),
            area: self.area,
            kind: self.kind,
            lane: parsed(&self.lane)?,
            resource: self.resource_id,
            status: parsed(&self.status)?,
            attempts: count(self.attempts),
            available_at: Timestamp(self.available_at),
            last_error: self.last_error,
            created_at: Timestamp(self.created_at),
            position: self.position.and_then(|position| u64::try_from(position).ok()),
        })
    }
}

/// A column that only this module writes.
fn parsed<T: FromStr<Err = String>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|what: String| Error::Database(sqlx::Error::Decode(what.into())))
}

fn count(column: i64) -> u32 {
    u32::try_from(column).unwrap_or(if column < 0 { 0 } else { u32::MAX })
}
