//! Ed25519 signatures; the only module that uses ed25519_dalek.
//!
//! Verification is strict (RFC 8032): it rejects small-order keys,
//! non-canonical encodings and malleable signatures, so that all verifiers
//! agree on every signature.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer, VerifyingKey};
use zeroize::Zeroizing;

/// Payload type of signed evidence envelopes.
pub const ENVELOPE_TYPE: &str = "application/vnd.workspace-assurance.evidence-envelope.v1+json";

/// Returns whether the Ed25519 signature is valid for this public key and
/// message; false for malformed input.
#[must_use]
pub fn verify_ed25519_strict(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) =
        (<&[u8; 32]>::try_from(public_key), <&[u8; 64]>::try_from(signature))
    else {
        return false;
    };
    VerifyingKey::from_bytes(key)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// Returns DSSE's pre-authentication encoding, which is signed instead of the
/// body. It binds the signature to the payload type.
#[must_use]
pub fn dsse_pae(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), body.len());
    [head.as_bytes(), body].concat()
}

/// Returns the message that a publisher signs to approve a version of an area;
/// `digest` is the component's SHA-256 in lower-case hex.
#[must_use]
pub fn area_message(digest: &str) -> Vec<u8> {
    format!("assurance area component v1:sha256:{digest}").into_bytes()
}

/// Error of parsing or encoding an Ed25519 private key (PKCS#8, PEM).
#[derive(Debug, thiserror::Error)]
#[error("no Ed25519 private key (PKCS#8, PEM): {0}; make one with: assurance key generate")]
pub struct SigningKeyError(String);

/// An Ed25519 private key; it is never printed.
pub struct Ed25519PrivateKey(ed25519_dalek::SigningKey);

impl fmt::Debug for Ed25519PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ed25519PrivateKey(public {})", self.public_key_base64())
    }
}

impl Ed25519PrivateKey {
    /// Generates a private key from the operating system's randomness.
    #[must_use]
    pub fn generate() -> Self {
        let seed = Zeroizing::new(rand::random::<[u8; 32]>());
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Parses the private key in the text of a PKCS#8 PEM file.
    ///
    /// # Errors
    /// The text contains no Ed25519 private key.
    pub fn from_pem(pem: &str) -> Result<Self, SigningKeyError> {
        ed25519_dalek::SigningKey::from_pkcs8_pem(pem.trim())
            .map(Self)
            .map_err(|error| SigningKeyError(error.to_string()))
    }

    /// Returns the private key as the text of a PKCS#8 PEM file.
    ///
    /// # Errors
    /// The key cannot be encoded.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, SigningKeyError> {
        // Version 1, without the public key (RFC 8410, section 7), because
        // OpenSSL and programs based on it cannot read version 2.
        let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        bytes.to_pkcs8_pem(LineEnding::LF).map_err(|error| SigningKeyError(error.to_string()))
    }

    /// Returns the 32 bytes of the public key.
    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// Returns the public key in standard base64.
    #[must_use]
    pub fn public_key_base64(&self) -> String {
        STANDARD.encode(self.public_key())
    }

    /// Returns the Ed25519 signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value as Json;

    use super::*;

    /// Reads a file of the test corpus, which is outside the repository. `None`
    /// if it is missing; the test is then skipped.
    fn corpus(file: &str) -> Option<Json> {
        let root = std::env::var_os("ASSURANCE_CORPUS").map_or_else(
            || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
            PathBuf::from,
        );
        let path = root.join(file);
        let Ok(text) = std::fs::read_to_string(&path) else {
            eprintln!("skipped: {} is not there; set ASSURANCE_CORPUS", path.display());
            return None;
        };
        Some(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn the_private_key_file_is_of_the_version_that_openssl_reads() {
        let key = Ed25519PrivateKey::generate();
        let pem = key.to_pem().unwrap();
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        assert_eq!(STANDARD.decode(body).unwrap().len(), 48, "PKCS#8 version 1, no public key");
        assert_eq!(Ed25519PrivateKey::from_pem(&pem).unwrap().public_key(), key.public_key());
    }

    #[test]
    fn every_wycheproof_vector_is_judged_as_it_should_be() {
        let Some(file) = corpus("ed25519/ed25519_test.json") else { return };
        let bytes = |value: &Json| hex::decode(value.as_str().unwrap()).unwrap();
        let mut judged = 0;
        for group in file["testGroups"].as_array().unwrap() {
            let key = bytes(&group["publicKey"]["pk"]);
            for test in group["tests"].as_array().unwrap() {
                let valid = verify_ed25519_strict(&key, &bytes(&test["msg"]), &bytes(&test["sig"]));
                assert_eq!(valid, test["result"] == "valid", "vector {}", test["tcId"]);
                judged += 1;
            }
        }
        assert_eq!(file["numberOfTests"], judged);
    }

    #[test]
    fn a_small_order_key_verifies_nothing() {
        let mut identity = [0_u8; 32];
        identity[0] = 1;
        let mut signature = [0_u8; 64];
        signature[..32].copy_from_slice(&identity);
        assert!(!verify_ed25519_strict(&identity, b"anything", &signature));
    }

    #[test]
    fn a_key_survives_its_file_and_signs_verifiably() {
        let key = Ed25519PrivateKey::generate();
        let read = Ed25519PrivateKey::from_pem(&key.to_pem().unwrap()).unwrap();
        let message = dsse_pae(ENVELOPE_TYPE, b"{}");
        let signature = read.sign(&message);
        assert!(verify_ed25519_strict(&key.public_key(), &message, &signature));
        assert!(!verify_ed25519_strict(&key.public_key(), b"{}", &signature));
        assert!(Ed25519PrivateKey::from_pem("nonsense").is_err());
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }

    #[test]
    fn the_encoding_is_the_one_of_the_dsse_protocol() {
        let encoded = dsse_pae("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }
}
