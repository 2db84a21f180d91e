//! Safe retries: what makes two requests the same, and which of them runs.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::domain::area::{Body, Parameter, Part};
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::sealed::response_place;
use crate::secrets::{Keys, SealError};

/// SHA-256 of a body in canonical form.
pub type Fingerprint = [u8; 32];

/// The fingerprint of a JSON body: SHA-256 of its RFC 8785 form.
///
/// # Errors
/// Nothing that was parsed from JSON text is refused.
pub(super) fn of_json(value: &Json) -> Result<Fingerprint, serde_json::Error> {
    let canonical = serde_json_canonicalizer::to_vec(value)?;
    Ok(Sha256::digest(&canonical).into())
}

/// The fingerprint of a body that is not JSON: a form by its parts, a blob by
/// its content's hash.
#[must_use]
pub(super) fn of_other(body: &Body) -> Fingerprint {
    let mut hash = Sha256::new();
    match body {
        Body::None => {}
        Body::Json(text) => hash.update(text),
        Body::Form(parts) => parts.iter().for_each(|part| add_part(&mut hash, part)),
        Body::Blob(blob) => hash.update(&blob.sha256),
    }
    hash.finalize().into()
}

/// A fingerprint that also tells which resource was meant; without parameters
/// it is the body's own.
#[must_use]
pub(super) fn with_parameters(body: Fingerprint, parameters: &[Parameter]) -> Fingerprint {
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

/// Each field is preceded by its length, so that no two forms give the same
/// bytes.
fn add_part(hash: &mut Sha256, part: &Part) {
    let filename = part.filename.as_deref().unwrap_or_default();
    for field in [part.name.as_bytes(), filename.as_bytes(), &part.content] {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
}

/// What an idempotency key is unique within.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// Whose data.
    pub workspace: WorkspaceId,
    /// Whose request.
    pub user: UserId,
    /// Which operation.
    pub operation: String,
    /// As sent.
    pub key: String,
}

impl Scope {
    /// A kept answer may carry what is shown only once, such as a webhook's
    /// secret, so it is kept sealed, bound to its key.
    pub(super) fn seal(&self, keys: &Keys, body: &str) -> String {
        STANDARD_NO_PAD.encode(keys.seal(&self.place(), body.as_bytes()))
    }

    /// Opens what [`Scope::seal`] made.
    pub(super) fn open(&self, keys: &Keys, sealed: &str) -> Result<String, SealError> {
        let sealed = STANDARD_NO_PAD.decode(sealed).map_err(|_| SealError)?;
        let body = keys.open(&self.place(), &sealed)?;
        String::from_utf8(body.to_vec()).map_err(|_| SealError)
    }

    fn place(&self) -> Vec<u8> {
        let Self { workspace, user, operation, key } = self;
        response_place(*workspace, *user, operation, key)
    }
}

/// The keys of calls under way in this process. Another process's are found at
/// commit, by the stored key.
#[derive(Debug, Default)]
pub struct InFlight {
    scopes: Arc<DashMap<Scope, ()>>,
}

impl InFlight {
    /// Claims a key until the returned claim is dropped; nothing, where a call
    /// with it is under way.
    #[must_use]
    pub fn claim(&self, scope: &Scope) -> Option<Claim> {
        match self.scopes.entry(scope.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                entry.insert(());
                Some(Claim { scopes: Arc::clone(&self.scopes), scope: scope.clone() })
            }
        }
    }
}

/// Holds an idempotency key for the call under way.
#[derive(Debug)]
pub struct Claim {
    scopes: Arc<DashMap<Scope, ()>>,
    scope: Scope,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.scopes.remove(&self.scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let scope = |key: &str| Scope {
            workspace: WorkspaceId(uuid::Uuid::nil()),
            user: UserId(uuid::Uuid::nil()),
            operation: "create".into(),
            key: key.into(),
        };
        let sealed = scope("one").seal(&keys, "a secret");
        assert!(!sealed.contains("secret"));
        assert_eq!(scope("one").open(&keys, &sealed).unwrap(), "a secret");
        assert!(scope("two").open(&keys, &sealed).is_err());
    }

    #[test]
    fn moving_a_byte_between_parts_changes_the_fingerprint() {
        let part = |name: &str, content: &str| Part {
            name: name.into(),
            filename: None,
            content_type: None,
            content: content.into(),
        };
        let one = of_other(&Body::Form(vec![part("ab", "c")]));
        let other = of_other(&Body::Form(vec![part("a", "bc")]));
        assert_ne!(one, other);
    }

    #[test]
    fn the_same_body_for_another_resource_is_another_request() {
        let id = |value: &str| Parameter { name: "id".into(), value: value.into() };
        let body = of_other(&Body::None);
        assert_eq!(with_parameters(body, &[]), body);
        assert_ne!(with_parameters(body, &[id("1")]), with_parameters(body, &[id("2")]));
    }

    #[test]
    fn a_key_is_claimed_once_and_released_on_drop() {
        let in_flight = InFlight::default();
        let scope = Scope {
            workspace: WorkspaceId::new(),
            user: UserId::new(),
            operation: "create_note".into(),
            key: "k-12345678".into(),
        };
        let claim = in_flight.claim(&scope);
        assert!(claim.is_some());
        assert!(in_flight.claim(&scope).is_none());
        let elsewhere = Scope { workspace: WorkspaceId::new(), ..scope.clone() };
        assert!(in_flight.claim(&elsewhere).is_some());
        drop(claim);
        assert!(in_flight.claim(&scope).is_some());
    }
}
