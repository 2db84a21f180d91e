//! Raw HTTP, for requests that a client library cannot send.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(20);

/// Sends bytes to a base URL. Reads until the server closes, or has sent a complete response.
/// Include `Connection: close`.
pub async fn exchange(base: &str, request: &[u8]) -> String {
    let address = base.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request).await.expect("bytes sent");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    match tokio::time::timeout(LIMIT, read).await {
        // A server may reset a connection whose request it refused.
        Ok(_) => String::from_utf8_lossy(&answer).into_owned(),
        Err(_) => panic!("no end within {LIMIT:?}: {}", String::from_utf8_lossy(&answer)),
    }
}

/// Returns the status of a raw response.
#[must_use]
pub fn status(answer: &str) -> u16 {
    let line = answer.lines().next().unwrap_or_default();
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no status line in {answer:?}"))
}

/// A connection for consecutive requests that never retries.
#[derive(Debug)]
pub struct KeptAlive(TcpStream);

impl KeptAlive {
    /// Connects; `None` if nobody listens.
    pub async fn open(base: &str) -> Option<Self> {
        let address = base.trim_start_matches("http://").trim_end_matches('/');
        TcpStream::connect(address).await.ok().map(Self)
    }

    /// Returns the header section of the response, in lower case except for the status line; `None`
    /// if the connection ended without one.
    pub async fn get(&mut self, path: &str) -> Option<String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n");
        self.0.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        let end = loop {
            if let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            let read = tokio::time::timeout(LIMIT, self.0.read_buf(&mut answer)).await.ok()?;
            if read.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let (status, fields) = head.split_once("\r\n")?;
        let fields = fields.to_lowercase();
        let length = fields.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        let mut rest = (end + 4 + length.parse::<usize>().ok()?).checked_sub(answer.len())?;
        while rest > 0 {
            let mut bytes = vec![0; rest.min(65_536)];
            let read = self.0.read(&mut bytes).await.ok().filter(|read| *read > 0)?;
            rest -= read;
        }
        Some(format!("{status}\r\n{fields}"))
    }
}
