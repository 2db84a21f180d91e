//! Values that are stored encrypted under the master key. Each value is bound
//! to its storage location by associated data and cannot be decrypted
//! elsewhere.

use super::id::{UserId, WorkspaceId};

/// A stored ciphertext with its associated data, read at start to check that
/// the master key decrypts it.
#[derive(Clone, Debug)]
pub struct SealedValue {
    /// Associated data of the encryption: the storage location of the value.
    pub place: Vec<u8>,
    /// The encrypted value, as stored.
    pub sealed: Vec<u8>,
}

/// A stored secret of an area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// The encrypted secret. Its associated data is the [`secret_place`] for
    /// its `origin`.
    pub sealed: Vec<u8>,
    /// The only origin that the secret may be sent to; empty until it is first
    /// sent.
    pub origin: String,
    /// Digest of the component that stored the secret; empty for secrets of
    /// older releases.
    pub component: String,
}

/// Returns the associated data for encrypting a secret of an area. The length
/// prefix makes locations unambiguous; no name contains the byte before the
/// origin.
#[must_use]
pub fn secret_place(workspace: WorkspaceId, area: &str, name: &str, origin: &str) -> Vec<u8> {
    let length = (area.len() as u64).to_be_bytes();
    let workspace = workspace.0.as_bytes();
    let mut place =
        [&b"secret\0"[..], workspace, &length, area.as_bytes(), name.as_bytes()].concat();
    if !origin.is_empty() {
        place.push(0);
        place.extend_from_slice(origin.as_bytes());
    }
    place
}

/// Returns the associated data for encrypting the secret of a person's
/// authenticator (TOTP).
#[must_use]
pub fn authenticator_place(user: UserId) -> Vec<u8> {
    [b"totp\0".as_slice(), user.0.as_bytes()].concat()
}

/// Returns the associated data for encrypting the response that is stored for
/// an idempotency key.
#[must_use]
pub fn response_place(workspace: WorkspaceId, user: UserId, operation: &str, key: &str) -> Vec<u8> {
    // Only the key can contain a slash, and it is the last part.
    format!("idempotent-reply/{workspace}/{user}/{operation}/{key}").into_bytes()
}
