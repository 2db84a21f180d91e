//! Is the process alive, and does it take requests?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Operators;
use super::answers::Health;
use crate::app::health;
use crate::domain::health::Readiness as Status;
use crate::domain::health::{Check, HealthReport};

/// Seconds after which a balancer may ask an unready node again.
const RETRY_AFTER_S: u64 = 1;

/// Whether the service takes requests; no longer, once it stops.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says whether it does.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The process answers.
pub(super) async fn live() -> Json<Health> {
    Json(Health { status: "live" })
}

/// Whether this node can do its work, check by check.
pub(super) async fn ready(State(operators): State<Operators>) -> Response {
    if !operators.readiness.get() {
        let line = "the process is starting or stopping".to_owned();
        return answer(&HealthReport::new(BTreeMap::from([(Check::Serving, line)]), &[]));
    }
    answer(&*health::check(&operators.app).await)
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
