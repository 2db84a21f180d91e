//! The layers around the router of a listener.
//!
//! [`wrap`] lists the layers and [`every_request`] the steps, one file each. The steps are one
//! layer because axum allocates a future for every layer of functions.

mod compression;
mod cors;
mod linger;
mod metrics;
mod problems;
mod rate_limit;
mod response_headers;
mod span;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::cors::CorsLayer;
use tracing::Instrument;

use super::context::RequestContext;
use super::head;
use assurance_service::app::App;

pub(super) use compression::NotCompressed;

#[derive(Clone)]
struct LayerState {
    app: App,
    /// Whether rate limits apply to the listener. If so, every response has their headers.
    limited: bool,
    /// `None` if no origin is configured.
    cors: Option<Arc<CorsLayer>>,
}

/// Adds the middleware layers of the API listener to its router.
pub(super) fn wrap(router: Router, app: &App) -> Router {
    around(router, app, true)
}

/// Adds the middleware layers of the operators' listener to its router.
pub(super) fn wrap_unlimited(router: Router, app: &App) -> Router {
    around(router, app, false)
}

/// Adds the middleware layers around a router, innermost first.
fn around(router: Router, app: &App, limited: bool) -> Router {
    let router = router.layer(compression::layer());
    let cors = cors::layer(&app.config.api.cors_origins);
    let router = match &cors {
        Some(layer) => router.layer(layer.clone()),
        None => router,
    };
    let state = LayerState { app: app.clone(), limited, cors: cors.map(Arc::new) };
    router.layer(from_fn_with_state(state, every_request))
}

/// Runs the steps of the middleware, outermost first. Every refusal and every panic becomes a
/// problem document here, so no response has another shape.
async fn every_request(
    State(state): State<LayerState>,
    mut request: Request,
    next: Next,
) -> Response {
    let context = RequestContext::new(request.headers(), request.uri().path());
    let began = Instant::now();
    let span = span::of(&context, &request);
    request.extensions_mut().insert(context.clone());
    let origin = request.headers().get(header::ORIGIN).cloned();
    let responding = async {
        let response = problems::catch_panics(forward(&state, &context, request, next)).await;
        problems::render(&state, &context, origin, response).await
    };
    let mut response = responding.instrument(span.clone()).await;
    response_headers::add(&context, response.headers_mut());
    let logged = state.app.config.log.access.then_some(&span);
    metrics::record(&context, &response, began, logged);
    response
}

/// Passes a request on if its header section is valid. Sets the client's rate limit status if no
/// limit was checked on the way.
async fn forward(
    state: &LayerState,
    context: &RequestContext,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = linger::linger(&parts.headers, body);
    let subject = state.limited.then(|| rate_limit::RateLimitSubject::of(&parts, &state.app));
    let response = match head::check(&parts, state.app.config.limits.max_header_bytes) {
        Ok(()) => {
            head::allow_identity(&mut parts.headers);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(subject) = subject.filter(|_| !context.has_limit_status()) {
        context.set_limit_status(subject.status(&state.app));
    }
    response
}
