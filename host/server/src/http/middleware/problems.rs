//! Renders refusals and panics as problem documents (RFC 9457).

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::http::header;
use axum::response::Response;
use futures::FutureExt;
use tracing::Span;

use crate::http::context::RequestContext;
use crate::http::problem::{Refusal, UnrenderedRefusal};
use assurance_service::app::App;

/// Renders problems for one request.
pub(super) struct Renderer<'a> {
    pub(super) app: &'a App,
    pub(super) context: &'a RequestContext,
    /// Span in which the cause of a 5xx is logged.
    pub(super) span: &'a Span,
}

impl Renderer<'_> {
    /// Returns 500 if the inner future panics. The panic message is logged.
    pub(super) async fn catch_panics(&self, inner: impl Future<Output = Response>) -> Response {
        match AssertUnwindSafe(inner).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                let cause = anyhow::anyhow!("panic: {}", panic_message(&*panic));
                self.document(&Refusal::internal(cause))
            }
        }
    }

    /// Replaces a response that carries an [`UnrenderedRefusal`] by its problem document.
    pub(super) fn render(&self, mut response: Response) -> Response {
        match response.extensions_mut().remove::<UnrenderedRefusal>() {
            Some(UnrenderedRefusal(refusal)) => {
                let mut document = self.document(&refusal);
                copy_headers(&response, &mut document);
                document
            }
            None => response,
        }
    }

    fn document(&self, refusal: &Refusal) -> Response {
        self.span.in_scope(|| refusal.render(&self.context.summary(&self.app.base_url)))
    }
}

/// Copies headers that inner layers set on a refusal to its problem document: `Allow`, `Vary` and
/// those of CORS.
fn copy_headers(from: &Response, to: &mut Response) {
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

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
