//! Liveness and readiness endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::OperatorsState;
use super::views::LivenessView;
use assurance_core::domain::health::Readiness as Status;
use assurance_core::domain::health::{HealthCheckName, HealthReport};
use assurance_service::app::health;

/// Value of `Retry-After` on responses of an unready node, in seconds.
const RETRY_AFTER_S: u64 = 1;

/// Whether the service accepts requests. It is switched off when the service stops.
#[derive(Clone, Debug, Default)]
pub struct ReadinessSwitch(Arc<AtomicBool>);

impl ReadinessSwitch {
    /// Sets whether the service accepts requests.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Responds 200 while the process runs.
pub(super) async fn live() -> Json<LivenessView> {
    Json(LivenessView { status: "live" })
}

/// Returns the readiness checks of this node.
pub(super) async fn ready(State(operators): State<OperatorsState>) -> Response {
    if !operators.readiness.get() {
        return not_serving("the process is starting or stopping");
    }
    answer(&*health::check(&operators.app).await)
}

/// Returns the readiness report (503) of a process whose service has not started yet.
pub(super) fn starting() -> Response {
    not_serving("the process is starting: it opens the database and loads the areas")
}

fn not_serving(line: &str) -> Response {
    let checks = BTreeMap::from([(HealthCheckName::Serving, line.to_owned())]);
    answer(&HealthReport::new(checks, &[]))
}

fn answer(report: &HealthReport) -> Response {
    match report.status {
        Status::Ready | Status::Degraded => Json(report).into_response(),
        Status::Unready => {
            let retry = [(header::RETRY_AFTER, RETRY_AFTER_S.to_string())];
            (StatusCode::SERVICE_UNAVAILABLE, retry, Json(report)).into_response()
        }
    }
}
