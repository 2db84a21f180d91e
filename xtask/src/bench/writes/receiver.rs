//! A receiver of webhooks that accepts and counts every message.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A local HTTP server that counts the webhook deliveries it receives. It ends with the process.
pub(crate) struct WebhookReceiver {
    pub(crate) url: String,
    pub(crate) received: Arc<AtomicU64>,
}

impl WebhookReceiver {
    /// Starts the receiver on a free port.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/", listener.local_addr()?);
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || answer(connection, &count));
            }
        });
        Ok(Self { url, received })
    }
}

/// Responds to the requests of one connection until the client closes it, and counts them.
fn answer(connection: TcpStream, count: &AtomicU64) -> std::io::Result<()> {
    let mut writer = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 0 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
            count.fetch_add(1, Ordering::Relaxed);
            writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        }
        line.clear();
    }
    Ok(())
}
