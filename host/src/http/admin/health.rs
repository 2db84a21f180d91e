//! Is the process alive, and does it take requests?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::State;

use super::Operators;
use super::answers::Health;
use crate::app::areas::Closed;
use crate::http::code::Code;
use crate::http::problem::Refusal;

/// How long the database may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// The service takes requests, and the database answers.
pub(super) async fn ready(State(operators): State<Operators>) -> Result<Json<Health>, Refusal> {
    if !operators.readiness.get() {
        return Err(unready("The service is starting or stopping."));
    }
    if !operators.app.node.is_sure() {
        return Err(Closed::Unsure.into());
    }
    match tokio::time::timeout(PATIENCE, operators.app.store.ping()).await {
        Ok(Ok(())) => Ok(Json(Health { status: "ready" })),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(unready("The database does not answer.")),
    }
}

fn unready(detail: &str) -> Refusal {
    Refusal::new(Code::Unavailable, detail).retry_after(1)
}
