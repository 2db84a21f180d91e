//! Requests to OpenAI-compatible servers and the error codes of failures.

use area_sdk::prelude::*;
use area_sdk::wit::assurance::area::egress::{Error as EgressError, Header, Incoming, Outgoing};
use serde_json::Value;

/// Maximum value of a model server's `Retry-After` that is obeyed, in seconds.
const MOST_RETRY_AFTER_SECONDS: i64 = 60;

/// Reason why a request to a model server failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ModelRequestFailure {
    /// Error code for the client, one of those in the operations' documentation.
    pub(crate) code: &'static str,
    /// Whether the failure is temporary, so that another attempt may succeed.
    pub(crate) transient: bool,
    /// Value of `Retry-After` in the server's response, in seconds; `None` if there is none.
    pub(crate) retry_after: Option<i64>,
}

impl ModelRequestFailure {
    pub(crate) fn lasting(code: &'static str) -> Self {
        Self { code, transient: false, retry_after: None }
    }

    pub(crate) fn passing(code: &'static str) -> Self {
        Self { code, transient: true, retry_after: None }
    }

    /// Returns the failure for a response that violates the model server's protocol.
    pub(crate) fn invalid() -> Self {
        Self::lasting("invalid_answer")
    }

    /// Converts an error of the host's HTTP client to a failure of the request.
    fn of(error: &EgressError) -> Self {
        match error {
            EgressError::Refused(_) => Self::lasting("address_refused"),
            EgressError::Unresolved => Self::passing("unresolved"),
            EgressError::Connection(_) => Self::passing("unreachable"),
            EgressError::Timeout => Self::passing("timeout"),
            EgressError::TooLarge => Self::lasting("answer_too_large"),
            EgressError::NoSecret => Self::lasting("credential_rejected"),
            EgressError::NotInAJob => panic!("egress misused: {error:?}"),
        }
    }

    /// Converts a model server's response with a status other than 2xx to a failure.
    fn of_status(answer: &Incoming) -> Self {
        let said = error_code(&answer.body);
        let said = said.as_deref().unwrap_or_default();
        match answer.status {
            300..=399 => Self::lasting("redirected"),
            401 | 403 => Self::lasting("credential_rejected"),
            429 if said == "insufficient_quota" => Self::lasting("quota_exhausted"),
            429 => Self { retry_after: retry_after(answer), ..Self::passing("rate_limited") },
            408 | 504 => Self::passing("timeout"),
            _ if said == "model_not_found" => Self::lasting("model_not_found"),
            404 => Self::lasting("not_found"),
            413 => Self::lasting("context_too_long"),
            _ if said == "context_length_exceeded" => Self::lasting("context_too_long"),
            400..=499 => Self::lasting("request_rejected"),
            _ => {
                let retry_after = retry_after(answer);
                Self { retry_after, ..Self::passing("upstream_unavailable") }
            }
        }
    }
}

/// Returns `error.code` in the body of an OpenAI-compatible error.
fn error_code(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body["error"]["code"].as_str()?.to_owned())
}

/// Parses `Retry-After` in seconds; dates are ignored.
fn retry_after(answer: &Incoming) -> Option<i64> {
    let mut headers = answer.headers.iter();
    let header = headers.find(|header| header.name.eq_ignore_ascii_case("retry-after"))?;
    let seconds: i64 = header.value.trim().parse().ok()?;
    Some(seconds.clamp(1, MOST_RETRY_AFTER_SECONDS))
}

/// Returns the URL of a resource below a model server's base URL.
pub(crate) fn url(base_url: &str, resource: &str) -> String {
    format!("{}/{resource}", base_url.trim_end_matches('/'))
}

/// Builds a request to a model server. The host sends the secret named `bearer` as bearer token.
pub(crate) fn request(
    url: String,
    bearer: Option<String>,
    body: Option<String>,
    timeout_ms: u32,
    max_response_bytes: u32,
) -> Outgoing {
    let header =
        |name: &str| Header { name: name.to_owned(), value: "application/json".to_owned() };
    let mut headers = vec![header("accept")];
    headers.extend(body.as_ref().map(|_| header("content-type")));
    Outgoing {
        method: if body.is_some() { "POST" } else { "GET" }.to_owned(),
        url,
        headers,
        body: body.map(String::into_bytes).unwrap_or_default(),
        bearer,
        timeout_ms,
        max_response_bytes,
    }
}

/// Sends a request to a model server and returns the body of a 2xx response; otherwise the failure
/// with the body of the response.
pub(crate) fn send(
    ctx: &JobCtx,
    request: &Outgoing,
) -> Result<Vec<u8>, (ModelRequestFailure, Vec<u8>)> {
    let answer =
        ctx.send(request).map_err(|error| (ModelRequestFailure::of(&error), Vec::new()))?;
    if (200..300).contains(&answer.status) {
        return Ok(answer.body);
    }
    Err((ModelRequestFailure::of_status(&answer), answer.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str, retry_after: Option<&str>) -> ModelRequestFailure {
        let header = |value: &str| Header { name: "Retry-After".into(), value: value.into() };
        let headers = retry_after.map(header).into_iter().collect();
        ModelRequestFailure::of_status(&Incoming {
            status,
            headers,
            body: body.as_bytes().to_vec(),
        })
    }

    #[test]
    fn every_status_has_a_code_and_says_whether_to_try_again() {
        let quota = r#"{"error":{"code":"insufficient_quota"}}"#;
        let long = r#"{"error":{"code":"context_length_exceeded"}}"#;
        let model = r#"{"error":{"code":"model_not_found"}}"#;
        for (status, body, code, transient) in [
            (302, "", "redirected", false),
            (400, long, "context_too_long", false),
            (400, "<html>", "request_rejected", false),
            (401, "", "credential_rejected", false),
            (404, model, "model_not_found", false),
            (404, "", "not_found", false),
            (429, quota, "quota_exhausted", false),
            (429, "", "rate_limited", true),
            (503, "", "upstream_unavailable", true),
            (504, "", "timeout", true),
        ] {
            let failure = answer(status, body, None);
            assert_eq!((failure.code, failure.transient), (code, transient), "{status} {body}");
            assert!(crate::docs::ENDPOINTS.contains(&format!("`{code}`")), "{code} is documented");
        }
    }

    #[test]
    fn a_retry_after_is_followed_within_a_minute() {
        assert_eq!(answer(429, "", Some("7")).retry_after, Some(7));
        assert_eq!(answer(503, "", Some("86400")).retry_after, Some(60));
        assert_eq!(answer(429, "", Some("Wed, 21 Oct 2026 07:28:00 GMT")).retry_after, None);
    }

    #[test]
    fn addresses_are_joined_with_one_slash() {
        assert_eq!(url("https://a.example/v1/", "models"), "https://a.example/v1/models");
        assert_eq!(url("https://a.example/v1", "models"), "https://a.example/v1/models");
    }
}
