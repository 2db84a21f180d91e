//! How many bytes each area keeps in a workspace, known well enough to refuse
//! more. The database is measured after so much was written here, and not for
//! each call.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connection::on;
use super::{Error, Store};
use crate::domain::id::WorkspaceId;

/// Between two measurements of a workspace that is full.
const MEASURE_AGAIN: Duration = Duration::from_secs(10);
/// A workspace is measured whenever this part of a quota was written.
const PART: u64 = 16;
/// Workspaces known at a time. Above it, those that were never measured begin
/// at zero again.
const MOST_KNOWN: usize = 10_000;
/// Documents measured with one statement.
const PAGE: i64 = 20_000;

/// How many bytes of documents and blobs may be kept. A fleet exceeds a quota
/// by a sixteenth of it for each node at most, and a call's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// By one area in one workspace.
    pub area: u64,
    /// In one workspace.
    pub workspace: u64,
}

/// A quota that is used up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{whose} {stored} bytes, and may keep {most} ({setting}): delete what is not needed, or \
         ask the operator for more"
)]
pub struct OverQuota {
    whose: String,
    stored: u64,
    most: u64,
    setting: &'static str,
}

/// What this process knows of the workspaces that it writes to.
#[derive(Debug, Default)]
pub(super) struct StoredBytes(Mutex<HashMap<WorkspaceId, Gauge>>);

#[derive(Debug, Default)]
struct Gauge {
    /// Bytes written since the last measurement.
    written: u64,
    /// As measured, by area.
    areas: BTreeMap<String, u64>,
    measured_at: Option<Instant>,
}

impl Gauge {
    fn check(&self, area: &str, quota: Quota) -> Result<(), OverQuota> {
        let of_area = self.areas.get(area).copied().unwrap_or_default();
        if of_area >= quota.area {
            return Err(OverQuota {
                whose: format!("the workspace's data of the area {area} takes"),
                stored: of_area,
                most: quota.area,
                setting: "limits.max_stored_bytes_per_area",
            });
        }
        let stored = self.areas.values().sum();
        if stored >= quota.workspace {
            return Err(OverQuota {
                whose: "the workspace's data takes".to_owned(),
                stored,
                most: quota.workspace,
                setting: "limits.max_stored_bytes_per_workspace",
            });
        }
        Ok(())
    }
}

impl Store {
    /// Whether an area may keep more in a workspace.
    ///
    /// # Errors
    /// [`Error::OverQuota`].
    pub fn check_quota(
        &self,
        workspace: WorkspaceId,
        area: &str,
        quota: Quota,
    ) -> Result<(), Error> {
        let mut gauges = self.stored_bytes().0.lock();
        let Some(gauge) = gauges.get_mut(&workspace) else { return Ok(()) };
        let checked = gauge.check(area, quota);
        let is_old = gauge.measured_at.is_none_or(|at| at.elapsed() >= MEASURE_AGAIN);
        if checked.is_err() && is_old {
            gauge.measured_at = Some(Instant::now());
            self.measure(workspace);
        }
        checked.map_err(Error::OverQuota)
    }

    /// Notes what was written.
    pub fn note_stored(&self, workspace: WorkspaceId, bytes: u64, quota: Quota) {
        let mut gauges = self.stored_bytes().0.lock();
        if gauges.len() >= MOST_KNOWN {
            gauges.retain(|_, gauge| gauge.measured_at.is_some());
        }
        let gauge = gauges.entry(workspace).or_default();
        gauge.written = gauge.written.saturating_add(bytes);
        if gauge.written >= quota.area.min(quota.workspace) / PART {
            gauge.written = 0;
            self.measure(workspace);
        }
    }

    /// Measures in the background: whoever writes does not wait for it.
    fn measure(&self, workspace: WorkspaceId) {
        let store = self.clone();
        tokio::spawn(async move {
            match store.stored_by_area(workspace).await {
                Ok(areas) => {
                    let mut gauges = store.stored_bytes().0.lock();
                    let gauge = gauges.entry(workspace).or_default();
                    gauge.areas = areas;
                    gauge.measured_at = Some(Instant::now());
                }
                Err(error) => {
                    tracing::warn!(workspace.id = %workspace, %error, "stored bytes not measured");
                }
            }
        });
    }

    /// Bytes of documents and blobs, by area.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn stored_by_area(
        &self,
        workspace: WorkspaceId,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let mut areas: BTreeMap<String, u64> = BTreeMap::new();
        let mut add = |area: &str, bytes: i64| {
            let sum = areas.entry(area.to_owned()).or_default();
            *sum = sum.saturating_add(u64::try_from(bytes).unwrap_or_default());
        };
        for (area, bytes) in self.in_time(self.blob_bytes(workspace)).await? {
            add(&area, bytes);
        }
        let mut after = (String::new(), String::new());
        loop {
            let page = self.in_time(self.document_bytes(workspace, &after)).await?;
            let Some((collection, id, _)) = page.last() else { return Ok(areas) };
            after = (collection.clone(), id.clone());
            for (collection, _, bytes) in &page {
                add(collection.split('.').next().unwrap_or_default(), *bytes);
            }
        }
    }

    async fn blob_bytes(&self, workspace: WorkspaceId) -> Result<Vec<(String, i64)>, Error> {
        const SQL: &str = "SELECT area, CAST(sum(size) AS bigint) FROM blobs \
                           WHERE workspace_id = $1 GROUP BY area";
        let mut connection = self.reader().await?;
        let sums = on!(connection, c => {
            sqlx::query_as(SQL).bind(workspace.0).fetch_all(&mut *c).await?
        });
        connection.release();
        Ok(sums)
    }

    /// Of the next documents after one: the last id of each collection among
    /// them, and the bytes.
    async fn document_bytes(
        &self,
        workspace: WorkspaceId,
        (collection, id): &(String, String),
    ) -> Result<Vec<(String, String, i64)>, Error> {
        const SQL: &str = "SELECT collection, max(id), CAST(sum(bytes) AS bigint) FROM \
             (SELECT collection, id, length(CAST(body AS text)) AS bytes FROM documents \
              WHERE workspace_id = $1 AND (collection, id) > ($2, $3) \
              ORDER BY collection, id LIMIT $4) AS page \
             GROUP BY collection ORDER BY collection";
        let mut connection = self.reader().await?;
        let page = on!(connection, c => {
            sqlx::query_as(SQL)
                .bind(workspace.0)
                .bind(collection)
                .bind(id)
                .bind(PAGE)
                .fetch_all(&mut *c)
                .await?
        });
        connection.release();
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: Quota = Quota { area: 100, workspace: 150 };

    #[test]
    fn an_area_and_a_workspace_have_a_quota_each() {
        let gauge = |support: u64, notes: u64| Gauge {
            areas: [("support".to_owned(), support), ("notes".to_owned(), notes)].into(),
            ..Gauge::default()
        };
        gauge(99, 50).check("support", QUOTA).unwrap();
        let full = gauge(100, 0).check("support", QUOTA).unwrap_err().to_string();
        assert!(full.contains("max_stored_bytes_per_area"), "{full}");
        gauge(100, 0).check("notes", QUOTA).unwrap();
        let full = gauge(99, 51).check("notes", QUOTA).unwrap_err().to_string();
        assert!(full.contains("max_stored_bytes_per_workspace"), "{full}");
    }
}
