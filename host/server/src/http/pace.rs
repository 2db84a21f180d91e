//! Closes connections that clients keep without using them: HTTP/2 connections without requests,
//! and responses that the client receives too slowly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::connections::{ConnectionActivity, ConnectionGuard};
use super::listen::ListenerLimits;

/// Number of checks of a connection within one stall timeout.
const CHECKS: u32 = 4;

/// Resolves when the connection exceeds a timeout of its listener. `written` counts the bytes
/// written to the connection since the last check.
pub(super) async fn unused(
    entry: &ConnectionGuard,
    written: &AtomicU64,
    settings: &ListenerLimits,
) {
    tokio::select! {
        () = no_first_request(entry, settings.header_timeout) => {}
        () = too_slow_or_idle(entry, written, settings) => {}
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

async fn too_slow_or_idle(entry: &ConnectionGuard, written: &AtomicU64, settings: &ListenerLimits) {
    let (stall, idle) = (settings.stall_timeout, settings.idle_timeout);
    let period = stall / CHECKS;
    let mut left = stall;
    loop {
        tokio::time::sleep(period).await;
        let bytes = written.swap(0, Ordering::Relaxed);
        let paid = Duration::from_secs(bytes) / settings.min_download_rate.max(1);
        left = left.saturating_add(paid).min(stall);
        let activity = entry.activity();
        if activity != ConnectionActivity::Serving {
            left = left.saturating_sub(period);
        }
        match activity {
            ConnectionActivity::Sending if left.is_zero() => return,
            ConnectionActivity::Idle(time) if left.is_zero() && time >= idle => return,
            ConnectionActivity::Serving
            | ConnectionActivity::Sending
            | ConnectionActivity::Idle(_) => {}
        }
    }
}
