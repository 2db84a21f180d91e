//! Entry point for fuzzing envelopes and their canonical form.

use serde_json::Value;

use crate::canonical;
use crate::envelope::EvidenceEnvelope;

/// Parses JSON, canonicalizes it (RFC 8785) and encodes it for a signature (DSSE). Returns the size
/// of the result in bytes.
///
/// # Panics
/// Canonicalizing the canonical form changes it.
pub fn envelope(bytes: &[u8]) -> usize {
    let _ = serde_json::from_slice::<EvidenceEnvelope>(bytes);
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return 0 };
    let canonical = canonical::jcs(&value);
    if let Ok(again) = serde_json::from_slice::<Value>(&canonical) {
        assert_eq!(canonical::jcs(&again), canonical, "the canonical form is its own");
    }
    canonical::pae(&canonical).len()
}
