//! Reads waiting jobs of a lane at a cost that does not depend on their number.
//!
//! The oldest jobs of a lane are one range of an index. If one workspace fills
//! that range, another index walks through the flows: each step skips all other
//! jobs of the previous flow.

use std::collections::{BTreeMap, HashSet};

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::super::Backend;
use super::super::connection::{Connection, fetch_all};
use super::super::error::Error;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::{JobFairnessKey, Lane};
use assurance_core::domain::time::Timestamp;

/// Maximum number of waiting jobs that [`oldest`] returns.
pub const OLDEST: usize = 64;
/// Number of flows (pairs of workspace and resource) that one call of [`walk`]
/// reads.
const FLOWS_PER_WALK: usize = 32;
/// Maximum number of due jobs of one flow that [`walk`] returns.
const JOBS_PER_FLOW: usize = 4;
/// Number of flows of one workspace with due jobs after which the walk
/// continues with the next workspace, at the end of a page.
const DUE_FLOWS_PER_WORKSPACE: usize = 100;
/// Number of flows of one workspace, due or not, after which the walk continues
/// with the next workspace, at the end of a page. The next walk reads further
/// flows.
const FLOWS_PER_WORKSPACE: usize = 2_000;

/// Flow and start time of a waiting job, due or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingJob {
    /// Workspace and resource that the waiting job belongs to.
    pub flow: JobFairnessKey,
    /// Earliest time at which the waiting job runs.
    pub available_at: Timestamp,
}

/// Progress of a walk through all flows (pairs of workspace and resource) of a
/// lane. Workspaces with many flows take several walks, a part in each.
#[derive(Debug, Default)]
pub struct FlowWalkProgress {
    /// Position after the last page that was read; `None` if the next page
    /// begins with the first flow.
    position: Option<WalkPosition>,
    /// Last flow that was read of each workspace whose other flows follow in the
    /// next walk.
    left: BTreeMap<WorkspaceId, JobFairnessKey>,
}

/// Position between two pages of a walk through the flows of a lane.
#[derive(Clone, Copy, Debug)]
struct WalkPosition {
    /// Flow after which the next page begins.
    after: JobFairnessKey,
    /// Number of flows of the workspace of `after` that the walk has read.
    flows: usize,
    /// Number of flows with due jobs of the workspace of `after` that the walk
    /// has read.
    due_flows: usize,
}

/// Row of a page of flows: workspace, resource (zeros for none), number of the
/// flow in the page, and the start time of a due job, if there is one.
type FlowRow = (Uuid, Uuid, i64, Option<i64>);

impl FlowWalkProgress {
    /// Returns whether the next page of the walk begins with the first flow,
    /// and no flows were left out before.
    #[must_use]
    pub fn is_at_start(&self) -> bool {
        self.position.is_none() && self.left.is_empty()
    }

    /// Moves the walk to the position after a page with these rows.
    fn advance(&mut self, rows: &[FlowRow]) {
        let last = rows.iter().max_by_key(|row| row.2);
        let last = last.filter(|row| usize::try_from(row.2) == Ok(FLOWS_PER_WALK));
        let last = last.map(|row| flow(row.0, row.1));
        let from = self.position.take();
        self.left.retain(|workspace, _| {
            // Other workspaces were read to their ends by this page.
            from.is_some_and(|from| end_of(*workspace) <= from.after)
                || last.is_some_and(|last| last.workspace <= *workspace)
        });
        self.position = last.map(|last| self.position_after(from, last, rows));
    }

    /// Returns the position after a page that began at `from` and ended with
    /// the flow `last`.
    fn position_after(
        &mut self,
        from: Option<WalkPosition>,
        last: JobFairnessKey,
        rows: &[FlowRow],
    ) -> WalkPosition {
        let workspace = last.workspace;
        let in_page = |due: bool| {
            let rows = rows.iter().filter(|row| row.0 == workspace.0 && (row.3.is_some() || !due));
            rows.map(|row| row.1).collect::<HashSet<_>>().len()
        };
        let before = from.filter(|from| from.after.workspace == workspace);
        let flows = before.map_or(0, |before| before.flows) + in_page(false);
        let due_flows = before.map_or(0, |before| before.due_flows) + in_page(true);
        let after = if due_flows >= DUE_FLOWS_PER_WORKSPACE {
            self.left.remove(&workspace);
            end_of(workspace)
        } else if flows >= FLOWS_PER_WORKSPACE {
            self.left.insert(workspace, last);
            end_of(workspace)
        } else if before.is_none() {
            self.left.get(&workspace).map_or(last, |left| last.max(*left))
        } else {
            last
        };
        WalkPosition { after, flows, due_flows }
    }
}

/// Returns the position after all flows of a workspace: no resource is greater.
fn end_of(workspace: WorkspaceId) -> JobFairnessKey {
    JobFairnessKey { workspace, resource: Some(Uuid::max()) }
}

/// Returns the flow of a workspace and a resource; a resource of zeros means
/// none.
fn flow(workspace: Uuid, resource: Uuid) -> JobFairnessKey {
    let resource = Some(resource).filter(|resource| !resource.is_nil());
    JobFairnessKey { workspace: WorkspaceId(workspace), resource }
}

/// Returns the first [`OLDEST`] waiting jobs of a lane and these areas, by
/// start time. The last of them may not be due yet.
pub async fn oldest(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
) -> Result<Vec<PendingJob>, Error> {
    let sql = format!(
        "SELECT workspace_id, resource_id, available_at FROM jobs \
         WHERE lane = $1 AND status IN ('queued', 'retrying') AND {} \
         ORDER BY available_at LIMIT {OLDEST}",
        is_listed(connection.backend(), "$2")
    );
    let rows: Vec<(Uuid, Option<Uuid>, i64)> =
        fetch_all!(connection, AssertSqlSafe(sql), lane.as_str(), listed(areas));
    let job = |(workspace, resource, at)| PendingJob {
        flow: JobFairnessKey { workspace: WorkspaceId(workspace), resource },
        available_at: Timestamp(at),
    };
    Ok(rows.into_iter().map(job).collect())
}

/// Reads the next 32 flows of the lane, and moves the walk's position behind
/// them. Returns the first due jobs of each of these flows.
pub async fn walk(
    connection: &mut Connection,
    lane: Lane,
    areas: &[String],
    walk: &mut FlowWalkProgress,
    now: Timestamp,
) -> Result<Vec<PendingJob>, Error> {
    let sql = match connection.backend() {
        Backend::Sqlite => walk_sqlite(),
        Backend::Postgres => walk_postgres(),
    };
    let from = walk.position.map(|from| from.after);
    let workspace = from.map_or(Uuid::nil(), |after| after.workspace.0);
    let resource = from.map_or(Uuid::nil(), |after| resource_key(after.resource));
    let rows: Vec<FlowRow> = fetch_all!(
        connection,
        AssertSqlSafe(sql),
        lane.as_str(),
        listed(areas),
        now.0,
        workspace,
        resource
    );
    walk.advance(&rows);
    let due = rows.into_iter().filter_map(|(workspace, resource, _, at)| {
        Some(PendingJob { flow: flow(workspace, resource), available_at: Timestamp(at?) })
    });
    Ok(due.collect())
}

/// Returns PostgreSQL's statement of [`walk`]. A flow is the pair of workspace
/// and resource (zeros for none). Parameters: `$1` lane, `$2` areas, `$3` now,
/// `$4` and `$5` the flow before the first.
fn walk_postgres() -> String {
    let is_listed = is_listed(Backend::Postgres, "$2");
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
         AND {is_listed} \
         ORDER BY workspace_id, {resource}, available_at LIMIT {JOBS_PER_FLOW}) AS due ON true"
    )
}

/// Returns SQLite's statement of [`walk`]. SQLite compares rows along an index
/// only if all parts are columns. So one step queries the workspace's next
/// resource, and another the next workspace.
fn walk_sqlite() -> String {
    let is_listed = is_listed(Backend::Sqlite, "$2");
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
         AND available_at <= $3 AND {is_listed} \
         ORDER BY available_at LIMIT {JOBS_PER_FLOW})"
    )
}

/// Returns the resource as the index of flows stores it: zeros for `None`.
pub(super) fn resource_key(resource: Option<Uuid>) -> Uuid {
    resource.unwrap_or_default()
}

/// Returns names of areas as one text, `,a,b,`, in which SQL searches for
/// `,name,`. Names contain no comma.
pub(super) fn listed(areas: &[String]) -> String {
    areas.iter().fold(String::from(","), |list, area| list + area + ",")
}

/// Returns the SQL condition that the parameter, a text of [`listed`], contains
/// the job's area.
pub(super) fn is_listed(backend: Backend, parameter: &str) -> String {
    let position = match backend {
        Backend::Sqlite => "instr",
        Backend::Postgres => "strpos",
    };
    format!("{position}({parameter}, ',' || area || ',') > 0")
}
