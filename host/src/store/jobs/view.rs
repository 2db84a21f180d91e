//! The queue as people see it.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::super::connection::{Connection, on};
use super::super::error::Error;
use super::{count, parsed};
use crate::domain::id::{JobId, WorkspaceId};
use crate::domain::job::{Lane, Status};
use crate::domain::time::Timestamp;

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
