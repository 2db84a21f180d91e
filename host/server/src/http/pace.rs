//! Closes connections that clients keep without using them: HTTP/2 connections without requests,
//! and responses that the client receives too slowly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::connections::{ConnectionActivity, ConnectionGuard};

/// Number of checks of a connection within one stall timeout.
const CHECKS: u32 = 4;

/// Limits after which an unused connection is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleLimits {
    /// Maximum time from the accept of a connection to its first request.
    pub(super) first_request: Duration,
    /// Maximum time for which a connection has no request in flight.
    pub(super) idle: Duration,
    /// Maximum time for which a response is received more slowly than `min_rate`, in bytes per
    /// second.
    pub(super) stall: Duration,
    pub(super) min_rate: u32,
}

/// Resolves when the connection exceeds one of the limits in `patience`. `written` counts the bytes
/// written to the connection since the last check.
pub(super) async fn unused(entry: &ConnectionGuard, written: &AtomicU64, patience: IdleLimits) {
    tokio::select! {
        () = no_first_request(entry, patience.first_request) => {}
        () = too_slow_or_idle(entry, written, patience) => {}
    }
}

/// Resolves if no request arrives on a new connection in time. HTTP's own timeout starts only after
/// the protocol version is known.
async fn no_first_request(entry: &ConnectionGuard, time: Duration) {
    tokio::time::sleep(time).await;
    if entry.has_begun() {
        std::future::pending::<()>().await;
    }
}

async fn too_slow_or_idle(entry: &ConnectionGuard, written: &AtomicU64, patience: IdleLimits) {
    let period = patience.stall / CHECKS;
    let mut left = patience.stall;
    loop {
        tokio::time::sleep(period).await;
        let bytes = written.swap(0, Ordering::Relaxed);
        let paid = Duration::from_secs(bytes) / patience.min_rate.max(1);
        left = left.saturating_add(paid).min(patience.stall);
        let activity = entry.activity();
        if activity != ConnectionActivity::Serving {
            left = left.saturating_sub(period);
        }
        match activity {
            ConnectionActivity::Sending if left.is_zero() => return,
            ConnectionActivity::Idle(time) if left.is_zero() && time >= patience.idle => return,
            ConnectionActivity::Serving
            | ConnectionActivity::Sending
            | ConnectionActivity::Idle(_) => {}
        }
    }
}
