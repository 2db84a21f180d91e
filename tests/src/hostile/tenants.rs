//! Well-behaved tenants. Each sends a request every 200 ms, whether the previous one has ended or
//! not. What a response contains does not grow with the duration of the test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::Records;
use crate::Client;
use crate::client::try_send;

const PACE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);

/// Path of the newest cases of a workspace. A list without a page size would grow with each case
/// that the test creates, so that its last minute could not be compared with its first.
const PAGE: &str = "/v1/workspaces/{ws}/support/case-history?limit=20";

/// A request of a tenant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    /// Whether it is a write.
    pub(super) writes: bool,
    /// Status; 0 means no response.
    pub(super) status: u16,
    pub(super) took: Duration,
}

/// Reads and writes support cases until aborted.
pub(super) async fn work(client: Client, records: Arc<Records>) {
    for number in 0_u32.. {
        tokio::spawn(send(client.clone(), number, Arc::clone(&records)));
        tokio::time::sleep(PACE).await;
    }
}

async fn send(client: Client, number: u32, records: Arc<Records>) {
    const CASES: &str = "/v1/workspaces/{ws}/support/cases";
    let writes = number.is_multiple_of(4);
    let request = match number % 4 {
        0 => {
            let case = json!({"subject": "Help", "description": "It is broken."});
            let request = client.request(Method::POST, CASES).json(&case);
            request.header("idempotency-key", format!("tenant-case-{number}"))
        }
        1 => client.request(Method::GET, "/v1/auth/session"),
        _ => client.request(Method::GET, PAGE),
    };
    let at = Instant::now();
    let status = try_send(request.timeout(PATIENCE)).await.map_or(0, |answer| answer.status);
    records.samples.lock().push(Sample { at, writes, status, took: at.elapsed() });
}
