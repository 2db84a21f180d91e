//! The operators' listener: health, metrics, and which areas answer. It is on
//! an address of its own; what changes or tells anything needs the operators'
//! token.

mod answers;
mod areas;
mod health;
mod logs;
mod openapi;
mod parameters;
mod token;
mod trials;
mod usage;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};

pub use health::Readiness;

use super::code::Code;
use super::middleware;
use super::problem::Refusal;
use crate::app::App;
use crate::domain::operator::Scope;
use crate::telemetry::Metrics;

/// What the operators' listener needs beside the app.
#[derive(Clone, Debug)]
pub struct Operators {
    /// The service.
    pub app: App,
    /// Its metrics.
    pub metrics: Metrics,
    /// Whether it takes requests.
    pub readiness: Readiness,
    /// SHA-256 of the bearer token that may do everything.
    token_hash: [u8; 32],
}

impl Operators {
    /// Keeps only the token's hash.
    #[must_use]
    pub fn new(app: App, metrics: Metrics, readiness: Readiness, token: &str) -> Self {
        Self { app, metrics, readiness, token_hash: token::hash(token) }
    }
}

/// The listener for operators.
pub fn operators(operators: &Operators) -> Router {
    let most_bytes = operators.app.config.limits.max_component_bytes;
    let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX);
    let guarded = reads()
        .merge(deploys())
        .merge(approves())
        .layer(DefaultBodyLimit::max(most_bytes))
        .route_layer(from_fn_with_state(operators.clone(), token::require));
    let router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/openapi.json", get(openapi::openapi))
        .merge(guarded)
        .method_not_allowed_fallback(|| async {
            Refusal::new(Code::MethodNotAllowed, "See Allow.")
        })
        .fallback(|| async { Refusal::not_found() })
        .with_state(operators.clone());
    middleware::wrap_unlimited(router, &operators.app)
}

fn reads() -> Router<Operators> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/areas", get(areas::list))
        .route("/areas/{name}", get(areas::one))
        .route("/areas/{name}/history", get(areas::history))
        .route("/areas/{name}/logs", get(logs::logs))
        .route("/areas/{name}/manifest", get(areas::manifest))
        .route("/areas/{name}/shadow", get(trials::compared))
        .route("/audit-log", get(areas::audit_log))
        .route("/usage", get(usage::usage))
        .route_layer(from_fn_with_state(Scope::Read, token::allow))
}

fn deploys() -> Router<Operators> {
    Router::new()
        .route("/areas/{name}", put(areas::deploy).delete(areas::remove))
        .route("/areas/{name}/activate", post(areas::activate))
        .route("/areas/{name}/canary", post(trials::canary))
        .route("/areas/{name}/shadow", post(trials::shadow))
        .route("/areas/{name}/stop", post(trials::stop))
        .route("/areas/{name}/rollback", post(areas::roll_back))
        .route_layer(from_fn_with_state(Scope::Deploy, token::allow))
}

fn approves() -> Router<Operators> {
    Router::new()
        .route("/areas/{name}/approve", post(areas::approve))
        .route_layer(from_fn_with_state(Scope::Approve, token::allow))
}

/// Prometheus text.
async fn metrics(State(operators): State<Operators>) -> String {
    operators.metrics.render()
}
