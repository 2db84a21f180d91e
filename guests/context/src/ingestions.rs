//! Sources of evidence: each provider and its source name, with the latest envelope from it.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Value};
use area_shared::evidence::EvidenceRecord;

use crate::snapshots::id_of;

/// Maximum number of sources of evidence in a snapshot of the workspace context.
pub(crate) const LISTED: usize = 200;

/// Maximum number of evidence ingestion runs that ended before this area was installed and are read
/// once.
const CAUGHT_UP: u32 = 500;

/// The latest ingestion from a source of evidence.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoredIngestion")]
pub(crate) struct LatestSourceIngestion {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) external_id: String,
    revision: String,
    pub(crate) mcp_ingestion_id: Option<Uuid>,
    pub(crate) observed_at: Timestamp,
    pub(crate) accepted: usize,
    pub(crate) rejected: usize,
    /// Kinds of all evidence records that came from this source.
    pub(crate) signals: BTreeSet<String>,
}

document!(LatestSourceIngestion, "ingestions");

impl LatestSourceIngestion {
    /// Returns the source's revision if it has the form of a commit id: 7 to 64 hex digits.
    pub(crate) fn commit_sha(&self) -> Option<String> {
        let hex = self.revision.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_commit = hex && (7..=64).contains(&self.revision.len());
        is_commit.then(|| self.revision.clone())
    }
}

/// Members of an ingestion run of the area `evidence` that this area reads.
#[derive(Serialize, Deserialize)]
struct IngestionRunExtract {
    envelope_id: Uuid,
    mcp_ingestion_id: Option<Uuid>,
    source_external_id: String,
    source_provider: String,
    source_revision: String,
    observed_at: Timestamp,
    accepted_count: usize,
    rejected_count: usize,
}

document!(IngestionRunExtract, "evidence.ingestion_runs");

/// Stores an ingestion run as the latest one of its source of evidence, after the earlier runs.
pub(crate) fn note(scope: &Scope, run_id: Uuid) -> Result<(), JobError> {
    catch_up(scope)?;
    match scope.documents::<IngestionRunExtract>().find(run_id)? {
        Some(run) => Ok(take_in(scope, run.value)?),
        None => Ok(()),
    }
}

/// Reads the earlier ingestion runs if this area has stored none yet.
pub(crate) fn catch_up(scope: &Scope) -> Result<(), DocumentError> {
    if scope.documents::<LatestSourceIngestion>().query().first()?.is_some() {
        return Ok(());
    }
    for run in scope.documents::<IngestionRunExtract>().query().limit(CAUGHT_UP).list()? {
        take_in(scope, run.value)?;
    }
    Ok(())
}

fn take_in(scope: &Scope, run: IngestionRunExtract) -> Result<(), DocumentError> {
    let mut new = LatestSourceIngestion {
        key: key(&run),
        name: run.source_provider,
        external_id: run.source_external_id,
        revision: run.source_revision,
        mcp_ingestion_id: run.mcp_ingestion_id,
        observed_at: run.observed_at,
        accepted: run.accepted_count,
        rejected: run.rejected_count,
        signals: kinds(scope, run.envelope_id)?,
    };
    let id = id_of(scope, &new.key);
    let documents = scope.documents::<LatestSourceIngestion>();
    match documents.find(id)? {
        Some(mut noted) => {
            if noted.observed_at > new.observed_at {
                noted.signals.append(&mut new.signals);
            } else {
                new.signals.append(&mut noted.signals);
                noted.value = new;
            }
            documents.replace(&mut noted)
        }
        None => documents.create(id, &new),
    }
}

fn key(run: &IngestionRunExtract) -> String {
    let kind = if run.mcp_ingestion_id.is_some() { "mcp" } else { "evidence" };
    format!("{kind}:{}/{}", run.source_provider, run.source_external_id)
}

/// Returns the kinds of the records in an envelope.
fn kinds(scope: &Scope, envelope_id: Uuid) -> Result<BTreeSet<String>, DocumentError> {
    let records = scope.documents::<EvidenceRecord>().query().equals("envelope_id", envelope_id);
    // By envelope too: for groups of the kind alone, SQLite reads the index by kind, which has all
    // records of the workspace.
    let counts = records.count_by(&["envelope_id", "kind"])?;
    let kinds = counts.into_iter().filter_map(|(values, _)| match values.into_iter().nth(1) {
        Some(Value::Text(kind)) => Some(kind),
        _ => None,
    });
    Ok(kinds.collect())
}

/// Returns the latest ingestion of each source, at most 1,000, ordered by source key.
pub(crate) fn listed(scope: &Scope) -> Result<Vec<LatestSourceIngestion>, DocumentError> {
    let noted = scope.documents::<LatestSourceIngestion>().query().limit(1000).list()?;
    let mut noted: Vec<LatestSourceIngestion> =
        noted.into_iter().map(|noted| noted.value).collect();
    noted.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(noted)
}
