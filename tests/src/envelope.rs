//! Evidence envelopes, signed with `assurance evidence sign` as a producer does.

use assurance_core::domain::time::{Clock, Timestamp};
use serde_json::{Value, json};

use crate::artifacts::path_at;
use crate::{Answer, Client, TestHost};

const PRODUCERS: &str = "/v1/workspaces/{ws}/evidence-producers";
const ENVELOPES: &str = "/v1/workspaces/{ws}/evidence-envelopes";

/// One hour in milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// An Ed25519 key of a producer in a file.
#[derive(Debug)]
pub struct ProducerKey {
    /// File of the private key, in the host's folder.
    pub file: String,
    /// Public key in base64, for the service.
    pub public_key: String,
}

/// Returns the current time.
#[must_use]
pub fn now() -> Timestamp {
    Clock::System.now()
}

/// Returns an unsigned envelope with one valid record.
#[must_use]
pub fn unsigned(workspace: &str, idempotency_key: &str) -> Value {
    let now = now();
    json!({
        "authority": "ci",
        "collection_method": "push",
        "envelope_id": uuid::Uuid::now_v7(),
        "expires_at": now.plus_ms(HOUR_MS),
        "idempotency_key": idempotency_key,
        "issued_at": now,
        "records": [record("a build ran")],
        "source": {
            "external_id": "run-1", "kind": "code", "observed_at": now,
            "provider": "example-ci", "revision": "0f1e2d3c",
        },
        "workspace_id": workspace,
    })
}

/// Returns a valid record.
#[must_use]
pub fn record(summary: &str) -> Value {
    json!({
        "confidence": 0.9,
        "content_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "evidence_id": uuid::Uuid::now_v7(),
        "kind": "build",
        "observed_at": now(),
        "provider": "example-ci",
        "source_ref": "refs/heads/main",
        "source_type": "code",
        "subject_key": "repository:example",
        "summary": summary,
    })
}

impl TestHost {
    /// Creates a key pair with the command line.
    #[must_use]
    pub fn generate_key(&self) -> ProducerKey {
        let file = format!("key-{}.pem", uuid::Uuid::now_v7());
        let made = self.cli(&["key", "generate", "--out", &file]);
        let public_key = made["public_key"].as_str().expect("a public key").to_owned();
        ProducerKey { file, public_key }
    }

    /// Signs an envelope with the command line.
    #[must_use]
    pub fn sign(&self, key: &ProducerKey, key_id: &str, envelope: &Value) -> Value {
        let file = format!("envelope-{}.json", uuid::Uuid::now_v7());
        self.write(&file, envelope.to_string().as_bytes());
        self.cli(&["evidence", "sign", "--key", &key.file, "--key-id", key_id, &file])
    }

    /// Creates a producer with a key that the workspace knows by this id.
    pub async fn create_producer(&self, admin: &Client, key_id: &str) -> ProducerKey {
        let key = self.generate_key();
        let producer = admin.post(PRODUCERS, &json!({ "name": key_id })).await.expect(201);
        let body = json!({ "public_key": key.public_key, "key_id": key_id });
        let keys = format!("{}/keys", path_at(PRODUCERS, &producer));
        admin.post(&keys, &body).await.expect(201);
        key
    }

    /// Creates a producer with a key, signs an envelope, and submits it.
    pub async fn submit_evidence(&self, admin: &Client, unsigned: &Value) -> Answer {
        let key = unsigned["idempotency_key"].as_str().expect("a key");
        let producer = self.create_producer(admin, key).await;
        admin.post_once(ENVELOPES, key, &self.sign(&producer, key, unsigned)).await
    }
}
