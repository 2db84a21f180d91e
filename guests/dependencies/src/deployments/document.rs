//! Stored deployments and their form in responses.

use area_sdk::prelude::*;

use super::said::SaidPackage;

/// Age at which evidence is stale, in seconds.
const STALE_SECONDS: i64 = 7 * 86_400;
/// Maximum number of evidence records stored with a deployment, newest first.
pub(crate) const MOST_EVIDENCE: usize = 20;

/// A stored deployment.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredDeployment {
    /// Whether no newer deployment replaced it.
    pub(crate) current: bool,
    /// Key of deployments that replace each other: service, environment, resources.
    pub(crate) slot: String,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) service_id: Option<Uuid>,
    /// Service name in the evidence.
    pub(crate) service_name: Option<String>,
    pub(crate) environment: Option<String>,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
    /// Repository and commit, for queries.
    pub(crate) commit_key: Option<String>,
    pub(crate) image_digest: Option<String>,
    pub(crate) configuration_sha256: Option<String>,
    pub(crate) resource_keys: Vec<String>,
    pub(crate) packages: Vec<SaidPackage>,
    pub(crate) content_sha256: String,
    pub(crate) confidence_basis: ConfidenceBasis,
    pub(crate) observed_at: Timestamp,
    pub(crate) received_at: Timestamp,
    pub(crate) source_event_id: Option<String>,
    pub(crate) source_kind: String,
    pub(crate) source_ref: String,
    /// Newest first.
    pub(crate) evidence: Vec<EvidenceSnapshot>,
}

impl Document for StoredDeployment {
    const COLLECTION: &'static str = "deployments";
}

/// Where the evidence describes the deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConfidenceBasis {
    /// In the content that the evidence references.
    Content,
    /// In the evidence's summary.
    Summary,
    /// Only in other members of the evidence.
    Record,
}

/// An evidence record at the time of its import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EvidenceSnapshot {
    pub(crate) evidence_id: Uuid,
    pub(crate) kind: String,
    pub(crate) provider: String,
    pub(crate) subject_key: String,
    pub(crate) source_ref: String,
    pub(crate) content_sha256: String,
    pub(crate) confidence: f64,
    pub(crate) observed_at: Timestamp,
    pub(crate) producer_id: Uuid,
}

/// Deployment of an evidence record, by the record's id.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DeploymentEvidence {
    pub(crate) deployment_id: Uuid,
    /// Where the evidence describes the deployment; content that arrives later replaces it.
    pub(crate) confidence_basis: ConfidenceBasis,
}

impl Document for DeploymentEvidence {
    const COLLECTION: &'static str = "deployment_evidence";
}

/// A deployment in responses.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Deployment {
    /// The latest audit of the deployed commit with an SBOM.
    audit_id: Option<Uuid>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    confidence_basis: ConfidenceBasis,
    configuration_sha256: Option<String>,
    content_sha256: String,
    environment: Option<String>,
    evidence_ids: Vec<Uuid>,
    evidence_snapshot: Vec<EvidenceSnapshot>,
    id: Uuid,
    image_digest: Option<String>,
    observed_at: Timestamp,
    received_at: Timestamp,
    repository_id: Option<Uuid>,
    resource_keys: Vec<String>,
    service_id: Option<Uuid>,
    source_event_id: Option<String>,
    source_kind: String,
    source_ref: String,
    /// Whether the latest evidence is more than 7 days old.
    stale: bool,
}

impl Deployment {
    pub(crate) fn new(
        stored: &Stored<StoredDeployment>,
        audit_id: Option<Uuid>,
        now: Timestamp,
    ) -> Self {
        let value = stored.value.clone();
        Self {
            audit_id,
            branch_ref: value.branch_ref,
            commit_sha: value.commit_sha,
            confidence_basis: value.confidence_basis,
            configuration_sha256: value.configuration_sha256,
            content_sha256: value.content_sha256,
            environment: value.environment,
            evidence_ids: value.evidence.iter().map(|evidence| evidence.evidence_id).collect(),
            evidence_snapshot: value.evidence,
            id: stored.uuid(),
            image_digest: value.image_digest,
            observed_at: value.observed_at,
            received_at: value.received_at,
            repository_id: value.repository_id,
            resource_keys: value.resource_keys,
            service_id: value.service_id,
            source_event_id: value.source_event_id,
            source_kind: value.source_kind,
            source_ref: value.source_ref,
            stale: value.observed_at < now.plus_seconds(-STALE_SECONDS),
        }
    }
}

/// Returns the key for queries of a commit's deployments.
pub(crate) fn commit_key(repository_id: Uuid, commit_sha: &str) -> String {
    format!("{repository_id}@{}", commit_sha.to_lowercase())
}

/// The latest audit of a commit with an SBOM; the document's id is the [`commit_key`].
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AuditedCommit {
    pub(crate) audit_id: Uuid,
    pub(crate) started_at: Timestamp,
}

impl Document for AuditedCommit {
    const COLLECTION: &'static str = "audited_commits";
}

/// Published when evidence shows a new deployment.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DeploymentRecorded {
    pub(crate) deployment_id: Uuid,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) service_id: Option<Uuid>,
    pub(crate) service_name: Option<String>,
    pub(crate) environment: Option<String>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) image_digest: Option<String>,
    pub(crate) observed_at: Timestamp,
}

impl Event for DeploymentRecorded {
    const NAME: &'static str = "deployment.recorded";
}
