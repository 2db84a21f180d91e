//! The envelope as a client sends it. What the schema lets pass has the right
//! shape; what it says is judged in `submit` and `records`.

use area_sdk::prelude::*;

/// The only version there is.
pub(crate) const SCHEMA_VERSION: &str = "evidence-envelope-v1";

/// Records and who signs for them.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EvidenceEnvelope {
    /// In whose name the evidence is given.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) authority: String,
    /// How it was collected; `mcp` for the Model Context Protocol.
    #[schemars(length(min = 1, max = 100))]
    pub(crate) collection_method: String,
    /// Names the envelope for good.
    pub(crate) envelope_id: Uuid,
    /// At most a day after `issued_at`.
    pub(crate) expires_at: Timestamp,
    /// The same as the header `Idempotency-Key`.
    #[schemars(length(min = 8, max = 255))]
    pub(crate) idempotency_key: String,
    /// When it was signed.
    pub(crate) issued_at: Timestamp,
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) records: Vec<EvidenceRecord>,
    pub(crate) signature: EnvelopeSignature,
    pub(crate) source: EnvelopeSource,
    /// The workspace of the path.
    pub(crate) workspace_id: Uuid,
}

/// An Ed25519 signature of the envelope without this member.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EnvelopeSignature {
    /// A hint to the key; which key verifies decides.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key_id: String,
    /// 64 bytes, standard or URL-safe base64.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) value: String,
}

/// Where the evidence comes from.
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

/// One piece of evidence. A record that breaks a rule is rejected by itself.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EvidenceRecord {
    /// 0 to 1.
    pub(crate) confidence: f64,
    /// SHA-256 of the content it speaks of, lower-case hex.
    pub(crate) content_sha256: String,
    /// Names the evidence for good.
    pub(crate) evidence_id: Uuid,
    /// `finding`, `scan_report`, `sbom`, `advisory`, `code_owners`,
    /// `deployment`, `service` and `relationship` mean something to other
    /// areas; any other `snake_case` word is kept.
    pub(crate) kind: String,
    pub(crate) observed_at: Timestamp,
    pub(crate) provider: String,
    pub(crate) source_ref: String,
    pub(crate) source_type: String,
    /// What it is about.
    pub(crate) subject_key: String,
    pub(crate) summary: String,
}
