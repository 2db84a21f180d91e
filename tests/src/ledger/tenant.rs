//! A workspace under load, with documents that requests can refer to.

use std::collections::HashMap;

use assurance_core::signing::{ENVELOPE_TYPE, Ed25519PrivateKey, dsse_pae};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Client;
use crate::artifacts::{form, id_of, sample};
use crate::client::send;

/// Number of documents of a collection that are remembered.
const RECENT: usize = 64;

/// A workspace with its users and documents.
#[derive(Debug)]
pub struct Tenant {
    /// The owner.
    pub owner: Client,
    /// A user who may only read.
    pub viewer: Client,
    /// A repository with uploads and findings.
    pub repository: String,
    /// A questionnaire that is never deleted.
    pub questionnaire: String,
    /// A conversation that is never deleted.
    pub conversation: String,
    /// Findings of the repository, with version and state.
    pub findings: Vec<Mutex<Finding>>,
    /// Documents that many requests change.
    pub contended: HashMap<&'static str, Vec<String>>,
    recent: Mutex<HashMap<&'static str, Vec<String>>>,
    key: Ed25519PrivateKey,
    key_id: String,
}

/// Last known state of a finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Id of the finding.
    pub id: String,
    /// `lifecycle_version` of the finding.
    pub version: u64,
    /// State of the finding.
    pub state: String,
}

impl Tenant {
    /// Creates the documents that requests refer to.
    pub async fn prepare(owner: Client, viewer: Client) -> Self {
        let repository = owner.repository("shop").await;
        for file in ["shop.sarif", "shop.cdx.json", "lodash.osv.json", "CODEOWNERS", "paths.txt"] {
            owner.upload(&repository, file, &sample(file)).await;
        }
        owner.audit(&repository).await;
        request_events(&owner).await;
        let (key, key_id) = producer(&owner).await;
        let conversation = "/v1/workspaces/{ws}/assistant/conversations";
        let conversation = owner.post(conversation, &json!({ "title": "Load" })).await.expect(201);
        let (questionnaire, questions) = questionnaire(&owner).await;
        let mut contended = contended(&owner, &repository).await;
        contended.insert("questionnaires.questions", questions);
        Self {
            questionnaire,
            contended,
            conversation: id_of(&conversation),
            findings: findings(&owner).await,
            recent: Mutex::default(),
            owner,
            viewer,
            repository,
            key,
            key_id,
        }
    }

    /// Remembers a document for later requests.
    pub fn remember(&self, collection: &'static str, id: &str) {
        let mut recent = self.recent.lock();
        let pool = recent.entry(collection).or_default();
        pool.push(id.to_owned());
        if pool.len() > RECENT {
            pool.remove(0);
        }
    }

    /// Returns a remembered document of a collection.
    pub fn recent(&self, collection: &str, rng: &mut StdRng) -> Option<String> {
        let recent = self.recent.lock();
        let pool = recent.get(collection).filter(|pool| !pool.is_empty())?;
        Some(pool[rng.random_range(0..pool.len())].clone())
    }

    /// Removes and returns the oldest remembered document.
    pub fn take(&self, collection: &str) -> Option<String> {
        let mut recent = self.recent.lock();
        let pool = recent.get_mut(collection).filter(|pool| !pool.is_empty())?;
        Some(pool.remove(0))
    }

    /// Returns the number of remembered documents of a collection.
    pub fn known(&self, collection: &str) -> usize {
        self.recent.lock().get(collection).map_or(0, Vec::len)
    }

    /// Returns a signed envelope.
    pub fn envelope(&self, key: &str) -> Value {
        let mut envelope = crate::envelope::unsigned(&self.owner.workspace, key);
        let canonical = area_evidence::canonical::jcs(&envelope);
        let signature = self.key.sign(&dsse_pae(ENVELOPE_TYPE, &canonical));
        envelope["signature"] =
            json!({ "key_id": self.key_id, "value": STANDARD.encode(signature) });
        envelope
    }
}

/// Creates a webhook for the events of all operations: the service enqueues only events that a
/// webhook requests. It is disabled, so that the events are not sent.
async fn request_events(owner: &Client) {
    const WEBHOOKS: &str = "/v1/workspaces/{ws}/webhooks";
    let events: Vec<_> = super::mix::events().into_keys().collect();
    let body = json!({ "url": "http://127.0.0.1:9/", "events": events });
    let webhook = owner.post(WEBHOOKS, &body).await.expect(201);
    let path = format!("{WEBHOOKS}/{}", id_of(&webhook));
    owner.change(Method::PATCH, &path, 1, &json!({ "active": false })).await.expect(200);
}

/// Creates a producer with a key that the workspace knows.
async fn producer(owner: &Client) -> (Ed25519PrivateKey, String) {
    const PRODUCERS: &str = "/v1/workspaces/{ws}/evidence-producers";
    let (key, key_id) = (Ed25519PrivateKey::generate(), "load".to_owned());
    let producer = owner.post(PRODUCERS, &json!({ "name": "load" })).await.expect(201);
    let body = json!({ "public_key": key.public_key_base64(), "key_id": key_id });
    owner.post(&format!("{PRODUCERS}/{}/keys", id_of(&producer)), &body).await.expect(201);
    (key, key_id)
}

/// Creates a questionnaire. Returns its id and those of its questions.
async fn questionnaire(owner: &Client) -> (String, Vec<String>) {
    let path = "/v1/workspaces/{ws}/questionnaires/import";
    let file = sample("questionnaire.csv");
    let parts = [("title", None, &b"Suppliers"[..]), ("file", Some("a.csv"), &file)];
    let request = owner.request(Method::POST, path).body(form(&parts));
    let request = request.header("content-type", "multipart/form-data; boundary=boundary");
    let made = send(request).await.expect(201);
    let questions = made["questions"].as_array().expect("questions").iter().map(id_of);
    (id_of(&made["questionnaire"]), questions.collect())
}

async fn findings(owner: &Client) -> Vec<Mutex<Finding>> {
    let page = owner.get("/v1/workspaces/{ws}/findings?limit=100").await.expect(200);
    let items = page["items"].as_array().expect("items").iter();
    let finding = |item: &Value| Finding {
        id: id_of(item),
        version: item["lifecycle_version"].as_u64().expect("a version"),
        state: item["state"].as_str().expect("a state").to_owned(),
    };
    items.map(finding).map(Mutex::new).collect()
}

/// Creates three documents of each kind that clients change by version.
async fn contended(owner: &Client, repository: &str) -> HashMap<&'static str, Vec<String>> {
    let mut made: HashMap<&'static str, Vec<String>> = HashMap::new();
    for number in 0..3 {
        let name = format!("contended-{number}");
        let kinds = [
            ("catalog.groups", "groups", json!({ "name": name, "trust_zone": "dmz" })),
            ("catalog.repositories", "repositories", json!({ "name": name })),
            ("catalog.services", "services", json!({ "name": name })),
            ("schedules.schedules", "audit-schedules", schedule(repository, &name)),
        ];
        for (collection, path, body) in kinds {
            let path = format!("/v1/workspaces/{{ws}}/{path}");
            let document = owner.post(&path, &body).await.expect(201);
            made.entry(collection).or_default().push(id_of(&document));
        }
    }
    made
}

/// Returns a schedule that is not due during a run.
#[must_use]
pub(crate) fn schedule(repository: &str, name: &str) -> Value {
    let hour = crate::envelope::now().0 / 3_600_000_000 % 24;
    json!({
        "name": name, "cadence": "daily", "local_hour": (hour + 12) % 24, "local_minute": 30,
        "timezone": "UTC", "repository_id": repository,
    })
}
