//! Claims due jobs from the queue.

use std::fmt::Write as _;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::super::Backend;
use super::super::connection::{Connection, DriverConnection, execute, optional_scalar};
use super::super::error::{Error, parsed};
use super::super::sql::from_row;
use super::count;
use super::flows::{is_listed, listed, resource_key};
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::job::{JobFairnessKey, Lane, LeasedJob, NewJob};
use assurance_core::domain::time::Timestamp;

/// A dispatcher's request for jobs of a lane.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest<'a> {
    /// Lane to claim jobs from.
    pub lane: Lane,
    /// Flows to claim from, each with the maximum number of jobs.
    pub flows: &'a [(JobFairnessKey, u32)],
    /// Areas whose jobs this process runs; jobs of other areas are not claimed.
    pub areas: &'a [String],
    /// Id of the claiming process, whose heartbeat must not have expired.
    pub worker: Uuid,
    /// Id of the new lease. The caller chooses it, so that it can release the
    /// jobs if the database's response is lost.
    pub lease: Uuid,
}

/// Returns SQLite's statement that claims jobs from this number of flows.
/// Parameters: `$1` lease, `$2` worker, `$3` now, `$4` lane, `$5` areas; then
/// workspace, resource and number of each flow.
fn claim_sqlite(flows: usize) -> String {
    let mut sql = String::from(
        "UPDATE jobs SET status = 'running', attempts = attempts + 1, \
         lease_id = $1, worker_id = $2, updated_at = $3 WHERE rowid IN (",
    );
    let is_listed = is_listed(Backend::Sqlite, "$5");
    for flow in 0..flows {
        let union = if flow == 0 { "" } else { " UNION ALL " };
        let at = |column: usize| 5 + flow * 3 + column;
        write!(
            sql,
            "{union}SELECT place FROM (SELECT rowid AS place FROM jobs \
             WHERE lane = $4 AND status IN ('queued', 'retrying') \
             AND workspace_id = ${} AND coalesce(resource_id, zeroblob(16)) = ${} \
             AND available_at <= $3 AND {is_listed} \
             ORDER BY available_at LIMIT ${})",
            at(1),
            at(2),
            at(3),
        )
        .expect("writing to a string does not fail");
    }
    sql + ") RETURNING *"
}

/// PostgreSQL's statement that claims jobs; the migration 0031 explains it. It names the columns of
/// [`Row`], because a prepared `SELECT *` fails once a newer release has added a column.
const CLAIM_POSTGRES: &str = "SELECT workspace_id, id, area, kind, lane, payload, resource_id, \
     attempts, max_attempts, timeout_ms, available_at, dedupe_key, checkpoint, lease_id \
     FROM claim_jobs($1, $2, $3, $4, $5, $6, $7, $8)";

/// Claims due jobs, the oldest of each flow first. No job is claimed twice.
pub async fn claim(
    connection: &mut Connection,
    claim: ClaimRequest<'_>,
    now: Timestamp,
) -> Result<Vec<LeasedJob>, Error> {
    let areas = listed(claim.areas);
    let rows: Vec<Row> = match connection.raw() {
        DriverConnection::Sqlite(c) => {
            let sql = claim_sqlite(claim.flows.len());
            let mut query = sqlx::query_as(AssertSqlSafe(sql))
                .bind(claim.lease)
                .bind(claim.worker)
                .bind(now.0)
                .bind(claim.lane.as_str())
                .bind(&areas);
            for (flow, jobs) in claim.flows {
                query = query
                    .bind(flow.workspace.0)
                    .bind(resource_key(flow.resource))
                    .bind(i64::from(*jobs));
            }
            query.fetch_all(c).await?
        }
        DriverConnection::Postgres(c) => {
            let flows = claim.flows.iter();
            let workspaces: Vec<Uuid> = flows.clone().map(|(flow, _)| flow.workspace.0).collect();
            let resources: Vec<Uuid> =
                flows.clone().map(|(flow, _)| resource_key(flow.resource)).collect();
            let jobs: Vec<i64> = flows.map(|(_, jobs)| i64::from(*jobs)).collect();
            sqlx::query_as(CLAIM_POSTGRES)
                .bind(claim.lane.as_str())
                .bind(&areas)
                .bind(now.0)
                .bind(claim.worker)
                .bind(claim.lease)
                .bind(workspaces)
                .bind(resources)
                .bind(jobs)
                .fetch_all(c)
                .await?
        }
    };
    let mut jobs = rows.into_iter().map(Row::leased).collect::<Result<Vec<_>, _>>()?;
    // Neither database returns the rows in the order of the selection.
    jobs.sort_by_key(|leased| (leased.job.available_at, leased.job.id.0));
    Ok(jobs)
}

/// Deletes the waiting jobs that are redundant because a leased job of merged
/// events delivers their events: the due ones of its kind, area and workspace.
/// Deletes none if the leased job has another lease now: its run then ends
/// without effects. Call it before the run, which then sees what their
/// transactions wrote. Returns the number of deleted jobs.
pub async fn absorb(
    connection: &mut Connection,
    leased: &LeasedJob,
    now: Timestamp,
) -> Result<u64, Error> {
    let job = &leased.job;
    // The conditions are those of the index of flows.
    let no_resource = match connection.backend() {
        Backend::Sqlite => "coalesce(resource_id, zeroblob(16)) = zeroblob(16)",
        Backend::Postgres => {
            "coalesce(resource_id, '00000000-0000-0000-0000-000000000000'::uuid) \
             = '00000000-0000-0000-0000-000000000000'::uuid"
        }
    };
    let sql = format!(
        "DELETE FROM jobs WHERE lane = $1 AND workspace_id = $2 AND {no_resource} \
         AND available_at <= $3 AND status IN ('queued', 'retrying') AND status = 'queued' \
         AND area = $4 AND kind = $5 AND id <> $6 AND EXISTS (SELECT 1 FROM jobs AS held \
         WHERE held.workspace_id = $2 AND held.id = $6 AND held.lease_id = $7)"
    );
    Ok(execute!(
        connection,
        AssertSqlSafe(sql),
        job.lane.as_str(),
        job.workspace.0,
        now.0,
        &job.area,
        &job.kind,
        job.id.0,
        leased.lease
    ))
}

/// Returns the due time of the next job of the lane and areas that is not due
/// yet; `None` if there is none.
pub async fn next_due(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let sql = format!(
        "SELECT available_at FROM jobs WHERE lane = $1 AND available_at > $3 \
         AND status IN ('queued', 'retrying') AND {} ORDER BY available_at LIMIT 1",
        is_listed(connection.backend(), "$2")
    );
    let (sql, areas) = (AssertSqlSafe(sql), listed(areas));
    let due: Option<i64> = optional_scalar!(connection, sql, lane.as_str(), &areas, now.0);
    Ok(due.map(Timestamp))
}

from_row! {
    /// A row of the jobs table that was claimed.
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
                lane: parsed("jobs.lane", &self.lane)?,
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
