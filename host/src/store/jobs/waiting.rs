//! How many jobs of an area wait in a workspace, known well enough to refuse
//! more of them: the database is asked after so many were enqueued here, and
//! not for each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::connection::{Connection, on};
use super::super::{Error, Store};
use crate::domain::id::WorkspaceId;

/// Jobs enqueued by this process between two looks at the database. A fleet
/// exceeds the ceiling by at most as many for each node, and a call's.
const LOOK_AFTER: u64 = 500;
/// Queues known at a time. Above it, those that are not full are counted anew.
const MOST_KNOWN: usize = 10_000;
/// Between two looks at a full queue.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The queues that this process enqueues to.
#[derive(Debug, Default)]
pub(in crate::store) struct Waiting(Mutex<HashMap<(WorkspaceId, String), Gauge>>);

#[derive(Debug, Default)]
struct Gauge {
    since_look: u64,
    is_full: bool,
    looked_at: Option<Instant>,
}

impl Store {
    /// Whether an area's queue in a workspace has no room for more jobs.
    #[must_use]
    pub fn has_full_queue(&self, workspace: WorkspaceId, area: &str, most: u64) -> bool {
        let mut gauges = self.waiting().0.lock();
        let Some(gauge) = gauges.get_mut(&(workspace, area.to_owned())) else { return false };
        if gauge.is_full && gauge.looked_at.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            gauge.looked_at = Some(Instant::now());
            self.look_at_queue(workspace, area.to_owned(), most);
        }
        gauge.is_full
    }

    /// Notes that jobs of an area were enqueued.
    pub fn note_enqueued(&self, workspace: WorkspaceId, area: &str, jobs: u64, most: u64) {
        let mut gauges = self.waiting().0.lock();
        if gauges.len() >= MOST_KNOWN {
            gauges.retain(|_, gauge| gauge.is_full);
        }
        let gauge = gauges.entry((workspace, area.to_owned())).or_default();
        gauge.since_look = gauge.since_look.saturating_add(jobs);
        if gauge.since_look >= LOOK_AFTER.min(most) {
            gauge.since_look = 0;
            self.look_at_queue(workspace, area.to_owned(), most);
        }
    }

    /// Counts in the background: whoever enqueues does not wait for it.
    fn look_at_queue(&self, workspace: WorkspaceId, area: String, most: u64) {
        let store = self.clone();
        tokio::spawn(async move {
            let counted = store.in_time(async {
                let mut connection = store.reader().await?;
                let counted = count_waiting(&mut connection, workspace, &area, most).await?;
                connection.release();
                Ok(counted)
            });
            match counted.await {
                Ok(waiting) => store.counted(workspace, area, waiting, most),
                Err(error) => tracing::debug!(%error, "waiting jobs cannot be counted"),
            }
        });
    }

    fn counted(&self, workspace: WorkspaceId, area: String, waiting: u64, most: u64) {
        let is_full = waiting >= most;
        let mut gauges = self.waiting().0.lock();
        let gauge = gauges.entry((workspace, area.clone())).or_default();
        if is_full && !gauge.is_full {
            tracing::warn!(
                area.name = area,
                workspace.id = %workspace,
                most,
                "an area has too many jobs waiting in a workspace; it gets `limit-exceeded` for \
                 more until some have run (jobs.max_waiting_per_area)"
            );
        }
        gauge.is_full = is_full;
        gauge.looked_at = Some(Instant::now());
        if waiting < LOOK_AFTER.min(most) {
            gauges.remove(&(workspace, area));
        }
    }
}

/// Jobs of an area that wait in a workspace; no more than `most` are counted.
async fn count_waiting(
    connection: &mut Connection,
    workspace: WorkspaceId,
    area: &str,
    most: u64,
) -> Result<u64, Error> {
    let counted: i64 = on!(connection, c => {
        sqlx::query_scalar(
            "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE workspace_id = $1 AND area = $2 \
             AND status IN ('queued', 'retrying') LIMIT $3) AS waiting",
        )
        .bind(workspace.0)
        .bind(area)
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .fetch_one(&mut *c)
        .await?
    });
    Ok(u64::try_from(counted).unwrap_or_default())
}
