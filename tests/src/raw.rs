//! HTTP as bytes, for what a well-behaved client library cannot send.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(20);

/// Sends these bytes to a base URL and reads until the server closes or has
/// answered with a whole head and body. Give `Connection: close`.
pub async fn exchange(base: &str, request: &[u8]) -> String {
    let address = base.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request).await.expect("bytes sent");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    match tokio::time::timeout(LIMIT, read).await {
        // A server may reset a connection whose request it refused to read.
        Ok(_) => String::from_utf8_lossy(&answer).into_owned(),
        Err(_) => panic!("no end within {LIMIT:?}: {}", String::from_utf8_lossy(&answer)),
    }
}

/// The status of an answer read as text.
#[must_use]
pub fn status(answer: &str) -> u16 {
    let line = answer.lines().next().unwrap_or_default();
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no status line in {answer:?}"))
}
