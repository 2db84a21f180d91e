//! Stored deployments and their form in responses.

use area_sdk::prelude::*;

use super::said::DeployedPackage;

/// Age of a deployment's latest evidence from which the deployment is stale, in seconds.
const STALE_SECONDS: i64 = 7 * 86_400;
/// Maximum number of evidence records stored with a deployment; the newest ones are stored.
pub(crate) const MOST_EVIDENCE: usize = 20;

/// A deployment of a service, derived from evidence records, as stored.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredDeployment {
    /// Whether the deployment is the newest one with its `slot`.
    pub(crate) current: bool,
    /// Key that deployments which replace each other share: a digest of service, environment and
    /// resources.
    pub(crate) slot: String,
    pub(crate) repository_id: Option<Uuid>,
    pub(crate) service_id: Option<Uuid>,
    /// Name of the service in the catalog, or in the evidence if the catalog does not have it.
    pub(crate) service_name: Option<String>,
    pub(crate) environment: Option<String>,
    pub(crate) branch_ref: Option<String>,
    pub(crate) commit_sha: Option<String>,
    /// Repository and commit of the deployment as one key, for queries; see [`commit_key`].
    pub(crate) commit_key: Option<String>,
    pub(crate) image_digest: Option<String>,
    pub(crate) configuration_sha256: Option<String>,
    pub(crate) resource_keys: Vec<String>,
    pub(crate) packages: Vec<DeployedPackage>,
    pub(crate) content_sha256: String,
    pub(crate) confidence_basis: ConfidenceBasis,
    pub(crate) observed_at: Timestamp,
    pub(crate) received_at: Timestamp,
    pub(crate) source_event_id: Option<String>,
    pub(crate) source_kind: String,
    pub(crate) source_ref: String,
    /// Evidence records of the deployment, newest first.
    pub(crate) evidence: Vec<EvidenceRecordSnapshot>,
}

document!(StoredDeployment, "deployments");

/// Part of an evidence record from which the description of the deployment was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConfidenceBasis {
    /// The content that the evidence record references describes the deployment.
    Content,
    /// The summary of the evidence record describes the deployment.
    Summary,
    /// Neither content nor summary describes the deployment; only other members of the evidence
    /// record, such as the subject, are known.
    Record,
}

/// Copy of an evidence record about a deployment, as the record was when it was imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EvidenceSnapshot")]
pub(crate) struct EvidenceRecordSnapshot {
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

/// Link from an evidence record (its id is the document's id) to the deployment that it shows.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeploymentEvidence")]
pub(crate) struct DeploymentEvidenceLink {
    pub(crate) deployment_id: Uuid,
    /// Part of the evidence record from which the description of the deployment was read. The
    /// record's `content`, which may arrive later, replaces the other parts.
    pub(crate) confidence_basis: ConfidenceBasis,
}

document!(DeploymentEvidenceLink, "deployment_evidence");

/// A deployment of a service.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Deployment {
    /// Id of the audit whose SBOM describes the deployed software: for a dependency, the audit that
    /// imported it; in the list of deployments, the latest one of the deployed commit; null without
    /// one.
    audit_id: Option<Uuid>,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    confidence_basis: ConfidenceBasis,
    configuration_sha256: Option<String>,
    content_sha256: String,
    environment: Option<String>,
    evidence_ids: Vec<Uuid>,
    evidence_snapshot: Vec<EvidenceRecordSnapshot>,
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
    /// Whether the latest evidence of the deployment was observed more than 7 days ago.
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

/// Returns the key of a repository's commit, by which its deployments and its latest audit are
/// found.
pub(crate) fn commit_key(repository_id: Uuid, commit_sha: &str) -> String {
    format!("{repository_id}@{}", commit_sha.to_lowercase())
}

/// The latest audit with an SBOM of a commit; the document's id is the [`commit_key`].
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditedCommit")]
pub(crate) struct LatestCommitAudit {
    pub(crate) audit_id: Uuid,
    pub(crate) started_at: Timestamp,
}

document!(LatestCommitAudit, "audited_commits");

/// Published when evidence shows a deployment that was not stored before.
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

event!(DeploymentRecorded, "deployment.recorded");
