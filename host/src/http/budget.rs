//! The time that one request may take in all, waiting for the database and
//! for its commit included. What the client takes to send its body is not
//! counted; that has bounds of its own.

use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::code::Code;
use super::problem::Refusal;
use crate::app::App;

/// What is left of a request's time.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
}

impl Budget {
    /// The deadline of the code that answers, and `limits.request_grace_ms`.
    pub(super) fn new(app: &App, deadline: Duration) -> Self {
        let grace = Duration::from_millis(u64::from(app.config.limits.request_grace_ms));
        Self { left: deadline + grace }
    }

    /// Does a part of the request's work.
    ///
    /// # Errors
    /// 503 if the time ends first. A commit that is under way then goes on, so
    /// the client cannot know whether the request was carried out.
    pub(super) async fn spend<T, E>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        E: From<Refusal>,
    {
        self.spend_or(out_of_time, work).await
    }

    /// The same with another refusal.
    ///
    /// # Errors
    /// The refusal if the time ends first.
    pub(super) async fn spend_or<T, E>(
        &mut self,
        out_of_time: impl FnOnce() -> Refusal,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        E: From<Refusal>,
    {
        let begun = Instant::now();
        let done = tokio::time::timeout(self.left, work).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        done.unwrap_or_else(|_| Err(out_of_time().into()))
    }
}

fn out_of_time() -> Refusal {
    Refusal::new(
        Code::Unavailable,
        "The service's storage did not answer in time. It is not certain whether the request was \
         carried out.",
    )
    .hint(
        "Send the same request again after Retry-After; with the same Idempotency-Key it is \
         carried out once.",
    )
    .retry_after(1)
}

/// Bounds the host's own operations, which have no deadline of their own.
pub(super) async fn bounded(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut budget = Budget::new(&app, Duration::ZERO);
    let answered = budget.spend(async { Ok::<_, Refusal>(next.run(request).await) });
    answered.await.unwrap_or_else(IntoResponse::into_response)
}
