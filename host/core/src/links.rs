//! Signed links. The token contains the complete authorization, so nothing is
//! stored. A token that is bound to a session does not reveal that session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::Sha256;

use crate::domain::id::{SessionId, UserId, WorkspaceId};
use crate::domain::time::Timestamp;
use crate::secrets::Keys;

/// Maximum length of a signed link's token, in bytes; longer tokens are
/// rejected without parsing.
const MAX_TOKEN: usize = 8_192;

/// Authorization that a signed link carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkGrant {
    /// Name of the area whose route the link opens.
    pub area: String,
    /// Operation id of the route that the link opens.
    pub operation: String,
    /// Workspace that the link gives access to.
    pub workspace: WorkspaceId,
    /// The user on whose behalf the link was signed; `None` if a job signed it.
    pub user: Option<UserId>,
    /// Time from which the link is refused.
    pub expires_at: Timestamp,
    /// Data that the area put into the link when it was signed, a JSON object.
    pub claims: String,
}

/// Signed content of a link's token: the fields of a [`LinkGrant`], in this
/// order.
#[derive(Serialize, Deserialize)]
struct LinkPayload(String, String, WorkspaceId, Option<UserId>, Timestamp, Box<RawValue>);

/// Returns a signed link's token for the grant; with `session`, it is valid
/// only in that session.
///
/// # Errors
/// The claims are not JSON.
pub fn sign(
    keys: &Keys,
    grant: &LinkGrant,
    session: Option<SessionId>,
) -> Result<String, serde_json::Error> {
    let payload = LinkPayload(
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

/// Returns the grant of a signed link's valid token. `None` if the token is
/// from another service, was altered, has expired, or is bound to another
/// session.
#[must_use]
pub fn open(
    keys: &Keys,
    token: &str,
    session: Option<SessionId>,
    now: Timestamp,
) -> Option<LinkGrant> {
    let (payload, signature) = token.split_once('.').filter(|_| token.len() <= MAX_TOKEN)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    code(keys, &payload, session).verify_slice(&signature).ok()?;
    let LinkPayload(area, operation, workspace, user, expires_at, claims) =
        serde_json::from_slice(&payload).ok()?;
    let claims = claims.get().to_owned();
    let grant = LinkGrant { area, operation, workspace, user, expires_at, claims };
    (grant.expires_at > now).then_some(grant)
}

/// Returns the MAC of a signed link's token. It covers the session, which the
/// token itself does not contain.
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

    fn grant() -> LinkGrant {
        LinkGrant {
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
