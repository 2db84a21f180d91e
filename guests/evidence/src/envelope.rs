//! The envelope sent by a client. The schema checks its shape; `submit` and `records` check its
//! content.

use area_sdk::prelude::*;

/// The only supported value of `schema_version` in an evidence envelope.
pub(crate) const SCHEMA_VERSION: &str = "evidence-envelope-v1";

/// An envelope: evidence records of one source, and their signature.
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
    /// Time from which the envelope is refused; at most a day after `issued_at`.
    pub(crate) expires_at: Timestamp,
    /// Idempotency key; must equal the header `Idempotency-Key`.
    #[schemars(length(min = 8, max = 255))]
    pub(crate) idempotency_key: String,
    /// Time at which the producer signed the envelope.
    pub(crate) issued_at: Timestamp,
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) records: Vec<EvidenceRecord>,
    pub(crate) signature: EnvelopeSignature,
    pub(crate) source: EnvelopeSource,
    /// Id of the workspace; must equal the workspace in the path.
    pub(crate) workspace_id: Uuid,
}

/// An Ed25519 signature of the envelope without the member `signature`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EnvelopeSignature {
    /// Id of the key that signed. A hint only: any active key that verifies the signature is
    /// accepted.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key_id: String,
    /// Ed25519 signature: standard or URL-safe base64 of 64 bytes.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) value: String,
}

/// Source that the envelope's records describe, such as a repository at a commit; neither the
/// producer nor the submitter.
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

/// One evidence record of an envelope. An invalid record is rejected alone.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EvidenceRecord {
    /// Confidence of the producer, from 0 to 1.
    pub(crate) confidence: f64,
    /// SHA-256 of the referenced content, lower-case hex. Of an upload it is the digest of the
    /// unpacked content, which differs from that of a packed file as sent.
    pub(crate) content_sha256: String,
    /// Id of the record; the same id always has the same content.
    pub(crate) evidence_id: Uuid,
    /// Kind of the record, a `snake_case` word. The service consumes `finding`, `scan_report`,
    /// `sbom`, `advisory`, `code_owners`, `deployment`, `service` and `relationship`, and stores
    /// any other kind.
    pub(crate) kind: String,
    pub(crate) observed_at: Timestamp,
    pub(crate) provider: String,
    pub(crate) source_ref: String,
    pub(crate) source_type: String,
    /// Name of the record's subject, in the form that the kind defines: 1 to 500 characters, at
    /// most 1,500 bytes.
    pub(crate) subject_key: String,
    pub(crate) summary: String,
}
