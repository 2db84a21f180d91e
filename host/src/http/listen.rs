//! A listener: connections accepted, bounded in number and in patience, and
//! let go of gently.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::head::MOST_FIELDS;

/// A pause after a failed accept (usually: no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Streams one HTTP/2 connection may have open.
const MOST_STREAMS: u32 = 200;

/// So much more than a head may have is read of it, in bytes and in fields: what
/// is read can be refused with a problem.
const ROOM: usize = 4;

/// Where a request's connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// How long and how many.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Connections open at a time; further ones wait to be accepted.
    pub max_connections: u32,
    /// How long a client may take to send its header section, and its first
    /// request after it has connected.
    pub header_timeout: Duration,
    /// How long a client may take nothing of an answer that waits for it.
    pub stall_timeout: Duration,
    /// Largest header section, in bytes.
    pub max_header_bytes: u32,
    /// How long requests in flight may take to end once stopping.
    pub drain: Duration,
}

/// Serves until stopped, then lets requests in flight end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: Settings,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(settings.max_connections as usize));
    let server = Arc::new(builder(settings));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, peer, place)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let begun = Arc::<AtomicBool>::default();
        let service = service(router.clone(), peer, Arc::clone(&begun));
        let io = TokioIo::new(giving_up(stream, settings.stall_timeout));
        let connection = server.serve_connection(io, service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks, or stays silent, is the client's affair.
            tokio::select! {
                ended = connection => tracing::trace!(?ended, "connection ended"),
                () = silence(&begun, settings.header_timeout) => tracing::trace!("no request came"),
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(settings.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still in flight when the time to drain was over");
    }
}

/// Ends the connection of a client that does not read what it asked for.
fn giving_up(stream: TcpStream, after: Duration) -> Pin<Box<TimeoutWriter<TcpStream>>> {
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(after));
    Box::pin(stream)
}

/// Ends when no request has come in that time. HTTP's own patience begins only
/// once it is known which HTTP a client speaks.
async fn silence(begun: &AtomicBool, patience: Duration) {
    tokio::time::sleep(patience).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, Place)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Answers are written whole; waiting to fill a segment only delays.
            let _ = stream.set_nodelay(true);
            Some((stream, peer, place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            None
        }
    }
}

fn builder(settings: Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let max_bytes = (settings.max_header_bytes as usize).saturating_mul(ROOM);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        // The header section must fit into the buffer, and this is its least.
        .max_buf_size(max_bytes.max(8192))
        .max_headers(MOST_FIELDS * ROOM);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(u32::try_from(max_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

fn service(
    router: Router,
    peer: SocketAddr,
    begun: Arc<AtomicBool>,
) -> impl hyper::service::Service<
    hyper::Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future = impl Future<Output = Result<axum::response::Response, std::convert::Infallible>>
             + Send
             + 'static,
> + Clone {
    service_fn(move |request: hyper::Request<Incoming>| {
        begun.store(true, Ordering::Relaxed);
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        router.clone().oneshot(request)
    })
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// For what is waited for.
    const PATIENCE: Duration = Duration::from_secs(20);
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    /// More than a connection's buffers hold.
    const LONG: usize = 64 << 20;

    /// A listener with two places.
    async fn listening() -> SocketAddr {
        let settings = Settings {
            max_connections: 2,
            header_timeout: Duration::from_millis(200),
            stall_timeout: Duration::from_millis(200),
            max_header_bytes: 8192,
            drain: Duration::ZERO,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/", get("here"))
            .route("/long", get(|| async { "x".repeat(LONG) }));
        tokio::spawn(serve(listener, router, settings, CancellationToken::new()));
        address
    }

    async fn saying(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    async fn is_answered(address: SocketAddr) {
        let mut stream = saying(address, GET).await;
        let mut answer = String::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer));
        read.await.expect("a place is free in time").unwrap();
        assert!(answer.ends_with("here"), "{answer}");
    }

    #[tokio::test]
    async fn who_connects_and_says_nothing_keeps_no_place() {
        let address = listening().await;
        let _silent = saying(address, b"").await;
        let _half = saying(address, b"PRI * HTTP/2.0\r\n").await;
        is_answered(address).await;
    }

    #[tokio::test]
    async fn who_does_not_read_the_answer_keeps_no_place() {
        let address = listening().await;
        let request = b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n";
        let _deaf = (saying(address, request).await, saying(address, request).await);
        is_answered(address).await;
    }
}
