//! Taking due jobs from the queue.

use uuid::Uuid;

use super::super::connection::{Connection, Raw, on};
use super::super::error::Error;
use super::{count, parsed};
use crate::domain::id::{JobId, WorkspaceId};
use crate::domain::job::{Lane, LeasedJob, NewJob};
use crate::domain::time::Timestamp;

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
