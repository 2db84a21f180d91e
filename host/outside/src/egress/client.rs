//! Sends HTTP requests to checked addresses.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Chain;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming as Body};
use hyper::client::conn::http1;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{GuardedConnector, TooManyBytes, Unresolved};
use super::url::checked;
use super::{EgressError, EgressRequest, EgressResponse, UrlRefusal};
use assurance_core::config::EgressConfig;

const USER_AGENT: &str = concat!("workspace-assurance/", env!("CARGO_PKG_VERSION"));

/// The HTTP client for all outgoing requests of areas. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Egress {
    /// Opens the connections of requests; `None` for a client that sends
    /// nothing.
    connector: Option<GuardedConnector>,
    settings: Arc<EgressConfig>,
}

impl Egress {
    /// Creates a client that trusts the system's certificates and those of
    /// `ca_file`.
    ///
    /// # Errors
    /// Certificates cannot be read; the message names the file.
    pub fn new(settings: EgressConfig) -> anyhow::Result<Self> {
        install_tls_provider();
        let extra = settings.ca_file.as_deref().map(extra_certificates).transpose()?;
        let timeout = ms(settings.connect_timeout_ms);
        let connector =
            GuardedConnector::new(settings.allow_loopback, timeout, extra.unwrap_or_default())
                .map_err(|error| {
                    anyhow::anyhow!(
                        "no TLS client: {error}; install the system's certificates \
                         (ca-certificates) or set egress.ca_file"
                    )
                })?;
        Ok(Self { connector: Some(connector), settings: Arc::new(settings) })
    }

    /// Creates a client that sends nothing and needs no certificates, for
    /// commands that run a component offline.
    #[must_use]
    pub fn closed() -> Self {
        Self { connector: None, settings: Arc::default() }
    }

    /// Checks whether `send` accepts this URL, without resolving its host name.
    ///
    /// # Errors
    /// The URL is not allowed; the error names the violated rule.
    pub fn check(&self, url: &str) -> Result<(), UrlRefusal> {
        checked(url, self.settings.allow_loopback).map(|_| ())
    }

    /// Returns scheme, host and port of a URL that [`check`](Self::check)
    /// accepts, as in an `Origin` header.
    ///
    /// # Errors
    /// The URL is not allowed; the error names the violated rule.
    pub fn origin(&self, url: &str) -> Result<String, UrlRefusal> {
        let url = checked(url, self.settings.allow_loopback)?;
        Ok(url.origin().ascii_serialization())
    }

    /// Sends an outgoing request and reads the whole response within the
    /// limits.
    ///
    /// # Errors
    /// The reason why there is no response. A response with any status is a
    /// success.
    pub async fn send(&self, outgoing: EgressRequest) -> Result<EgressResponse, EgressError> {
        let timeout = ms(capped(outgoing.timeout_ms, self.settings.max_timeout_ms));
        let max_bytes = capped(outgoing.max_response_bytes, self.settings.max_response_bytes);
        let (to, request) = self.request(outgoing)?;
        let Some(connector) = &self.connector else {
            return Err(EgressError::Refused("offline commands have no network access".to_owned()));
        };
        let connecting = connector.connect(to, u64::from(max_bytes));
        let connecting = tokio::time::timeout(ms(self.settings.connect_timeout_ms), connecting);
        let exchange = async {
            let connected = connecting.await.map_err(|_| EgressError::Timeout)?;
            let stream = connected.map_err(|error| blame(&*error))?;
            // A connection is used for one request only. A connection that is
            // kept would outlive the check of its address.
            let (mut sender, connection) =
                http1::handshake(stream).await.map_err(|error| blame(&error))?;
            let _driven = AbortOnDropHandle::new(tokio::spawn(connection));
            let response = sender.send_request(request).await.map_err(|error| blame(&error))?;
            read(response, max_bytes as usize).await
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(EgressError::Timeout))
    }

    /// Returns the address to connect to, and the request to send.
    fn request(&self, outgoing: EgressRequest) -> Result<(Uri, Request<Full<Bytes>>), EgressError> {
        let url = checked(&outgoing.url, self.settings.allow_loopback)?;
        let refused = |error: http::Error| EgressError::Refused(format!("not a URL: {error}"));
        let to: Uri = url.as_str().parse().map_err(|error: http::uri::InvalidUri| {
            EgressError::Refused(format!("not a URL: {error}"))
        })?;
        let authority = to.authority().map_or("", |authority| authority.as_str());
        let host = HeaderValue::from_str(authority).map_err(|error| refused(error.into()))?;
        let path = to.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(method(&outgoing.method)?)
            .uri(path)
            .body(Full::from(outgoing.body))
            .map_err(refused)?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, host);
        headers.extend(read_headers(&outgoing.headers)?);
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        Ok((to, request))
    }
}

async fn read(response: Response<Body>, max_bytes: usize) -> Result<EgressResponse, EgressError> {
    let (parts, mut content) = response.into_parts();
    // By the body, not by `Content-Length`: a response to HEAD has that of the response to GET.
    if content.size_hint().lower() > max_bytes as u64 {
        return Err(EgressError::TooLarge);
    }
    let value = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.to_string(), value.to_str().ok()?.to_owned()))
    };
    let headers = parts.headers.iter().filter_map(value).collect();
    let mut body = Vec::new();
    while let Some(frame) = content.frame().await {
        let Ok(piece) = frame.map_err(|error| blame(&error))?.into_data() else { continue };
        if body.len() + piece.len() > max_bytes {
            return Err(EgressError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(EgressResponse { status: parts.status.as_u16(), headers, body })
}

fn method(name: &str) -> Result<Method, EgressError> {
    match name {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        "HEAD" => Ok(Method::HEAD),
        other => Err(EgressError::Refused(format!("method {other:?} is not supported"))),
    }
}

/// Names of header fields that an area may not set in a request: hop-by-hop
/// ones and others.
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

fn read_headers(given: &[(String, String)]) -> Result<HeaderMap, EgressError> {
    let mut map = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let refused = || EgressError::Refused(format!("header {name:?} cannot be sent"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        if NOT_THE_CALLERS.contains(&name.as_str()) {
            return Err(refused());
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
        value.set_sensitive(name == header::AUTHORIZATION);
        map.append(name, value);
    }
    Ok(map)
}

/// Converts an error of an outgoing request's connection, by the first known
/// error in its chain of causes.
fn blame(error: &(dyn Error + 'static)) -> EgressError {
    for inner in Chain::new(error) {
        if let Some(refused) = inner.downcast_ref::<UrlRefusal>() {
            return EgressError::Refused(refused.0.clone());
        }
        if inner.is::<Unresolved>() {
            return EgressError::Unresolved;
        }
        // `source()` does not return the inner error of an `io::Error`.
        let within = inner.downcast_ref::<std::io::Error>();
        let within = within.and_then(std::io::Error::get_ref);
        let too_many = <dyn std::error::Error + Send + Sync>::is::<TooManyBytes>;
        if inner.is::<TooManyBytes>() || within.is_some_and(too_many) {
            return EgressError::TooLarge;
        }
        if within.is_none() && inner.downcast_ref().is_some_and(is_timeout) {
            return EgressError::Timeout;
        }
    }
    let texts: Vec<String> = Chain::new(error).map(ToString::to_string).collect();
    EgressError::Connection(texts.join(": "))
}

fn is_timeout(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::TimedOut
}

fn extra_certificates(file: &std::path::Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let wrong = |what: String| {
        anyhow::anyhow!("egress.ca_file {}: {what}; it must hold PEM certificates", file.display())
    };
    let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(certificates)
}

/// Sets ring as the process's TLS provider; a second call does nothing.
pub fn install_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn capped(wanted: u32, most: u32) -> u32 {
    if wanted == 0 { most } else { wanted.min(most) }
}

fn ms(milliseconds: u32) -> Duration {
    Duration::from_millis(u64::from(milliseconds))
}
