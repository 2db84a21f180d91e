//! Data of a request that is known before routing: its id, its path and its rate limit status.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};

use super::problem::Refusal;
use assurance_contract::OperationRequestDurations;
use assurance_service::app::{RateLimitStatus, RateLimited};

/// Status of a rate limit after units were taken from it; `None` if rate limits are off.
pub(super) type SpentUnits = Result<Option<RateLimitStatus>, RateLimited>;

/// Data of one request, such as its id, path and rate limit status; clones share it.
#[derive(Clone, Debug)]
pub(super) struct RequestContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request_id: String,
    path: String,
    session: OnceLock<RateLimitStatus>,
    shared: OnceLock<RateLimitStatus>,
    meter: OnceLock<Arc<OperationRequestDurations>>,
}

impl RequestContext {
    pub(super) fn new(headers: &HeaderMap, path: &str) -> Self {
        Self(Arc::new(Inner {
            request_id: request_id(headers),
            path: path.to_owned(),
            session: OnceLock::new(),
            shared: OnceLock::new(),
            meter: OnceLock::new(),
        }))
    }

    pub(super) fn request_id(&self) -> &str {
        &self.0.request_id
    }

    pub(super) fn path(&self) -> &str {
        &self.0.path
    }

    /// Sets the rate limit status of the session, or of the address at sign-in.
    pub(super) fn set_limit_status(&self, status: Option<RateLimitStatus>) {
        if let Some(status) = status {
            let _ = self.0.session.set(status);
        }
    }

    /// Reports units taken from the rate limit of the session, or of the address at sign-in.
    ///
    /// # Errors
    /// 429 if too few units were left.
    pub(super) fn charge(&self, spent: SpentUnits) -> Result<(), Refusal> {
        report(&self.0.session, spent)
    }

    /// Reports units taken from the rate limit of the workspace.
    ///
    /// # Errors
    /// 429 if too few units were left.
    pub(super) fn charge_workspace(&self, spent: SpentUnits) -> Result<(), Refusal> {
        report(&self.0.shared, spent)
    }

    /// Returns whether a rate limit was checked for this request.
    pub(super) fn has_limit_status(&self) -> bool {
        self.0.session.get().is_some() || self.0.shared.get().is_some()
    }

    /// Sets the operation that executes this request; its metrics count it.
    pub(super) fn set_meter(&self, meter: &Arc<OperationRequestDurations>) {
        let _ = self.0.meter.set(Arc::clone(meter));
    }

    /// Returns the id of the operation that the request executes; `None` before it is known.
    pub(super) fn operation(&self) -> Option<&str> {
        self.0.meter.get().map(|meter| meter.operation())
    }

    pub(super) fn meter(&self) -> Option<&Arc<OperationRequestDurations>> {
        self.0.meter.get()
    }

    /// Returns `RateLimit-Policy` and `RateLimit`; `None` if no limit was checked.
    pub(super) fn rate_headers(&self) -> Option<(HeaderValue, HeaderValue)> {
        rate_headers(self.0.session.get().into_iter().chain(self.0.shared.get()))
    }
}

impl<S: Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let missing = || Refusal::internal(anyhow::anyhow!("a request has no RequestContext"));
        parts.extensions.get().cloned().ok_or_else(missing)
    }
}

fn report(slot: &OnceLock<RateLimitStatus>, spent: SpentUnits) -> Result<(), Refusal> {
    if let Some(status) = spent.as_ref().map_or_else(|spent| Some(spent.status), |found| *found) {
        let _ = slot.set(status);
    }
    Ok(spent.map(drop)?)
}

/// Reports the rate limit that refuses a request in its response's headers.
pub(super) fn report_limit(parts: &Parts, spent: &RateLimited) {
    if let Some(context) = parts.extensions.get::<RequestContext>() {
        context.set_limit_status(Some(spent.status));
    }
}

/// Returns the client's `X-Request-Id` if it is valid, otherwise a new UUIDv7.
fn request_id(headers: &HeaderMap) -> String {
    let inbound = headers.get("x-request-id").and_then(|value| value.to_str().ok());
    match inbound.filter(|id| is_sane(id)) {
        Some(id) => id.to_owned(),
        None => uuid::Uuid::now_v7().to_string(),
    }
}

fn is_sane(id: &str) -> bool {
    (8..=128).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Formats `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers defines them;
/// `None` without a status.
fn rate_headers<'a>(
    statuses: impl Iterator<Item = &'a RateLimitStatus>,
) -> Option<(HeaderValue, HeaderValue)> {
    let (mut policies, mut limits) = (String::new(), String::new());
    for RateLimitStatus { policy, remaining, reset_s } in statuses {
        let comma = if policies.is_empty() { "" } else { ", " };
        let _ =
            write!(policies, "{comma}\"{}\";q={};w={}", policy.name, policy.quota, policy.window_s);
        let _ = write!(limits, "{comma}\"{}\";r={remaining};t={reset_s}", policy.name);
    }
    if policies.is_empty() {
        return None;
    }
    Some((HeaderValue::from_str(&policies).ok()?, HeaderValue::from_str(&limits).ok()?))
}

/// Returns trace id and parent span id of a valid W3C `traceparent`.
pub(super) fn traceparent(headers: &HeaderMap) -> Option<(&str, &str)> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let mut fields = text.split('-');
    let (version, trace, span, flags) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let hex = |field: &str, length: usize| {
        field.len() == length && field.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let sane =
        hex(version, 2) && version != "ff" && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
    let named = trace.bytes().any(|b| b != b'0') && span.bytes().any(|b| b != b'0');
    (sane && named && (version != "00" || fields.next().is_none())).then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_service::app::RatePolicy;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            axum::http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn a_sane_request_id_is_kept_and_any_other_replaced() {
        assert_eq!(request_id(&headers("x-request-id", "trace.4-21_x")), "trace.4-21_x");
        for odd in ["short", "with space in it", "semi;colon-1234"] {
            assert_eq!(request_id(&headers("x-request-id", odd)).len(), 36, "{odd}");
        }
    }

    #[test]
    fn rate_headers_follow_the_draft() {
        let session = RatePolicy { name: "session", quota: 600, window_s: 60 };
        let workspace = RatePolicy { name: "workspace", quota: 3000, window_s: 15 };
        let statuses = [
            RateLimitStatus { policy: session, remaining: 599, reset_s: 1 },
            RateLimitStatus { policy: workspace, remaining: 10, reset_s: 15 },
        ];
        let (policy, limit) = rate_headers(statuses.iter()).unwrap();
        assert_eq!(policy, "\"session\";q=600;w=60, \"workspace\";q=3000;w=15");
        assert_eq!(limit, "\"session\";r=599;t=1, \"workspace\";r=10;t=15");
        assert!(rate_headers([].iter()).is_none());
    }

    #[test]
    fn a_traceparent_is_believed_only_when_well_formed() {
        let good =
            headers("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(traceparent(&good).unwrap().1, "b7ad6b7169203331");
        for bad in [
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "nonsense",
        ] {
            assert!(traceparent(&headers("traceparent", bad)).is_none(), "{bad}");
        }
    }
}
