//! Counts and times requests by route, and writes the access log.

use std::time::Instant;

use axum::response::Response;
use tracing::Span;

use crate::http::context::RequestContext;

/// Records a request in the metrics, and in the access log if it is on. `began` is the end of its
/// header section. `logged` is the request's span, which has method, path, route and ids; `None`
/// without the access log.
pub(super) fn record(
    context: &RequestContext,
    response: &Response,
    began: Instant,
    logged: Option<&Span>,
) {
    let (status, took) = (response.status().as_u16(), began.elapsed());
    if let Some(meter) = context.meter() {
        meter.answered(status, took);
    }
    if let Some(span) = logged {
        let duration_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        // Within the span: the JSON format leaves out the fields of a mere `parent`.
        span.in_scope(|| tracing::info!(target: "access", status, duration_ms, "request"));
    }
}
