//! A listener: connections accepted, bounded in number and in patience, and
//! let go of gently.
//!
//! One address has so many connections at most; further ones are closed as
//! they come. When all places are taken, the connection that has been without
//! a request for longest makes room.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use futures::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use metrics::{counter, describe_counter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::connections::{Connections, Entry, Requests};
use super::head::MOST_FIELDS;
use super::pace::{Counted, Patience, unused};
use super::session::is_trusted;

/// A pause after a failed accept (usually: no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// For how long a connection that was asked to close may take, before another
/// one is.
const CLOSE_PAUSE: Duration = Duration::from_millis(100);

const REFUSED: &str = "assurance_connections_refused_total";
const EVICTED: &str = "assurance_connections_evicted_total";

/// Streams one HTTP/2 connection may have open.
const MOST_STREAMS: u32 = 200;

/// So much more than a head may have is read of it, in bytes and in fields: what
/// is read can be refused with a problem.
const ROOM: usize = 4;

/// Connections that the kernel may have taken and nobody has accepted yet: they
/// are still served when a listener stops.
const BACKLOG: usize = 1024;

/// Between the end of listening and the end of idle connections: clients that
/// have just connected get an answer to their first request.
const FIRST_REQUEST: Duration = Duration::from_millis(100);

/// How a listener is told to stop, in two steps.
#[derive(Clone, Debug, Default)]
pub struct Stopping {
    /// From now on each HTTP/1 answer ends its connection (`Connection: close`),
    /// so that clients go elsewhere without losing a request.
    pub closing: CancellationToken,
    /// No connection is accepted any more, and idle ones are closed.
    pub closed: CancellationToken,
}

/// Where a request's connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// How long and how many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The listener's name in metrics.
    pub name: &'static str,
    /// Connections open at a time. For a further one, the connection that has
    /// been without a request for longest is closed; where all are busy, it
    /// waits.
    pub max_connections: u32,
    /// Connections of one address at a time; further ones are closed.
    pub max_per_address: u32,
    /// Addresses and networks to which `max_per_address` does not apply.
    pub trusted_proxies: Arc<[String]>,
    /// How long a client may take to send its header section, and its first
    /// request after it has connected.
    pub header_timeout: Duration,
    /// How long a client may take a response that waits for it more slowly than
    /// `min_download_rate`.
    pub stall_timeout: Duration,
    /// In bytes per second.
    pub min_download_rate: u32,
    /// How long an HTTP/2 connection may have no request. HTTP/1 has
    /// `header_timeout`.
    pub idle_timeout: Duration,
    /// Largest header section, in bytes.
    pub max_header_bytes: u32,
    /// How long requests in flight may take to end once stopping.
    pub drain: Duration,
}

/// Serves until stopped, then lets requests in flight end.
pub async fn serve(listener: TcpListener, router: Router, settings: Settings, stop: Stopping) {
    describe();
    let drain = settings.drain;
    let end = CancellationToken::new();
    let listening = Listening {
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
        tracing::warn!("requests were still in flight when the time to drain was over");
    }
}

fn describe() {
    describe_counter!(
        REFUSED,
        "Connections closed because their address had as many as it may have, by listener"
    );
    describe_counter!(EVICTED, "Idle connections closed to make room for others, by listener");
}

/// What accepting a connection needs.
struct Listening {
    places: Arc<Semaphore>,
    connections: Arc<Connections>,
    server: Arc<Builder<TokioExecutor>>,
    settings: Settings,
    router: Router,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Connections end when their request in flight has; idle ones at once.
    end: CancellationToken,
}

/// A connection, whose it is, and its place among those that may be open.
type Accepted = (TcpStream, SocketAddr, OwnedSemaphorePermit, Entry);

impl Listening {
    /// Serves a connection in a task of its own.
    fn start(&self, (stream, peer, place, entry): Accepted) {
        let service = service(self.router.clone(), peer, entry.requests(), self.closing.clone());
        let (stream, written) = Counted::new(stream);
        let connection = self.server.serve_connection(TokioIo::new(stream), service).into_owned();
        let patience = self.patience();
        self.tasks.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            // Once it must close, only what is in flight is served.
            let served = async {
                if entry.close().run_until_cancelled(connection.as_mut()).await.is_none() {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            };
            // A connection that breaks, or stays silent, is the client's affair.
            tokio::select! {
                () = served => tracing::trace!("connection ended"),
                () = unused(&entry, &written, patience) => {
                    tracing::trace!("connection closed: idle, or its client too slow");
                }
            }
            drop((entry, place));
        });
    }

    fn patience(&self) -> Patience {
        Patience {
            first_request: self.settings.header_timeout,
            idle: self.settings.idle_timeout,
            stall: self.settings.stall_timeout,
            min_rate: self.settings.min_download_rate,
        }
    }

    /// The next connection; `None` where there was one that is not served.
    async fn accept(&self, listener: &TcpListener) -> Option<Accepted> {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Usually, there are no file descriptors left.
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
        // Responses are written whole; waiting to fill a segment only delays.
        let _ = stream.set_nodelay(true);
        // It is not itself the idle connection that makes room.
        let held = entry.hold();
        let place = self.place().await?;
        drop(held);
        Some((stream, peer, place, entry))
    }

    /// How many connections an address may have; `None`: any number.
    fn most(&self, peer: IpAddr) -> Option<u32> {
        let trusted = is_trusted(peer.to_canonical(), &self.settings.trusted_proxies);
        (!trusted).then_some(self.settings.max_per_address)
    }

    /// A place, if need be that of an idle connection.
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

fn builder(settings: &Settings) -> Builder<TokioExecutor> {
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
    requests: Requests,
    closing: CancellationToken,
) -> impl hyper::service::Service<
    hyper::Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future = impl Future<Output = Result<axum::response::Response, std::convert::Infallible>>
             + Send
             + 'static,
> + Clone {
    service_fn(move |request: hyper::Request<Incoming>| {
        let in_flight = requests.begin();
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        let (closing, version) = (closing.clone(), request.version());
        let response = router.clone().oneshot(request);
        async move {
            let mut response = response.await?.map(|body| in_flight.until_sent(body));
            // HTTP/2 has its own way to say so.
            if closing.is_cancelled() && version <= Version::HTTP_11 {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok(response)
        }
    })
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;
    use tokio::task::JoinHandle;

    use super::*;

    /// For what is waited for.
    const PATIENCE: Duration = Duration::from_secs(20);
    const SOON: Duration = Duration::from_millis(200);
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    /// More than a connection's buffers hold.
    const LONG: usize = 64 << 20;

    /// A listener with two places, of which one address has as many, and that
    /// closes what is idle for so long.
    async fn listening(max_per_address: u32, idle: Duration) -> SocketAddr {
        let settings = Settings {
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
        tokio::spawn(serve(listener, router, settings, Stopping::default()));
        address
    }

    async fn saying(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// A connection from that address that has had one answer and stays open.
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

    type Sender = hyper::client::conn::http2::SendRequest<axum::body::Body>;

    /// An HTTP/2 connection that takes few bytes at a time, and whether it is
    /// open. It answers pings for as long.
    async fn over_http2(address: SocketAddr) -> (Sender, JoinHandle<()>) {
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
