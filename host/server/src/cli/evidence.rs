//! `assurance evidence …`.
//!
//! `new` creates an unsigned envelope for records, and fills in missing ids and
//! times. `sign` signs the DSSE encoding of the envelope's canonical form (RFC
//! 8785) without the member `signature`. The service verifies the same bytes.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::input;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::time::{Clock, Timestamp};
use assurance_core::signing::{self, Ed25519PrivateKey};

/// Maximum magnitude of an integer that every JSON reader reads exactly.
const MAX_SAFE: u64 = 1 << 53;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create an unsigned envelope for the records in a file.
    New(EvidenceNewArgs),
    /// Sign an envelope.
    Sign {
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
    },
}

#[derive(Debug, Args)]
pub(super) struct EvidenceNewArgs {
    /// JSON file with an array of records, or an object with `records`; `-`
    /// reads standard input. Missing evidence_id and observed_at of a record
    /// are filled in.
    records: PathBuf,
    /// Id of the workspace.
    #[arg(long, value_name = "ID")]
    workspace: WorkspaceId,
    /// Authority that vouches for the records.
    #[arg(long, default_value = "producer")]
    authority: String,
    /// Method by which the records were collected.
    #[arg(long, default_value = "push")]
    collection_method: String,
    /// Provider of the source that the records describe.
    #[arg(long, default_value = "local")]
    provider: String,
    /// Kind of the source that the records describe.
    #[arg(long, default_value = "code")]
    source_kind: String,
    /// Id that the provider gives the source, such as the name of a repository.
    #[arg(long, default_value = "local")]
    external_id: String,
    /// Revision of the source, such as a commit.
    #[arg(long, default_value = "unknown")]
    revision: String,
    /// Time until the envelope expires, in seconds; at most 86400.
    #[arg(long, default_value_t = 3_600)]
    lifetime_seconds: u32,
    /// Output file; default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Command {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New(command) => command.run(),
            Self::Sign { envelope, key, key_id, out } => {
                let key = input::signing_key(&key)?;
                let signed = sign(input::json(&envelope)?, &key, &key_id)?;
                input::write_json(&signed, out.as_deref())
            }
        }
    }
}

impl EvidenceNewArgs {
    fn run(self) -> anyhow::Result<()> {
        if !(1..=86_400).contains(&self.lifetime_seconds) {
            anyhow::bail!("--lifetime-seconds must be 1 to 86400");
        }
        let now = Clock::System.now();
        let envelope = self.envelope(records(input::json(&self.records)?, now)?, now);
        input::write_json(&envelope, self.out.as_deref())
    }

    fn envelope(&self, records: Vec<Json>, now: Timestamp) -> Json {
        let envelope_id = Uuid::now_v7();
        json!({
            "authority": self.authority,
            "collection_method": self.collection_method,
            "envelope_id": envelope_id,
            "expires_at": now.plus_ms(i64::from(self.lifetime_seconds) * 1_000),
            "idempotency_key": envelope_id,
            "issued_at": now,
            "records": records,
            "source": {
                "external_id": self.external_id,
                "kind": self.source_kind,
                "observed_at": now,
                "provider": self.provider,
                "revision": self.revision,
            },
            "workspace_id": self.workspace,
        })
    }
}

fn records(given: Json, now: Timestamp) -> anyhow::Result<Vec<Json>> {
    let found = match given {
        Json::Array(records) => records,
        Json::Object(mut object) => match object.remove("records") {
            Some(Json::Array(records)) => records,
            _ => anyhow::bail!("there is no array `records` in the file"),
        },
        _ => anyhow::bail!("the file must hold an array of records, or an object with `records`"),
    };
    if found.is_empty() || found.len() > 1_000 {
        anyhow::bail!("an envelope holds 1 to 1000 records, and the file has {}", found.len());
    }
    let filled = |(index, mut record): (usize, Json)| {
        let Some(members) = record.as_object_mut() else {
            anyhow::bail!("record {index} is no object");
        };
        members.entry("evidence_id").or_insert_with(|| json!(Uuid::now_v7()));
        members.entry("observed_at").or_insert_with(|| json!(now));
        Ok(record)
    };
    found.into_iter().enumerate().map(filled).collect()
}

fn sign(mut envelope: Json, key: &Ed25519PrivateKey, key_id: &str) -> anyhow::Result<Json> {
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

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

    #[test]
    fn records_are_found_and_filled_in() {
        let given =
            json!({ "records": [{ "kind": "sbom", "observed_at": "2026-01-01T00:00:00Z" }, {}] });
        let found = records(given, NOW).unwrap();
        assert_eq!(found[0]["observed_at"], "2026-01-01T00:00:00Z");
        assert_eq!(found[1]["observed_at"], "2023-11-14T22:13:20.000000Z");
        assert_ne!(found[0]["evidence_id"], found[1]["evidence_id"]);
    }

    #[test]
    fn files_without_records_are_refused_with_the_way_out() {
        for (given, told) in [
            (json!([]), "1 to 1000"),
            (json!({}), "no array `records`"),
            (json!([1]), "record 0"),
            (json!("x"), "must hold an array"),
        ] {
            let error = records(given, NOW).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn the_signature_covers_the_canonical_form_without_itself() {
        let key = Ed25519PrivateKey::generate();
        let signed = sign(json!({ "b": 1.0, "a": "é" }), &key, "k1").unwrap();
        assert_eq!(signed["signature"]["key_id"], "k1");
        let signature = STANDARD.decode(signed["signature"]["value"].as_str().unwrap()).unwrap();
        let message = signing::dsse_pae(signing::ENVELOPE_TYPE, "{\"a\":\"é\",\"b\":1}".as_bytes());
        assert!(signing::verify_ed25519_strict(&key.public_key(), &message, &signature));
    }

    #[test]
    fn signing_again_replaces_the_signature() {
        let key = Ed25519PrivateKey::generate();
        let once = sign(json!({ "a": 1 }), &key, "k1").unwrap();
        assert_eq!(sign(once.clone(), &key, "k1").unwrap(), once);
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        let key = Ed25519PrivateKey::generate();
        assert!(sign(json!({ "n": 9_007_199_254_740_993_u64 }), &key, "k").is_err());
        assert!(sign(json!([]), &key, "k").is_err());
    }
}
