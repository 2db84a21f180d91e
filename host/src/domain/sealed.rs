//! What is stored sealed under the master key, and the place each value
//! belongs to: the associated data it was sealed with, and only opens with.

use super::id::{UserId, WorkspaceId};

/// A stored value that opens under the right master key.
#[derive(Clone, Debug)]
pub struct SealedValue {
    /// Where it belongs.
    pub place: Vec<u8>,
    /// As it is stored.
    pub sealed: Vec<u8>,
}

/// A secret of an area, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// Opens at the [`secret_place`] of its origin.
    pub sealed: Vec<u8>,
    /// The only origin that it is sent to; empty until it is sent.
    pub origin: String,
    /// Digest of the component that stored it; empty for a secret of a release
    /// that did not keep it.
    pub component: String,
}

/// The place of a secret of an area. The length keeps one place from being
/// spelt like another; no name contains the byte before the origin.
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

/// The place of a person's authenticator secret.
#[must_use]
pub fn authenticator_place(user: UserId) -> Vec<u8> {
    [b"totp\0".as_slice(), user.0.as_bytes()].concat()
}

/// The place of a response that is kept for an idempotency key.
#[must_use]
pub fn response_place(workspace: WorkspaceId, user: UserId, operation: &str, key: &str) -> Vec<u8> {
    // Only the key can hold a slash, and it comes last.
    format!("idempotent-reply/{workspace}/{user}/{operation}/{key}").into_bytes()
}
