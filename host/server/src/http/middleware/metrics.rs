//! Counts and times requests by route.

use std::time::Instant;

use axum::response::Response;

use crate::http::context::RequestContext;

pub(super) struct Timer(Instant);

impl Timer {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn stop(&self, context: &RequestContext, response: &Response, span: &tracing::Span) {
        let status = response.status().as_u16();
        if let Some(meter) = context.meter() {
            meter.answered(status, self.0.elapsed());
        }
        tracing::debug!(parent: span, status, "answered");
    }
}
