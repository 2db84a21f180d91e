//! A TCP load balancer: each connection goes to the next reachable upstream. With one upstream it
//! is a connection that a test can interrupt.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A running balancer; it stops when dropped.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    shared: Arc<BalancerState>,
    accepting: JoinHandle<()>,
}

/// Handling of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionHandling {
    /// Connections are forwarded.
    Open,
    /// Connections stay open, but no data is forwarded, as with lost packets.
    Silent,
    /// Connections are closed.
    Cut,
}

#[derive(Debug)]
struct BalancerState {
    upstreams: Mutex<Vec<String>>,
    next: AtomicUsize,
    passing: watch::Sender<ConnectionHandling>,
}

impl Balancer {
    /// Listens on a free port of this machine and forwards to these `HOST:PORT`.
    pub async fn start(upstreams: Vec<String>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(BalancerState {
            upstreams: Mutex::new(upstreams),
            next: AtomicUsize::new(0),
            passing: watch::Sender::new(ConnectionHandling::Open),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards new connections to these upstreams. Open connections stay.
    pub fn lead_to(&self, upstreams: Vec<String>) {
        *self.shared.upstreams.lock() = upstreams;
    }

    /// Closes every connection, including new ones.
    pub fn cut(&self) {
        self.shared.passing.send_replace(ConnectionHandling::Cut);
    }

    /// Stops forwarding in both directions on all connections, without closing them.
    pub fn silence(&self) {
        self.shared.passing.send_replace(ConnectionHandling::Silent);
    }

    /// Forwards again, including data that was held back by [`Balancer::silence`].
    pub fn mend(&self) {
        self.shared.passing.send_replace(ConnectionHandling::Open);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<BalancerState>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass_on(client, Arc::clone(&shared)));
    }
}

async fn pass_on(client: TcpStream, shared: Arc<BalancerState>) {
    let mut passing = shared.passing.subscribe();
    if passing
        .wait_for(|state| *state != ConnectionHandling::Silent)
        .await
        .is_ok_and(|s| *s == ConnectionHandling::Cut)
    {
        return;
    }
    let Some(upstream) = shared.connect().await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_upstream, to_upstream) = upstream.into_split();
    let there = copy(from_client, to_upstream, shared.passing.subscribe());
    let back = copy(from_upstream, to_client, shared.passing.subscribe());
    tokio::select! {
        // Errors of either side are ignored.
        _ = async { tokio::join!(there, back) } => {}
        _ = passing.wait_for(|state| *state == ConnectionHandling::Cut) => {}
    }
}

/// Forwards bytes while the connection is open.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut passing: watch::Receiver<ConnectionHandling>,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if passing.wait_for(|state| *state != ConnectionHandling::Silent).await.is_err() {
            return Ok(());
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}

impl BalancerState {
    /// Connects to the next reachable upstream; each is tried once.
    async fn connect(&self) -> Option<TcpStream> {
        let upstreams = self.upstreams.lock().clone();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for number in 0..upstreams.len() {
            let upstream = &upstreams[(first + number) % upstreams.len()];
            if let Ok(connection) = TcpStream::connect(upstream).await {
                return Some(connection);
            }
        }
        None
    }
}
