//! CSRF tokens: random ‖ HMAC-SHA256(session ‖ random). A token can be verified
//! without storing it, and is valid only for its session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::{IdentityService, SessionPrincipal};
use assurance_core::domain::id::SessionId;

const RANDOM_BYTES: usize = 16;
const MAC_BYTES: usize = 32;

impl IdentityService {
    /// Returns a new CSRF token for this session's writes; earlier ones stay
    /// valid.
    #[must_use]
    pub fn csrf_token(&self, principal: &SessionPrincipal) -> String {
        token(&self.0.csrf_key, principal.session.id)
    }

    /// Returns whether this CSRF token was created for this session.
    #[must_use]
    pub fn csrf_valid(&self, principal: &SessionPrincipal, token: &str) -> bool {
        valid(&self.0.csrf_key, principal.session.id, token)
    }
}

pub(super) fn token(key: &[u8; 32], session: SessionId) -> String {
    let random: [u8; RANDOM_BYTES] = rand::random();
    let mut bytes = random.to_vec();
    bytes.extend(mac(key, session, &random));
    URL_SAFE_NO_PAD.encode(bytes)
}

fn valid(key: &[u8; 32], session: SessionId, token: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else { return false };
    let Some((random, given)) = bytes.split_first_chunk::<RANDOM_BYTES>() else { return false };
    given.len() == MAC_BYTES && mac(key, session, random).ct_eq(given).into()
}

fn mac(key: &[u8; 32], session: SessionId, random: &[u8; RANDOM_BYTES]) -> [u8; MAC_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(session.0.as_bytes());
    mac.update(random);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_session_and_key_only() {
        let (session, other) = (SessionId::new(), SessionId::new());
        let made = token(&[1; 32], session);
        assert!(valid(&[1; 32], session, &made));
        assert!(!valid(&[1; 32], other, &made));
        assert!(!valid(&[2; 32], session, &made));
        assert_ne!(made, token(&[1; 32], session));
    }

    #[test]
    fn a_changed_or_cut_token_is_refused() {
        let session = SessionId::new();
        let made = token(&[1; 32], session);
        for at in 0..made.len() {
            let mut changed = made.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(!valid(&[1; 32], session, &changed), "character {at}");
            assert!(!valid(&[1; 32], session, &made[..at]), "cut at {at}");
        }
    }
}
