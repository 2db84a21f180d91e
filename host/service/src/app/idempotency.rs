//! Idempotency keys: their scopes, and fingerprints of requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::claimed_keys::ClaimedKeys;
use assurance_core::domain::area::{Parameter, ReceivedFormPart, RequestBody};
use assurance_core::domain::id::{AccessTokenId, UserId, WorkspaceId};
use assurance_core::domain::sealed::response_place;
use assurance_core::secrets::{DecryptionError, Keys};

/// SHA-256 of a request's body in canonical form and of its parameters, by which two requests with
/// one idempotency key are compared.
pub(super) type IdempotencyFingerprint = [u8; 32];

/// Returns the fingerprint of a request's JSON body: SHA-256 of its RFC 8785 form.
///
/// # Errors
/// None for a value that was parsed from JSON text.
pub(super) fn of_json(value: &Json) -> Result<IdempotencyFingerprint, serde_json::Error> {
    let canonical = serde_json_canonicalizer::to_vec(value)?;
    Ok(Sha256::digest(&canonical).into())
}

/// Returns the fingerprint of a request body that is not JSON: a form by its parts, a blob by its
/// content's hash.
#[must_use]
pub(super) fn of_other(body: &RequestBody) -> IdempotencyFingerprint {
    let mut hash = Sha256::new();
    match body {
        RequestBody::None => {}
        RequestBody::Json(text) => hash.update(text),
        RequestBody::Form(parts) => parts.iter().for_each(|part| add_part(&mut hash, part)),
        RequestBody::Blob(blob) => hash.update(&blob.sha256),
    }
    hash.finalize().into()
}

/// Adds the request's parameters to the fingerprint of its body. Without parameters, returns the
/// body's fingerprint.
#[must_use]
pub(super) fn with_parameters(
    body: IdempotencyFingerprint,
    parameters: &[Parameter],
) -> IdempotencyFingerprint {
    if parameters.is_empty() {
        return body;
    }
    let mut hash = Sha256::new_with_prefix(body);
    for parameter in parameters {
        for field in [&parameter.name, &parameter.value] {
            hash.update((field.len() as u64).to_be_bytes());
            hash.update(field);
        }
    }
    hash.finalize().into()
}

/// Adds a part of a multipart form to the hash: each field after its length, so that no two
/// different forms give the same bytes.
fn add_part(hash: &mut Sha256, part: &ReceivedFormPart) {
    let filename = part.filename.as_deref().unwrap_or_default();
    for field in [part.name.as_bytes(), filename.as_bytes(), &part.content] {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
}

/// An idempotency key with the scope in which it is unique: workspace, user and operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ScopedIdempotencyKey {
    /// Workspace of the request; the nil UUID if the request creates a workspace.
    pub workspace: WorkspaceId,
    /// User who sent the request.
    pub user: UserId,
    /// Operation id of the request's route, or of the host's own operation.
    pub operation: String,
    /// Idempotency key as returned by [`key_of`].
    pub key: String,
}

/// Returns the stored form of a request's idempotency key: the client's key for a session; for an
/// access token, the token's id, a space, and the client's key. A client's key contains no space,
/// so keys of different tokens never collide.
#[must_use]
pub(super) fn key_of(token: Option<AccessTokenId>, sent: &str) -> String {
    match token {
        Some(token) => format!("{token} {sent}"),
        None => sent.to_owned(),
    }
}

impl ScopedIdempotencyKey {
    /// Encrypts a response body for storage, bound to its idempotency key. Responses may contain
    /// secrets that are shown only once, such as a webhook's signing secret.
    pub(super) fn seal(&self, keys: &Keys, body: &str) -> String {
        STANDARD_NO_PAD.encode(keys.seal(&self.place(), body.as_bytes()))
    }

    /// Decrypts a stored response body that [`ScopedIdempotencyKey::seal`] encrypted.
    pub(super) fn open(&self, keys: &Keys, sealed: &str) -> Result<String, DecryptionError> {
        let sealed = STANDARD_NO_PAD.decode(sealed).map_err(|_| DecryptionError)?;
        let body = keys.open(&self.place(), &sealed)?;
        String::from_utf8(body.to_vec()).map_err(|_| DecryptionError)
    }

    fn place(&self) -> Vec<u8> {
        let Self { workspace, user, operation, key } = self;
        response_place(*workspace, *user, operation, key)
    }
}

/// Idempotency keys of requests running in this process. A conflict with another process is
/// detected at commit, by the stored key.
pub type KeysInFlight = ClaimedKeys<ScopedIdempotencyKey>;

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(key: &str) -> ScopedIdempotencyKey {
        ScopedIdempotencyKey {
            workspace: WorkspaceId(uuid::Uuid::nil()),
            user: UserId(uuid::Uuid::nil()),
            operation: "create".into(),
            key: key.into(),
        }
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_how_json_is_written() {
        let one: Json = serde_json::from_str(r#"{"b": 1.0, "a": "é"}"#).unwrap();
        let other: Json = serde_json::from_str("{\"a\":\"\\u00e9\",\"b\":1}").unwrap();
        assert_eq!(of_json(&one).unwrap(), of_json(&other).unwrap());
        let third: Json = serde_json::from_str(r#"{"b": 2, "a": "é"}"#).unwrap();
        assert_ne!(of_json(&one).unwrap(), of_json(&third).unwrap());
    }

    #[test]
    fn a_kept_answer_opens_under_its_own_key_only() {
        let keys = Keys::from_base64(&base64::engine::general_purpose::STANDARD.encode([7; 32]));
        let keys = keys.unwrap();
        let sealed = scope("one").seal(&keys, "a secret");
        assert!(!sealed.contains("secret"));
        assert_eq!(scope("one").open(&keys, &sealed).unwrap(), "a secret");
        assert!(scope("two").open(&keys, &sealed).is_err());
    }

    #[test]
    fn moving_a_byte_between_parts_changes_the_fingerprint() {
        let part = |name: &str, content: &str| ReceivedFormPart {
            name: name.into(),
            filename: None,
            content_type: None,
            content: content.into(),
        };
        let one = of_other(&RequestBody::Form(vec![part("ab", "c")]));
        let other = of_other(&RequestBody::Form(vec![part("a", "bc")]));
        assert_ne!(one, other);
    }

    #[test]
    fn the_same_body_for_another_resource_is_another_request() {
        let id = |value: &str| Parameter { name: "id".into(), value: value.into() };
        let body = of_other(&RequestBody::None);
        assert_eq!(with_parameters(body, &[]), body);
        assert_ne!(with_parameters(body, &[id("1")]), with_parameters(body, &[id("2")]));
    }

    #[test]
    fn each_access_token_has_keys_of_its_own() {
        let (one, other) = (AccessTokenId::new(), AccessTokenId::new());
        assert_eq!(key_of(None, "k-12345678"), "k-12345678");
        assert_eq!(key_of(Some(one), "k-12345678"), format!("{one} k-12345678"));
        assert_ne!(key_of(Some(one), "k-12345678"), key_of(Some(other), "k-12345678"));
    }

    #[test]
    fn a_key_is_claimed_once_and_released_on_drop() {
        let in_flight = KeysInFlight::default();
        let scope = scope("k-12345678");
        let claim = in_flight.claim(&scope);
        assert!(claim.is_some());
        assert!(in_flight.claim(&scope).is_none());
        let elsewhere = ScopedIdempotencyKey { workspace: WorkspaceId::new(), ..scope.clone() };
        assert!(in_flight.claim(&elsewhere).is_some());
        drop(claim);
        assert!(in_flight.claim(&scope).is_some());
    }
}
