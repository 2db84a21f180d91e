//! A plain TCP balancer: each connection goes to the next upstream that takes
//! it. With one upstream it is a line that a test can cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes connections on for as long as it lives.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// They are passed on.
    Open,
    /// They stay, and nothing gets through, as when packets are dropped.
    Silent,
    /// They end.
    Cut,
}

#[derive(Debug)]
struct Shared {
    upstreams: Mutex<Vec<String>>,
    next: AtomicUsize,
    passing: watch::Sender<Passing>,
}

impl Balancer {
    /// Listens on a free port of this machine, for these `HOST:PORT`.
    pub async fn start(upstreams: Vec<String>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            upstreams: Mutex::new(upstreams),
            next: AtomicUsize::new(0),
            passing: watch::Sender::new(Passing::Open),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections go here. Those under way stay.
    pub fn lead_to(&self, upstreams: Vec<String>) {
        *self.shared.upstreams.lock() = upstreams;
    }

    /// Ends every connection, and each new one at once.
    pub fn cut(&self) {
        self.shared.passing.send_replace(Passing::Cut);
    }

    /// Lets nothing through, in either direction, on old connections and new
    /// ones. Nobody is told: packets are lost on the way.
    pub fn silence(&self) {
        self.shared.passing.send_replace(Passing::Silent);
    }

    /// Passes connections on again, with what was held back.
    pub fn mend(&self) {
        self.shared.passing.send_replace(Passing::Open);
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass_on(client, Arc::clone(&shared)));
    }
}

async fn pass_on(client: TcpStream, shared: Arc<Shared>) {
    let mut passing = shared.passing.subscribe();
    if passing.wait_for(|state| *state != Passing::Silent).await.is_ok_and(|s| *s == Passing::Cut) {
        return;
    }
    let Some(upstream) = shared.connect().await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_upstream, to_upstream) = upstream.into_split();
    let there = copy(from_client, to_upstream, shared.passing.subscribe());
    let back = copy(from_upstream, to_client, shared.passing.subscribe());
    tokio::select! {
        // How either side ends a connection is its own affair.
        _ = async { tokio::join!(there, back) } => {}
        _ = passing.wait_for(|state| *state == Passing::Cut) => {}
    }
}

/// Passes bytes on while the connection is open.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut passing: watch::Receiver<Passing>,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if passing.wait_for(|state| *state != Passing::Silent).await.is_err() {
            return Ok(());
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}

impl Shared {
    /// The next upstream that answers, each asked once.
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
