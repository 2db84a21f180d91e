//! Clients that send a request and reset the connection, at once or during the response.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::book::Outcome;
use super::mix::{self, Request};
use super::worker::LedgerState;
use crate::Client;

/// Maximum wait of a client, in milliseconds.
const LONGEST_MS: u64 = 350;
/// Maximum wait of half of the clients, in milliseconds.
const SHORT_MS: u64 = 20;

/// Sends requests and resets connections until the load ends.
pub(super) async fn work(shared: Arc<LedgerState>, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !shared.stop.load(Ordering::Relaxed) {
        let _under_way = shared.gate.read().await;
        let tenant = &shared.tenants[rng.random_range(0..shared.tenants.len())];
        let marker = shared.book.marker();
        let request = mix::next(tenant, &shared.book.text(marker), &mut rng);
        let client = Client { base: shared.addresses.any(&mut rng), ..tenant.owner.clone() };
        let workspace = &client.workspace;
        shared.book.open(marker, request.operation, workspace, request.effect.clone());
        let most = if rng.random_bool(0.5) { SHORT_MS } else { LONGEST_MS };
        let wait = Duration::from_millis(rng.random_range(0..most));
        // A node that is down accepts no connection.
        let _ = send_and_reset(&client, &request, wait).await;
        shared.book.close(marker, Outcome::Unknown);
    }
}

async fn send_and_reset(client: &Client, request: &Request, wait: Duration) -> std::io::Result<()> {
    let bytes = bytes(client, request);
    let mut stream = TcpStream::connect(client.base.trim_start_matches("http://")).await?;
    stream.set_zero_linger()?;
    stream.write_all(&bytes).await?;
    tokio::time::sleep(wait).await;
    Ok(())
}

/// Returns the request as sent over the network.
fn bytes(client: &Client, request: &Request) -> Vec<u8> {
    let request = request.build(client).build().expect("a request");
    let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
    let mut head =
        format!("{} {} HTTP/1.1\r\nhost: load\r\n", request.method(), request.url().path());
    for (name, value) in request.headers() {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}
