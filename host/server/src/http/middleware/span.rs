//! The tracing span of a request. Its fields are in every log line of the request.

use axum::extract::{MatchedPath, Request};
use tracing::Span;
use tracing::field::Empty;

use crate::http::context::{RequestContext, traceparent};

pub(super) fn of(context: &RequestContext, request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    // At error level, so that a filter by level keeps the fields of the lines that it passes.
    let span = tracing::error_span!(
        "request",
        request.id = context.request_id(),
        method = %request.method(),
        path = context.path(),
        route,
        workspace.id = Empty,
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
