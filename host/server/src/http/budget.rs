//! Time limit of a request, including waits for the database and the commit. Receiving the body
//! does not count; it has its own limits.

use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::code::Code;
use super::problem::Refusal;
use assurance_service::app::App;

/// Time that a request may still use.
#[derive(Debug)]
pub(super) struct TimeBudget {
    left: Duration,
}

impl TimeBudget {
    /// Returns the time budget of a request: the handler's deadline plus `limits.request_grace_ms`.
    pub(super) fn new(app: &App, deadline: Duration) -> Self {
        let grace = Duration::from_millis(u64::from(app.config.limits.request_grace_ms));
        Self { left: deadline + grace }
    }

    /// Runs a part of the request within the budget.
    ///
    /// # Errors
    /// 503 if the time ends first. A commit in progress continues, so the client cannot know
    /// whether the request had an effect.
    pub(super) async fn spend<T>(
        &mut self,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        self.spend_or(out_of_time, work).await
    }

    /// Runs a part of the request within the budget, with a custom refusal.
    ///
    /// # Errors
    /// Returns the refusal if the time ends first.
    pub(super) async fn spend_or<T>(
        &mut self,
        out_of_time: impl FnOnce() -> Refusal,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let begun = Instant::now();
        let done = tokio::time::timeout(self.left, work).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        done.unwrap_or_else(|_| Err(out_of_time()))
    }
}

fn out_of_time() -> Refusal {
    Refusal::new(
        Code::Unavailable,
        "The service's storage did not respond in time. It is unknown whether the request had an \
        effect.",
    )
    .hint(
        "Send the same request again after Retry-After; with the same Idempotency-Key it takes \
        effect only once.",
    )
    .retry_after(1)
}

/// Refusal of a request to one of the host's own operations that ran out of time. Names no cause,
/// because these operations also wait for password checks.
fn host_out_of_time() -> Refusal {
    Refusal::new(
        Code::Unavailable,
        "The request did not finish in time. It is unknown whether it had an effect.",
    )
    .hint(
        "Send it again after Retry-After, with the same Idempotency-Key if the operation supports \
         one.",
    )
    .retry_after(1)
}

/// Middleware that limits the time of the host's own operations, which have no handler deadline.
pub(super) async fn bounded(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let mut budget = TimeBudget::new(&app, Duration::ZERO);
    let answering = async { Ok(next.run(request).await) };
    budget.spend_or(host_out_of_time, answering).await
}
