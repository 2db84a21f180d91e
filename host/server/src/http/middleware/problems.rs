//! Renders refusals and panics as problem documents (RFC 9457).

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt;

use super::{LayerState, cors};
use crate::http::context::RequestContext;
use crate::http::problem::{Refusal, UnrenderedRefusal};

/// Returns the refusal of a failed request if the inner future panics.
pub(super) async fn catch_panics(inner: impl Future<Output = Response>) -> Response {
    match AssertUnwindSafe(inner).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let cause = anyhow::anyhow!("panic: {}", panic_message(&*panic));
            Refusal::internal(cause).into_response()
        }
    }
}

/// Replaces a response that carries an [`UnrenderedRefusal`] by its problem document. The document
/// has the headers of CORS, because refusals before the layer and panics do not pass through it.
pub(super) async fn render(
    state: &LayerState,
    context: &RequestContext,
    origin: Option<HeaderValue>,
    mut response: Response,
) -> Response {
    let Some(UnrenderedRefusal(refusal)) = response.extensions_mut().remove() else {
        return response;
    };
    let mut document = refusal.render(context, &state.app.base_url);
    let headers = document.headers_mut();
    if let Some(allow) = response.headers_mut().remove(header::ALLOW) {
        headers.entry(header::ALLOW).or_insert(allow);
    }
    if let Some(layer) = &state.cors {
        headers.extend(cors::headers(layer, origin).await);
    }
    document
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
