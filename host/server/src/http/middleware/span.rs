//! The tracing span of a request.

use axum::extract::Request;
use tracing::Span;
use tracing::field::Empty;

use crate::http::context::{RequestContext, traceparent};

pub(super) fn of(context: &RequestContext, request: &Request) -> Span {
    let span = tracing::info_span!(
        "request",
        request.id = context.request_id(),
        method = %request.method(),
        path = context.path(),
        access_token.id = Empty,
        trace.id = Empty,
        trace.parent = Empty,
    );
    if let Some((trace, parent)) = traceparent(request.headers()) {
        span.record("trace.id", trace);
        span.record("trace.parent", parent);
    }
    span
}
