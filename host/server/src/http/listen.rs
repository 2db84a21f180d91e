//! A listener: accepts connections, limits their number and their times, and closes them
//! gracefully.
//!
//! Each address has a maximum number of connections; further ones are closed at once. When the
//! listener is full, the connection that has been idle longest is closed.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::response::Response;
use futures::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use metrics::{counter, describe_counter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::io::InspectWriter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::client_address::is_trusted;
use super::connections::{ConnectionGuard, Connections, RequestInFlight};
use super::head::MOST_FIELDS;
use super::pace::unused;
use super::path;

/// Wait after a failed accept. The usual reason is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time that an idle connection has to close, when the listener is full, before another one is
/// asked to.
const CLOSE_PAUSE: Duration = Duration::from_millis(100);

const REFUSED: &str = "assurance_connections_refused_total";
const EVICTED: &str = "assurance_connections_evicted_total";

/// Maximum number of open streams of an HTTP/2 connection.
const MOST_STREAMS: u32 = 200;

/// Factor by which the parser's limits exceed the limits of a header section, in bytes and fields.
/// Header sections in between are refused with a problem document.
const ROOM: usize = 4;

/// Length of the kernel's queue of connections that are not accepted yet. They are still served
/// when the listener stops.
const BACKLOG: usize = 1024;

/// Time between the end of listening and the close of idle connections. Clients that have just
/// connected still get a response to their first request.
const FIRST_REQUEST: Duration = Duration::from_millis(100);

/// Tokens that stop a listener in two steps.
#[derive(Clone, Debug, Default)]
pub struct ShutdownTokens {
    /// Makes each HTTP/1 response end its connection (`Connection: close`), so that clients
    /// reconnect elsewhere without losing a request.
    pub closing: CancellationToken,
    /// Stops accepting connections and closes idle ones.
    pub closed: CancellationToken,
}

/// Socket address of the other end of a request's connection: the client, or a proxy.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// Name and limits of a listener.
#[derive(Clone, Debug)]
pub struct ListenerLimits {
    /// Name of the listener in metrics.
    pub name: &'static str,
    /// Maximum number of open connections. For a further one, the connection that has been idle
    /// longest is closed; if all are busy, the new one waits.
    pub max_connections: u32,
    /// Maximum number of connections of one address; further ones are closed.
    pub max_per_address: u32,
    /// Addresses and networks without the limit `max_per_address`.
    pub trusted_proxies: Arc<[String]>,
    /// Timeout for a header section, and for the first request after connecting.
    pub header_timeout: Duration,
    /// Timeout for a response that the client receives more slowly than `min_download_rate`.
    pub stall_timeout: Duration,
    /// Minimum download rate, in bytes per second.
    pub min_download_rate: u32,
    /// Timeout of an HTTP/2 connection without requests. HTTP/1 uses `header_timeout`.
    pub idle_timeout: Duration,
    /// Maximum size of a header section, in bytes.
    pub max_header_bytes: u32,
    /// Time that requests in flight have to end when the listener stops.
    pub drain: Duration,
}

/// Serves the listener's connections until `stop`, then waits for requests in flight.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenerLimits,
    stop: ShutdownTokens,
) {
    describe();
    let drain = settings.drain;
    let end = CancellationToken::new();
    let listening = AcceptLoop {
        places: Arc::new(Semaphore::new(settings.max_connections as usize)),
        connections: Connections::new(),
        server: Arc::new(builder(&settings)),
        settings,
        router,
        tasks: TaskTracker::new(),
        closing: stop.closing,
        end: end.clone(),
    };
    while let Some(accepted) = stop.closed.run_until_cancelled(listening.accept(&listener)).await {
        if let Some(accepted) = accepted {
            listening.start(accepted);
        }
    }
    for _ in 0..BACKLOG {
        match listening.accept(&listener).now_or_never() {
            Some(Some(accepted)) => listening.start(accepted),
            Some(None) => {}
            None => break,
        }
    }
    drop(listener);
    tokio::time::sleep(FIRST_REQUEST.min(drain)).await;
    end.cancel();
    listening.tasks.close();
    if tokio::time::timeout(drain, listening.tasks.wait()).await.is_err() {
        tracing::warn!("requests were still in flight when the drain time ended");
    }
}

fn describe() {
    describe_counter!(
        REFUSED,
        "Connections closed because their address had the maximum number, by listener"
    );
    describe_counter!(EVICTED, "Idle connections closed in favor of new ones, by listener");
}

/// State of the accept loop.
struct AcceptLoop {
    places: Arc<Semaphore>,
    connections: Arc<Connections>,
    server: Arc<Builder<TokioExecutor>>,
    settings: ListenerLimits,
    router: Router,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Cancelled when connections must end: idle ones at once, others after their requests in
    /// flight.
    end: CancellationToken,
}

/// A connection with its peer, its permit and its entry in the list.
type AcceptedConnection = (TcpStream, SocketAddr, OwnedSemaphorePermit, ConnectionGuard);

impl AcceptLoop {
    /// Serves a connection in its own task.
    fn start(&self, (stream, peer, place, entry): AcceptedConnection) {
        let (router, closing) = (self.router.clone(), self.closing.clone());
        let requests = entry.requests();
        let service = service_fn(move |request| {
            respond(router.clone(), request, peer, requests.begin(), closing.clone())
        });
        let written = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&written);
        let stream = InspectWriter::new(stream, move |bytes: &[u8]| {
            counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        });
        let connection = self.server.serve_connection(TokioIo::new(stream), service).into_owned();
        let settings = self.settings.clone();
        self.tasks.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            // After `close`, only requests in flight are served.
            let served = async {
                if entry.close().run_until_cancelled(connection.as_mut()).await.is_none() {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            };
            // Errors of a single connection are caused by its client and are not logged.
            tokio::select! {
                () = served => tracing::trace!("connection ended"),
                () = unused(&entry, &written, &settings) => {
                    tracing::trace!("connection closed: idle, or the client was too slow");
                }
            }
            drop((entry, place));
        });
    }

    /// Accepts a connection. Returns `None` if accepting failed or the connection was closed at
    /// once.
    async fn accept(&self, listener: &TcpListener) -> Option<AcceptedConnection> {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                self.make_room();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                return None;
            }
        };
        let most = self.most(peer.ip());
        let Some(entry) = self.connections.enter(peer.ip(), most, &self.end) else {
            counter!(REFUSED, "listener" => self.settings.name).increment(1);
            return None;
        };
        // Responses are written in one piece, so delaying small segments has no benefit.
        let _ = stream.set_nodelay(true);
        // Prevents the new connection from being closed as the idle one.
        let held = entry.hold();
        let place = self.place().await?;
        drop(held);
        Some((stream, peer, place, entry))
    }

    /// Returns the maximum number of connections of an address; `None` means no limit.
    fn most(&self, peer: IpAddr) -> Option<u32> {
        let trusted = is_trusted(peer.to_canonical(), &self.settings.trusted_proxies);
        (!trusted).then_some(self.settings.max_per_address)
    }

    /// Acquires the permit of a new connection. Closes idle connections until one is available.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        loop {
            self.make_room();
            let place = Arc::clone(&self.places).acquire_owned();
            if let Ok(place) = tokio::time::timeout(CLOSE_PAUSE, place).await {
                return place.ok();
            }
        }
    }

    fn make_room(&self) {
        if self.connections.close_longest_idle() {
            counter!(EVICTED, "listener" => self.settings.name).increment(1);
        }
    }
}

fn builder(settings: &ListenerLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let max_bytes = (settings.max_header_bytes as usize).saturating_mul(ROOM);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        // The buffer must hold the header section; hyper's minimum is 8192 bytes.
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

async fn respond(
    router: Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
    in_flight: RequestInFlight,
    closing: CancellationToken,
) -> Result<Response, Infallible> {
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(PeerAddress(peer));
    if let Some(uri) = path::normalized(request.uri()) {
        *request.uri_mut() = uri;
    }
    let version = request.version();
    let mut response = router.oneshot(request).await?.map(|body| in_flight.until_sent(body));
    // HTTP/2 closes connections with GOAWAY instead.
    if closing.is_cancelled() && version <= Version::HTTP_11 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;
    use tokio::task::JoinHandle;

    use super::*;

    /// Timeout of waits in these tests.
    const PATIENCE: Duration = Duration::from_secs(20);
    const SOON: Duration = Duration::from_millis(200);
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    /// More bytes than the buffers of a connection hold.
    const LONG: usize = 64 << 20;

    /// Starts a listener for two connections, both possibly of one address, with this idle timeout.
    async fn listening(max_per_address: u32, idle: Duration) -> SocketAddr {
        let settings = ListenerLimits {
            name: "test",
            max_connections: 2,
            max_per_address,
            trusted_proxies: ["127.0.0.3".to_owned()].into(),
            header_timeout: idle,
            stall_timeout: SOON,
            min_download_rate: 4 << 20,
            idle_timeout: idle,
            max_header_bytes: 8192,
            drain: Duration::ZERO,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/", get("here"))
            .route("/long", get(|| async { "x".repeat(LONG) }));
        tokio::spawn(serve(listener, router, settings, ShutdownTokens::default()));
        address
    }

    async fn saying(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// Opens a connection from an address, receives one response, and keeps the connection open.
    async fn kept_alive(from: &str, address: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(format!("{from}:0").parse().unwrap())?;
        let mut stream = socket.connect(address).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"here") {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
        }
        Ok(stream)
    }

    #[tokio::test]
    async fn an_address_that_has_its_connections_gets_no_more_and_a_proxy_does() {
        let address = listening(1, PATIENCE).await;
        let _one = kept_alive("127.0.0.1", address).await.unwrap();
        assert!(kept_alive("127.0.0.1", address).await.is_err());
        let _other = kept_alive("127.0.0.2", address).await.unwrap();
        for _ in 0..3 {
            kept_alive("127.0.0.3", address).await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_longest_idle_connection_makes_room() {
        let address = listening(2, PATIENCE).await;
        let mut oldest = kept_alive("127.0.0.1", address).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut newer = kept_alive("127.0.0.1", address).await.unwrap();
        let newest = tokio::time::timeout(PATIENCE, kept_alive("127.0.0.2", address)).await;
        let _newest = newest.expect("there is room in time").unwrap();
        assert_eq!(oldest.read(&mut [0; 8]).await.unwrap(), 0, "closed");
        newer.write_all(GET).await.unwrap();
        assert_ne!(newer.read(&mut [0; 8]).await.unwrap(), 0, "open");
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
        let address = listening(9, SOON).await;
        let _silent = saying(address, b"").await;
        let _half = saying(address, b"PRI * HTTP/2.0\r\n").await;
        is_answered(address).await;
    }

    #[tokio::test]
    async fn who_does_not_read_the_answer_keeps_no_place() {
        let address = listening(9, SOON).await;
        let request = b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n";
        let _deaf = (saying(address, request).await, saying(address, request).await);
        is_answered(address).await;
    }

    type Http2RequestSender = hyper::client::conn::http2::SendRequest<axum::body::Body>;

    /// Opens an HTTP/2 connection that receives few bytes at a time and responds to pings. The task
    /// ends when the connection closes.
    async fn over_http2(address: SocketAddr) -> (Http2RequestSender, JoinHandle<()>) {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(1 << 10);
        let (sender, connection) = builder.handshake(stream).await.unwrap();
        let open = async {
            let _ = connection.await;
        };
        (sender, tokio::spawn(open))
    }

    fn get_over_http2(path: &str) -> Request {
        let address = format!("http://here{path}");
        Request::get(address).body(axum::body::Body::empty()).unwrap()
    }

    #[tokio::test]
    async fn who_reads_the_answer_slowly_keeps_no_place() {
        let (mut sender, open) = over_http2(listening(9, SOON).await).await;
        let response = sender.send_request(get_over_http2("/long")).await.unwrap();
        let mut body = response.into_body();
        let reading = async {
            while let Some(Ok(_)) = body.frame().await {
                tokio::time::sleep(Duration::from_millis(40)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("given up in time");
        tokio::time::timeout(PATIENCE, open).await.expect("closed in time").unwrap();
    }

    #[tokio::test]
    async fn who_only_answers_pings_keeps_no_place() {
        let (mut sender, open) = over_http2(listening(9, SOON).await).await;
        let response = sender.send_request(get_over_http2("/")).await.unwrap();
        assert!(response.status().is_success());
        tokio::time::timeout(PATIENCE, open).await.expect("closed in time").unwrap();
    }
}
