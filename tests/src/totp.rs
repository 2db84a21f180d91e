//! Replacement for an authenticator app (RFC 6238).

use totp_rs::{Builder, Secret};

/// Returns the current code of a base32 secret, or with `steps` the code that
/// many 30-second steps from now.
#[must_use]
pub fn code(secret: &str, steps: u64) -> String {
    let secret = Secret::try_from_base32(secret).expect("base32");
    let totp = Builder::new().with_secret(secret).build().expect("a secret long enough");
    let seconds = u64::try_from(crate::envelope::now().0 / 1_000_000).expect("after 1970");
    totp.generate(seconds + 30 * steps).to_string()
}
