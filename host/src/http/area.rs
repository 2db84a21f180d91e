//! The life of a request for an area's operation, from route to answer: each
//! step refuses or hands on, in the order the protocol names.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method as HttpMethod, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;

use super::body::{Content, Pace, check_media_type};
use super::budget::Budget;
use super::caller::Admitted;
use super::code::Code;
use super::context::Context;
use super::parameters::Given;
use super::problem::{MOST_VIOLATIONS, Refusal};
use super::{caller, forms, headers, json, session};
use crate::app::call::{Answered, Incoming};
use crate::app::{App, answer};
use crate::domain::area::{Body, Parameter, ReceivedBlob, Violation};
use crate::domain::id::WorkspaceId;
use crate::domain::manifest::{BodyKind, Idempotency, Method, WorkspaceSource};
use crate::registry::{self, Found, Match, RouteContract, Snapshot};
use crate::store::blobs::StoredBlob;

/// Bodies of so many bytes are parsed and checked away from the serving threads.
const LONG_BYTES: usize = 64 << 10;

/// So many visits of a schema's nodes are.
const LONG_VISITS: u64 = 2_000_000;

/// Answers whatever the host does not answer itself.
pub(super) async fn answer(
    State(app): State<App>,
    context: Context,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let snapshot = app.registry.snapshot();
    let found = match find(&snapshot, &parts) {
        Ok(found) => found,
        Err(unknown) => {
            app.node.admit_unknown_path(&snapshot)?;
            return Err(unknown);
        }
    };
    context.counts_for(&found.route.meter);
    app.node.admit(found.area)?;
    let mut budget = Budget::new(&app, found.route.deadline);
    let principal = budget.spend(caller::enter(&app, &found, &parts)).await?;
    let given = Given::new(found.route, &found.path_values, parts.uri.query(), &parts.headers)?;
    let admitting = caller::admit(&app, &context, &found, principal.as_ref(), &given);
    let admitted = budget.spend(admitting).await?;

    let mut arriving = Arriving { app: &app, route: found.route, parts: &parts, wrong: Vec::new() };
    let content = arriving.open(body)?;
    let read = arriving.read(content).await?;
    let checking = arriving.checked(&given, read);
    let shaped = budget.spend_or(too_long_to_check, checking).await?;

    let Admitted { caller, workspace, claims } = match (admitted, &principal) {
        (Some(admitted), _) => admitted,
        (None, principal) => {
            let principal = principal.as_ref().ok_or_else(Refusal::not_found)?;
            let source = &found.route.route.workspace;
            let workspace = workspace_in_body(source, shaped.read.json.as_ref())?;
            let admitting = caller::by_membership(&app, &found, principal, workspace);
            let admitted = budget.spend(admitting).await?;
            session::spend_workspace(&app, &context, workspace, found.route.route.rate)?;
            admitted
        }
    };
    let mut incoming = receive(&app, &found, workspace, shaped, &parts).await?;
    incoming.link = claims;
    let id = context.request_id();
    let answering = Box::pin(async {
        let answered = answer::answer(&app, &snapshot, &found, caller, incoming, id).await;
        answered.map(respond).map_err(|refused| Refusal::of_call(found.route, refused))
    });
    budget.spend(answering).await
}

fn find<'s, 'p>(snapshot: &'s Snapshot, parts: &'p Parts) -> Result<Match<'s, 'p>, Refusal> {
    let path = parts.uri.path();
    let found = match snapshot.route(method(&parts.method), path) {
        // Who asks for a head only looks, and this GET would write.
        Found::Route(found) if parts.method == HttpMethod::HEAD && found.route.route.writes => {
            snapshot.route(None, path)
        }
        found => found,
    };
    match found {
        Found::Route(found) => Ok(found),
        Found::MethodNotAllowed(allow) => Err(Refusal::method_not_allowed(allow)),
        Found::Nothing => Err(Refusal::new(Code::NotFound, "There is no such path.")
            .hint("GET /openapi.json lists every path that answers.")),
    }
}

/// A HEAD is a GET whose body is not sent.
fn method(method: &HttpMethod) -> Option<Method> {
    match *method {
        HttpMethod::GET | HttpMethod::HEAD => Some(Method::Get),
        HttpMethod::POST => Some(Method::Post),
        HttpMethod::PUT => Some(Method::Put),
        HttpMethod::PATCH => Some(Method::Patch),
        HttpMethod::DELETE => Some(Method::Delete),
        _ => None,
    }
}

fn workspace_in_body(
    source: &WorkspaceSource,
    json: Option<&Json>,
) -> Result<WorkspaceId, Refusal> {
    let member = match source {
        WorkspaceSource::BodyMember(member) => member.as_str(),
        WorkspaceSource::Path | WorkspaceSource::SignedLink(_) => "workspace_id",
    };
    let text = json.and_then(|json| json[member].as_str()).unwrap_or_default();
    let id = registry::canonical_uuid(text);
    id.map(WorkspaceId).ok_or_else(|| Refusal::invalid_one(&format!("/{member}"), "must be a UUID"))
}

/// What a body turned out to be.
struct Read {
    body: Body,
    json: Option<Json>,
    /// Still arriving, for a route that streams.
    streamed: Option<Content>,
}

/// A request of the right shape.
struct Shaped {
    parameters: Vec<Parameter>,
    read: Read,
    idempotency_key: Option<String>,
    if_match: Option<u64>,
}

/// A request whose body and parameters are being checked; everything wrong
/// with its shape is gathered and told at once.
struct Arriving<'r> {
    app: &'r App,
    route: &'r RouteContract,
    parts: &'r Parts,
    wrong: Vec<Violation>,
}

impl Arriving<'_> {
    /// Media type, encoding and announced size.
    fn open(&self, body: HttpBody) -> Result<Option<Content>, Refusal> {
        let expected = match &self.route.route.body {
            BodyKind::None => return Ok(None),
            BodyKind::Json(_) => Some("application/json"),
            BodyKind::Multipart(_) => Some("multipart/form-data"),
            BodyKind::Blob => None,
        };
        headers::whole(&self.parts.headers)?;
        if let Some(expected) = expected {
            check_media_type(&self.parts.headers, &body, expected)?;
        }
        Content::open(&self.parts.headers, body, self.route.max_body_bytes).map(Some)
    }

    async fn read(&mut self, content: Option<Content>) -> Result<Read, Refusal> {
        let time = Duration::from_millis(u64::from(self.app.config.limits.body_timeout_ms));
        let Some(content) = content else {
            return Ok(Read { body: Body::None, json: None, streamed: None });
        };
        match &self.route.route.body {
            BodyKind::Multipart(declared) => {
                let parts =
                    forms::read(&self.parts.headers, content, declared, time, &mut self.wrong);
                Ok(Read { body: Body::Form(parts.await?), json: None, streamed: None })
            }
            BodyKind::Blob => Ok(Read { body: Body::None, json: None, streamed: Some(content) }),
            BodyKind::None | BodyKind::Json(_) => {
                let bytes = content.read(time).await?;
                let read = if bytes.len() < LONG_BYTES {
                    read_json(bytes)
                } else {
                    let reading = tokio::task::spawn_blocking(move || read_json(bytes));
                    reading.await.map_err(Refusal::internal)?
                };
                Ok(read.unwrap_or_else(|wrong| {
                    self.wrong.push(wrong);
                    Read { body: Body::Json(String::new()), json: None, streamed: None }
                }))
            }
        }
    }

    /// Everything about the shape of the request.
    async fn checked(&mut self, given: &Given<'_>, mut read: Read) -> Result<Shaped, Refusal> {
        let if_match = headers::if_match(&self.parts.headers)?;
        let parameters = given.read(self.route, &mut self.wrong);
        let idempotency_key = self.idempotency_key();
        let mut more = 0;
        if let (Some(schema), Some(json)) = (&self.route.body, read.json.take()) {
            let room = MOST_VIOLATIONS.saturating_sub(self.wrong.len());
            let ((wrong, beyond), json) = if self.is_long(&read.body) {
                let schema = Arc::clone(schema);
                self.away(move || (registry::violations(&schema, &json, room), json)).await?
            } else {
                (registry::violations(schema, &json, room), json)
            };
            read.json = Some(json);
            self.wrong.extend(wrong);
            more = beyond;
        }
        if !self.wrong.is_empty() {
            let named = self.wrong.len().min(MOST_VIOLATIONS);
            let more = more + self.wrong.len() - named;
            return Err(Refusal::invalid(&self.wrong[..named], more));
        }
        Ok(Shaped { parameters, read, idempotency_key, if_match })
    }

    /// Whether checking a body may take longer than a serving thread may wait:
    /// its bytes bound the values in it, and each may meet all of the schema.
    fn is_long(&self, body: &Body) -> bool {
        let Body::Json(text) = body else { return false };
        let bytes = text.len() as u64;
        bytes >= LONG_BYTES as u64 || bytes.saturating_mul(self.route.body_nodes) >= LONG_VISITS
    }

    /// Runs a check away from the serving threads, a bounded number of them at
    /// a time for each version of an area.
    async fn away<T: Send + 'static>(
        &self,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let long_checks = Arc::clone(&self.route.long_checks);
        let place = long_checks.acquire_owned().await.map_err(Refusal::internal)?;
        let checking = tokio::task::spawn_blocking(move || {
            let checked = check();
            // Held until the check ends, even if nobody waits for it any more.
            drop(place);
            checked
        });
        checking.await.map_err(Refusal::internal)
    }

    fn idempotency_key(&mut self) -> Option<String> {
        let required = match self.route.route.idempotency {
            Idempotency::None => return None,
            Idempotency::Optional => false,
            Idempotency::Required | Idempotency::KeptByArea => true,
        };
        match headers::idempotency_key(&self.parts.headers, required) {
            Ok(key) => key,
            Err((name, message)) => {
                self.wrong.push(violation(name, message));
                None
            }
        }
    }
}

/// The text goes to the area as it came, where that is how it was read; the
/// parsed value is for checking.
fn read_json(bytes: Vec<u8>) -> Result<Read, Violation> {
    let parsed = match std::str::from_utf8(&bytes) {
        Err(_) => Err(violation("", "is not UTF-8")),
        Ok("") => Err(violation("", "is required")),
        Ok(text) => json::parse(text),
    }?;
    let text = if parsed.as_written {
        String::from_utf8(bytes).unwrap_or_default()
    } else {
        parsed.value.to_string()
    };
    Ok(Read { body: Body::Json(text), json: Some(parsed.value), streamed: None })
}

fn too_long_to_check() -> Refusal {
    Refusal::new(Code::Unavailable, "The body was not checked in time; nothing was carried out.")
        .hint("Send the request again after Retry-After, or send a smaller body.")
        .retry_after(1)
}

/// Completes the request. A streamed body goes to the blob store now; what a
/// refused call leaves there no row names, and it is swept later.
async fn receive(
    app: &App,
    found: &Match<'_, '_>,
    workspace: WorkspaceId,
    shaped: Shaped,
    parts: &Parts,
) -> Result<Incoming, Refusal> {
    let Shaped { parameters, read, idempotency_key, if_match } = shaped;
    let mut incoming = Incoming {
        workspace,
        parameters,
        body: read.body,
        json: read.json,
        stored: None,
        idempotency_key,
        if_match,
        link: None,
    };
    if let Some(content) = read.streamed {
        let stored = stream(app, &found.area.manifest.name, workspace, content).await?;
        incoming.body = Body::Blob(received(&stored, parts));
        incoming.stored = Some(stored);
    }
    Ok(incoming)
}

fn received(stored: &StoredBlob, parts: &Parts) -> ReceivedBlob {
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    ReceivedBlob {
        name: format!("received/{}", uuid::Uuid::now_v7()),
        size: stored.size,
        sha256: stored.sha256.clone(),
        content_type: content_type.map(str::to_owned),
    }
}

async fn stream(
    app: &App,
    area: &str,
    workspace: WorkspaceId,
    mut content: Content,
) -> Result<StoredBlob, Refusal> {
    let limits = &app.config.limits;
    let least_rate = NonZeroU32::new(limits.min_upload_rate).unwrap_or(NonZeroU32::MIN);
    let idle = Duration::from_millis(u64::from(limits.body_timeout_ms));
    let pace = Pace::begin(idle, least_rate);
    let mut upload = app.store.blobs().upload(workspace, area);
    while let Some(piece) = content.next_at(pace).await? {
        upload.write(piece).await?;
    }
    Ok(upload.finish().await?)
}

/// A success as HTTP says it.
pub(super) fn respond(answered: Answered) -> Response {
    let status = StatusCode::from_u16(answered.status).unwrap_or(StatusCode::OK);
    let mut response = match answered.body {
        Some(body) => {
            const JSON: HeaderValue = HeaderValue::from_static("application/json");
            (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
        }
        None => status.into_response(),
    };
    let headers = response.headers_mut();
    let tag = answered.version.map(|version| HeaderValue::from_str(&format!("\"{version}\"")));
    if let Some(Ok(tag)) = tag {
        headers.insert(header::ETAG, tag);
    }
    if answered.replayed {
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

fn violation(pointer: &str, message: &str) -> Violation {
    Violation { pointer: pointer.to_owned(), message: message.to_owned() }
}
