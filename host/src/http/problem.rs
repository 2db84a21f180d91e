//! The one place where a refusal becomes an answer.
//!
//! Handlers return a [`Refusal`]; it travels as an empty response until the
//! middleware renders it here, where the request's id and path are known. What
//! the client sees (code, detail, hint) and what the operator sees (the
//! source) are two messages; the second is logged here, once.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::code::{self, Code};
use crate::app::Spent;
use crate::app::areas::Closed;
use crate::app::call::Refused;
use crate::budgets::{self, Whose};
use crate::domain::area::{Problem, ProblemKind, Violation};
use crate::registry::RouteContract;
use crate::store;
use crate::work::CallError;

/// Violations named one by one; more are counted.
pub(super) const MOST_VIOLATIONS: usize = 10;

/// A request refused. Boxed, since it travels through every result.
#[derive(Debug)]
pub(super) struct Refusal(Box<Told>);

#[derive(Debug)]
struct Told {
    /// Which of the host's codes it is, or what kind of refusal an area's own.
    kind: Code,
    code: Cow<'static, str>,
    detail: String,
    hint: Option<String>,
    retry_after_s: Option<u64>,
    allow: Option<String>,
    challenge: Option<&'static str>,
    source: Option<anyhow::Error>,
}

/// A refusal on its way to the middleware.
#[derive(Clone)]
pub(super) struct Pending(pub(super) Arc<Refusal>);

impl Refusal {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Told {
            kind: code,
            code: Cow::Borrowed(code.as_str()),
            detail: detail.into(),
            hint: None,
            retry_after_s: None,
            allow: None,
            challenge: None,
            source: None,
        }))
    }

    /// 422, each violation named.
    pub(super) fn invalid(violations: &[Violation], more: usize) -> Self {
        Self::new(Code::ValidationFailed, name_violations(violations, more))
    }

    /// 422 for a single violation.
    pub(super) fn invalid_one(at: &str, message: &str) -> Self {
        let violation = Violation { pointer: at.to_owned(), message: message.to_owned() };
        Self::invalid(&[violation], 0)
    }

    pub(super) fn not_found() -> Self {
        Self::new(Code::NotFound, "There is nothing here that you may see.")
    }

    pub(super) fn method_not_allowed(allow: &str) -> Self {
        let detail = format!("This path answers to {allow}.");
        let mut refusal = Self::new(Code::MethodNotAllowed, detail);
        refusal.0.allow = Some(allow.to_owned());
        refusal
    }

    pub(super) fn internal(source: impl Into<anyhow::Error>) -> Self {
        let detail = "The service failed; nothing of the request was kept.";
        Self::new(Code::InternalError, detail).caused_by(source)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// How to authenticate instead, as every 401 must say (RFC 9110).
    pub(super) fn challenge(mut self, challenge: &'static str) -> Self {
        self.0.challenge = Some(challenge);
        self
    }

    fn caused_by(mut self, source: impl Into<anyhow::Error>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What an area refused. Only codes its route declares are passed on.
    pub(super) fn of_area(route: &RouteContract, problem: Problem) -> Self {
        let code = match problem.kind {
            ProblemKind::ValidationFailed => Code::ValidationFailed,
            ProblemKind::PermissionDenied => Code::PermissionDenied,
            ProblemKind::NotFound => Code::NotFound,
            ProblemKind::Conflict => Code::Conflict,
            ProblemKind::VersionConflict => Code::VersionConflict,
            ProblemKind::Unavailable => Code::Unavailable,
        };
        let mut refusal = Self::new(code, area_detail(&problem));
        if let Some(exact) = problem.code {
            if route.route.problem_codes.contains(&exact) {
                refusal.0.code = Cow::Owned(exact);
            } else {
                tracing::warn!(
                    operation = route.route.operation_id,
                    code = exact,
                    "an area answered with a code its route does not declare"
                );
            }
        }
        refusal.0.hint = problem.hint.filter(|hint| !hint.is_empty());
        if code == Code::Unavailable {
            refusal.0.retry_after_s = Some(1);
        }
        refusal
    }

    /// Why a call has no answer.
    pub(super) fn of_call(route: &RouteContract, refused: Refused) -> Self {
        match refused {
            Refused::Problem(problem) => Self::of_area(route, problem),
            refused => Self::of_host_call(refused),
        }
    }

    /// The same, for what no area has a say in.
    pub(super) fn of_host_call(refused: Refused) -> Self {
        match refused {
            Refused::Problem(problem) => Self::internal(anyhow::anyhow!("{problem:?}")),
            Refused::KeyReused => Self::new(
                Code::IdempotencyKeyReused,
                "Idempotency-Key: was already used for this operation with another body.",
            ),
            Refused::InProgress => Self::new(
                Code::IdempotencyInProgress,
                "The first request with this Idempotency-Key has not ended yet.",
            )
            .retry_after(1),
            Refused::Contended => Self::new(
                Code::Unavailable,
                "Too many others are changing the same thing; nothing was kept.",
            )
            .retry_after(1),
            Refused::Failed(error) => error.into(),
        }
    }

    /// Renders the answer, and tells the operator what only the operator may
    /// know.
    pub(super) fn render(&self, asked: &Asked<'_>) -> Response {
        self.log(asked);
        let status = self.0.kind.status();
        let body = Members {
            code: &self.0.code,
            detail: &self.0.detail,
            hint: self.0.hint.as_deref().unwrap_or(self.0.kind.hint()),
            instance: asked.path,
            request_id: asked.request_id,
            status: status.as_u16(),
            title: code::title(&self.0.code),
            kind: format!("{}/problems/{}", asked.base_url, self.0.code),
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, Body::from(json)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(allow) = self.0.allow.as_ref().and_then(|a| HeaderValue::from_str(a).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        if let Some(challenge) = self.0.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }

    fn log(&self, asked: &Asked<'_>) {
        let status = self.0.kind.status();
        if !status.is_server_error() {
            return;
        }
        let source = self.0.source.as_ref().map(|source| format!("{source:#}"));
        let source = source.as_deref().unwrap_or(&self.0.detail);
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(request.id = asked.request_id, code = %self.0.code, source, "refused");
        } else {
            tracing::warn!(request.id = asked.request_id, code = %self.0.code, source, "refused");
        }
    }
}

/// What was asked, as a problem tells it back.
pub(super) struct Asked<'a> {
    pub(super) request_id: &'a str,
    pub(super) path: &'a str,
    pub(super) base_url: &'a str,
}

/// RFC 9457.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct Members<'a> {
    /// For programs.
    code: &'a str,
    /// For people: what is wrong.
    detail: &'a str,
    /// What to do about it.
    hint: &'a str,
    /// The request's path.
    instance: &'a str,
    /// Names the request in the log.
    request_id: &'a str,
    status: u16,
    /// Fixed for each code.
    title: String,
    /// A page that explains the code.
    #[serde(rename = "type")]
    kind: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.0.kind.status().into_response();
        response.extensions_mut().insert(Pending(Arc::new(self)));
        response
    }
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(_)
            | store::Error::Blobs(_)
            | store::Error::RunAgain
            | store::Error::GateBusy => {
                Self::new(Code::Unavailable, "The service's storage is unavailable for the moment.")
                    .retry_after(1)
                    .caused_by(error)
            }
            store::Error::Full(_) => Self::new(
                Code::InsufficientStorage,
                "The disk that the service keeps its data on is full; nothing was kept.",
            )
            .retry_after(5)
            .caused_by(error),
            store::Error::OverQuota(_) => Self::new(
                Code::InsufficientStorage,
                "The workspace keeps as much of this data as it may; nothing of the request was \
                 kept.",
            )
            .hint("Delete what is not needed, or ask the operator of the service for more room.")
            .caused_by(error),
            store::Error::WorkspaceGone => Self::not_found(),
            other => Self::internal(other),
        }
    }
}

impl From<Closed> for Refusal {
    fn from(closed: Closed) -> Self {
        let detail = match closed {
            Closed::Unsure => {
                "The service cannot learn for the moment which versions are live; nothing was done."
            }
            Closed::Withdrawn => {
                "The part of the service that answers this operation was withdrawn here; nothing \
                 was done."
            }
            Closed::NotLoaded => {
                "A part of the service cannot be loaded here for the moment; nothing was done."
            }
        };
        Self::new(Code::Unavailable, detail).retry_after(1).caused_by(closed)
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let fault = "The part of the service that answers this operation failed; nothing of the \
                     request was kept.";
        match error {
            CallError::Store(error) => error.into(),
            CallError::Host(error) => Self::internal(error),
            CallError::Overloaded => Self::new(
                Code::AreaOverloaded,
                "The part of the service that answers this operation is busy.",
            )
            .retry_after(1)
            .caused_by(error),
            CallError::Replaced => Self::new(
                Code::Unavailable,
                "The part of the service that answers this operation was replaced while it \
                 worked; nothing of the request was kept.",
            )
            .retry_after(1)
            .caused_by(error),
            CallError::OverBudget(refused) => refused.into(),
            CallError::Deadline(_) | CallError::CpuTime(_) => Self::new(
                Code::AreaTimeout,
                "The part of the service that answers this operation took too long; nothing of \
                 the request was kept.",
            )
            .caused_by(error),
            CallError::Trap(_)
            | CallError::OutOfMemory(_)
            | CallError::Turn { .. }
            | CallError::Limit(_)
            | CallError::Contract(_) => Self::new(Code::AreaFault, fault).caused_by(error),
        }
    }
}

impl From<budgets::Refused> for Refusal {
    fn from(refused: budgets::Refused) -> Self {
        let (code, detail) = match refused.whose {
            Whose::Workspace => {
                let what = refused.resource;
                (Code::RateLimited, format!("The workspace has used what it may: {what}."))
            }
            Whose::Area => {
                let detail = "The part of the service that answers this operation is busy.";
                (Code::AreaOverloaded, detail.to_owned())
            }
        };
        let seconds = refused.retry_after_s;
        Self::new(code, detail).retry_after(seconds).caused_by(refused)
    }
}

impl From<Spent> for Refusal {
    fn from(spent: Spent) -> Self {
        let policy = spent.standing.policy;
        let detail = format!(
            "The {} may use {} units in {} seconds, and has used them.",
            policy.name, policy.quota, policy.window_s
        );
        Self::new(Code::RateLimited, detail).retry_after(spent.retry_after_s)
    }
}

fn area_detail(problem: &Problem) -> String {
    let named = problem.violations.len().min(MOST_VIOLATIONS);
    let (violations, rest) = problem.violations.split_at(named);
    if violations.is_empty() {
        return problem.detail.clone();
    }
    let named = name_violations(violations, rest.len());
    // Areas that refuse one thing often say it once as the detail, too.
    let said = violations.iter().any(|violation| violation.message == problem.detail);
    if said || problem.detail.is_empty() { named } else { format!("{} {named}", problem.detail) }
}

/// `/title: is required; /n: must be …; and 3 more`.
fn name_violations(violations: &[Violation], more: usize) -> String {
    let mut text = String::new();
    for violation in violations {
        if !text.is_empty() {
            text.push_str("; ");
        }
        let at = if violation.pointer.is_empty() { "the body" } else { &violation.pointer };
        text.push_str(at);
        text.push_str(": ");
        text.push_str(&violation.message);
    }
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(refusal: Refusal) -> Response {
        refusal.render(&Asked {
            request_id: "01939f1a-0000-7000-8000-000000000000",
            path: "/v1/workspaces/w/notes",
            base_url: "https://api.example.com",
        })
    }

    async fn body(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    }

    #[tokio::test]
    async fn a_problem_has_exactly_the_contracts_members() {
        let refusal = Refusal::invalid_one("/title", "is required").hint("Give it a title.");
        insta::assert_snapshot!(body(render(refusal)).await, @r#"
        {
          "code": "validation_failed",
          "detail": "/title: is required",
          "hint": "Give it a title.",
          "instance": "/v1/workspaces/w/notes",
          "request_id": "01939f1a-0000-7000-8000-000000000000",
          "status": 422,
          "title": "Validation Failed",
          "type": "https://api.example.com/problems/validation_failed"
        }
        "#);
    }

    #[tokio::test]
    async fn a_problem_without_a_hint_of_its_own_has_its_codes() {
        let plain = body(render(Refusal::invalid_one("/title", "is required"))).await;
        assert!(plain.contains(Code::ValidationFailed.hint()), "{plain}");
    }

    #[tokio::test]
    async fn the_client_never_reads_an_internal_source() {
        let secret = anyhow::anyhow!("password=hunter2");
        let text = body(render(Refusal::internal(secret))).await;
        assert!(!text.contains("hunter2"));
        assert!(text.contains("internal_error"));
    }

    #[test]
    fn the_eleventh_violation_is_only_counted() {
        let violations: Vec<_> = (0..MOST_VIOLATIONS)
            .map(|n| Violation { pointer: format!("/{n}"), message: "is wrong".into() })
            .collect();
        let refusal = Refusal::invalid(&violations, 3);
        assert!(refusal.0.detail.starts_with("/0: is wrong; /1"));
        assert!(refusal.0.detail.ends_with("/9: is wrong; and 3 more"));
    }

    #[test]
    fn headers_say_when_to_come_back_and_what_is_allowed() {
        let response = render(Refusal::method_not_allowed("GET, HEAD"));
        assert_eq!(response.headers()[header::ALLOW], "GET, HEAD");
        let busy = render(CallError::Overloaded.into());
        assert_eq!(busy.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(busy.headers()[header::RETRY_AFTER], "1");
    }
}
