//! What every request passes, whoever answers it, from the outside in:
//! context and answer headers, compression, CORS where it is configured.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::cors::{AllowOrigin, CorsLayer};
use tracing::Instrument;

use super::context::{Context, traceparent};
use super::head;
use super::linger::linger;
use super::problem::{Pending, Refusal};
use super::standing::Asker;
use crate::app::App;

/// Bodies below this are sent as they are, in bytes.
const COMPRESS_ABOVE: u64 = 1024;

/// Marks an answer that tells a secret: compressed next to what an attacker
/// chooses, its length would give the secret away.
#[derive(Clone, Copy)]
pub(super) struct NotCompressed;

/// What surrounds a listener's router.
#[derive(Clone)]
struct Around {
    app: App,
    /// Whether rate limits apply there, and every answer tells of them.
    limited: bool,
}

/// Everything around the router for API clients.
pub(super) fn wrap(router: Router, app: &App) -> Router {
    around(router, Around { app: app.clone(), limited: true })
}

/// Everything around the router for operators.
pub(super) fn wrap_unlimited(router: Router, app: &App) -> Router {
    around(router, Around { app: app.clone(), limited: false })
}

fn around(router: Router, around: Around) -> Router {
    let unless_secret = |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| {
        extensions.get::<NotCompressed>().is_none()
    };
    let predicate = SizeAbove::new(COMPRESS_ABOVE).and(unless_secret);
    let mut router = router.layer(CompressionLayer::new().compress_when(predicate));
    let origins = &around.app.config.api.cors_origins;
    if !origins.is_empty() {
        router = router.layer(cors(origins));
    }
    router.layer(from_fn_with_state(around, surround))
}

/// Gives the request its context, and the answer its headers. Refusals are
/// rendered and panics caught here, so that no answer escapes its shape.
async fn surround(State(around): State<Around>, mut request: Request, next: Next) -> Response {
    let app = &around.app;
    let began = Instant::now();
    let context = Context::new(request.headers(), request.uri().path());
    let span = span(&context, &request);
    request.extensions_mut().insert(context.clone());
    let answered = AssertUnwindSafe(hand_on(&around, &context, request, next));
    let mut response = match answered.catch_unwind().instrument(span.clone()).await {
        Ok(response) => response,
        Err(panic) => {
            let refusal = Refusal::internal(anyhow::anyhow!("panic: {}", said(&*panic)));
            span.in_scope(|| refusal.render(&context.asked(&app.base_url)))
        }
    };
    if let Some(Pending(refusal)) = response.extensions_mut().remove::<Pending>() {
        let mut rendered = span.in_scope(|| refusal.render(&context.asked(&app.base_url)));
        carry_over(&response, &mut rendered);
        response = rendered;
    }
    add_headers(&context, response.headers_mut());
    if let Some(meter) = context.meter() {
        meter.answered(response.status().as_u16(), began.elapsed());
    }
    tracing::debug!(parent: &span, status = response.status().as_u16(), "answered");
    response
}

/// Hands on a request whose head is in order, and notes where the client stands
/// if no limit was asked.
async fn hand_on(around: &Around, context: &Context, request: Request, next: Next) -> Response {
    let app = &around.app;
    let (mut parts, body) = request.into_parts();
    let body = linger(&parts.headers, body);
    let asker = around.limited.then(|| Asker::of(&parts, app));
    let response = match head::check(&parts, app.config.limits.max_header_bytes) {
        Ok(()) => {
            head::allow_identity(&mut parts.headers);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(asker) = asker.filter(|_| !context.has_standing()) {
        context.stands(asker.standing(app));
    }
    response
}

fn span(context: &Context, request: &Request) -> tracing::Span {
    let span = tracing::info_span!(
        "request",
        request.id = context.request_id(),
        method = %request.method(),
        path = context.path(),
        trace.id = tracing::field::Empty,
        trace.parent = tracing::field::Empty,
    );
    if let Some((trace, parent)) = traceparent(request.headers()) {
        span.record("trace.id", trace);
        span.record("trace.parent", parent);
    }
    span
}

/// What the layers inside said about the answer stays said.
fn carry_over(from: &Response, to: &mut Response) {
    for name in [header::ALLOW, header::VARY] {
        if let Some(value) = from.headers().get(&name) {
            to.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
    }
    for name in [
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
    ] {
        if let Some(value) = from.headers().get(&name) {
            to.headers_mut().insert(name, value.clone());
        }
    }
}

fn add_headers(context: &Context, headers: &mut HeaderMap) {
    if let Ok(id) = HeaderValue::from_str(context.request_id()) {
        headers.insert("x-request-id", id);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(const { HeaderValue::from_static("no-store") });
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, const { HeaderValue::from_static("nosniff") });
    if let Some((policy, limit)) = context.rate_headers() {
        headers.insert("ratelimit-policy", policy);
        headers.insert("ratelimit", limit);
    }
}

fn cors(origins: &[String]) -> CorsLayer {
    let origins = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let name = header::HeaderName::from_static;
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_credentials(true)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::IF_MATCH,
            name("idempotency-key"),
            name("x-csrf-token"),
            name("x-request-id"),
        ])
        .expose_headers([
            header::ETAG,
            header::RETRY_AFTER,
            name("idempotent-replayed"),
            name("ratelimit"),
            name("ratelimit-policy"),
            name("x-request-id"),
        ])
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
