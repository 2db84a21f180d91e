//! Renders refusals as problem documents (RFC 9457).
//!
//! Handlers return a [`Refusal`]. It is carried by an empty response to the middleware, which
//! renders it with the request's id and path. The client sees code, detail and hint. The operator
//! sees the cause, which is logged here once.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::code::{self, Code};
use super::context::RequestContext;
use assurance_contract::CompiledRoute;
use assurance_core::budgets::{self, BudgetOwnerKind};
use assurance_core::domain::area::{Problem, ProblemKind, Violation};
use assurance_service::app::RateLimited;
use assurance_service::app::areas::ServingBlocked;
use assurance_service::app::call::CallRefusal;
use assurance_store as store;
use assurance_work::CallError;

/// Maximum number of violations that are listed; further ones are counted.
pub(super) const MOST_VIOLATIONS: usize = 10;

/// A refused request. Boxed, because every result carries it.
#[derive(Debug)]
pub(super) struct Refusal(Box<ProblemParts>);

#[derive(Debug)]
struct ProblemParts {
    /// Host's code, which sets the status; for an area's own code, the most similar host code.
    kind: Code,
    code: Cow<'static, str>,
    detail: String,
    hint: Option<String>,
    retry_after_s: Option<u64>,
    /// Header that the status requires, such as `Allow`.
    header: Option<(HeaderName, HeaderValue)>,
    source: Option<anyhow::Error>,
}

/// A refusal that the middleware has yet to render.
#[derive(Clone)]
pub(super) struct UnrenderedRefusal(pub(super) Arc<Refusal>);

impl Refusal {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemParts {
            kind: code,
            code: Cow::Borrowed(code.as_str()),
            detail: detail.into(),
            hint: None,
            retry_after_s: None,
            header: None,
            source: None,
        }))
    }

    /// Creates a 422 with a list of violations; `more` counts further ones.
    pub(super) fn invalid(violations: &[Violation], more: usize) -> Self {
        Self::new(Code::ValidationFailed, name_violations(violations, more, true))
    }

    /// Creates a 422 with a single violation.
    pub(super) fn invalid_one(at: &str, message: &str) -> Self {
        let violation = Violation { pointer: at.to_owned(), message: message.to_owned() };
        Self::invalid(&[violation], 0)
    }

    pub(super) fn not_found() -> Self {
        Self::new(Code::NotFound, "It does not exist, or you may not see it.")
    }

    pub(super) fn method_not_allowed(allow: &str) -> Self {
        let detail = format!("This path supports only the methods {allow}.");
        let mut refusal = Self::new(Code::MethodNotAllowed, detail);
        refusal.0.header = HeaderValue::from_str(allow).ok().map(|allow| (header::ALLOW, allow));
        refusal
    }

    pub(super) fn internal(source: impl Into<anyhow::Error>) -> Self {
        let detail = "The service failed; the request had no effect.";
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

    /// Sets `WWW-Authenticate`, which every 401 must have (RFC 9110).
    pub(super) fn challenge(self, challenge: &'static str) -> Self {
        self.header(header::WWW_AUTHENTICATE, challenge)
    }

    /// Sets the header that the status requires.
    pub(super) fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.0.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    fn caused_by(mut self, source: impl Into<anyhow::Error>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Converts a problem returned by an area. Codes that the route does not declare are replaced.
    pub(super) fn of_area(route: &CompiledRoute, problem: Problem) -> Self {
        let code = match problem.kind {
            ProblemKind::ValidationFailed => Code::ValidationFailed,
            ProblemKind::PermissionDenied => Code::PermissionDenied,
            ProblemKind::NotFound => Code::NotFound,
            ProblemKind::Conflict => Code::Conflict,
            ProblemKind::VersionConflict => Code::VersionConflict,
            ProblemKind::Unavailable => Code::Unavailable,
        };
        let mut refusal = Self::new(code, area_detail(&problem, route.body.is_some()));
        if let Some(exact) = problem.code {
            if route.route.problem_codes.contains(&exact) {
                refusal.0.code = Cow::Owned(exact);
            } else {
                tracing::warn!(
                    operation = route.route.operation_id,
                    code = exact,
                    "an area returned a problem code that its route does not declare"
                );
            }
        }
        refusal.0.hint = problem.hint.filter(|hint| !hint.is_empty());
        if code == Code::Unavailable {
            refusal.0.retry_after_s = Some(1);
        }
        refusal
    }

    /// Converts the refusal of a call to an area.
    pub(super) fn of_call(route: &CompiledRoute, refused: CallRefusal) -> Self {
        match refused {
            CallRefusal::Problem(problem) => Self::of_area(route, problem),
            refused => Self::of_host_call(refused),
        }
    }

    /// Converts the refusal of an operation of the host.
    pub(super) fn of_host_call(refused: CallRefusal) -> Self {
        match refused {
            CallRefusal::Problem(problem) => Self::internal(anyhow::anyhow!("{problem:?}")),
            CallRefusal::KeyReused => Self::new(
                Code::IdempotencyKeyReused,
                "Idempotency-Key: was already used for this operation with another body or for \
                 another resource.",
            ),
            CallRefusal::InProgress => Self::new(
                Code::IdempotencyInProgress,
                "The first request with this Idempotency-Key is still running.",
            )
            .retry_after(1),
            CallRefusal::Contended => Self::new(
                Code::Unavailable,
                "Too many concurrent requests changed the same data; this request had no effect.",
            )
            .retry_after(1),
            CallRefusal::Failed(error) => error.into(),
        }
    }

    /// Renders the response and logs the cause for the operator.
    pub(super) fn render(&self, context: &RequestContext, base_url: &str) -> Response {
        self.log(context.request_id());
        let status = self.0.kind.status();
        let hint = match &self.0.hint {
            Some(hint) => Cow::Borrowed(hint.as_str()),
            None => self.0.kind.hint(context.operation()),
        };
        let body = ProblemDocument {
            code: &self.0.code,
            detail: &self.0.detail,
            hint: &hint,
            instance: context.path(),
            request_id: context.request_id(),
            status: status.as_u16(),
            title: code::title(&self.0.code),
            kind: format!("{base_url}/problems/{}", self.0.code),
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, Body::from(json)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some((name, value)) = self.0.header.clone() {
            headers.insert(name, value);
        }
        response
    }

    fn log(&self, request_id: &str) {
        let status = self.0.kind.status();
        if !status.is_server_error() {
            return;
        }
        let source = self.0.source.as_ref().map(|source| format!("{source:#}"));
        let source = source.as_deref().unwrap_or(&self.0.detail);
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(request.id = request_id, code = %self.0.code, source, "refused");
        } else {
            tracing::warn!(request.id = request_id, code = %self.0.code, source, "refused");
        }
    }
}

/// Members of a problem document (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct ProblemDocument<'a> {
    /// Machine-readable code.
    code: &'a str,
    /// Description of the error, for people.
    detail: &'a str,
    /// How to fix the request.
    hint: &'a str,
    /// Path of the request.
    instance: &'a str,
    /// Id of the request in the log.
    request_id: &'a str,
    status: u16,
    /// Short summary; fixed for each code.
    title: String,
    /// URL of a page that explains the code.
    #[serde(rename = "type")]
    kind: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.0.kind.status().into_response();
        response.extensions_mut().insert(UnrenderedRefusal(Arc::new(self)));
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
                Self::new(Code::Unavailable, "The service's storage is unavailable at the moment.")
                    .retry_after(1)
                    .caused_by(error)
            }
            store::Error::Full(_) => Self::new(
                Code::InsufficientStorage,
                "The disk with the service's data is full; the request had no effect.",
            )
            .retry_after(5)
            .caused_by(error),
            store::Error::QueueFull(_) => Self::new(
                Code::RateLimited,
                "Too many jobs of the workspace are waiting; the request had no effect.",
            )
            .hint("Wait until some have run; GET /v1/workspaces/{workspace_id}/queue shows them.")
            .retry_after(5)
            .caused_by(error),
            store::Error::OverQuota(_) => Self::new(
                Code::InsufficientStorage,
                "The workspace has reached its storage limit for this data; the request had no \
                effect.",
            )
            .hint("Delete data that is not needed, or ask the operators for a higher limit.")
            .caused_by(error),
            store::Error::WorkspaceGone => Self::not_found(),
            other => Self::internal(other),
        }
    }
}

impl From<ServingBlocked> for Refusal {
    fn from(closed: ServingBlocked) -> Self {
        let detail = match closed {
            ServingBlocked::Unsure => {
                "This node cannot read the live versions at the moment; the request had no \
                effect."
            }
            ServingBlocked::Withdrawn => {
                "The part of the service that executes this operation was removed from this node; \
                the request had no effect."
            }
            ServingBlocked::NotLoaded => {
                "A part of the service cannot be loaded on this node at the moment; the request \
                had no effect."
            }
        };
        Self::new(Code::Unavailable, detail).retry_after(1).caused_by(closed)
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let fault = "The part of the service that executes this operation failed; the request had \
            no effect.";
        match error {
            CallError::Store(error) => error.into(),
            CallError::Host(error) => Self::internal(error),
            CallError::Overloaded => Self::new(
                Code::AreaOverloaded,
                "The part of the service that executes this operation is overloaded.",
            )
            .retry_after(1)
            .caused_by(error),
            CallError::Replaced => Self::new(
                Code::Unavailable,
                "The part of the service that executes this operation was replaced during the \
                request; the request had no effect.",
            )
            .retry_after(1)
            .caused_by(error),
            CallError::OverBudget(refused) => refused.into(),
            CallError::Deadline(_) | CallError::CpuTime(_) => Self::new(
                Code::AreaTimeout,
                "The part of the service that executes this operation took too long; the request \
                had no effect.",
            )
            .caused_by(error),
            CallError::Trap(_)
            | CallError::Panic(_)
            | CallError::OutOfMemory(_)
            | CallError::Limit(_)
            | CallError::Contract(_) => Self::new(Code::AreaFault, fault).caused_by(error),
            CallError::Turn { .. } => Self::new(Code::AreaFault, fault)
                .hint(
                    "The request blocked other changes for too long, and would again. Send less \
                    at once, such as a smaller file; the operators can find it by request_id.",
                )
                .caused_by(error),
        }
    }
}

impl From<budgets::BudgetExceeded> for Refusal {
    fn from(refused: budgets::BudgetExceeded) -> Self {
        let (code, detail) = match refused.whose {
            BudgetOwnerKind::Workspace => {
                let what = refused.resource;
                (Code::RateLimited, format!("The workspace has used up its budget: {what}."))
            }
            BudgetOwnerKind::Area => {
                let detail = "The part of the service that executes this operation is overloaded.";
                (Code::AreaOverloaded, detail.to_owned())
            }
        };
        let seconds = refused.retry_after_s;
        Self::new(code, detail).retry_after(seconds).caused_by(refused)
    }
}

impl From<RateLimited> for Refusal {
    fn from(spent: RateLimited) -> Self {
        let policy = spent.status.policy;
        let detail = format!(
            "The {} has used its {} units of {} seconds.",
            policy.name, policy.quota, policy.window_s
        );
        Self::new(Code::RateLimited, detail).retry_after(spent.retry_after_s)
    }
}

fn area_detail(problem: &Problem, has_body: bool) -> String {
    let violations = &problem.violations;
    if violations.is_empty() {
        return problem.detail.clone();
    }
    let named = name_violations(violations, 0, has_body);
    // Many areas repeat their only violation in the detail; it is not added again.
    let said = violations.iter().any(|violation| violation.message == problem.detail);
    if said || problem.detail.is_empty() { named } else { format!("{} {named}", problem.detail) }
}

/// Lists violations: `/title: is required; /n: must be …; and 3 more`. Counts those after
/// [`MOST_VIOLATIONS`] with `more`. `has_body`: one without a pointer is about a JSON body.
fn name_violations(violations: &[Violation], more: usize, has_body: bool) -> String {
    let (named, rest) = violations.split_at(violations.len().min(MOST_VIOLATIONS));
    let more = more + rest.len();
    let named = named.iter().map(|Violation { pointer, message }| match pointer.as_str() {
        "" if has_body => format!("the body: {message}"),
        "" => message.clone(),
        at => format!("{at}: {message}"),
    });
    let counted = (more > 0).then(|| format!("and {more} more"));
    named.chain(counted).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::HeaderMap;

    use super::*;
    use assurance_contract::OperationRequestDurations;

    fn render(refusal: Refusal) -> Response {
        let id = HeaderValue::from_static("01939f1a-0000-7000-8000-000000000000");
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-request-id"), id)]);
        let context = RequestContext::new(&headers, "/v1/workspaces/w/notes");
        context.set_meter(&Arc::new(OperationRequestDurations::new("notes", "create_note")));
        refusal.render(&context, "https://api.example.com")
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
        assert!(plain.contains("/reference/create_note has the expected request."), "{plain}");
        let reused = body(render(Refusal::of_host_call(CallRefusal::KeyReused))).await;
        assert!(reused.contains("with another body or for another resource."), "{reused}");
        assert!(reused.contains("a retry has the same path and body."), "{reused}");
    }

    #[tokio::test]
    async fn the_client_never_reads_an_internal_source() {
        let secret = anyhow::anyhow!("password=hunter2");
        let text = body(render(Refusal::internal(secret))).await;
        assert!(!text.contains("hunter2"));
        assert!(text.contains("internal_error"));
    }

    #[tokio::test]
    async fn a_request_that_blocks_others_is_not_to_be_sent_again() {
        let (cpu, wall) = (Duration::from_millis(250), Duration::from_secs(5));
        let text = body(render(CallError::Turn { cpu, wall, held: wall }.into())).await;
        assert!(text.contains("area_fault") && text.contains("Send less"), "{text}");
        assert!(!text.contains("again later"), "{text}");
    }

    #[test]
    fn the_eleventh_violation_is_only_counted() {
        let violations: Vec<_> = (0..=MOST_VIOLATIONS)
            .map(|n| Violation { pointer: format!("/{n}"), message: "is wrong".into() })
            .collect();
        let refusal = Refusal::invalid(&violations, 3);
        assert!(refusal.0.detail.starts_with("/0: is wrong; /1"));
        assert!(refusal.0.detail.ends_with("/9: is wrong; and 4 more"));
    }

    #[test]
    fn a_violation_of_a_request_without_a_body_names_none() {
        let whole = [Violation { pointer: String::new(), message: "is too long".into() }];
        assert_eq!(name_violations(&whole, 0, true), "the body: is too long");
        assert_eq!(name_violations(&whole, 0, false), "is too long");
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
