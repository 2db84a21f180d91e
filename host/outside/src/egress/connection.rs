//! A connection to a receiver for one request, with a limit on all received
//! bytes, including interim (1xx) responses and header fields.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::{Service, ServiceExt as _};

use super::UrlRefusal;
use super::url::literal;

/// Bytes that a receiver may send in addition to the response body:
/// certificates, header fields, interim responses.
const OVERHEAD_BYTES: u64 = 256 * 1024;
/// Number of received bytes allowed for each byte of the body, which may arrive
/// in small chunks with a header each.
const BYTES_PER_BODY_BYTE: u64 = 4;
/// Number of received bytes after which reading yields to other tasks.
const TURN_BYTES: usize = 64 * 1024;

/// Error: the receiver sent more bytes than the connection allows.
#[derive(Debug, thiserror::Error)]
#[error("the receiver sent more bytes than the connection allows")]
pub(super) struct TooManyBytes;

/// Error: the host name of an outgoing request has no addresses.
#[derive(Debug, thiserror::Error)]
#[error("the name does not resolve")]
pub(super) struct Unresolved;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Stream = MaybeHttpsStream<TokioIo<BoundedStream<TcpStream>>>;

/// Opens connections to allowed addresses only. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct GuardedConnector {
    tcp: HttpConnector<CheckedResolver>,
    tls: Arc<ClientConfig>,
}

impl GuardedConnector {
    /// Creates a connector that trusts the system's certificates and those in
    /// `extra`.
    ///
    /// # Errors
    /// No certificate can be read.
    pub(super) fn new(
        allow_loopback: bool,
        timeout: Duration,
        extra: Vec<CertificateDer<'static>>,
    ) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider))?;
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut tcp = HttpConnector::new_with_resolver(CheckedResolver { allow_loopback });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(timeout));
        Ok(Self { tcp, tls: Arc::new(tls) })
    }

    /// Connects to the host of a URL. The receiver may then send a body of at
    /// most `max_body_bytes`.
    pub(super) async fn connect(&self, to: Uri, max_body_bytes: u64) -> Result<Stream, BoxError> {
        let left = max_body_bytes.saturating_mul(BYTES_PER_BODY_BYTE) + OVERHEAD_BYTES;
        let bounded = move |stream: TokioIo<TcpStream>| {
            TokioIo::new(BoundedStream { stream: stream.into_inner(), left, turn: TURN_BYTES })
        };
        let tcp = self.tcp.clone().map_response(bounded);
        HttpsConnector::from((tcp, Arc::clone(&self.tls))).oneshot(to).await
    }
}

/// Resolves host names and rejects addresses that are not allowed.
#[derive(Clone, Debug)]
struct CheckedResolver {
    allow_loopback: bool,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allow_loopback = self.allow_loopback;
        Box::pin(async move {
            let host = name.as_str();
            let found = tokio::net::lookup_host((host, 0)).await.map_err(|_| Unresolved)?;
            Ok(only_allowed(host, &found.collect::<Vec<_>>(), allow_loopback)?.into_iter())
        })
    }
}

/// Returns the addresses of a host name if all of them are allowed. A name that
/// also points to an internal address is treated as an attack. The error names
/// only the host, because its caller must not read internal addresses; the log
/// has the address.
fn only_allowed(
    host: &str,
    found: &[SocketAddr],
    allow_loopback: bool,
) -> Result<Vec<SocketAddr>, BoxError> {
    if found.is_empty() {
        return Err(Unresolved.into());
    }
    for address in found.iter().map(SocketAddr::ip) {
        if let Err(error) = literal(address, allow_loopback) {
            tracing::warn!(host, %error, "outgoing request refused by an address of its host");
            return Err(UrlRefusal(format!("{host} has an address that is not public")).into());
        }
    }
    Ok(found.to_vec())
}

/// A stream that returns an error after a number of received bytes, and yields
/// to other tasks every 64 KiB.
#[derive(Debug)]
pub(super) struct BoundedStream<S> {
    stream: S,
    left: u64,
    turn: usize,
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.turn == 0 {
            self.turn = TURN_BYTES;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let length = buffer.filled().len() - before;
        self.turn = self.turn.saturating_sub(length);
        match self.left.checked_sub(length as u64) {
            Some(left) => self.left = left,
            None => return Poll::Ready(Err(io::Error::other(TooManyBytes))),
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> Connection for BoundedStream<S> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::EgressError;
    use super::*;

    fn allowed(found: &[&str], allow_loopback: bool) -> Result<usize, EgressError> {
        let found: Vec<SocketAddr> =
            found.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect();
        let kept = only_allowed("db.example", &found, allow_loopback);
        kept.map(|kept| kept.len()).map_err(|error| match error.downcast::<UrlRefusal>() {
            Ok(refused) => (*refused).into(),
            Err(_) => EgressError::Unresolved,
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

    #[test]
    fn a_refusal_names_the_host_and_not_its_address() {
        for bad in ["10.1.2.3", "127.0.0.1", "169.254.169.254", "fd00::7"] {
            let refused = allowed(&["8.8.8.8", bad], false);
            let why = "db.example has an address that is not public".to_owned();
            assert_eq!(refused, Err(EgressError::Refused(why)), "{bad}");
        }
    }
}
