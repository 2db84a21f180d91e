//! CORS for the configured origins.

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// Returns the CORS layer; `None` if no origin is configured.
pub(super) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let name = HeaderName::from_static;
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_credentials(true)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
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
        ]);
    Some(layer)
}
