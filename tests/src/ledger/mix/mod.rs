//! Requests of the load: every operation that writes, how often it is sent, and its effect on the
//! database.

mod changes;
mod creations;

use std::collections::HashMap;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};

use super::book::Effect;
use super::tenant::Tenant;
use crate::Client;

pub(crate) use changes::{CHANGES, DELETIONS};
pub(crate) use creations::CREATIONS;

/// An operation that creates a document.
#[derive(Debug)]
pub struct Creation {
    /// Operation id.
    pub operation: &'static str,
    /// Relative frequency of the operation.
    pub weight: u32,
    /// Collection of the document.
    pub collection: &'static str,
    /// JSON Pointer of the document's id in the response.
    pub id: &'static str,
    /// Members of the request that the document has unchanged; the first contains the marker. If
    /// empty, only the id is checked.
    pub kept: &'static [&'static str],
    /// Name of the event that the creation publishes, and the event's member with the document's
    /// id.
    pub event: Option<(&'static str, &'static str)>,
    /// Number of documents above which one is deleted instead of creating another.
    pub most: usize,
    /// Path below the workspace at which `GET` reads the document; `None` if there is none.
    pub read_at: Option<&'static str>,
    /// Creates the request with this marker; `None` if the workspace lacks a document that it
    /// refers to.
    pub draft: fn(&Tenant, &str, &mut StdRng) -> Option<Draft>,
}

/// An operation that changes a document.
#[derive(Debug)]
pub struct Change {
    /// Operation id.
    pub operation: &'static str,
    /// Relative frequency of the operation.
    pub weight: u32,
    /// Whether the request is a POST; otherwise it is a PATCH.
    pub posts: bool,
    /// Collection of the document.
    pub collection: &'static str,
    /// Path before the document's id.
    pub path: &'static str,
    /// Path after the document's id.
    pub suffix: &'static str,
    /// Selection of the changed document.
    pub target: Target,
    /// Name of the event that the change publishes, and the event's member with the document's id.
    pub event: Option<(&'static str, &'static str)>,
    /// Body of the request.
    pub body: ChangedBody,
}

impl Change {
    /// Returns whether the change may have no effect, because another request made the same change
    /// before. Its response then contains a version that it did not create.
    pub(super) fn may_change_nothing(&self) -> bool {
        self.target == Target::Recent && matches!(self.body, ChangedBody::None)
    }

    /// Returns whether the document has the marker afterwards, but not as a known member.
    pub(super) fn adds(&self) -> bool {
        matches!(self.body, ChangedBody::Other { kept: [], .. })
    }
}

/// Body of a change.
#[derive(Clone, Copy, Debug)]
pub enum ChangedBody {
    /// No body.
    None,
    /// A member whose value is the marker. The document has it afterwards.
    Member(&'static str),
    /// Another body.
    Other {
        /// Returns the body with this marker.
        body: fn(&str) -> Value,
        /// Members of the body that the document has afterwards.
        kept: &'static [&'static str],
    },
}

impl ChangedBody {
    /// Returns the body with this marker, and the members that the document has afterwards.
    fn with(&self, marker: &str) -> (Body, Map<String, Value>) {
        let (body, names) = match self {
            Self::None => return (Body::None, Map::new()),
            Self::Member(name) => (json!({ *name: marker }), std::slice::from_ref(name)),
            Self::Other { body, kept } => (body(marker), *kept),
        };
        let kept = kept(&body, names);
        (Body::Json(body), kept)
    }
}

/// Selection of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One of three documents that only clients change, so that each version is one acknowledged
    /// request.
    Contended,
    /// A recent document.
    Recent,
    /// A document that no other request will use.
    Taken,
}

/// An operation that deletes a document.
#[derive(Debug)]
pub struct Deletion {
    /// Operation id.
    pub operation: &'static str,
    /// Relative frequency of the operation.
    pub weight: u32,
    /// Collection of the document.
    pub collection: &'static str,
    /// Path before the document's id.
    pub path: &'static str,
    /// Name of the event that the deletion publishes, and the event's member with the document's
    /// id.
    pub event: Option<(&'static str, &'static str)>,
}

/// Relative frequency of rebuilding the control room.
const REBUILDS: u32 = 3;

/// Body of a request.
#[derive(Clone, Debug)]
pub enum Body {
    /// No body.
    None,
    /// JSON.
    Json(Value),
    /// `multipart/form-data` with the boundary `boundary`.
    Form(Vec<u8>),
}

/// Path, body and version of a request.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Path below the workspace.
    pub path: String,
    /// Body of the request.
    pub body: Body,
    /// Version for `If-Match`.
    pub seen: Option<u64>,
}

/// A request that can be sent repeatedly.
#[derive(Clone, Debug)]
pub struct Request {
    /// Operation id.
    pub operation: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Path, body and expected version.
    pub draft: Draft,
    /// Value of `Idempotency-Key`; `None` without one.
    pub key: Option<String>,
    /// Effect if it is acknowledged.
    pub effect: Effect,
}

impl Draft {
    /// Returns a draft with a JSON body and a path below the workspace.
    #[must_use]
    pub fn json(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), body: Body::Json(body), seen: None }
    }
}

impl Request {
    /// Builds the request for this client.
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

/// Returns the events that these operations publish: each name with the member of the data that is
/// the document's id.
pub(crate) fn events() -> HashMap<&'static str, &'static str> {
    let creations = CREATIONS.iter().filter_map(|kind| kind.event);
    let changes = CHANGES.iter().filter_map(|kind| kind.event);
    let deletions = DELETIONS.iter().filter_map(|kind| kind.event);
    creations.chain(changes).chain(deletions).collect()
}

/// Returns the next request of a workspace.
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

/// Returns a request of an operation that creates a document.
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

/// Returns a request that rebuilds the control room.
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
        Body::Form(_) | Body::None => kept(&json!({ "title": marker }), kind.kept),
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
    let (body, content) = kind.body.with(marker);
    let effect = Effect::Changes(kind, id.clone(), content);
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

/// Returns an upload's content with a marker: a scan with one finding.
#[must_use]
pub(crate) fn content(marker: &str) -> String {
    json!({
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
