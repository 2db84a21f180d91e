//! All routes of the host's own operations. Every other request goes to an area from the live
//! registry.

use axum::Router;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{delete, get, post};

use super::problem::Refusal;
use super::workspaces;
use super::{
    access_tokens as tokens, area, auth, budget, host_operation, members, middleware, pages,
};
use assurance_service::app::App;

/// Returns the router of the API listener.
pub fn api(app: &App) -> Router {
    let pages = Router::new()
        .route("/", get(pages::home))
        .route("/openapi.json", get(pages::openapi))
        .route("/reference", get(pages::reference))
        .route("/reference/{name}", get(pages::reference_page))
        .route("/guides", get(pages::guides))
        .route("/guides/{name}", get(pages::guide))
        .route("/llms.txt", get(pages::llms))
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
        .route("/v1/auth/password", post(auth::password::change))
        .route("/v1/workspaces", get(workspaces::list).post(workspaces::create))
        .route("/v1/workspaces/{workspace_id}/members", get(members::list))
        .route("/v1/workspaces/{workspace_id}/members/{user_id}", delete(members::remove))
        .route("/v1/workspaces/{workspace_id}/access-tokens", get(tokens::list))
        .route("/v1/workspaces/{workspace_id}/access-tokens", post(tokens::create))
        .route("/v1/workspaces/{workspace_id}/access-tokens/{token_id}", delete(tokens::revoke))
        .route_layer(from_fn_with_state(app.clone(), budget::bounded))
        .route_layer(from_fn(host_operation::noted))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(area::answer)
        .with_state(app.clone());
    middleware::wrap(router, app)
}

/// Refuses a method that the path does not support. The router adds `Allow`.
async fn method_not_allowed(method: Method) -> Refusal {
    Refusal::new(
        super::code::Code::MethodNotAllowed,
        format!("This path does not support {method}; see Allow."),
    )
}
