//! The operators' listener while the service starts.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;

use super::health;

/// Router of the started service; empty until the service has started.
pub type StartedRouter = Arc<OnceLock<Router>>;

/// Returns a router that forwards requests to `started`. Until that is set, it responds 200 to
/// `/health/live`, and 503 with a readiness report to everything else.
pub fn until_started(started: StartedRouter) -> Router {
    Router::new().fallback(respond).with_state(started)
}

async fn respond(State(started): State<StartedRouter>, request: Request) -> Response {
    match started.get() {
        Some(router) => {
            router.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
        }
        None if request.uri().path() == "/health/live" => health::live().await.into_response(),
        None => health::starting(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{StatusCode, header};
    use axum::routing::get;
    use http_body_util::BodyExt as _;

    use super::*;

    /// Returns the status, whether there is a `Retry-After`, and the body.
    async fn response(router: &Router, path: &str) -> (StatusCode, bool, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let retry = response.headers().contains_key(header::RETRY_AFTER);
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, retry, String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn a_starting_process_is_live_and_not_ready_until_its_router_is_set() {
        let started = StartedRouter::default();
        let router = until_started(Arc::clone(&started));
        let (status, retry, _) = response(&router, "/health/live").await;
        assert_eq!((status, retry), (StatusCode::OK, false));
        for path in ["/health/ready", "/areas", "/metrics"] {
            let (status, retry, body) = response(&router, path).await;
            assert_eq!((status, retry), (StatusCode::SERVICE_UNAVAILABLE, true), "{path}");
            assert!(body.contains("the process is starting"), "{path}: {body}");
        }
        started.set(Router::new().route("/areas/{name}", get("here"))).unwrap();
        let here = (StatusCode::OK, false, "here".to_owned());
        assert_eq!(response(&router, "/areas/notes").await, here);
        assert_eq!(response(&router, "/health/live").await.0, StatusCode::NOT_FOUND);
    }
}
