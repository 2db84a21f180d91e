//! Looking at what waits in a lane, at a cost that does not grow with it.
//!
//! The lane's oldest jobs are one range of an index. Where one workspace's
//! jobs fill that range, the flows are walked through by another: each step
//! jumps over everything that waits in the flow before it.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::super::connection::{Connection, Raw, on};
use super::super::error::Error;
use crate::domain::id::WorkspaceId;
use crate::domain::job::{Flow, Lane};
use crate::domain::time::Timestamp;

/// Jobs seen of a lane's oldest ones.
pub const OLDEST: usize = 64;
/// Flows seen in one walk.
const FLOWS: usize = 32;
/// Jobs seen of each of these.
const EACH: usize = 4;
/// Flows of one workspace seen in a row, before the next one's are.
const IN_A_ROW: usize = 100;

/// A job that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingJob {
    /// Where.
    pub flow: Flow,
    /// Not before.
    pub available_at: Timestamp,
}

/// What a walk through a lane's flows came across.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// Due jobs, the oldest of each flow.
    pub due: Vec<WaitingJob>,
    /// The last flow that was looked at; `None` where the walk came to the end.
    pub stopped_at: Option<Flow>,
}

/// The first [`OLDEST`] waiting jobs of the areas, by when they are due; the
/// last ones may not be yet.
pub async fn oldest(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
) -> Result<Vec<WaitingJob>, Error> {
    let listed_areas = listed(areas);
    let is_listed = match connection.raw() {
        Raw::Sqlite(_) => "instr($2, ',' || area || ',') > 0",
        Raw::Postgres(_) => "strpos($2, ',' || area || ',') > 0",
    };
    let sql = format!(
        "SELECT workspace_id, resource_id, available_at FROM jobs \
         WHERE lane = $1 AND status IN ('queued', 'retrying') AND {is_listed} \
         ORDER BY available_at LIMIT {OLDEST}"
    );
    let rows: Vec<(Uuid, Option<Uuid>, i64)> = on!(connection, c => {
        sqlx::query_as(AssertSqlSafe(sql))
            .bind(lane.as_str())
            .bind(&listed_areas)
            .fetch_all(&mut *c)
            .await?
    });
    let job = |(workspace, resource, at)| WaitingJob {
        flow: Flow { workspace: WorkspaceId(workspace), resource },
        available_at: Timestamp(at),
    };
    Ok(rows.into_iter().map(job).collect())
}

/// The next 32 flows of the lane after a given one (`None`: the first),
/// with the first due jobs of each.
pub async fn walk(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
    after: Option<Flow>,
    now: Timestamp,
) -> Result<Walk, Error> {
    let sql = match connection.raw() {
        Raw::Sqlite(_) => walk_sqlite(),
        Raw::Postgres(_) => walk_postgres(),
    };
    let workspace = after.map_or(Uuid::nil(), |flow| flow.workspace.0);
    let resource = after.map_or(Uuid::nil(), |flow| resource_key(flow.resource));
    let rows: Vec<(Uuid, Uuid, i64, Option<i64>)> = on!(connection, c => {
        sqlx::query_as(AssertSqlSafe(sql))
            .bind(lane.as_str())
            .bind(listed(areas))
            .bind(now.0)
            .bind(workspace)
            .bind(resource)
            .bind(Uuid::max())
            .fetch_all(&mut *c)
            .await?
    });
    let flow = |workspace, resource: Uuid| Flow {
        workspace: WorkspaceId(workspace),
        resource: Some(resource).filter(|resource| !resource.is_nil()),
    };
    let last = rows.iter().max_by_key(|row| row.2);
    let stopped_at =
        last.filter(|row| usize::try_from(row.2) == Ok(FLOWS)).map(|row| flow(row.0, row.1));
    let due = rows.into_iter().filter_map(|(workspace, resource, _, at)| {
        Some(WaitingJob { flow: flow(workspace, resource), available_at: Timestamp(at?) })
    });
    Ok(Walk { due: due.collect(), stopped_at })
}

/// A row's flow is the pair of its workspace and its resource, or zeros. `$1`
/// lane, `$2` areas, `$3` now, `$4` and `$5` the flow before the first, `$6`
/// a resource that comes after all others.
fn walk_postgres() -> String {
    let resource = "coalesce(resource_id, '00000000-0000-0000-0000-000000000000'::uuid)";
    let waits = "lane = $1 AND status IN ('queued', 'retrying')";
    let next = |before: &str| {
        format!(
            "SELECT workspace_id, {resource} AS resource FROM jobs \
             WHERE {waits} AND (workspace_id, {resource}) > {before} \
             ORDER BY workspace_id, {resource} LIMIT 1"
        )
    };
    let first = next("($4, $5)");
    let further = next(&format!(
        "(walk.workspace_id, CASE WHEN nth < {IN_A_ROW} THEN walk.resource ELSE $6 END)"
    ));
    format!(
        "WITH RECURSIVE walk (workspace_id, resource, nth, step) AS (\
         SELECT workspace_id, resource, 1, 1 FROM ({first}) AS first \
         UNION ALL SELECT next.workspace_id, next.resource, \
         CASE WHEN next.workspace_id = walk.workspace_id THEN nth + 1 ELSE 1 END, step + 1 \
         FROM walk CROSS JOIN LATERAL ({further}) AS next WHERE step < {FLOWS}) \
         SELECT walk.workspace_id, walk.resource, walk.step::bigint, due.available_at FROM walk \
         LEFT JOIN LATERAL (SELECT available_at FROM jobs WHERE {waits} \
         AND (workspace_id, {resource}, available_at) \
         >= (walk.workspace_id, walk.resource, '-9223372036854775808'::bigint) \
         AND (workspace_id, {resource}, available_at) <= (walk.workspace_id, walk.resource, $3) \
         AND strpos($2, ',' || area || ',') > 0 \
         ORDER BY workspace_id, {resource}, available_at LIMIT {EACH}) AS due ON true"
    )
}

/// The same. SQLite compares rows along an index only where all of it is
/// columns, so a step asks for the workspace's next resource, and then for the
/// next workspace.
fn walk_sqlite() -> String {
    let resource = "coalesce(resource_id, zeroblob(16))";
    let waits = "lane = $1 AND status IN ('queued', 'retrying')";
    let next = |workspace: &str, before: &str| {
        format!(
            "coalesce((SELECT rowid FROM jobs WHERE {waits} AND workspace_id = {workspace} \
             AND {resource} > {before} ORDER BY {resource} LIMIT 1), \
             (SELECT rowid FROM jobs WHERE {waits} AND workspace_id > {workspace} \
             ORDER BY workspace_id, {resource} LIMIT 1))"
        )
    };
    let first = next("$4", "$5");
    let further = next(
        "walk.workspace_id",
        &format!("CASE WHEN nth < {IN_A_ROW} THEN walk.resource ELSE $6 END"),
    );
    format!(
        "WITH RECURSIVE walk (workspace_id, resource, nth, step) AS (\
         SELECT workspace_id, {resource}, 1, 1 FROM jobs WHERE rowid = {first} \
         UNION ALL SELECT next.workspace_id, coalesce(next.resource_id, zeroblob(16)), \
         CASE WHEN next.workspace_id = walk.workspace_id THEN nth + 1 ELSE 1 END, step + 1 \
         FROM walk JOIN jobs AS next ON next.rowid = {further} WHERE step < {FLOWS}) \
         SELECT walk.workspace_id, walk.resource, walk.step, due.available_at FROM walk \
         LEFT JOIN jobs AS due ON due.rowid IN (SELECT rowid FROM jobs WHERE {waits} \
         AND workspace_id = walk.workspace_id AND {resource} = walk.resource \
         AND available_at <= $3 AND instr($2, ',' || area || ',') > 0 \
         ORDER BY available_at LIMIT {EACH})"
    )
}

/// The resource as the index of flows has it.
pub(super) fn resource_key(resource: Option<Uuid>) -> Uuid {
    resource.unwrap_or(Uuid::nil())
}

/// `,a,b,`; an area's name holds no comma.
pub(super) fn listed(areas: &[String]) -> String {
    areas.iter().fold(String::from(","), |list, area| list + area + ",")
}
