//! The envelope sent by a client. The schema checks its shape; `submit` and `records` check its
//! content.

use area_sdk::prelude::*;

/// The only supported version.
pub(crate) const SCHEMA_VERSION: &str = "evidence-envelope-v1";

/// Records and their signature.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EvidenceEnvelope {
    /// Authority in whose name the evidence is submitted.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) authority: String,
    /// Collection method; `mcp` for the Model Context Protocol.
    #[schemars(length(min = 1, max = 100))]
    pub(crate) collection_method: String,
    /// Unique id of the envelope.
    pub(crate) envelope_id: Uuid,
    /// At most a day after `issued_at`.
    pub(crate) expires_at: Timestamp,
    /// Must equal the header `Idempotency-Key`.
    #[schemars(length(min = 8, max = 255))]
    pub(crate) idempotency_key: String,
    /// Time of the signature.
    pub(crate) issued_at: Timestamp,
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) records: Vec<EvidenceRecord>,
    pub(crate) signature: EnvelopeSignature,
    pub(crate) source: EnvelopeSource,
    /// Must equal the workspace of the path.
    pub(crate) workspace_id: Uuid,
}

/// An Ed25519 signature of the envelope without this member.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EnvelopeSignature {
    /// Hint to the key; any active key that verifies is accepted.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key_id: String,
    /// 64 bytes, standard or URL-safe base64.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) value: String,
}

/// Origin of the evidence.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EnvelopeSource {
    #[schemars(length(max = 500))]
    pub(crate) external_id: String,
    #[schemars(length(min = 1, max = 100))]
    pub(crate) kind: String,
    pub(crate) observed_at: Timestamp,
    #[schemars(length(min = 1, max = 200))]
    pub(crate) provider: String,
    #[schemars(length(max = 500))]
    pub(crate) revision: String,
}

/// One evidence record. An invalid record is rejected alone.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EvidenceRecord {
    /// Confidence from 0 to 1.
    pub(crate) confidence: f64,
    /// SHA-256 of the referenced content, lower-case hex.
    pub(crate) content_sha256: String,
    /// Unique id of the evidence.
    pub(crate) evidence_id: Uuid,
    /// Other areas consume `finding`, `scan_report`, `sbom`, `advisory`, `code_owners`,
    /// `deployment`, `service` and `relationship`. Any other `snake_case` word is stored.
    pub(crate) kind: String,
    pub(crate) observed_at: Timestamp,
    pub(crate) provider: String,
    pub(crate) source_ref: String,
    pub(crate) source_type: String,
    /// Subject of the evidence.
    pub(crate) subject_key: String,
    pub(crate) summary: String,
}
