//! The text of an access token: a prefix, 40 random letters and digits (238
//! bits), and a checksum. Prefix and checksum let secret scanners recognize a
//! token, and the service refuse anything else without a database query.

use rand::distr::{Alphanumeric, SampleString as _};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use assurance_store::sessions::TokenHash;

/// Prefix of every access token.
const TOKEN_PREFIX: &str = "was_";

const RANDOM_CHARS: usize = 40;
/// Number of characters of an access token's checksum: CRC-32 in base62, padded
/// with zeros.
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the text of a new access token.
pub(super) fn random() -> Zeroizing<String> {
    let length = TOKEN_PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS;
    let mut text = Zeroizing::new(String::with_capacity(length));
    text.push_str(TOKEN_PREFIX);
    Alphanumeric.append_string(&mut rand::rng(), &mut text, RANDOM_CHARS);
    let checksum = checksum(&text);
    text.extend(checksum.map(char::from));
    text
}

/// Returns the SHA-256 of an access token's text; `None` if the text does not
/// have the form of a token. Tokens are stored and found by this hash, so that
/// the time of a comparison reveals nothing about a token.
pub(super) fn hash_of(text: &str) -> Option<TokenHash> {
    let random = text.strip_prefix(TOKEN_PREFIX)?;
    let fits = random.len() == RANDOM_CHARS + CHECKSUM_CHARS
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let (checked, sent) = text.split_at_checked(TOKEN_PREFIX.len() + RANDOM_CHARS)?;
    (fits && checksum(checked) == *sent.as_bytes()).then(|| Sha256::digest(text).into())
}

fn checksum(text: &str) -> [u8; CHECKSUM_CHARS] {
    let mut rest = crc32fast::hash(text.as_bytes()) as usize;
    let mut digits = [0; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[rest % BASE62.len()];
        rest /= BASE62.len();
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_prefix_and_a_checksum() {
        let text = random();
        assert_eq!(text.len(), 50);
        assert!(text.starts_with("was_") && hash_of(&text).is_some(), "{}", *text);
        assert_ne!(*text, *random());
        // Computed by another implementation; secret scanners rely on it.
        assert_eq!(&checksum("was_0000000000000000000000000000000000000000"), b"1XTrtK");
    }

    #[test]
    fn what_is_no_token_has_no_hash() {
        let text = random();
        for at in 0..text.len() {
            let mut altered = text.as_bytes().to_vec();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(hash_of(&altered), None, "character {at}");
            assert_eq!(hash_of(&text[..at]), None, "cut at {at}");
        }
        for odd in ["", "was_", &format!("{}0", *text), &format!("was_{}", "é".repeat(23))] {
            assert_eq!(hash_of(odd), None, "{odd}");
        }
    }
}
