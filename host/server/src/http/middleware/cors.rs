//! CORS for the configured origins.

use std::convert::Infallible;
use std::future::ready;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use tower::{Layer as _, ServiceExt as _, service_fn};
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
            header::AUTHORIZATION,
            header::CONTENT_ENCODING,
            header::CONTENT_TYPE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            name("idempotency-key"),
            name("traceparent"),
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

/// Returns the headers of CORS for a response to a page of `origin`, for responses that do not
/// pass through the layer.
pub(super) async fn headers(layer: &CorsLayer, origin: Option<HeaderValue>) -> HeaderMap {
    let empty = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
    let mut request = Request::new(());
    request.headers_mut().extend(origin.map(|origin| (header::ORIGIN, origin)));
    let Ok(response) = layer.layer(empty).oneshot(request).await;
    response.into_parts().0.headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_configured_origins_are_allowed() {
        let layer = layer(&["https://app.example".to_owned()]).unwrap();
        for (sent, allowed) in [
            (Some("https://app.example"), Some("https://app.example")),
            (Some("https://other.example"), None),
            (None, None),
        ] {
            let origin = sent.map(HeaderValue::from_static);
            let headers = headers(&layer, origin).await;
            let found = headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
            assert_eq!(found.map(HeaderValue::as_bytes), allowed.map(str::as_bytes), "{sent:?}");
            assert!(headers.contains_key(header::ACCESS_CONTROL_EXPOSE_HEADERS), "{sent:?}");
            assert!(headers.contains_key(header::VARY), "{sent:?}");
        }
    }

    #[tokio::test]
    async fn pages_of_an_allowed_origin_may_send_what_is_read() {
        let layer = layer(&["https://app.example".to_owned()]).unwrap();
        let empty = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
        let mut preflight = Request::new(());
        *preflight.method_mut() = Method::OPTIONS;
        let origin = HeaderValue::from_static("https://app.example");
        preflight.headers_mut().insert(header::ORIGIN, origin);
        let asked = HeaderValue::from_static("GET");
        preflight.headers_mut().insert(header::ACCESS_CONTROL_REQUEST_METHOD, asked);
        let Ok(response) = layer.layer(empty).oneshot(preflight).await;
        let allowed = &response.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS];
        for sent in ["authorization", "content-encoding", "traceparent"] {
            assert!(allowed.to_str().unwrap().split(',').any(|name| name == sent), "{sent}");
        }
    }
}
