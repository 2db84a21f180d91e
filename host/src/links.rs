//! Links that are their own authority: what the host signed for whom, until
//! when. A token says all of it, so that nothing is stored, and tells nothing
//! of the session it may be bound to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::Sha256;

use crate::domain::id::{SessionId, UserId, WorkspaceId};
use crate::domain::time::Timestamp;
use crate::secrets::Keys;

/// Longest token looked at, in bytes.
const MAX_TOKEN: usize = 8_192;

/// What a link may be used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose route it is.
    pub area: String,
    /// The route.
    pub operation: String,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who had it signed; nobody where a job did.
    pub user: Option<UserId>,
    /// From then on it is refused.
    pub expires_at: Timestamp,
    /// What the area wants to be told: a JSON object.
    pub claims: String,
}

/// A grant as it travels.
#[derive(Serialize, Deserialize)]
struct Payload(String, String, WorkspaceId, Option<UserId>, Timestamp, Box<RawValue>);

/// A token for a grant, good only in this session where one is named.
///
/// # Errors
/// Where the claims are no JSON.
pub fn sign(
    keys: &Keys,
    grant: &Grant,
    session: Option<SessionId>,
) -> Result<String, serde_json::Error> {
    let payload = Payload(
        grant.area.clone(),
        grant.operation.clone(),
        grant.workspace,
        grant.user,
        grant.expires_at,
        RawValue::from_string(grant.claims.clone())?,
    );
    let payload = serde_json::to_vec(&payload)?;
    let code = code(keys, &payload, session).finalize().into_bytes();
    Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(&payload), URL_SAFE_NO_PAD.encode(code)))
}

/// What a token is good for at this moment and in this session; nothing where
/// it is not one of this service, was altered, has expired or is bound to
/// another session.
#[must_use]
pub fn open(keys: &Keys, token: &str, session: Option<SessionId>, now: Timestamp) -> Option<Grant> {
    let (payload, signature) = token.split_once('.').filter(|_| token.len() <= MAX_TOKEN)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    code(keys, &payload, session).verify_slice(&signature).ok()?;
    let Payload(area, operation, workspace, user, expires_at, claims) =
        serde_json::from_slice(&payload).ok()?;
    let claims = claims.get().to_owned();
    let grant = Grant { area, operation, workspace, user, expires_at, claims };
    (grant.expires_at > now).then_some(grant)
}

/// The session is part of what is signed, and not of what is shown.
fn code(keys: &Keys, payload: &[u8], session: Option<SessionId>) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&keys.derive("signed link"))
        .expect("HMAC takes a key of any length");
    match session {
        Some(session) => mac.update(session.0.as_bytes()),
        None => mac.update(&[0; 16]),
    }
    mac.update(payload);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

    fn grant() -> Grant {
        Grant {
            area: "uploads".into(),
            operation: "put_upload_content".into(),
            workspace: WorkspaceId::new(),
            user: Some(UserId::new()),
            expires_at: NOW.plus_ms(1),
            claims: r#"{"upload_id":"x"}"#.into(),
        }
    }

    #[test]
    fn a_token_says_what_was_signed_until_it_expires() {
        let (keys, grant) = (Keys::new([7; 32]), grant());
        let token = sign(&keys, &grant, None).unwrap();
        assert_eq!(open(&keys, &token, None, NOW), Some(grant.clone()));
        assert_eq!(open(&keys, &token, None, grant.expires_at), None);
    }

    #[test]
    fn a_bound_token_is_good_in_its_session_only() {
        let (keys, session) = (Keys::new([7; 32]), SessionId::new());
        let token = sign(&keys, &grant(), Some(session)).unwrap();
        assert!(open(&keys, &token, Some(session), NOW).is_some());
        assert_eq!(open(&keys, &token, Some(SessionId::new()), NOW), None);
        assert_eq!(open(&keys, &token, None, NOW), None);
        let free = sign(&keys, &grant(), None).unwrap();
        assert_eq!(open(&keys, &free, Some(session), NOW), None);
    }

    #[test]
    fn an_altered_token_is_good_for_nothing() {
        let keys = Keys::new([7; 32]);
        let token = sign(&keys, &grant(), None).unwrap();
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(open(&keys, &altered, None, NOW), None, "byte {at}");
            assert_eq!(open(&keys, &token[..at], None, NOW), None, "cut at {at}");
        }
        assert_eq!(open(&Keys::new([8; 32]), &token, None, NOW), None);
    }
}
