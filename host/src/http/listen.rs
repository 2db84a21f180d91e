//! A listener: connections accepted, bounded in number and in patience, and
//! let go of gently.

use std::net::SocketAddr;
use std::sync::Arc;
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
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A pause after a failed accept (usually: no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Streams one HTTP/2 connection may have open.
const MOST_STREAMS: u32 = 200;

/// Where a request's connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// How long and how many.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Connections open at a time; further ones wait to be accepted.
    pub max_connections: u32,
    /// How long a client may take to send its header section.
    pub header_timeout: Duration,
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
        let service = service(router.clone(), peer);
        let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks is the client's affair.
            if let Err(error) = connection.await {
                tracing::trace!(error, "connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(settings.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still in flight when the time to drain was over");
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
    let max_bytes = settings.max_header_bytes;
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        // The header section must fit into the buffer, and this is its least.
        .max_buf_size((max_bytes as usize).max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(max_bytes)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

fn service(
    router: Router,
    peer: SocketAddr,
) -> impl hyper::service::Service<
    hyper::Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future = impl Future<Output = Result<axum::response::Response, std::convert::Infallible>>
             + Send
             + 'static,
> + Clone {
    service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        router.clone().oneshot(request)
    })
}
