//! Storage quotas of areas and workspaces. Usage is measured in the database
//! after a number of written bytes, not for each call.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connection::{Connection, fetch_all};
use super::documents::{CollectionKey, push_from};
use super::sql::{Sql, one_row};
use super::{Error, Store, collections, idempotency};
use assurance_core::domain::id::WorkspaceId;

/// Minimum time between two measurements of a workspace whose storage quota is
/// used up.
const REMEASURE_INTERVAL: Duration = Duration::from_secs(10);
/// Divisor of a storage quota: the workspace is measured again after this part
/// of the quota (1/16) was written.
const MEASURE_FRACTION: u64 = 16;
/// Maximum number of workspaces whose stored bytes are tracked in memory.
/// Beyond it, those without a measurement start again at zero.
const MOST_KNOWN: usize = 10_000;
/// Key for the bytes of responses stored for idempotency keys, in a map whose
/// other keys are names of areas. No area can have this name.
const STORED_RESPONSES: &str = "stored responses";
/// Maximum number of documents whose bytes one statement adds up.
const PAGE: u32 = 20_000;

/// Storage quotas in bytes. A fleet exceeds a quota by at most a sixteenth for
/// each node, and by the bytes of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Quota of one area in one workspace, in bytes.
    pub area: u64,
    /// Quota of one workspace, in bytes.
    pub workspace: u64,
}

/// Refusal of a write: the area or workspace has used its storage quota.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{whose} {stored} bytes; the quota is {most} ({setting}). Delete data that is not needed, \
         or ask the operator for a larger quota"
)]
pub struct OverQuota {
    whose: String,
    stored: u64,
    most: u64,
    setting: &'static str,
}

/// Stored bytes, as last measured, of the workspaces that this process writes
/// to.
#[derive(Debug, Default)]
pub(super) struct StoredBytesByWorkspace(Mutex<HashMap<WorkspaceId, ByteGauge>>);

#[derive(Debug, Default)]
struct ByteGauge {
    /// Bytes written to the workspace since the last measurement.
    written: u64,
    /// Stored bytes of the workspace at the last measurement, by area.
    areas: BTreeMap<String, u64>,
    measured_at: Option<Instant>,
}

impl ByteGauge {
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
    /// Checks whether an area may store more in a workspace.
    ///
    /// # Errors
    /// [`Error::OverQuota`] if the quota of the area or the workspace is used
    /// up.
    pub fn check_quota(
        &self,
        workspace: WorkspaceId,
        area: &str,
        quota: Quota,
    ) -> Result<(), Error> {
        let mut gauges = self.0.stored_bytes.0.lock();
        let Some(gauge) = gauges.get_mut(&workspace) else { return Ok(()) };
        let checked = gauge.check(area, quota);
        let is_old = gauge.measured_at.is_none_or(|at| at.elapsed() >= REMEASURE_INTERVAL);
        if checked.is_err() && is_old {
            gauge.measured_at = Some(Instant::now());
            self.measure(workspace);
        }
        checked.map_err(Error::OverQuota)
    }

    /// Records that bytes were written to a workspace. Measures the workspace
    /// after a sixteenth of the smaller quota.
    pub fn note_stored(&self, workspace: WorkspaceId, bytes: u64, quota: Quota) {
        let mut gauges = self.0.stored_bytes.0.lock();
        if gauges.len() >= MOST_KNOWN {
            gauges.retain(|_, gauge| gauge.measured_at.is_some());
        }
        let gauge = gauges.entry(workspace).or_default();
        gauge.written = gauge.written.saturating_add(bytes);
        if gauge.written >= quota.area.min(quota.workspace) / MEASURE_FRACTION {
            gauge.written = 0;
            self.measure(workspace);
        }
    }

    /// Measures the stored bytes of a workspace in the background, so that the
    /// writer is not delayed.
    fn measure(&self, workspace: WorkspaceId) {
        let store = self.clone();
        tokio::spawn(async move {
            match store.stored_by_area(workspace).await {
                Ok(areas) => {
                    let mut gauges = store.0.stored_bytes.0.lock();
                    let gauge = gauges.entry(workspace).or_default();
                    gauge.areas = areas;
                    gauge.measured_at = Some(Instant::now());
                }
                Err(error) => {
                    tracing::warn!(workspace.id = %workspace, %error, "cannot measure stored bytes");
                }
            }
        });
    }

    /// Returns a workspace's stored bytes of documents and blobs by area, and
    /// those of the responses stored for idempotency keys.
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
        let blobs = self.read(async |c| blob_bytes(c, workspace).await);
        for (area, bytes) in self.in_time(blobs).await? {
            add(&area, bytes);
        }
        let responses = self.read(async |c| idempotency::stored_bytes(c, workspace).await);
        add(STORED_RESPONSES, self.in_time(responses).await?);
        for collection in self.read(async |c| collections::names(c).await).await? {
            let bytes = self.collection_bytes(workspace, &collection).await?;
            add(collection.split('.').next().unwrap_or_default(), bytes);
        }
        Ok(areas)
    }

    /// Returns the bytes of a workspace's documents in one collection. Measures
    /// them in pages, so that no statement takes long.
    async fn collection_bytes(
        &self,
        workspace: WorkspaceId,
        collection: &str,
    ) -> Result<i64, Error> {
        let mut sum: i64 = 0;
        let mut after = String::new();
        loop {
            let page = self.page_bytes(CollectionKey { workspace, collection }, &after);
            let (last, bytes) = self.in_time(page).await?;
            sum = sum.saturating_add(bytes);
            match last {
                Some(last) => after = last,
                None => return Ok(sum),
            }
        }
    }

    /// Measures the next documents of a collection after an id. Returns the
    /// last id, if there are any documents, and their bytes.
    async fn page_bytes(
        &self,
        place: CollectionKey<'_>,
        after: &str,
    ) -> Result<(Option<String>, i64), Error> {
        let mut sql = Sql::new(
            self.backend(),
            "SELECT max(id), CAST(coalesce(sum(bytes), 0) AS bigint) FROM \
             (SELECT id, octet_length(CAST(body AS text)) AS bytes",
        );
        push_from(&mut sql, place).push(" AND id > ").bind(after);
        sql.push(" ORDER BY id").push_limit(PAGE).push(") AS page");
        let page = self.read(async |c| {
            let row = one_row(c, sql).await?;
            row.map(|row| Ok::<_, Error>((row.maybe_text(0)?, row.integer(1)?))).transpose()
        });
        Ok(page.await?.unwrap_or_default())
    }
}

async fn blob_bytes(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<Vec<(String, i64)>, Error> {
    let sql = "SELECT area, CAST(sum(size) AS bigint) FROM blobs \
               WHERE workspace_id = $1 GROUP BY area";
    Ok(fetch_all!(connection, sql, workspace.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{collection, on_both, put};

    const QUOTA: Quota = Quota { area: 100, workspace: 150 };

    on_both! {
        async fn documents_are_measured_in_bytes_and_not_in_characters(store: &Store) {
            collections::ensure(store, &[collection("a.b", false)]).await.unwrap();
            put(store, "x", r#"{"a": "ééé"}"#).await;
            let stored = store.stored_by_area(WorkspaceId(uuid::Uuid::nil())).await.unwrap();
            assert_eq!(stored["a"], 15, "{stored:?}");
        }
    }

    #[test]
    fn an_area_and_a_workspace_have_a_quota_each() {
        let gauge = |support: u64, notes: u64| ByteGauge {
            areas: [("support".to_owned(), support), ("notes".to_owned(), notes)].into(),
            ..ByteGauge::default()
        };
        gauge(99, 50).check("support", QUOTA).unwrap();
        let full = gauge(100, 0).check("support", QUOTA).unwrap_err().to_string();
        assert!(full.contains("max_stored_bytes_per_area"), "{full}");
        gauge(100, 0).check("notes", QUOTA).unwrap();
        let full = gauge(99, 51).check("notes", QUOTA).unwrap_err().to_string();
        assert!(full.contains("max_stored_bytes_per_workspace"), "{full}");
    }
}
