//! Executes a request to an area's operation. Each step refuses the request or passes it on, in the
//! order of the protocol.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body as HttpBody, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method as HttpMethod, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;

use super::body::{BodyPace, BodyReader, check_media_type};
use super::budget::TimeBudget;
use super::caller::AdmittedCaller;
use super::code::Code;
use super::context::RequestContext;
use super::parameters::RawParameters;
use super::problem::{MOST_VIOLATIONS, Refusal};
use super::received_content::ReceivedBlobGuard;
use super::{caller, conditional, forms, headers, json, long_arrays, parameters, session};
use assurance_contract::{CompiledRoute, CompiledSchema};
use assurance_core::domain::area::{Parameter, ReceivedBlob, RequestBody, Violation};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::{BodyKind, IdempotencyMode, Method, WorkspaceSource};
use assurance_service::app::call::{AreaRequest, CommittedResponse};
use assurance_service::app::{App, answer};
use assurance_service::registry::{RouteLookupResult, RouteMatch, Snapshot};
use assurance_store::blobs::StoredBlob;

/// Size from which a body is parsed and validated on the blocking threads, in bytes.
const LONG_BYTES: usize = 64 << 10;

/// Number of schema node visits from which a body is validated on the blocking threads.
const LONG_VISITS: u64 = 2_000_000;

/// Executes a request to an area's operation. Receives every request that is not one of the host's
/// own operations.
pub(super) async fn answer(
    State(app): State<App>,
    context: RequestContext,
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
    context.set_meter(&found.route.meter);
    tracing::Span::current().record("route", found.route.route.path.as_str());
    app.node.admit(found.area)?;
    let mut budget = TimeBudget::new(&app, found.route.deadline);
    let credential = budget.spend(caller::enter(&app, &found, &parts)).await?;
    let given =
        RawParameters::new(found.route, &found.path_values, parts.uri.query(), &parts.headers)?;
    let admitting = caller::admit(&app, &context, &found, credential.as_ref(), &given);
    let admitted = budget.spend(admitting).await?;

    let mut arriving =
        RequestValidation { app: &app, route: found.route, parts: &parts, wrong: Vec::new() };
    let content = arriving.open(body)?;
    let read = arriving.read(content).await?;
    let checking = arriving.checked(&given, read);
    let shaped = budget.spend_or(too_long_to_check, checking).await?;

    let admitted = match (admitted, &credential) {
        (Some(admitted), _) => admitted,
        (None, credential) => {
            let credential = credential.as_ref().ok_or_else(Refusal::not_found)?;
            let source = &found.route.route.workspace;
            let workspace = workspace_in_body(source, shaped.read.json.as_ref())?;
            let admitting = caller::by_membership(&app, &found, credential, workspace);
            let admitted = budget.spend(admitting).await?;
            session::spend_workspace(&app, &context, workspace, found.route.route.rate)?;
            admitted
        }
    };
    let (mut request, streamed) = area_request(&context, admitted, shaped);
    if let Some(content) = streamed {
        let stored = stream(&app, &found.area.manifest.name, request.workspace, content).await?;
        request.body = RequestBody::Blob(received(&stored, &parts));
        request.stored = Some(stored);
    }
    let content = request.stored.as_ref().map(|blob| ReceivedBlobGuard::new(&app.store, blob));
    let answering = Box::pin(async {
        let answered = answer::answer(&app, &snapshot, &found, request).await;
        if let Some(content) = content {
            content.end(&answered);
        }
        answered.map_err(|refused| Refusal::of_call(found.route, refused))
    });
    let answered = budget.spend(answering).await?;
    let reads = parts.method.is_safe() && !found.route.route.writes;
    Ok(if reads { conditional::respond(&parts.headers, answered) } else { respond(answered) })
}

fn find<'s, 'p>(snapshot: &'s Snapshot, parts: &'p Parts) -> Result<RouteMatch<'s, 'p>, Refusal> {
    let path = parts.uri.path();
    let found = match snapshot.route(method(&parts.method), path) {
        // HEAD must not write, and this GET writes.
        RouteLookupResult::Route(found)
            if parts.method == HttpMethod::HEAD && found.route.route.writes =>
        {
            snapshot.route(None, path)
        }
        found => found,
    };
    match found {
        RouteLookupResult::Route(found) => Ok(found),
        RouteLookupResult::MethodNotAllowed(allow) => Err(Refusal::method_not_allowed(allow)),
        RouteLookupResult::Nothing => Err(Refusal::new(Code::NotFound, "There is no such path.")
            .hint("/reference lists every path.")),
    }
}

/// Returns the routing method. HEAD is routed as GET; the response body is not sent.
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
    let text = json.and_then(|json| json[member].as_str());
    parameters::uuid(&format!("/{member}"), text).map(WorkspaceId)
}

/// A parsed request body.
struct ParsedBody {
    body: RequestBody,
    json: Option<Json>,
    /// Request body that is still to be received, if the route streams it to the blob store.
    streamed: Option<BodyReader>,
}

impl ParsedBody {
    fn of(body: RequestBody) -> Self {
        Self { body, json: None, streamed: None }
    }
}

/// A validated request to an area's operation.
struct CheckedRequest {
    parameters: Vec<Parameter>,
    read: ParsedBody,
    idempotency_key: Option<String>,
    if_match: Option<u64>,
}

/// A request during validation. All violations are collected and returned together.
struct RequestValidation<'r> {
    app: &'r App,
    route: &'r CompiledRoute,
    parts: &'r Parts,
    wrong: Vec<Violation>,
}

impl RequestValidation<'_> {
    /// Checks media type, encoding and announced size, then opens the body.
    fn open(&self, body: HttpBody) -> Result<Option<BodyReader>, Refusal> {
        let ignored =
            body.is_end_stream() || matches!(self.route.route.method, Method::Get | Method::Delete);
        let expected = match &self.route.route.body {
            BodyKind::None if ignored => return Ok(None),
            BodyKind::None => None,
            BodyKind::Json(_) => Some("application/json"),
            BodyKind::Multipart(_) => Some("multipart/form-data"),
            BodyKind::Blob => None,
        };
        headers::whole(&self.parts.headers)?;
        if let Some(expected) = expected {
            check_media_type(&self.parts.headers, &body, expected)?;
        }
        BodyReader::open(&self.parts.headers, body, self.route.max_body_bytes).map(Some)
    }

    async fn read(&mut self, content: Option<BodyReader>) -> Result<ParsedBody, Refusal> {
        let time = Duration::from_millis(u64::from(self.app.config.limits.body_timeout_ms));
        let Some(content) = content else {
            return Ok(ParsedBody::of(RequestBody::None));
        };
        match &self.route.route.body {
            BodyKind::Multipart(declared) => {
                let parts =
                    forms::read(&self.parts.headers, content, declared, time, &mut self.wrong);
                Ok(ParsedBody::of(RequestBody::Form(parts.await?)))
            }
            BodyKind::Blob => {
                Ok(ParsedBody { streamed: Some(content), ..ParsedBody::of(RequestBody::None) })
            }
            BodyKind::None => self.refuse_content(content, time).await,
            BodyKind::Json(_) => {
                let bytes = content.read(time).await?;
                let read = if bytes.len() < LONG_BYTES {
                    read_json(bytes)
                } else {
                    let reading = tokio::task::spawn_blocking(move || read_json(bytes));
                    reading.await.map_err(Refusal::internal)?
                };
                Ok(read.unwrap_or_else(|wrong| {
                    self.wrong.push(wrong);
                    ParsedBody::of(RequestBody::Json(String::new()))
                }))
            }
        }
    }

    /// Reads the body of an operation that has none. It may be empty or `{}`, so the fingerprint of
    /// an idempotency key need not include it.
    async fn refuse_content(
        &mut self,
        content: BodyReader,
        time: Duration,
    ) -> Result<ParsedBody, Refusal> {
        if !is_blank(&content.read(time).await?) {
            let message = "must be empty or `{}`, because the operation has none";
            self.wrong.push(violation("", message));
        }
        Ok(ParsedBody::of(RequestBody::None))
    }

    /// Validates parameters, headers and body.
    async fn checked(
        &mut self,
        given: &RawParameters<'_>,
        mut read: ParsedBody,
    ) -> Result<CheckedRequest, Refusal> {
        let if_match = headers::if_match(&self.parts.headers)?;
        let parameters = given.read(self.route, &mut self.wrong);
        let idempotency_key = self.idempotency_key();
        let mut more = 0;
        if let (Some(schema), Some(json)) = (&self.route.body, read.json.take()) {
            let room = MOST_VIOLATIONS.saturating_sub(self.wrong.len());
            let ((wrong, beyond), json) = if self.is_long(&read.body) {
                let schema = Arc::clone(schema);
                self.away(move || (violations(&schema, &json, room), json)).await?
            } else {
                (violations(schema, &json, room), json)
            };
            read.json = Some(json);
            self.wrong.extend(wrong);
            more = beyond;
        }
        if !self.wrong.is_empty() {
            return Err(Refusal::invalid(&self.wrong, more));
        }
        Ok(CheckedRequest { parameters, read, idempotency_key, if_match })
    }

    /// Whether validating a body may block a serving thread for too long. The estimate is the
    /// number of values, bounded by the body's size, times the cost of the schema.
    fn is_long(&self, body: &RequestBody) -> bool {
        let RequestBody::Json(text) = body else { return false };
        let bytes = text.len() as u64;
        bytes >= LONG_BYTES as u64 || bytes.saturating_mul(self.route.body_nodes) >= LONG_VISITS
    }

    /// Runs a check on the blocking threads. The number of concurrent checks is limited for each
    /// version of an area.
    async fn away<T: Send + 'static>(
        &self,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let long_checks = Arc::clone(&self.route.long_checks);
        let place = long_checks.acquire_owned().await.map_err(Refusal::internal)?;
        let checking = tokio::task::spawn_blocking(move || {
            let checked = check();
            // Held until the check ends, even if the request was cancelled.
            drop(place);
            checked
        });
        checking.await.map_err(Refusal::internal)
    }

    fn idempotency_key(&mut self) -> Option<String> {
        let required = match self.route.route.idempotency {
            IdempotencyMode::None => return None,
            IdempotencyMode::Optional => false,
            IdempotencyMode::Required | IdempotencyMode::KeptByArea => true,
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

/// Returns at most `most` violations of a body's schema, and the number of further ones.
fn violations(schema: &CompiledSchema, body: &Json, most: usize) -> (Vec<Violation>, usize) {
    let mut too_long = long_arrays::find(schema.schema(), body);
    if too_long.is_empty() {
        return schema.violations(body, most);
    }
    let more = too_long.len().saturating_sub(most);
    too_long.truncate(most);
    (too_long, more)
}

/// Whether a body is empty or an empty JSON object, which some clients send instead of no body.
fn is_blank(body: &[u8]) -> bool {
    let mut written = body.iter().filter(|byte| !byte.is_ascii_whitespace()).peekable();
    written.peek().is_none() || written.eq(b"{}")
}

/// Parses a JSON body. The area receives the original text. If it writes an integer as `3.0`, the
/// area receives the parsed value, serialized again.
fn read_json(bytes: Vec<u8>) -> Result<ParsedBody, Violation> {
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
    Ok(ParsedBody { json: Some(parsed.value), ..ParsedBody::of(RequestBody::Json(text)) })
}

fn too_long_to_check() -> Refusal {
    Refusal::new(
        Code::Unavailable,
        "The body was not validated in time; the request had no effect.",
    )
    .hint("Send the request again after Retry-After, or send a smaller body.")
    .retry_after(1)
}

/// Returns the request for the area, and the body content that is still to be written to the blob
/// store; `None` unless the route streams.
fn area_request(
    context: &RequestContext,
    admitted: AdmittedCaller,
    shaped: CheckedRequest,
) -> (AreaRequest, Option<BodyReader>) {
    let AdmittedCaller { caller, workspace, claims } = admitted;
    let CheckedRequest { parameters, read, idempotency_key, if_match } = shaped;
    let request = AreaRequest {
        id: context.request_id().into(),
        caller,
        workspace,
        parameters,
        body: read.body,
        json: read.json,
        stored: None,
        idempotency_key,
        if_match,
        link: claims,
    };
    (request, read.streamed)
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
    mut content: BodyReader,
) -> Result<StoredBlob, Refusal> {
    let limits = &app.config.limits;
    let least_rate = NonZeroU32::new(limits.min_upload_rate).unwrap_or(NonZeroU32::MIN);
    let idle = Duration::from_millis(u64::from(limits.body_timeout_ms));
    let pace = BodyPace::begin(idle, least_rate);
    let mut upload = app.store.blobs().upload(workspace, area);
    while let Some(piece) = content.next_at(pace).await? {
        upload.write(piece).await?;
    }
    Ok(upload.finish().await?)
}

/// Converts a committed response to an HTTP response.
pub(super) fn respond(answered: CommittedResponse) -> Response {
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
