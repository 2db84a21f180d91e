//! Operation 4: the envelope schema and limits of this service.

use area_sdk::prelude::*;

use crate::envelope::SCHEMA_VERSION;
use crate::submit::{CLOCK_TOLERANCE_SECONDS, MAXIMUM_LIFETIME_SECONDS};

/// Maximum size of a decompressed envelope, in bytes.
pub(crate) const MAX_BYTES: u64 = 1_048_576;
const MAX_ARTIFACT_BYTES: u64 = 26_214_400;
const MAX_ARTIFACT_TOTAL_BYTES: u64 = 104_857_600;

/// Envelope schema and limits of this service.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EnvelopeSchema")]
pub(crate) struct EnvelopeSchemaInfo {
    accepted_versions: Vec<&'static str>,
    clock_tolerance_seconds: i64,
    compressed_request_bodies_supported: bool,
    current_version: &'static str,
    /// Maximum size of an artifact as sent, packed or not, in bytes. An upload above it is refused.
    max_artifact_bytes: u64,
    /// Maximum total size in bytes of the artifacts that the records of one envelope reference, as
    /// sent. A bound for producers: the service does not check it, because records may be submitted
    /// before their artifacts.
    max_artifact_total_bytes: u64,
    /// Maximum size of a decompressed envelope, in bytes.
    max_bytes: u64,
    maximum_lifetime_seconds: i64,
    publication_feature_flag: &'static str,
    signature_algorithms: Vec<&'static str>,
}

pub(crate) fn describe(_: &Ctx) -> Result<EnvelopeSchemaInfo> {
    Ok(EnvelopeSchemaInfo {
        accepted_versions: vec![SCHEMA_VERSION],
        clock_tolerance_seconds: CLOCK_TOLERANCE_SECONDS,
        compressed_request_bodies_supported: true,
        current_version: SCHEMA_VERSION,
        max_artifact_bytes: MAX_ARTIFACT_BYTES,
        max_artifact_total_bytes: MAX_ARTIFACT_TOTAL_BYTES,
        max_bytes: MAX_BYTES,
        maximum_lifetime_seconds: MAXIMUM_LIFETIME_SECONDS,
        publication_feature_flag: "evidence_envelopes",
        signature_algorithms: vec!["ed25519"],
    })
}
