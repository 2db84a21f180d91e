//! An HTTP answer, read whole, and what a test wants to know of it.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// Exactly the contract's members of a problem.
const PROBLEM_MEMBERS: [&str; 8] =
    ["code", "detail", "hint", "instance", "request_id", "status", "title", "type"];

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub bytes: Vec<u8>,
    /// The path that was asked, without query.
    pub path: String,
}

impl Answer {
    /// A header's text, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a text header"))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{} is not JSON: {error}\n{}", self.path, self.text()))
    }

    /// The JSON of an answer that must have this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.path, self.text());
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// The problem in an answer that must be one, with this status and code,
    /// and must have exactly a problem's members.
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
}
