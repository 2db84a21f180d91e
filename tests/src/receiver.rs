//! A webhook receiver on a loopback port. It responds as the test determines and stores the
//! requests unchanged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::within;

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Time of arrival.
    pub at: Instant,
    /// Request line without the version: method and path.
    pub line: String,
    /// Headers with lower-case names.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: Vec<u8>,
}

/// A running receiver; it stops when dropped.
#[derive(Debug)]
pub struct Receiver {
    /// URL of the receiver: `http://127.0.0.1:PORT`.
    pub base: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    server: JoinHandle<()>,
}

impl Receiver {
    /// Responds to the nth request with the nth of these heads (status line and headers, without
    /// the empty line), and to further ones with the last. Without heads, it never responds.
    pub async fn start(heads: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&kept), heads));
            }
        });
        Self { base, received, server }
    }

    /// Starts a receiver that reads each request and never responds.
    pub async fn silent() -> Self {
        Self::start(&[]).await
    }

    /// Starts a receiver that accepts everything.
    pub async fn content() -> Self {
        Self::start(&["204 No Content"]).await
    }

    /// Returns the received requests.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().expect("no panic while holding it").clone()
    }

    /// Waits until this number of requests was received.
    pub async fn wait_for(&self, count: usize, limit: Duration) -> Vec<ReceivedRequest> {
        within(limit, format!("{count} requests are received"), async || {
            let received = self.received();
            if received.len() >= count { Ok(received) } else { Err(received.len()) }
        })
        .await
    }

    /// Waits until an event of this type was received.
    pub async fn wait_for_event(&self, event: &str, limit: Duration) -> Value {
        within(limit, format!("{event} is received"), async || {
            let bodies = self.received().into_iter();
            let mut events =
                bodies.filter_map(|one| serde_json::from_slice::<Value>(&one.body).ok());
            events.find(|body| body["type"] == event)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(stream: TcpStream, kept: Arc<Mutex<Vec<ReceivedRequest>>>, heads: &[&str]) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let count = {
            let mut kept = kept.lock().expect("no panic while holding it");
            kept.push(request);
            kept.len()
        };
        if heads.is_empty() {
            continue;
        }
        let head = heads[count.min(heads.len()) - 1];
        let length = if head.starts_with("204") { "" } else { "content-length: 0\r\n" };
        let text = format!("HTTP/1.1 {head}\r\n{length}\r\n");
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads one request; `None` when the connection ends.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(ReceivedRequest { at: Instant::now(), line: line.trim_end().to_owned(), headers, body })
}
