//! One valid request for each operation of the contract, in a workspace with the referenced
//! resources.

use assurance_tests::artifacts::{form, id_of, sample};
pub(crate) use assurance_tests::host::AREAS;
use assurance_tests::{Client, TestHost, envelope};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// A request that can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct RepeatableRequest {
    method: Method,
    path: String,
    content: Content,
    key: Option<String>,
}

#[derive(Clone, Debug)]
enum Content {
    None,
    Json(Value),
    Questionnaire,
}

impl RepeatableRequest {
    /// Builds the request for a client, with a query.
    pub(crate) fn request(&self, client: &Client, query: &str) -> RequestBuilder {
        let request = client.request(self.method.clone(), &format!("{}{query}", self.path));
        let request = match &self.key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        match &self.content {
            Content::None => request,
            Content::Json(body) => request.json(body),
            Content::Questionnaire => {
                let file = sample("questionnaire.csv");
                let parts = [("title", None, &b"Suppliers"[..]), ("file", Some("a.csv"), &file)];
                request
                    .header("content-type", "multipart/form-data; boundary=boundary")
                    .body(form(&parts))
            }
        }
    }

    /// Returns the request with an idempotency key.
    pub(crate) fn under_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }
}

/// Requests for all operations.
#[derive(Debug)]
pub(crate) struct Requests {
    workspace: String,
    repository: String,
    finding: String,
    upload: String,
    groups: [String; 2],
    envelope: Value,
    /// Signed envelope with the same id but other content.
    other_envelope: Value,
}

impl Requests {
    /// Creates the resources that the requests refer to.
    pub(crate) async fn prepare(host: &TestHost, ada: &Client) -> Self {
        let repository = ada.repository("shop").await;
        let upload = ada.upload(&repository, "shop.sarif", &sample("shop.sarif")).await;
        ada.audit(&repository).await;
        let findings = ada.get("/v1/workspaces/{ws}/findings").await.expect(200);
        let groups = [group(ada, "web").await, group(ada, "payments").await];
        let (envelope, other_envelope) = envelopes(host, ada).await;
        Self {
            workspace: ada.workspace.clone(),
            finding: id_of(&findings["items"][0]),
            upload: id_of(&upload),
            repository,
            groups,
            envelope,
            other_envelope,
        }
    }

    /// Returns a valid request for an operation of the contract.
    pub(crate) fn of(&self, operation: &Value) -> RepeatableRequest {
        let n = operation["n"].as_u64().expect("a number");
        let path = operation["path"].as_str().expect("a path");
        let path = path.replace("{workspace_id}", "{ws}").replace("{upload_id}", &self.upload);
        let method = operation["method"].as_str().expect("a method");
        RepeatableRequest {
            method: method.parse().expect("a method"),
            path,
            content: self.content(n),
            key: self.key(n, &self.envelope),
        }
    }

    /// Returns a request that conflicts with the valid one after that was executed.
    pub(crate) fn conflicting(
        &self,
        n: u64,
        good: &RepeatableRequest,
    ) -> Option<RepeatableRequest> {
        match n {
            3 => Some(RepeatableRequest {
                content: Content::Json(self.other_envelope.clone()),
                key: self.key(n, &self.other_envelope),
                ..good.clone()
            }),
            5 | 7 | 12 => Some(good.clone()),
            _ => None,
        }
    }

    fn key(&self, n: u64, envelope: &Value) -> Option<String> {
        match n {
            3 => envelope["idempotency_key"].as_str().map(str::to_owned),
            10 => Some("requests-10".to_owned()),
            _ => None,
        }
    }

    fn content(&self, n: u64) -> Content {
        let body = match n {
            3 => self.envelope.clone(),
            5 => json!({
                "name": "Main", "base_url": "https://models.example.com/v1",
                "api_key": "sk-0123456789", "model_ids": ["small-1"],
            }),
            7 => self.program(),
            8 => json!({}),
            9 => json!({
                "name": "Nightly", "cadence": "daily", "local_hour": 3, "local_minute": 30,
                "repository_id": self.repository, "timezone": "Europe/Berlin",
            }),
            10 => json!({ "subject": "Login fails", "description": "Since this morning." }),
            12 => json!({
                "relationship_kind": "depends_on",
                "source_group_id": self.groups[0], "target_group_id": self.groups[1],
            }),
            13 => json!({ "events": ["audit.completed"], "url": "https://example.com/hook" }),
            14 => json!({ "workspace_id": self.workspace }),
            18 => return Content::Questionnaire,
            _ => return Content::None,
        };
        Content::Json(body)
    }

    fn program(&self) -> Value {
        json!({
            "finding_id": self.finding,
            "title": "No query is built from user input",
            "rationale": "One injection is enough.",
            "steps": [{
                "invariant_id": "no-sql-injection", "invariant_version": "1",
                "owner_scope": "shop/web", "repository_ids": [self.repository],
                "title": "Use bound parameters",
                "verification_predicate": "findings.open == 0",
            }],
        })
    }
}

async fn group(ada: &Client, name: &str) -> String {
    let body = json!({
        "name": name, "trust_zone": name, "data_classification": "internal",
        "member_ids": [], "identities": [],
    });
    id_of(&ada.post("/v1/workspaces/{ws}/groups", &body).await.expect(201))
}

/// Creates two authentic envelopes with the same id, but other content and keys.
async fn envelopes(host: &TestHost, ada: &Client) -> (Value, Value) {
    let key = host.create_producer(ada, "requests").await;
    let first = envelope::unsigned(&ada.workspace, "requests-envelope-1");
    let mut second = envelope::unsigned(&ada.workspace, "requests-envelope-2");
    second["envelope_id"] = first["envelope_id"].clone();
    second["authority"] = json!("somebody else");
    (host.sign(&key, "requests", &first), host.sign(&key, "requests", &second))
}
