//! What the load consists of: every operation that writes, how often, and
//! what it leaves in the database if it is acknowledged.

mod changes;
mod creations;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value};

use super::book::Effect;
use super::tenant::Tenant;
use crate::Client;

pub(crate) use changes::{CHANGES, DELETIONS};
pub(crate) use creations::CREATIONS;

/// An operation that makes a document.
#[derive(Debug)]
pub struct Creation {
    /// The operation's id.
    pub operation: &'static str,
    /// How often it is chosen, relative to the others.
    pub weight: u32,
    /// Where the document is.
    pub collection: &'static str,
    /// Where its id is in the response.
    pub id: &'static str,
    /// Members of the request that the document has as they were sent; the
    /// first has the marker. Without any, only the id is looked for.
    pub kept: &'static [&'static str],
    /// The event of it, and its member with the id.
    pub event: Option<(&'static str, &'static str)>,
    /// From so many documents on, one is deleted instead.
    pub most: usize,
    /// Where `GET` with the id reads it, below the workspace.
    pub read_at: Option<&'static str>,
    /// The request with this marker; `None` if the workspace lacks something.
    pub draft: fn(&Tenant, &str, &mut StdRng) -> Option<Draft>,
}

/// An operation that makes a document's next version.
#[derive(Debug)]
pub struct Change {
    /// The operation's id.
    pub operation: &'static str,
    /// How often it is chosen, relative to the others.
    pub weight: u32,
    /// POST rather than PATCH.
    pub posts: bool,
    /// Where the document is.
    pub collection: &'static str,
    /// Its path is this, its id and `suffix`.
    pub path: &'static str,
    /// What follows the id.
    pub suffix: &'static str,
    /// Which document is changed.
    pub target: Target,
    /// Members of the request that the document then has.
    pub kept: &'static [&'static str],
    /// The event of it, and its member with the id.
    pub event: Option<(&'static str, &'static str)>,
    /// The body with this marker; null for none.
    pub body: fn(&str) -> Value,
}

impl Change {
    /// An act upon a document that others act upon too, and that may be as
    /// wanted already: its response then names a version that it did not make.
    pub(super) fn may_change_nothing(&self) -> bool {
        self.target == Target::Recent && (self.body)("").is_null()
    }
}

/// Which document of a collection a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One of three that only clients change, so that each version is one
    /// acknowledged request.
    Contended,
    /// One of the latest.
    Recent,
    /// One that no other request will be about.
    Taken,
}

/// An operation that deletes a document.
#[derive(Debug)]
pub struct Deletion {
    /// The operation's id.
    pub operation: &'static str,
    /// How often it is chosen, relative to the others.
    pub weight: u32,
    /// Where the document is.
    pub collection: &'static str,
    /// Its path is this and its id.
    pub path: &'static str,
    /// The event of it, and its member with the id.
    pub event: Option<(&'static str, &'static str)>,
}

/// How often the control room is computed anew, relative to the others.
const REBUILDS: u32 = 3;

/// A body.
#[derive(Clone, Debug)]
pub enum Body {
    /// No body.
    None,
    /// JSON.
    Json(Value),
    /// `multipart/form-data` with the boundary `boundary`.
    Form(Vec<u8>),
}

/// A request of one operation.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Below the workspace.
    pub path: String,
    /// Its body.
    pub body: Body,
    /// For `If-Match`.
    pub seen: Option<u64>,
}

/// A request to be sent, more than once if need be.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation's id.
    pub operation: &'static str,
    /// Its method.
    pub method: Method,
    /// Path, body and expected version.
    pub draft: Draft,
    /// The `Idempotency-Key`.
    pub key: Option<String>,
    /// What it does if it is acknowledged.
    pub effect: Effect,
}

impl Draft {
    /// JSON to a path below the workspace.
    #[must_use]
    pub fn json(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), body: Body::Json(body), seen: None }
    }
}

impl Request {
    /// As this client sends it.
    pub fn build(&self, client: &Client) -> RequestBuilder {
        let path = format!("/v1/workspaces/{{ws}}/{}", self.draft.path);
        let mut request = client.request(self.method.clone(), &path);
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(seen) = self.draft.seen {
            request = request.header("if-match", format!("\"{seen}\""));
        }
        match &self.draft.body {
            Body::None => request,
            Body::Json(body) => request.json(body),
            Body::Form(body) => request
                .header("content-type", "multipart/form-data; boundary=boundary")
                .body(body.clone()),
        }
    }
}

/// The next request of a workspace.
pub(crate) fn next(tenant: &Tenant, marker: &str, rng: &mut StdRng) -> Request {
    loop {
        let (creations, changes) = (total(CREATIONS, |c| c.weight), total(CHANGES, |c| c.weight));
        let deletions = total(DELETIONS, |d| d.weight);
        let at = rng.random_range(0..creations + changes + deletions + REBUILDS);
        let request = if at < creations {
            create(pick(CREATIONS, |c| c.weight, at), tenant, marker, rng)
        } else if at < creations + changes {
            change(pick(CHANGES, |c| c.weight, at - creations), tenant, marker, rng)
        } else if at < creations + changes + deletions {
            delete(pick(DELETIONS, |d| d.weight, at - creations - changes), tenant)
        } else {
            Some(rebuild())
        };
        if let Some(mut request) = request {
            let keyed = request.method == Method::POST;
            request.key = keyed.then(|| marker.to_owned());
            return request;
        }
    }
}

/// A request of one operation that makes a document.
pub(crate) fn of(
    operation: &str,
    tenant: &Tenant,
    marker: &str,
    rng: &mut StdRng,
) -> Option<Request> {
    let kind = CREATIONS.iter().find(|kind| kind.operation == operation)?;
    let request = create(kind, tenant, marker, rng)?;
    Some(Request { key: Some(marker.to_owned()), ..request })
}

/// Computes the control room anew.
fn rebuild() -> Request {
    Request {
        operation: "rebuild_control_room",
        method: Method::POST,
        draft: Draft { path: "control-room/rebuild".to_owned(), body: Body::None, seen: None },
        key: None,
        effect: Effect::Acts,
    }
}

fn total<T>(table: &[T], weight: fn(&T) -> u32) -> u32 {
    table.iter().map(weight).sum()
}

fn pick<T>(table: &'static [T], weight: fn(&T) -> u32, mut at: u32) -> &'static T {
    for row in table {
        if at < weight(row) {
            return row;
        }
        at -= weight(row);
    }
    &table[0]
}

fn create(
    kind: &'static Creation,
    tenant: &Tenant,
    marker: &str,
    rng: &mut StdRng,
) -> Option<Request> {
    if tenant.known(kind.collection) >= kind.most {
        let of_kind = |deletion: &&Deletion| deletion.collection == kind.collection;
        return delete(DELETIONS.iter().find(of_kind)?, tenant);
    }
    let draft = (kind.draft)(tenant, marker, rng)?;
    let content = match &draft.body {
        Body::Json(body) => kept(body, kind.kept),
        Body::Form(_) | Body::None => kept(&serde_json::json!({ "title": marker }), kind.kept),
    };
    let effect = Effect::Creates(kind, content);
    Some(Request { operation: kind.operation, method: Method::POST, draft, key: None, effect })
}

fn change(
    kind: &'static Change,
    tenant: &Tenant,
    marker: &str,
    rng: &mut StdRng,
) -> Option<Request> {
    let id = match kind.target {
        Target::Recent => tenant.recent(kind.collection, rng)?,
        Target::Taken => tenant.take(kind.collection)?,
        Target::Contended => {
            let documents = &tenant.contended[kind.collection];
            documents[rng.random_range(0..documents.len())].clone()
        }
    };
    let body = (kind.body)(marker);
    let effect = Effect::Changes(kind, id.clone(), kept(&body, kind.kept));
    let body = if body.is_null() { Body::None } else { Body::Json(body) };
    let path = kind.path.replace("{questionnaire}", &tenant.questionnaire);
    let draft = Draft { path: format!("{path}/{id}{}", kind.suffix), body, seen: None };
    Some(Request {
        operation: kind.operation,
        method: if kind.posts { Method::POST } else { Method::PATCH },
        draft,
        key: None,
        effect,
    })
}

fn delete(kind: &'static Deletion, tenant: &Tenant) -> Option<Request> {
    let id = tenant.take(kind.collection)?;
    let path = format!("{}/{id}", kind.path);
    Some(Request {
        operation: kind.operation,
        method: Method::DELETE,
        draft: Draft { path, body: Body::None, seen: None },
        key: None,
        effect: Effect::Deletes(kind, id),
    })
}

fn kept(body: &Value, names: &[&str]) -> Map<String, Value> {
    names.iter().map(|&name| (name.to_owned(), body[name].clone())).collect()
}

/// What is uploaded under a marker: a scan with one finding.
#[must_use]
pub(crate) fn content(marker: &str) -> String {
    serde_json::json!({
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "load", "version": "1.0" } },
            "results": [{
                "ruleId": "weak-hash", "message": { "text": format!("weak hash {marker}") },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": "src/hash.js" }, "region": { "startLine": 3 },
                } }],
            }],
        }],
    })
    .to_string()
}
