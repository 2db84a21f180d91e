//! Limits the number of jobs of an area that wait in a workspace. The count is
//! approximate: it is read from the database after a number of enqueued jobs,
//! not for each of them. That number falls as the limit comes closer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::connection::{Connection, scalar};
use super::super::documents::{CollectionKey, push_from};
use super::super::sql::{Sql, one_row};
use super::super::{Backend, Error, Store};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::EventDeliveryJobTemplate;

/// Minimum number of jobs that this process enqueues for an area in a workspace
/// before it counts their waiting jobs again.
const COUNT_AFTER_JOBS: u64 = 500;
/// Divisor of the number of jobs that still fit below the limit: after this
/// process has enqueued that part, it counts the waiting jobs again. More than
/// this number of nodes can exceed the limit by what they enqueue between two
/// counts.
const COUNT_AFTER_PART: u64 = 8;
/// Maximum number of queues (pairs of workspace and area) with an estimate in
/// memory. Beyond it, the estimates of queues that are not full are dropped.
const MOST_KNOWN: usize = 10_000;
/// Minimum time between two counts of the waiting jobs of a full queue.
const RECOUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Approximate number of waiting jobs, for each workspace and area that this
/// process enqueues jobs for.
#[derive(Debug, Default)]
pub(crate) struct WaitingJobCounts(Mutex<HashMap<(WorkspaceId, String), QueueLengthEstimate>>);

#[derive(Debug, Default)]
struct QueueLengthEstimate {
    since_look: u64,
    /// Number of waiting jobs in the database at the last count.
    counted: u64,
    is_full: bool,
    looked_at: Option<Instant>,
}

impl Store {
    /// Returns whether `most` or more jobs of an area wait in a workspace, as
    /// of the last count.
    #[must_use]
    pub fn has_full_queue(&self, workspace: WorkspaceId, area: &str, most: u64) -> bool {
        let mut gauges = self.0.waiting.0.lock();
        let Some(gauge) = gauges.get_mut(&(workspace, area.to_owned())) else { return false };
        if gauge.is_full && gauge.looked_at.is_none_or(|at| at.elapsed() >= RECOUNT_INTERVAL) {
            gauge.looked_at = Some(Instant::now());
            self.count_in_background(workspace, area.to_owned(), most);
        }
        gauge.is_full
    }

    /// Records that an area has enqueued jobs in a workspace, of which at most
    /// `most` may wait. Starts a new count after some of them.
    pub fn note_enqueued(&self, workspace: WorkspaceId, area: &str, jobs: u64, most: u64) {
        let mut gauges = self.0.waiting.0.lock();
        if gauges.len() >= MOST_KNOWN {
            gauges.retain(|_, gauge| gauge.is_full);
        }
        let gauge = gauges.entry((workspace, area.to_owned())).or_default();
        gauge.since_look = gauge.since_look.saturating_add(jobs);
        let room = most.saturating_sub(gauge.counted) / COUNT_AFTER_PART;
        if gauge.since_look >= room.max(COUNT_AFTER_JOBS).min(most) {
            gauge.since_look = 0;
            self.count_in_background(workspace, area.to_owned(), most);
        }
    }

    /// Counts an area's waiting jobs in a workspace in the background, so that
    /// the enqueuing call is not delayed.
    fn count_in_background(&self, workspace: WorkspaceId, area: String, most: u64) {
        let store = self.clone();
        tokio::spawn(async move {
            let counted = store.read(async |c| count_waiting(c, workspace, &area, most).await);
            match store.in_time(counted).await {
                Ok(waiting) => store.counted(workspace, area, waiting, most),
                Err(error) => tracing::debug!(%error, "cannot count waiting jobs"),
            }
        });
    }

    fn counted(&self, workspace: WorkspaceId, area: String, waiting: u64, most: u64) {
        let is_full = waiting >= most;
        let mut gauges = self.0.waiting.0.lock();
        let gauge = gauges.entry((workspace, area.clone())).or_default();
        if is_full && !gauge.is_full {
            tracing::warn!(
                area.name = area,
                workspace.id = %workspace,
                most,
                "an area has too many jobs waiting in a workspace; requests that add more get 429 \
                 until some have run (jobs.max_waiting_per_area)"
            );
        }
        gauge.is_full = is_full;
        gauge.counted = waiting;
        gauge.looked_at = Some(Instant::now());
        if waiting < COUNT_AFTER_JOBS.min(most) {
            gauges.remove(&(workspace, area));
        }
    }
}

/// Returns whether a document of the workspace requests the event, so that a
/// delivery of it is enqueued.
pub async fn is_requested(
    connection: &mut Connection,
    delivery: &EventDeliveryJobTemplate,
) -> Result<bool, Error> {
    let EventDeliveryJobTemplate { job, event, requests } = delivery;
    let (member, event) = (requests.member.as_str(), event.as_str());
    let place = CollectionKey { workspace: job.workspace, collection: &requests.collection };
    let mut sql = Sql::new(connection.backend(), "SELECT 1");
    push_from(&mut sql, place);
    match sql.backend {
        Backend::Sqlite => {
            sql.push(" AND EXISTS (SELECT 1 FROM json_each(body, '$.' || ").bind(member);
            sql.push(") WHERE value = ").bind(event).push(")");
        }
        Backend::Postgres => {
            sql.push(" AND body -> ").bind(member).push("::text ? ").bind(event).push("::text");
        }
    }
    sql.push_limit(1);
    Ok(one_row(connection, sql).await?.is_some())
}

/// Counts the waiting jobs of an area in a workspace, up to `most`.
async fn count_waiting(
    connection: &mut Connection,
    workspace: WorkspaceId,
    area: &str,
    most: u64,
) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE workspace_id = $1 AND area = $2 \
               AND status IN ('queued', 'retrying') LIMIT $3) AS waiting";
    let counted: i64 =
        scalar!(connection, sql, workspace.0, area, i64::try_from(most).unwrap_or(i64::MAX));
    Ok(u64::try_from(counted).unwrap_or_default())
}
