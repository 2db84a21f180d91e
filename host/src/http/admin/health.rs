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
use crate::store;

/// How long the database, and the blob store, may take to say that they are
/// there.
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

/// The service takes requests, and what it keeps things in answers.
pub(super) async fn ready(State(operators): State<Operators>) -> Result<Json<Health>, Refusal> {
    if !operators.readiness.get() {
        return Err(unready("The service is starting or stopping."));
    }
    if !operators.app.node.is_sure() {
        return Err(Closed::Unsure.into());
    }
    let store = &operators.app.store;
    let database = in_time(store.ping(), "The database does not answer.");
    let blobs = in_time(store.blobs().ping(), "The blob store does not answer.");
    tokio::try_join!(database, blobs)?;
    Ok(Json(Health { status: "ready" }))
}

async fn in_time(
    asked: impl Future<Output = Result<(), store::Error>>,
    silent: &str,
) -> Result<(), Refusal> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(unready(silent)),
    }
}

fn unready(detail: &str) -> Refusal {
    Refusal::new(Code::Unavailable, detail).retry_after(1)
}
