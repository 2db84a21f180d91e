//! Reads waiting jobs of a lane at a cost that does not depend on their number.
//!
//! The oldest jobs of a lane are one range of an index. If one workspace fills
//! that range, another index walks through the flows: each step skips all other
//! jobs of the previous flow.

use std::collections::HashSet;

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
/// Number of consecutive flows of one workspace with due jobs after which the
/// walk continues with the next workspace, at the end of a page.
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
    /// Position for the next page; `None` if the scan reached the end.
    pub stopped_at: Option<WalkPosition>,
}

/// Position between two pages of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalkPosition {
    /// Flow before the first of the next page.
    after: JobFlow,
    /// Number of flows of this workspace with due jobs that the walk has read.
    due_flows: usize,
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

/// Returns the next 32 flows of the lane from a position (`None`: from the
/// first), with the first due jobs of each.
pub async fn walk(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
    from: Option<WalkPosition>,
    now: Timestamp,
) -> Result<FlowScanResult, Error> {
    let sql = match connection.raw() {
        Raw::Sqlite(_) => walk_sqlite(),
        Raw::Postgres(_) => walk_postgres(),
    };
    let workspace = from.map_or(Uuid::nil(), |from| from.after.workspace.0);
    let resource = from.map_or(Uuid::nil(), |from| resource_key(from.after.resource));
    let rows: Vec<(Uuid, Uuid, i64, Option<i64>)> = fetch_all!(
        connection,
        AssertSqlSafe(sql),
        lane.as_str(),
        listed(areas),
        now.0,
        workspace,
        resource
    );
    let flow = |workspace, resource: Uuid| JobFlow {
        workspace: WorkspaceId(workspace),
        resource: Some(resource).filter(|resource| !resource.is_nil()),
    };
    let last = rows.iter().max_by_key(|row| row.2);
    let stopped_at = last
        .filter(|row| usize::try_from(row.2) == Ok(FLOWS_PER_WALK))
        .map(|row| position(from, flow(row.0, row.1), &rows));
    let due = rows.into_iter().filter_map(|(workspace, resource, _, at)| {
        Some(PendingJob { flow: flow(workspace, resource), available_at: Timestamp(at?) })
    });
    Ok(FlowScanResult { due: due.collect(), stopped_at })
}

/// Returns the position after a page that began at `from` and ended with a flow.
fn position(
    from: Option<WalkPosition>,
    last: JobFlow,
    rows: &[(Uuid, Uuid, i64, Option<i64>)],
) -> WalkPosition {
    let due = rows.iter().filter(|row| row.0 == last.workspace.0 && row.3.is_some());
    let in_page = due.map(|row| row.1).collect::<HashSet<_>>().len();
    let before = from.filter(|from| from.after.workspace == last.workspace);
    let due_flows = before.map_or(0, |from| from.due_flows) + in_page;
    let after = match due_flows {
        // No resource is greater, so the next workspace follows.
        FLOWS_PER_WORKSPACE.. => JobFlow { resource: Some(Uuid::max()), ..last },
        _ => last,
    };
    WalkPosition { after, due_flows }
}

/// Returns PostgreSQL's statement of [`walk`]. A flow is the pair of workspace
/// and resource (zeros for none). Parameters: `$1` lane, `$2` areas, `$3` now,
/// `$4` and `$5` the flow before the first.
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
    let further = next("(walk.workspace_id, walk.resource)");
    format!(
        "WITH RECURSIVE walk (workspace_id, resource, step) AS (\
         SELECT workspace_id, resource, 1 FROM ({first}) AS first \
         UNION ALL SELECT next.workspace_id, next.resource, step + 1 \
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
    let further = next("walk.workspace_id", "walk.resource");
    format!(
        "WITH RECURSIVE walk (workspace_id, resource, step) AS (\
         SELECT workspace_id, {resource}, 1 FROM jobs WHERE rowid = {first} \
         UNION ALL SELECT next.workspace_id, coalesce(next.resource_id, zeroblob(16)), step + 1 \
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
