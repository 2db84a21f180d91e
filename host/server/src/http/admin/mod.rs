//! The operators' listener: health, metrics and management of areas. It has its own address.
//! Everything except health requires an operator's token.

mod areas;
mod health;
mod logs;
mod openapi;
mod parameters;
mod starting;
mod token;
mod trials;
mod usage;
mod views;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post, put};
use tracing::Instrument as _;

pub use health::ReadinessSwitch;
pub use starting::{StartedRouter, until_started};

use super::code::Code;
use super::middleware;
use super::problem::Refusal;
use crate::telemetry::Metrics;
use assurance_core::domain::operator::TokenScope;
use assurance_service::app::App;
use assurance_service::app::operators::hash;

/// State of the operators' listener, in addition to the app.
#[derive(Clone)]
pub struct OperatorsState {
    /// State of the service.
    pub app: App,
    /// Metrics of the process.
    pub metrics: Metrics,
    /// Whether the service accepts requests.
    pub readiness: ReadinessSwitch,
    /// SHA-256 of the operators' token from the token file, which has all
    /// scopes.
    token_hash: [u8; 32],
}

impl OperatorsState {
    /// Creates the state. `token` is the operators' token with all scopes; only
    /// its hash is kept.
    #[must_use]
    pub fn new(app: App, metrics: Metrics, readiness: ReadinessSwitch, token: &str) -> Self {
        Self { app, metrics, readiness, token_hash: hash(token) }
    }
}

/// Returns the router of the operators' listener.
pub fn operators(operators: &OperatorsState) -> Router {
    let most_bytes = operators.app.config.limits.max_component_bytes;
    let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX);
    let decides = deploys().merge(approves()).route_layer(from_fn(run_detached));
    let guarded = reads()
        .merge(decides)
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

fn reads() -> Router<OperatorsState> {
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
        .route_layer(from_fn_with_state(TokenScope::Read, token::allow))
}

fn deploys() -> Router<OperatorsState> {
    Router::new()
        .route("/areas/{name}", put(areas::deploy).delete(areas::remove))
        .route("/areas/{name}/activate", post(areas::activate))
        .route("/areas/{name}/canary", post(trials::canary))
        .route("/areas/{name}/shadow", post(trials::shadow))
        .route("/areas/{name}/stop", post(trials::stop))
        .route("/areas/{name}/rollback", post(areas::roll_back))
        .route_layer(from_fn_with_state(TokenScope::Deploy, token::allow))
}

fn approves() -> Router<OperatorsState> {
    Router::new()
        .route("/areas/{name}/approve", post(areas::approve))
        .route_layer(from_fn_with_state(TokenScope::Approve, token::allow))
}

/// Runs a decision in its own task, so that it ends, with its entry in the audit log, even if the
/// client disconnects.
async fn run_detached(request: Request, next: Next) -> Result<Response, Refusal> {
    let deciding = async move { next.run(request).await };
    tokio::spawn(deciding.in_current_span()).await.map_err(Refusal::internal)
}

/// Returns the metrics as Prometheus text.
async fn metrics(State(operators): State<OperatorsState>) -> String {
    operators.metrics.render()
}
