//! Envelopes and their canonical form, for fuzzing.

use serde_json::Value;

use crate::canonical;
use crate::envelope::EvidenceEnvelope;

/// Reads JSON, writes it canonically (RFC 8785) and encodes it for a signature
/// (DSSE). Returns the bytes of that.
///
/// # Panics
/// The canonical form is not its own.
pub fn envelope(bytes: &[u8]) -> usize {
    let _ = serde_json::from_slice::<EvidenceEnvelope>(bytes);
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return 0 };
    let canonical = canonical::jcs(&value);
    if let Ok(again) = serde_json::from_slice::<Value>(&canonical) {
        assert_eq!(canonical::jcs(&again), canonical, "the canonical form is its own");
    }
    canonical::pae(&canonical).len()
}
