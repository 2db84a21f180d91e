//! Vouchers: signed tokens, sent by mail, that prove access to an address. The
//! holder can create an account with this address. A voucher has no effect once
//! the account exists. It cannot be revoked: it does not name the invitation for
//! which it was sent.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::people::normalize_email;
use assurance_core::domain::time::Timestamp;
use assurance_core::secrets::Keys;

/// Content of a voucher: the email address that it proves, and its expiry.
#[derive(Serialize, Deserialize)]
struct EmailTokenClaims {
    email: String,
    expires_at: i64,
}

/// Returns a voucher: a signed token that proves access to an email address.
/// Deterministic for the same address and expiry.
#[must_use]
pub fn vouch(keys: &Keys, email: &str, expires_at: Timestamp) -> String {
    let claims = EmailTokenClaims { email: normalize_email(email), expires_at: expires_at.0 };
    let claims = serde_json::to_vec(&claims).expect("text and a number have a JSON form");
    let tag = mac(keys, &claims).finalize().into_bytes();
    format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(claims), BASE64_URL_SAFE_NO_PAD.encode(tag))
}

/// Returns the email address that a voucher proves; `None` if it is invalid or
/// expired.
#[must_use]
pub(super) fn address(keys: &Keys, voucher: &str, now: Timestamp) -> Option<String> {
    let (claims, tag) = voucher.split_once('.')?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
    mac(keys, &claims).verify_slice(&tag).ok()?;
    let claims: EmailTokenClaims = serde_json::from_slice(&claims).ok()?;
    (now.0 < claims.expires_at).then_some(claims.email)
}

fn mac(keys: &Keys, claims: &[u8]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(&keys.derive("account vouchers"));
    mac.expect("HMAC takes a key of any length").chain_update(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn a_voucher_is_for_one_address_until_its_moment() {
        let keys = Keys::new([7; 32]);
        let voucher = vouch(&keys, " Ada@Example.org", NOW.plus_ms(1));
        assert_eq!(address(&keys, &voucher, NOW).as_deref(), Some("ada@example.org"));
        assert_eq!(address(&keys, &voucher, NOW.plus_ms(1)), None);
        assert_eq!(address(&Keys::new([8; 32]), &voucher, NOW), None);
    }

    #[test]
    fn an_altered_voucher_is_none() {
        let keys = Keys::new([7; 32]);
        let voucher = vouch(&keys, "ada@example.org", NOW.plus_ms(1));
        for at in 0..voucher.len() {
            let mut altered = voucher.clone().into_bytes();
            altered[at] ^= 1;
            let altered = String::from_utf8_lossy(&altered);
            assert_eq!(address(&keys, &altered, NOW), None, "character {at}");
            assert_eq!(address(&keys, &voucher[..at], NOW), None, "cut at {at}");
        }
    }
}
