//! Verifies the signatures of components.
//!
//! A publisher signs the digest of a component. The configuration contains the publishers' keys and
//! areas. Outside development mode, only components with a valid signature are loaded, from any
//! source. The stored signature is verified again at every load, so a component of a publisher who
//! is no longer trusted does not load.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use assurance_core::config::{AreasConfig, Config, TrustedPublisher};
use assurance_core::signing;

/// Signature file of a component, `FILE.sig`, which `assurance area sign` writes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The publisher's name in the operator's configuration.
    pub publisher: String,
    /// The publisher's Ed25519 signature over [`signing::area_message`], in standard base64.
    pub signature: String,
}

/// Reason why a component's signature is refused.
#[derive(Debug, thiserror::Error)]
pub enum ComponentSignatureError {
    /// The component is not signed.
    #[error(
        "the component is not signed, and outside development mode only signed ones are taken; \
         sign it with `assurance area sign FILE --key KEY --publisher NAME`, and name the \
         publisher's public key in the configuration under areas.publishers"
    )]
    Unsigned,
    /// The configuration does not contain the publisher.
    #[error(
        "the component is signed by {publisher:?}, whom this service does not know ({known}); let \
         a known publisher sign it, or add areas.publishers.{publisher} to the configuration"
    )]
    Unknown {
        /// Name of the publisher in the signature file.
        publisher: String,
        /// Names of the publishers in the configuration.
        known: String,
    },
    /// The publisher is trusted only with other areas.
    #[error(
        "publisher {publisher:?} is not trusted with area {area:?}, only with {areas}; let another \
         publisher sign it, or add the area to areas.publishers.{publisher}.areas"
    )]
    OtherAreas {
        /// Name of the publisher that signed the component.
        publisher: String,
        /// Name of the area that the signed component implements.
        area: String,
        /// Names of the areas that the publisher is trusted with.
        areas: String,
    },
    /// The signature does not match the publisher's key and the component.
    #[error(
        "the signature is not one of publisher {publisher:?} for the component with SHA-256 \
         {digest}: it was signed with another key, or changed since; sign it again with `assurance \
         area sign`"
    )]
    Wrong {
        /// Name of the publisher in the signature file.
        publisher: String,
        /// Digest of the received component.
        digest: String,
    },
    /// The file is not a signature file.
    #[error("the signature cannot be read: {0}; `assurance area sign` writes one")]
    Unreadable(String),
}

/// Publisher whose signature was verified; `None` for an unsigned component in development mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifiedPublisher<'c>(Option<(&'c str, &'c TrustedPublisher)>);

impl Signature {
    /// Parses a signature file.
    ///
    /// # Errors
    /// The text is not a signature.
    pub fn read(text: &[u8]) -> Result<Self, ComponentSignatureError> {
        serde_json::from_slice(text)
            .map_err(|error| ComponentSignatureError::Unreadable(error.to_string()))
    }

    /// Decodes the 64 bytes of the Ed25519 signature.
    ///
    /// # Errors
    /// The signature is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, ComponentSignatureError> {
        STANDARD
            .decode(&self.signature)
            .map_err(|error| ComponentSignatureError::Unreadable(error.to_string()))
    }
}

/// Returns the signature from the columns of a version's database row; `None` if the component is
/// not signed.
pub(super) fn stored(publisher: Option<&str>, signature: Option<&[u8]>) -> Option<Signature> {
    let (publisher, signature) = (publisher?.to_owned(), STANDARD.encode(signature?));
    Some(Signature { publisher, signature })
}

/// Verifies the signature of a component's digest and returns the publisher. An invalid signature
/// is refused in development mode, too.
pub(super) fn publisher_of<'c>(
    config: &'c Config,
    digest: &str,
    signature: Option<&Signature>,
) -> Result<VerifiedPublisher<'c>, ComponentSignatureError> {
    let Some(signature) = signature else {
        return if config.development {
            Ok(VerifiedPublisher(None))
        } else {
            Err(ComponentSignatureError::Unsigned)
        };
    };
    let publisher = &signature.publisher;
    let Some((name, trusted)) = config.areas.publishers.get_key_value(publisher) else {
        let (publisher, known) = (publisher.clone(), known(&config.areas));
        return Err(ComponentSignatureError::Unknown { publisher, known });
    };
    let message = signing::area_message(digest);
    let key = STANDARD.decode(&trusted.public_key).unwrap_or_default();
    if !signing::verify_ed25519_strict(&key, &message, &signature.bytes()?) {
        return Err(ComponentSignatureError::Wrong {
            publisher: publisher.clone(),
            digest: digest.to_owned(),
        });
    }
    Ok(VerifiedPublisher(Some((name, trusted))))
}

impl VerifiedPublisher<'_> {
    /// Refuses an area that the publisher is not trusted with.
    pub(super) fn may_publish(self, area: &str) -> Result<(), ComponentSignatureError> {
        let Some((name, publisher)) = self.0 else { return Ok(()) };
        if publisher.areas.iter().any(|trusted| trusted == "*" || trusted == area) {
            return Ok(());
        }
        let (publisher, areas) = (name.to_owned(), publisher.areas.join(", "));
        Err(ComponentSignatureError::OtherAreas { publisher, area: area.to_owned(), areas })
    }
}

fn known(areas: &AreasConfig) -> String {
    if areas.publishers.is_empty() {
        return "it knows none".to_owned();
    }
    let names: Vec<&str> = areas.publishers.keys().map(String::as_str).collect();
    format!("it knows {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_core::signing::Ed25519PrivateKey;

    const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn config(key: &Ed25519PrivateKey) -> Config {
        let mut config = Config::default();
        let publisher =
            TrustedPublisher { public_key: key.public_key_base64(), areas: vec!["notes".into()] };
        config.areas.publishers.insert("team".into(), publisher);
        config
    }

    fn signed(key: &Ed25519PrivateKey, publisher: &str) -> Signature {
        let signature = STANDARD.encode(key.sign(&signing::area_message(DIGEST)));
        Signature { publisher: publisher.into(), signature }
    }

    fn refusal(config: &Config, signature: Option<&Signature>) -> String {
        publisher_of(config, DIGEST, signature).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_trusted_key_signs_for_its_areas() {
        let key = Ed25519PrivateKey::generate();
        let config = config(&key);
        let publisher = publisher_of(&config, DIGEST, Some(&signed(&key, "team"))).unwrap();
        assert!(publisher.may_publish("notes").is_ok());
        insta::assert_snapshot!(publisher.may_publish("support").unwrap_err());
    }

    #[test]
    fn only_development_mode_takes_what_nobody_signed() {
        let mut config = config(&Ed25519PrivateKey::generate());
        insta::assert_snapshot!(refusal(&config, None));
        config.development = true;
        assert!(publisher_of(&config, DIGEST, None).unwrap().may_publish("any").is_ok());
    }

    #[test]
    fn a_wrong_signature_is_refused_even_in_development_mode() {
        let key = Ed25519PrivateKey::generate();
        let config = Config { development: true, ..config(&key) };
        let other = signed(&Ed25519PrivateKey::generate(), "team");
        insta::assert_snapshot!(refusal(&config, Some(&other)));
        insta::assert_snapshot!(refusal(&config, Some(&signed(&key, "nobody"))));
        let bad = Signature { signature: "?".into(), ..signed(&key, "team") };
        insta::assert_snapshot!(refusal(&config, Some(&bad)));
        assert!(
            publisher_of(&config, &DIGEST.replace('9', "8"), Some(&signed(&key, "team"))).is_err()
        );
    }
}
