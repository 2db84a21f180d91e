//! Recovery codes: ten codes, shown once, each valid once.
//!
//! A code has 80 random bits and cannot be guessed, so a plain SHA-256 protects
//! it as well as a slow password hash.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use assurance_core::domain::id::UserId;
use assurance_store::mfa::RecoveryCodeHash;

/// Number of recovery codes of a person.
const CODES: usize = 10;
/// Crockford's Base32 alphabet, without I, L, O, U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CHARACTERS: usize = 16;

/// Returns ten new codes in their displayed form: four groups of four
/// characters, joined by hyphens.
pub(super) fn new_codes() -> Vec<String> {
    (0..CODES).map(|_| new_code()).collect()
}

fn new_code() -> String {
    let random: Zeroizing<[u8; CHARACTERS]> = Zeroizing::new(rand::random());
    let characters: Vec<u8> = random.iter().map(|byte| ALPHABET[usize::from(byte % 32)]).collect();
    let groups: Vec<&str> =
        characters.chunks(4).map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    groups.join("-")
}

/// Returns the hash of a person's recovery code. Case, spaces and dashes make
/// no difference.
pub(super) fn hash(user: UserId, code: &str) -> RecoveryCodeHash {
    let mut sha = Sha256::new();
    sha.update(b"recovery code\0");
    sha.update(user.0.as_bytes());
    for letter in code.chars().filter(|letter| letter.is_alphanumeric()) {
        let letter = match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        };
        sha.update(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    sha.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_different_codes_of_eighty_bits() {
        let codes: std::collections::BTreeSet<String> = new_codes().into_iter().collect();
        assert_eq!(codes.len(), CODES);
        for code in codes {
            assert_eq!(code.len(), 19);
            assert!(code.bytes().all(|byte| byte == b'-' || ALPHABET.contains(&byte)), "{code}");
        }
    }

    #[test]
    fn a_code_is_known_however_it_is_typed_and_to_one_person() {
        let user = UserId::new();
        assert_eq!(hash(user, "01AB-CDEF-GHJK-MNPQ"), hash(user, " oLab cdef ghjk mnpq "));
        assert_ne!(hash(user, "01AB"), hash(user, "01AC"));
        assert_ne!(hash(user, "01AB"), hash(UserId::new(), "01AB"));
    }
}
