//! Time-based one-time passwords (RFC 6238): SHA-1, 6 digits, 30 seconds, one
//! step of tolerance in both directions. All authenticator apps support SHA-1,
//! and its collisions do not affect HMAC-SHA-1.

use totp_rs::{Algorithm, Builder, Secret, Totp};
use zeroize::Zeroizing;

use super::TotpEnrollment;
use assurance_core::domain::time::Timestamp;

const ISSUER: &str = "Workspace Assurance";
pub(super) const SECRET_BYTES: usize = 20;

pub(super) fn new_secret() -> Zeroizing<[u8; SECRET_BYTES]> {
    Zeroizing::new(rand::random())
}

pub(super) fn enrollment(secret: &[u8], email: &str) -> TotpEnrollment {
    let totp = totp(secret, email);
    TotpEnrollment {
        secret: Zeroizing::new(totp.secret().to_base32()),
        otpauth_url: Zeroizing::new(totp.to_url().unwrap_or_default()),
    }
}

/// Returns the TOTP time step of a code; `None` if the code matches none of the
/// three accepted steps.
pub(super) fn step_of(secret: &[u8], code: &str, now: Timestamp) -> Option<i64> {
    let seconds = u64::try_from(now.0 / 1_000_000).ok()?;
    let step = totp(secret, "").check(code, seconds)?;
    i64::try_from(step).ok()
}

/// Returns a typed authenticator code without white space; authenticators show
/// `123 456`.
pub(super) fn without_spaces(code: &str) -> String {
    code.split_whitespace().collect()
}

/// Returns whether a code has six digits, as an authenticator's code has; any
/// other is treated as a recovery code.
pub(super) fn looks_like_one(code: &str) -> bool {
    code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_digit())
}

fn totp(secret: &[u8], email: &str) -> Totp {
    Builder::new()
        .with_algorithm(Algorithm::SHA1)
        .with_digits(6)
        .with_skew(1)
        .with_step_duration(30)
        .with_secret(Secret::new(secret.into()))
        // The separator of the label must not be part of the name.
        .with_account_name(email.replace(':', "_"))
        .with_issuer(Some(ISSUER))
        .build_noncompliant()
}

#[cfg(test)]
pub(super) fn code_at(secret: &[u8], now: Timestamp) -> String {
    totp(secret, "").generate(u64::try_from(now.0 / 1_000_000).unwrap()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    /// Test vectors of RFC 6238, appendix B; the last six of the eight digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let vectors = [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ];
        for (seconds, code) in vectors {
            assert_eq!(code_at(SECRET, at(seconds)), code);
            assert_eq!(step_of(SECRET, code, at(seconds)), Some(seconds / 30));
        }
    }

    #[test]
    fn one_step_either_way_is_taken_and_no_more() {
        let code = code_at(SECRET, at(3_000));
        for (seconds, taken) in [(2_969, false), (2_970, true), (3_059, true), (3_060, false)] {
            assert_eq!(step_of(SECRET, &code, at(seconds)), taken.then_some(100), "{seconds}");
        }
    }

    #[test]
    fn the_url_carries_what_an_authenticator_needs() {
        let enrollment = enrollment(SECRET, "ada:b@example.com");
        let url = enrollment.otpauth_url.as_str();
        assert!(url.starts_with("otpauth://totp/Workspace%20Assurance:ada_b"), "{url}");
        assert!(url.contains("secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"), "{url}");
        assert!(url.contains("issuer=Workspace%20Assurance"), "{url}");
    }
}
