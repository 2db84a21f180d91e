//! Outgoing HTTP requests.
//!
//! Only https and public addresses are allowed. All addresses of a name are
//! checked, and the connection uses a checked address, so that the name cannot
//! be changed between check and use (DNS rebinding). Redirects are not
//! followed, proxies are not used, and response sizes are limited while
//! reading.

mod address;
mod client;
mod connection;
mod url;

#[cfg(test)]
mod tests;

pub use client::{Egress, install_tls_provider};

/// An outgoing HTTP request.
#[derive(Clone, Debug)]
pub struct EgressRequest {
    /// HTTP method: GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: String,
    /// Absolute URL of the receiver.
    pub url: String,
    /// Header fields of the request in order; hop-by-hop ones and `Host` are
    /// refused.
    pub headers: Vec<(String, String)>,
    /// Body of the request; empty for none.
    pub body: Vec<u8>,
    /// Timeout of the request in milliseconds; 0: the operator's maximum.
    pub timeout_ms: u32,
    /// Largest response body in bytes; 0: the operator's maximum.
    pub max_response_bytes: u32,
}

/// Response to an outgoing request. Redirects are returned like other
/// responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressResponse {
    /// HTTP status, 100 to 599.
    pub status: u16,
    /// Header fields of the response with lower-case names; values that are not
    /// text are omitted.
    pub headers: Vec<(String, String)>,
    /// Body of the response as sent, not decompressed.
    pub body: Vec<u8>,
}

/// Reason why no request may be sent to a URL, for the person who entered the
/// URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlRefusal(pub String);

/// Reason why there is no response to an outgoing request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// The request is not allowed; the text names the rule.
    #[error("refused: {0}")]
    Refused(String),
    /// The host name does not resolve.
    #[error("the host name does not resolve")]
    Unresolved,
    /// The connection failed; contains the cause.
    #[error("connection failed: {0}")]
    Connection(String),
    /// The response was not complete in time.
    #[error("no response in time")]
    Timeout,
    /// The response exceeds the limit, including its header fields and interim
    /// (1xx) responses.
    #[error("the response, or what was sent before it, is too large")]
    TooLarge,
}

impl From<UrlRefusal> for EgressError {
    fn from(refused: UrlRefusal) -> Self {
        Self::Refused(refused.0)
    }
}
