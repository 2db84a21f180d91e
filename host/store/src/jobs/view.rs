//! Queries of the queue for members and operators.

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::super::connection::{Connection, DriverConnection, fetch_all, fetch_optional};
use super::super::cursor::CursorBinding;
use super::super::error::{Error, parsed};
use super::super::sql::from_row;
use super::super::{Backend, Store};
use super::count;
use assurance_core::domain::document::{FieldTest, FieldValue, QueryCondition};
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::job::{JobProgress, JobStatus, Lane};
use assurance_core::domain::queue::{JobFilter, JobForMembers, WorkspaceLaneLoad};
use assurance_core::domain::time::Timestamp;

/// Number of waiting and running jobs in one lane, over all workspaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneDepth {
    /// Number of waiting jobs, due or not.
    pub waiting: u64,
    /// Number of running jobs, which have a lease.
    pub running: u64,
    /// Due time of the first waiting job, which may be in the past; `None` if
    /// no job waits.
    pub next_due: Option<Timestamp>,
}

/// Returns the number of waiting and running jobs in each lane, over all
/// workspaces.
pub async fn depths(connection: &mut Connection) -> Result<BTreeMap<Lane, LaneDepth>, Error> {
    // Two queries, each answered from its index alone.
    let sql = "SELECT lane, count(*), min(available_at) FROM jobs \
               WHERE status IN ('queued', 'retrying') GROUP BY lane \
               UNION ALL SELECT lane, count(*), NULL FROM jobs \
               WHERE status = 'running' GROUP BY lane";
    let rows: Vec<(String, i64, Option<i64>)> = fetch_all!(connection, sql);
    let mut depths: BTreeMap<Lane, LaneDepth> =
        Lane::ALL.into_iter().map(|lane| (lane, LaneDepth::default())).collect();
    for (lane, count, next_due) in rows {
        let depth = depths.entry(parsed("jobs.lane", &lane)?).or_default();
        let count = u64::try_from(count).unwrap_or_default();
        match next_due {
            Some(at) => (depth.waiting, depth.next_due) = (count, Some(Timestamp(at))),
            None => depth.running = count,
        }
    }
    Ok(depths)
}

/// Number of waiting jobs from which outdated PostgreSQL statistics make claims
/// of jobs slow.
const BACKLOG: u64 = 1_000;

/// Refreshes PostgreSQL's statistics of the queue if they differ much from the
/// number of waiting jobs, and returns whether it did. They are often those of
/// an empty queue, since the server looks once a minute. With them, a claim
/// reads and sorts all waiting jobs.
pub async fn refresh_statistics(store: &Store, waiting: u64) -> Result<bool, Error> {
    if store.backend() == Backend::Sqlite {
        return Ok(false);
    }
    let mut connection = store.writer().await?;
    let DriverConnection::Postgres(c) = connection.raw() else { return Ok(false) };
    let known: f32 =
        sqlx::query_scalar("SELECT reltuples FROM pg_class WHERE oid = 'jobs_waiting'::regclass")
            .fetch_one(&mut *c)
            .await?;
    let known = known.max(0.0) as u64;
    let is_wrong = known.max(waiting) >= BACKLOG && known.max(waiting) / 4 > known.min(waiting);
    if is_wrong {
        sqlx::raw_sql("ANALYZE jobs").execute(c).await?;
    }
    connection.release();
    Ok(is_wrong)
}

/// Returns the number of stored jobs that failed for good, over all workspaces, by status.
pub async fn failed(connection: &mut Connection) -> Result<[(JobStatus, u64); 2], Error> {
    // Answered from the index of ended jobs alone.
    let sql = "SELECT status, count(*) FROM jobs WHERE status IN ('failed', 'dead') \
               GROUP BY status";
    let rows: Vec<(String, i64)> = fetch_all!(connection, sql);
    Ok([JobStatus::Failed, JobStatus::Dead].map(|status| {
        let found = rows.iter().find(|(name, _)| name == status.as_str());
        (status, found.map_or(0, |(_, count)| u64::try_from(*count).unwrap_or_default()))
    }))
}

/// Returns the number of a workspace's jobs in each lane. Queued jobs count once they are due.
pub async fn loads(
    connection: &mut Connection,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<BTreeMap<Lane, WorkspaceLaneLoad>, Error> {
    let mut sql: String = Lane::ALL
        .map(|lane| {
            let of = queued_in(connection.backend(), lane);
            format!("SELECT '{lane}' AS lane, 0 AS active, count(*) {of} UNION ALL ")
        })
        .concat();
    sql += "SELECT lane, count(*), 0 FROM jobs WHERE status = 'running' AND workspace_id = $1 \
            GROUP BY lane";
    let rows: Vec<(String, i64, i64)> =
        fetch_all!(connection, AssertSqlSafe(sql), workspace.0, now.0);
    let mut loads: BTreeMap<Lane, WorkspaceLaneLoad> =
        Lane::ALL.into_iter().map(|lane| (lane, WorkspaceLaneLoad::default())).collect();
    for (lane, active, queued) in rows {
        let load = loads.entry(parsed("jobs.lane", &lane)?).or_default();
        load.active += u64::try_from(active).unwrap_or_default();
        load.queued += u64::try_from(queued).unwrap_or_default();
    }
    Ok(loads)
}

/// Returns the FROM and WHERE of the lane's queued jobs of the workspace `$1` that are due at `$2`.
/// They are read along the index of flows, so that jobs of other workspaces and ended ones cost
/// nothing.
fn queued_in(backend: Backend, lane: Lane) -> String {
    let index = if backend == Backend::Sqlite { "INDEXED BY jobs_flows " } else { "" };
    format!(
        "FROM jobs {index}WHERE lane = '{lane}' AND workspace_id = $1 \
         AND status IN ('queued', 'retrying') AND status = 'queued' AND available_at <= $2"
    )
}

/// Columns of the jobs table that members and operators may see. Payloads are
/// not included, because only the job's area may read them.
const COLUMNS: &str = "id, area, kind, lane, resource_id, status, attempts, max_attempts, \
     available_at, last_error, created_at, updated_at, progress_done, progress_total";

/// Returns the query of the first `$3` jobs of [`queued_in`]. The plus keeps PostgreSQL from walking
/// the index of waiting jobs, which is in this order, through the jobs of all workspaces.
pub(super) fn first_queued(backend: Backend, lane: Lane) -> String {
    let of = queued_in(backend, lane);
    format!("SELECT {COLUMNS} {of} ORDER BY +available_at, id LIMIT $3")
}

/// Returns a workspace's jobs: queued ones that are due by lane and position,
/// then running, retrying (soonest first) and ended ones (latest first). At most
/// `limit` of each of these four states for each lane.
pub async fn overview(
    connection: &mut Connection,
    workspace: WorkspaceId,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<JobForMembers>, Error> {
    let backend = connection.backend();
    let first =
        |lane| format!("SELECT * FROM ({}) AS {lane} UNION ALL ", first_queued(backend, lane));
    let queued = Lane::ALL.map(first).concat();
    let sql = format!(
        "SELECT {COLUMNS}, CASE WHEN rank = 0 THEN nth END AS position \
         FROM (SELECT {COLUMNS}, rank, row_number() OVER (PARTITION BY lane, rank \
         ORDER BY CASE WHEN rank = 3 THEN -updated_at ELSE available_at END, id) AS nth \
         FROM (SELECT {COLUMNS}, CASE status WHEN 'queued' THEN 0 WHEN 'running' THEN 1 \
         WHEN 'retrying' THEN 2 ELSE 3 END AS rank \
         FROM ({queued}SELECT {COLUMNS} FROM jobs \
         WHERE workspace_id = $1 AND status <> 'queued') AS mine) AS ranked) AS placed \
         WHERE nth <= $3 ORDER BY lane, rank, nth"
    );
    let rows: Vec<ListedRow> =
        fetch_all!(connection, AssertSqlSafe(sql), workspace.0, now.0, i64::from(limit));
    rows.into_iter().map(ListedRow::queued).collect()
}

/// Returns one page of a workspace's jobs, newest first, and the cursor of the
/// next page. Returns [`Error::InvalidCursor`] for a cursor of another filter.
pub async fn page(
    connection: &mut Connection,
    (workspace, now): (WorkspaceId, Timestamp),
    filter: &JobFilter,
    cursor: Option<&str>,
    limit: u32,
    cursor_key: &[u8; 32],
) -> Result<(Vec<JobForMembers>, Option<String>), Error> {
    let conditions = conditions(filter);
    let list = CursorBinding::of_list(cursor_key, workspace.0, "the queue's jobs");
    let binding = CursorBinding { conditions: &conditions, ..list };
    let before = binding.after(cursor)?;
    let jobs = select(connection, (workspace, now), filter, before, limit + 1).await?;
    Ok(binding.page(jobs, limit, |job| job.id.to_string()))
}

/// Returns one of a workspace's jobs; `None` if there is none with this id.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    now: Timestamp,
    job: JobId,
) -> Result<Option<JobForMembers>, Error> {
    let sql = listing("j.id = $3");
    let row: Option<ListedRow> =
        fetch_optional!(connection, AssertSqlSafe(sql), workspace.0, now.0, job.0);
    row.map(ListedRow::queued).transpose()
}

/// Returns area, kind and progress of the jobs about a resource that have
/// reported progress and have not ended.
pub async fn progress_of(
    connection: &mut Connection,
    workspace: WorkspaceId,
    resource: Uuid,
) -> Result<Vec<(String, String, JobProgress)>, Error> {
    let sql = "SELECT area, kind, progress_done, progress_total FROM jobs \
               WHERE workspace_id = $1 AND resource_id = $2 AND progress_total IS NOT NULL \
               AND status IN ('queued', 'running', 'retrying') ORDER BY area, kind";
    let rows: Vec<(String, String, i64, i64)> = fetch_all!(connection, sql, workspace.0, resource);
    let read = |(area, kind, done, total)| (area, kind, progress(done, total));
    Ok(rows.into_iter().map(read).collect())
}

fn progress(done: i64, total: i64) -> JobProgress {
    JobProgress { done: done.cast_unsigned(), total: total.cast_unsigned() }
}

/// Converts a filter of jobs into conditions, so that a page cursor is valid
/// only with this filter.
fn conditions(filter: &JobFilter) -> Vec<QueryCondition> {
    let said = [
        ("lane", filter.lane.map(|lane| lane.as_str().to_owned())),
        ("kind", filter.kind.clone()),
        ("status", filter.status.map(|status| status.as_str().to_owned())),
        ("resource_id", filter.resource.map(|id| id.to_string())),
    ];
    let condition = |(field, value): (&str, Option<String>)| {
        let test = FieldTest::Equals(FieldValue::Text(value?));
        Some(QueryCondition { fields: vec![field.to_owned()], test })
    };
    said.into_iter().filter_map(condition).collect()
}

async fn select(
    connection: &mut Connection,
    (workspace, now): (WorkspaceId, Timestamp),
    filter: &JobFilter,
    before: Option<Uuid>,
    limit: u32,
) -> Result<Vec<JobForMembers>, Error> {
    let sql = listing(
        "($3 IS NULL OR j.lane = $3) AND ($4 IS NULL OR j.kind = $4) \
         AND ($5 IS NULL OR j.status = $5) AND ($6 IS NULL OR j.resource_id = $6) \
         AND ($7 IS NULL OR j.id < $7) ORDER BY j.id DESC LIMIT $8",
    );
    let rows: Vec<ListedRow> = fetch_all!(
        connection,
        AssertSqlSafe(sql),
        workspace.0,
        now.0,
        filter.lane.map(Lane::as_str),
        &filter.kind,
        filter.status.map(JobStatus::as_str),
        filter.resource,
        before,
        i64::from(limit)
    );
    rows.into_iter().map(ListedRow::queued).collect()
}

/// Returns the query of those jobs of the workspace `$1` that match the SQL
/// condition `which`, with their queue positions at the time `$2`.
fn listing(which: &str) -> String {
    format!(
        "SELECT {COLUMNS}, position FROM jobs j LEFT JOIN (SELECT id AS placed, row_number() \
         OVER (PARTITION BY lane ORDER BY available_at, id) AS position \
         FROM jobs WHERE workspace_id = $1 AND status = 'queued' AND available_at <= $2) AS places \
         ON placed = j.id \
         WHERE j.workspace_id = $1 AND {which}"
    )
}

from_row! {
    struct ListedRow {
        id: Uuid,
        area: String,
        kind: String,
        lane: String,
        resource_id: Option<Uuid>,
        status: String,
        attempts: i64,
        max_attempts: i64,
        available_at: i64,
        last_error: Option<String>,
        created_at: i64,
        updated_at: i64,
        progress_done: Option<i64>,
        progress_total: Option<i64>,
        position: Option<i64>,
    }
}

impl ListedRow {
    fn queued(self) -> Result<JobForMembers, Error> {
        Ok(JobForMembers {
            id: JobId(self.id),
            area: self.area,
            kind: self.kind,
            lane: parsed("jobs.lane", &self.lane)?,
            resource: self.resource_id,
            status: parsed("jobs.status", &self.status)?,
            attempts: count(self.attempts),
            max_attempts: count(self.max_attempts),
            available_at: Timestamp(self.available_at),
            last_error: self.last_error,
            created_at: Timestamp(self.created_at),
            updated_at: Timestamp(self.updated_at),
            position: self.position.and_then(|position| u64::try_from(position).ok()),
            progress: Option::zip(self.progress_done, self.progress_total)
                .map(|(done, total)| progress(done, total)),
        })
    }
}
