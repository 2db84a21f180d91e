//! A plain TCP balancer: each connection goes to the next upstream that takes
//! it. With one upstream it is a line that a test can cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
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

#[derive(Debug)]
struct Shared {
    upstreams: Mutex<Vec<String>>,
    next: AtomicUsize,
    /// Whether connections are passed on. Those under way end when it turns
    /// false.
    open: watch::Sender<bool>,
}

impl Balancer {
    /// Listens on a free port of this machine, for these `HOST:PORT`.
    pub async fn start(upstreams: Vec<String>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            upstreams: Mutex::new(upstreams),
            next: AtomicUsize::new(0),
            open: watch::Sender::new(true),
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
        self.shared.open.send_replace(false);
    }

    /// Passes new connections on again.
    pub fn mend(&self) {
        self.shared.open.send_replace(true);
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

async fn pass_on(mut client: TcpStream, shared: Arc<Shared>) {
    let mut open = shared.open.subscribe();
    if !*open.borrow_and_update() {
        return;
    }
    let Some(mut upstream) = shared.connect().await else { return };
    tokio::select! {
        // How either side ends a connection is its own affair.
        _ = copy_bidirectional(&mut client, &mut upstream) => {}
        _ = open.changed() => {}
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
