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

use std::path::PathBuf;

pub use address::{AddressClass, is_public};
pub use client::Egress;
pub use client::install_tls_provider;

/// The operator's settings for outgoing requests.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Development: allow loopback addresses, and http for these.
    pub allow_loopback: bool,
    /// Certificates (PEM) trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Maximum time to open a connection, in milliseconds.
    pub connect_timeout_ms: u32,
    /// Upper bound of every request's timeout, in milliseconds.
    pub max_timeout_ms: u32,
    /// Upper bound of every request's response limit, in bytes.
    pub max_response_bytes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&assurance_core::config::EgressConfig::default())
    }
}

impl From<&assurance_core::config::EgressConfig> for Settings {
    fn from(section: &assurance_core::config::EgressConfig) -> Self {
        Self {
            allow_loopback: section.allow_loopback,
            ca_file: section.ca_file.clone(),
            connect_timeout_ms: section.connect_timeout_ms,
            max_timeout_ms: section.max_timeout_ms,
            max_response_bytes: section.max_response_bytes,
        }
    }
}

/// An outgoing HTTP request.
#[derive(Clone, Debug)]
pub struct EgressRequest {
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: String,
    /// Absolute URL of the receiver.
    pub url: String,
    /// Header fields in order; hop-by-hop ones and `Host` are refused.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
    /// Timeout in milliseconds; 0: the operator's maximum.
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
    /// Header fields with lower-case names; values that are not text are
    /// omitted.
    pub headers: Vec<(String, String)>,
    /// Body as sent, not decompressed.
    pub body: Vec<u8>,
}

/// A URL that is not allowed. The text is for the person who entered it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlRefusal(pub String);

/// Reason why there is no response.
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
