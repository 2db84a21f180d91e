//! The one way out to the network.
//!
//! https only, public addresses only: a name's every address is checked and
//! the connection goes to the checked one, so that a name cannot be made to
//! point inside between check and use. Redirects are not followed, proxies
//! not asked, answers bounded while they are read.

mod address;
mod client;
mod connection;
mod url;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use address::{Reach, is_public};
pub use client::Egress;
pub(crate) use client::install_tls_provider;

/// What an operator decides about it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Development: loopback addresses too, and these over http.
    pub allow_loopback: bool,
    /// Certificates (PEM) trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// How long a connection may take to open.
    pub connect_timeout_ms: u32,
    /// Caps every request's own timeout.
    pub max_timeout_ms: u32,
    /// Caps every request's own bound.
    pub max_response_bytes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&crate::config::Egress::default())
    }
}

impl From<&crate::config::Egress> for Settings {
    fn from(section: &crate::config::Egress) -> Self {
        Self {
            allow_loopback: section.allow_loopback,
            ca_file: section.ca_file.clone(),
            connect_timeout_ms: section.connect_timeout_ms,
            max_timeout_ms: section.max_timeout_ms,
            max_response_bytes: section.max_response_bytes,
        }
    }
}

/// A request to somewhere else.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// In order; hop-by-hop ones and `Host` are refused.
    pub headers: Vec<(String, String)>,
    /// Empty: none.
    pub body: Vec<u8>,
    /// 0: the operator's longest.
    pub timeout_ms: u32,
    /// 0: the operator's largest.
    pub max_response_bytes: u32,
}

/// Its answer; a redirect is an answer like any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// 100 to 599.
    pub status: u16,
    /// Lower-case names; values that are no text are left out.
    pub headers: Vec<(String, String)>,
    /// As sent, not decompressed.
    pub body: Vec<u8>,
}

/// Why a URL is not sent to. The text is for the person who chose it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// Not a request this service makes; the text names the rule.
    #[error("refused: {0}")]
    Refused(String),
    /// The name does not resolve.
    #[error("the host name does not resolve")]
    Unresolved,
    /// No connection, or it broke.
    #[error("connection failed: {0}")]
    Connection(String),
    /// No whole answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The response is larger than allowed, or so is what came with it, such
    /// as interim (1xx) responses without end.
    #[error("the response, or what was sent before it, is too large")]
    TooLarge,
}

impl From<Refused> for EgressError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused.0)
    }
}
