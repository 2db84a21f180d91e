//! Sends requests, to checked addresses only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Method, Request, Response, redirect};

use super::url::{checked, literal};
use super::{EgressError, Incoming, Outgoing, Refused, Settings};

/// The one way out. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Egress {
    /// Nothing: nobody is reached.
    client: Option<Client>,
    settings: Arc<Settings>,
}

impl Egress {
    /// Prepares the client and its certificates.
    ///
    /// # Errors
    /// Where certificates cannot be read; the message says which.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        install_tls_provider();
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(ms(settings.connect_timeout_ms))
            // Each connection carries one request, so a newer protocol's
            // handshake would be for nothing.
            .http1_only()
            // A kept connection would outlive the check of its address.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("workspace-assurance/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(CheckedResolver { allow_loopback: settings.allow_loopback });
        if let Some(file) = &settings.ca_file {
            builder = builder.tls_certs_merge(extra_certificates(file)?);
        }
        let client = builder.build().map_err(|error| {
            anyhow::anyhow!(
                "no TLS client: {}; install the system's certificates (ca-certificates) or set \
                 egress.ca_file",
                chain(&error)
            )
        })?;
        Ok(Self { client: Some(client), settings: Arc::new(settings) })
    }

    /// Reaches nobody, and so needs no certificates: for commands that run a
    /// component offline.
    #[must_use]
    pub fn closed() -> Self {
        Self { client: None, settings: Arc::default() }
    }

    /// Would `send` accept this URL as it stands, before names are resolved?
    ///
    /// # Errors
    /// Names the rule that refuses it.
    pub fn check(&self, url: &str) -> Result<(), Refused> {
        checked(url, self.settings.allow_loopback).map(|_| ())
    }

    /// Scheme, host and port of a URL that [`check`](Self::check) accepts, as
    /// in an `Origin` header.
    ///
    /// # Errors
    /// Names the rule that refuses the URL.
    pub fn origin(&self, url: &str) -> Result<String, Refused> {
        let url = checked(url, self.settings.allow_loopback)?;
        Ok(url.origin().ascii_serialization())
    }

    /// Sends, and reads the whole answer within the bounds.
    ///
    /// # Errors
    /// Says why there is no answer; any status is an answer.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Incoming, EgressError> {
        let timeout = ms(capped(outgoing.timeout_ms, self.settings.max_timeout_ms));
        let max_bytes = capped(outgoing.max_response_bytes, self.settings.max_response_bytes);
        let request = self.request(outgoing)?;
        let Some(client) = &self.client else {
            return Err(EgressError::Refused("there is no network offline".to_owned()));
        };
        let exchange = async {
            let response = client.execute(request).await.map_err(|error| blame(&error))?;
            read(response, max_bytes as usize).await
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(EgressError::Timeout))
    }

    fn request(&self, outgoing: Outgoing) -> Result<Request, EgressError> {
        let url = checked(&outgoing.url, self.settings.allow_loopback)?;
        let mut request = Request::new(method(&outgoing.method)?, url);
        *request.headers_mut() = headers(&outgoing.headers)?;
        if !outgoing.body.is_empty() {
            *request.body_mut() = Some(outgoing.body.into());
        }
        Ok(request)
    }
}

/// Resolves names and drops every address that may not be sent to.
#[derive(Debug)]
struct CheckedResolver {
    allow_loopback: bool,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_loopback = self.allow_loopback;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0))
                .await
                .map_err(|_| Unresolved)?
                .collect::<Vec<_>>();
            Ok(Box::new(only_allowed(&found, allow_loopback)?.into_iter()) as Addrs)
        })
    }
}

/// All addresses of a name must be allowed: one that points inside as well is
/// an attempt, not an accident.
fn only_allowed(
    found: &[SocketAddr],
    allow_loopback: bool,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    if found.is_empty() {
        return Err(Unresolved.into());
    }
    for address in found.iter().map(SocketAddr::ip) {
        literal(address, allow_loopback)?;
    }
    Ok(found.to_vec())
}

#[derive(Debug, thiserror::Error)]
#[error("the name does not resolve")]
struct Unresolved;

async fn read(response: Response, max_bytes: usize) -> Result<Incoming, EgressError> {
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(EgressError::TooLarge);
    }
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| blame(&error))?;
        if body.len() + chunk.len() > max_bytes {
            return Err(EgressError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Incoming { status, headers, body })
}

fn method(name: &str) -> Result<Method, EgressError> {
    match name {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        "HEAD" => Ok(Method::HEAD),
        other => Err(EgressError::Refused(format!("method {other:?} is not sent"))),
    }
}

/// Headers that belong to the connection, not to its user.
const NOT_THE_CALLERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn headers(given: &[(String, String)]) -> Result<HeaderMap, EgressError> {
    let mut map = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let refused = || EgressError::Refused(format!("header {name:?} cannot be sent"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        if NOT_THE_CALLERS.contains(&header.as_str()) {
            return Err(refused());
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
        value.set_sensitive(header == reqwest::header::AUTHORIZATION);
        map.append(header, value);
    }
    Ok(map)
}

/// Finds what went wrong at the bottom of the client's errors.
fn blame(error: &reqwest::Error) -> EgressError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return EgressError::Refused(refused.0.clone());
        }
        if inner.is::<Unresolved>() {
            return EgressError::Unresolved;
        }
        cause = inner.source();
    }
    if error.is_timeout() { EgressError::Timeout } else { EgressError::Connection(chain(error)) }
}

/// The innermost reasons, without the URL: its query may hold a secret.
fn chain(error: &reqwest::Error) -> String {
    let mut reasons = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        reasons.push(inner.to_string());
        cause = inner.source();
    }
    if reasons.is_empty() {
        reasons.push("the request failed".to_owned());
    }
    reasons.join(": ")
}

fn extra_certificates(file: &std::path::Path) -> anyhow::Result<Vec<Certificate>> {
    let wrong = |what: String| {
        anyhow::anyhow!("egress.ca_file {}: {what}; it must hold PEM certificates", file.display())
    };
    let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let certificates =
        Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(certificates)
}

/// Makes ring the process's TLS provider; a second time does nothing.
pub(crate) fn install_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn capped(wanted: u32, most: u32) -> u32 {
    if wanted == 0 { most } else { wanted.min(most) }
}

fn ms(milliseconds: u32) -> Duration {
    Duration::from_millis(u64::from(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(found: &[&str], allow_loopback: bool) -> Result<usize, EgressError> {
        let found: Vec<SocketAddr> =
            found.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect();
        only_allowed(&found, allow_loopback).map(|kept| kept.len()).map_err(|error| {
            match error.downcast::<Refused>() {
                Ok(refused) => (*refused).into(),
                Err(_) => EgressError::Unresolved,
            }
        })
    }

    #[test]
    fn a_name_is_sent_to_only_if_all_its_addresses_may_be() {
        assert_eq!(allowed(&["8.8.8.8", "2606:4700::1111"], false), Ok(2));
        assert_eq!(allowed(&[], false), Err(EgressError::Unresolved));
        for bad in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "::ffff:8.8.8.8"] {
            let refused = allowed(&["8.8.8.8", bad], false);
            assert!(matches!(refused, Err(EgressError::Refused(_))), "{bad}: {refused:?}");
        }
        assert_eq!(allowed(&["127.0.0.1", "::1"], true), Ok(2));
        assert!(allowed(&["10.0.0.1"], true).is_err());
    }
}
