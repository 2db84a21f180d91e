//! An HTTP response that was read completely, with assertions for tests.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// Members of a problem in the contract.
const PROBLEM_MEMBERS: [&str; 8] =
    ["code", "detail", "hint", "instance", "request_id", "status", "title", "type"];

/// A complete response.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Response headers.
    pub headers: HeaderMap,
    /// Response body.
    pub bytes: Vec<u8>,
    /// Path of the request without query.
    pub path: String,
}

impl Answer {
    /// Returns the text of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a text header"))
    }

    /// Returns the resource's version from `ETag`, which is `"VERSION"` or `"VERSION.DIGEST"`.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        let tag = self.header("etag")?.trim_matches('"');
        tag.split('.').next()?.parse().ok()
    }

    /// Returns the body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{} is not JSON: {error}\n{}", self.path, self.text()))
    }

    /// Asserts the status and returns the JSON body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.path, self.text());
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// Asserts a problem with this status, this code and exactly the contract's members, and
    /// returns it.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{body}");
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["instance"], self.path.as_str(), "{body}");
        let kind = body["type"].as_str().unwrap_or_default();
        assert!(kind.ends_with(&format!("/{code}")), "{body}");
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"), "{body}");
        let members = body.as_object().expect("an object").keys().map(String::as_str);
        assert!(members.eq(PROBLEM_MEMBERS), "{body}");
        for member in ["detail", "hint", "title", "request_id"] {
            assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        }
        body
    }

    /// Asserts a problem like [`problem`](Self::problem) whose `detail` contains this text.
    #[track_caller]
    pub fn problem_about(&self, status: u16, code: &str, part: &str) -> Value {
        let body = self.problem(status, code);
        assert!(body["detail"].as_str().is_some_and(|detail| detail.contains(part)), "{body}");
        body
    }
}
