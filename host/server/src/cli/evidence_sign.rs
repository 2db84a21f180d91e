//! `assurance evidence sign`: signs the DSSE encoding of the envelope's
//! canonical form (RFC 8785) without the member `signature`. The service
//! verifies the same bytes.

use std::path::PathBuf;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Value as Json, json};

use super::input;
use assurance_core::config::files;
use assurance_core::signing::{self, SigningKey};

/// Maximum magnitude of an integer that every JSON reader reads exactly.
const MAX_SAFE: u64 = 1 << 53;

#[derive(Debug, Args)]
pub(super) struct EvidenceSign {
    /// Envelope file (JSON), signed or not; `-` reads standard input.
    envelope: PathBuf,
    /// File of the private key, from `assurance key generate`.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Id of the key in the service, by which the service finds the public key.
    #[arg(long, value_name = "ID")]
    key_id: String,
    /// Output file; default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl EvidenceSign {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let pem = files::read_private(&self.key)?;
        let pem = std::str::from_utf8(&pem).context("the key file is not text")?;
        let key = SigningKey::from_pem(pem)
            .with_context(|| format!("{} cannot be used", self.key.display()))?;
        let signed = sign(input::json(&self.envelope)?, &key, &self.key_id)?;
        input::write_json(&signed, self.out.as_deref())
    }
}

fn sign(mut envelope: Json, key: &SigningKey, key_id: &str) -> anyhow::Result<Json> {
    let Some(members) = envelope.as_object_mut() else {
        anyhow::bail!("an envelope is a JSON object");
    };
    members.remove("signature");
    check_numbers(&envelope)?;
    let canonical = serde_json_canonicalizer::to_vec(&envelope)?;
    let signature = key.sign(&signing::dsse_pae(signing::ENVELOPE_TYPE, &canonical));
    envelope["signature"] = json!({ "key_id": key_id, "value": STANDARD.encode(signature) });
    Ok(envelope)
}

/// Refuses numbers that JSON readers may read differently, because the
/// signature would then cover another value.
fn check_numbers(value: &Json) -> anyhow::Result<()> {
    match value {
        Json::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            anyhow::ensure!(
                size.is_none_or(|size| size <= MAX_SAFE),
                "{number} is beyond 2^53 and has no canonical form; write it as text"
            );
            Ok(())
        }
        Json::Array(items) => items.iter().try_for_each(check_numbers),
        Json::Object(members) => members.values().try_for_each(check_numbers),
        Json::Null | Json::Bool(_) | Json::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_covers_the_canonical_form_without_itself() {
        let key = SigningKey::generate();
        let signed = sign(json!({ "b": 1.0, "a": "é" }), &key, "k1").unwrap();
        assert_eq!(signed["signature"]["key_id"], "k1");
        let signature = STANDARD.decode(signed["signature"]["value"].as_str().unwrap()).unwrap();
        let message = signing::dsse_pae(signing::ENVELOPE_TYPE, "{\"a\":\"é\",\"b\":1}".as_bytes());
        assert!(signing::verify_ed25519_strict(&key.public_key(), &message, &signature));
    }

    #[test]
    fn signing_again_replaces_the_signature() {
        let key = SigningKey::generate();
        let once = sign(json!({ "a": 1 }), &key, "k1").unwrap();
        assert_eq!(sign(once.clone(), &key, "k1").unwrap(), once);
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        let key = SigningKey::generate();
        assert!(sign(json!({ "n": 9_007_199_254_740_993_u64 }), &key, "k").is_err());
        assert!(sign(json!([]), &key, "k").is_err());
    }
}
