//! The whole API on one page: what the host answers itself. Everything else is
//! an area's, found in the live registry.

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};

use super::problem::Refusal;
use super::{area, auth, budget, middleware, pages, workspaces};
use crate::app::App;

/// The listener for API clients.
pub fn api(app: &App) -> Router {
    let pages = Router::new()
        .route("/", get(pages::home))
        .route("/openapi.json", get(pages::openapi))
        .route("/reference", get(pages::reference))
        .route("/reference/{operation_id}", get(pages::operation))
        .route("/problems/{code}", get(pages::problem))
        .route_layer(from_fn_with_state(app.clone(), pages::limited));
    let router = Router::new()
        .merge(pages)
        .route("/v1/auth/login", post(auth::login::login))
        .route("/v1/auth/logout", post(auth::login::logout))
        .route("/v1/auth/register", post(auth::register::register))
        .route("/v1/auth/session", get(auth::session::read))
        .route("/v1/auth/security", get(auth::session::security))
        .route("/v1/auth/sessions/{session_id}", delete(auth::session::revoke))
        .route("/v1/auth/mfa/enrol", post(auth::mfa::enrol))
        .route("/v1/auth/mfa/confirm", post(auth::mfa::confirm))
        .route("/v1/auth/mfa/disable", post(auth::mfa::disable))
        .route("/v1/auth/recovery-codes", post(auth::mfa::renew_recovery_codes))
        .route("/v1/workspaces", get(workspaces::list).post(workspaces::create))
        .route_layer(from_fn_with_state(app.clone(), budget::bounded))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(area::answer)
        .with_state(app.clone());
    middleware::wrap(router, app)
}

/// The router adds `Allow`.
async fn method_not_allowed(method: Method) -> Refusal {
    Refusal::new(
        super::code::Code::MethodNotAllowed,
        format!("This path does not answer to {method}; see Allow."),
    )
}
