//! Content of a snapshot, computed from other areas' documents. It does not depend on the time:
//! equal data gives equal content.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::UserGroup;
use area_shared::counts::{Deployment, Finding, GroupDependency, component_count};
use area_shared::evidence::EvidenceRecord;

use crate::gaps::{self, CoverageGap};
use crate::ingestions::{self, LatestSourceIngestion};
use crate::repositories::{self, RepositoriesAndServices};

/// Version of the rules that compute the content of a workspace context.
const SCHEMA_VERSION: &str = "workspace-context-v1";

/// Content of a workspace context.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Content")]
pub(crate) struct ContextContent {
    coverage_gaps: Vec<CoverageGap>,
    entity_count: u64,
    evidence_count: u64,
    finding_count: u64,
    relationship_count: u64,
    repository_count: u64,
    schema_version: String,
    source_count: u64,
    sources: Vec<ContextSource>,
}

/// Kind of a source of the workspace context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceKind {
    /// The source is a repository with its latest audit.
    Repository,
    /// The source is evidence collected with the Model Context Protocol.
    Mcp,
    /// The source is evidence collected in any other way.
    Evidence,
}

/// Completeness of a source of the workspace context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SourceStatus")]
pub(crate) enum SourceCompleteness {
    /// The repository has all expected signals, or the latest ingestion from the source of evidence
    /// rejected no record.
    Complete,
    /// The repository lacks some of the expected signals, or the latest ingestion from the source
    /// of evidence rejected records.
    Partial,
    /// The repository has none of the expected signals.
    Missing,
}

/// A source of the workspace context: a repository or a source of evidence.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ContextSource")]
pub(crate) struct ContextSource {
    pub(crate) audit_id: Option<Uuid>,
    pub(crate) commit_sha: Option<String>,
    /// Share of the repository's expected signals that are present, or of the records that the
    /// latest ingestion from the source of evidence accepted. From 0 to 1, rounded down to
    /// hundredths.
    pub(crate) coverage: f64,
    pub(crate) key: String,
    pub(crate) kind: SourceKind,
    pub(crate) mcp_ingestion_id: Option<Uuid>,
    pub(crate) missing_signals: Vec<String>,
    pub(crate) name: String,
    pub(crate) observed_at: Option<Timestamp>,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) signals: Vec<String>,
    pub(crate) status: SourceCompleteness,
}

/// Returns `part / whole` rounded down to hundredths, so that equal data gives equal numbers and 1
/// means all.
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    let hundredths = (part * 100).checked_div(whole).unwrap_or(0);
    f64::from(u32::try_from(hundredths).unwrap_or(100)) / 100.0
}

/// Computes the current content of the workspace context.
pub(crate) fn compute(scope: &Scope) -> Result<ContextContent, DocumentError> {
    let landscape = RepositoriesAndServices::load(scope)?;
    let ingestions = ingestions::listed(scope)?;
    let mut sources = repositories::sources(scope, &landscape)?;
    let coverage_gaps = gaps::sum_up(&sources, landscape.repository_count);
    let others = ingestions.iter().map(|ingestion| ingestion.source(&landscape));
    sources.extend(others.take(ingestions::LISTED));
    Ok(ContextContent {
        coverage_gaps,
        entity_count: landscape.repository_count
            + landscape.service_count
            + scope.documents::<UserGroup>().query().count()?
            + component_count(scope)?
            + scope.documents::<Deployment>().query().equals("current", true).count()?,
        evidence_count: scope.documents::<EvidenceRecord>().query().count()?,
        finding_count: scope.documents::<Finding>().query().equals("open", true).count()?,
        relationship_count: landscape.service_links
            + scope.documents::<GroupDependency>().query().count()?,
        repository_count: landscape.repository_count,
        schema_version: SCHEMA_VERSION.to_owned(),
        source_count: landscape.repository_count
            + scope.documents::<LatestSourceIngestion>().query().count()?,
        sources,
    })
}

impl LatestSourceIngestion {
    fn source(&self, landscape: &RepositoriesAndServices) -> ContextSource {
        ContextSource {
            audit_id: None,
            commit_sha: self.commit_sha(),
            coverage: share(self.accepted, self.accepted + self.rejected),
            key: self.key.clone(),
            kind: if self.mcp_ingestion_id.is_some() {
                SourceKind::Mcp
            } else {
                SourceKind::Evidence
            },
            mcp_ingestion_id: self.mcp_ingestion_id,
            missing_signals: Vec::new(),
            name: self.name.clone(),
            observed_at: Some(self.observed_at),
            repository_id: landscape.repository_named(&self.external_id),
            signals: self.signals.iter().cloned().collect(),
            status: if self.rejected == 0 {
                SourceCompleteness::Complete
            } else {
                SourceCompleteness::Partial
            },
        }
    }
}
