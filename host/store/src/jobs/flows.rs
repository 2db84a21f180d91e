//! Reads waiting jobs of a lane at a cost that does not depend on their number.
//!
//! The oldest jobs of a lane are one range of an index. If one workspace fills
//! that range, another index walks through the flows: each step skips all other
//! jobs of the previous flow.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::super::connection::{Connection, Raw, fetch_all};
use super::super::error::Error;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::{JobFlow, Lane};
use assurance_core::domain::time::Timestamp;

/// Number of jobs that [`oldest`] returns.
pub const OLDEST: usize = 64;
/// Number of flows that one [`walk`] returns.
const FLOWS_PER_WALK: usize = 32;
/// Number of jobs per flow that [`walk`] returns.
const JOBS_PER_FLOW: usize = 4;
/// Number of consecutive flows of one workspace before the walk continues with
/// the next workspace.
const FLOWS_PER_WORKSPACE: usize = 100;

/// A waiting job, due or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingJob {
    /// Flow of the job.
    pub flow: JobFlow,
    /// Earliest time at which the job runs.
    pub available_at: Timestamp,
}

/// Result of a walk through a lane's flows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowScanResult {
    /// Due jobs, the oldest of each flow.
    pub due: Vec<PendingJob>,
    /// The last flow of the scan; `None` if it reached the end.
    pub stopped_at: Option<JobFlow>,
}

/// Returns the first [`OLDEST`] waiting jobs of the areas by start time. The
/// last of them may not be due yet.
pub async fn oldest(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
) -> Result<Vec<PendingJob>, Error> {
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
    let rows: Vec<(Uuid, Option<Uuid>, i64)> =
        fetch_all!(connection, AssertSqlSafe(sql), lane.as_str(), &listed_areas);
    let job = |(workspace, resource, at)| PendingJob {
        flow: JobFlow { workspace: WorkspaceId(workspace), resource },
        available_at: Timestamp(at),
    };
    Ok(rows.into_iter().map(job).collect())
}

/// Returns the next 32 flows of the lane after `after` (`None`: from the
/// first), with the first due jobs of each.
pub async fn walk(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
    after: Option<JobFlow>,
    now: Timestamp,
) -> Result<FlowScanResult, Error> {
    let sql = match connection.raw() {
        Raw::Sqlite(_) => walk_sqlite(),
        Raw::Postgres(_) => walk_postgres(),
    };
    let workspace = after.map_or(Uuid::nil(), |flow| flow.workspace.0);
    let resource = after.map_or(Uuid::nil(), |flow| resource_key(flow.resource));
    let rows: Vec<(Uuid, Uuid, i64, Option<i64>)> = fetch_all!(
        connection,
        AssertSqlSafe(sql),
        lane.as_str(),
        listed(areas),
        now.0,
        workspace,
        resource,
        Uuid::max()
    );
    let flow = |workspace, resource: Uuid| JobFlow {
        workspace: WorkspaceId(workspace),
        resource: Some(resource).filter(|resource| !resource.is_nil()),
    };
    let last = rows.iter().max_by_key(|row| row.2);
    let stopped_at = last
        .filter(|row| usize::try_from(row.2) == Ok(FLOWS_PER_WALK))
        .map(|row| flow(row.0, row.1));
    let due = rows.into_iter().filter_map(|(workspace, resource, _, at)| {
        Some(PendingJob { flow: flow(workspace, resource), available_at: Timestamp(at?) })
    });
    Ok(FlowScanResult { due: due.collect(), stopped_at })
}

/// Returns PostgreSQL's statement of [`walk`]. A flow is the pair of workspace
/// and resource (zeros for none). Parameters: `$1` lane, `$2` areas, `$3` now,
/// `$4` and `$5` the flow before the first, `$6` a resource greater than all
/// others.
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
        "(walk.workspace_id, CASE WHEN nth < {FLOWS_PER_WORKSPACE} THEN walk.resource ELSE $6 END)"
    ));
    format!(
        "WITH RECURSIVE walk (workspace_id, resource, nth, step) AS (\
         SELECT workspace_id, resource, 1, 1 FROM ({first}) AS first \
         UNION ALL SELECT next.workspace_id, next.resource, \
         CASE WHEN next.workspace_id = walk.workspace_id THEN nth + 1 ELSE 1 END, step + 1 \
         FROM walk CROSS JOIN LATERAL ({further}) AS next WHERE step < {FLOWS_PER_WALK}) \
         SELECT walk.workspace_id, walk.resource, walk.step::bigint, due.available_at FROM walk \
         LEFT JOIN LATERAL (SELECT available_at FROM jobs WHERE {waits} \
         AND (workspace_id, {resource}, available_at) \
         >= (walk.workspace_id, walk.resource, '-9223372036854775808'::bigint) \
         AND (workspace_id, {resource}, available_at) <= (walk.workspace_id, walk.resource, $3) \
         AND strpos($2, ',' || area || ',') > 0 \
         ORDER BY workspace_id, {resource}, available_at LIMIT {JOBS_PER_FLOW}) AS due ON true"
    )
}

/// Returns SQLite's statement of [`walk`]. SQLite compares rows along an index
/// only if all parts are columns. So one step queries the workspace's next
/// resource, and another the next workspace.
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
        &format!("CASE WHEN nth < {FLOWS_PER_WORKSPACE} THEN walk.resource ELSE $6 END"),
    );
    format!(
        "WITH RECURSIVE walk (workspace_id, resource, nth, step) AS (\
         SELECT workspace_id, {resource}, 1, 1 FROM jobs WHERE rowid = {first} \
         UNION ALL SELECT next.workspace_id, coalesce(next.resource_id, zeroblob(16)), \
         CASE WHEN next.workspace_id = walk.workspace_id THEN nth + 1 ELSE 1 END, step + 1 \
         FROM walk JOIN jobs AS next ON next.rowid = {further} WHERE step < {FLOWS_PER_WALK}) \
         SELECT walk.workspace_id, walk.resource, walk.step, due.available_at FROM walk \
         LEFT JOIN jobs AS due ON due.rowid IN (SELECT rowid FROM jobs WHERE {waits} \
         AND workspace_id = walk.workspace_id AND {resource} = walk.resource \
         AND available_at <= $3 AND instr($2, ',' || area || ',') > 0 \
         ORDER BY available_at LIMIT {JOBS_PER_FLOW})"
    )
}

/// Returns the resource as the index of flows stores it: zeros for `None`.
pub(super) fn resource_key(resource: Option<Uuid>) -> Uuid {
    resource.unwrap_or(Uuid::nil())
}

/// Returns names of areas as one text, `,a,b,`, in which SQL searches for
/// `,name,`. Names contain no comma.
pub(super) fn listed(areas: &[String]) -> String {
    areas.iter().fold(String::from(","), |list, area| list + area + ",")
}
