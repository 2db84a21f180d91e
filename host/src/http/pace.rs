//! Ends connections that are kept and not used: HTTP/2 connections whose
//! client only answers pings, and clients that take responses too slowly.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::{Activity, Entry};

/// Checks in a stall timeout.
const CHECKS: u32 = 4;

/// How little a connection may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Time to the first request.
    pub(super) first_request: Duration,
    /// Time without a request.
    pub(super) idle: Duration,
    /// Time in which a response that waits for the client advances by less than
    /// `min_rate`, in bytes per second, makes up.
    pub(super) stall: Duration,
    pub(super) min_rate: u32,
}

/// Resolves when the connection has been used too little. `written` has the
/// bytes written on it since the last check.
pub(super) async fn unused(entry: &Entry, written: &AtomicU64, patience: Patience) {
    tokio::select! {
        () = no_first_request(entry, patience.first_request) => {}
        () = too_slow_or_idle(entry, written, patience) => {}
    }
}

/// HTTP's own timeout begins only once it is known which HTTP a client speaks.
async fn no_first_request(entry: &Entry, time: Duration) {
    tokio::time::sleep(time).await;
    if entry.has_begun() {
        std::future::pending::<()>().await;
    }
}

async fn too_slow_or_idle(entry: &Entry, written: &AtomicU64, patience: Patience) {
    let period = patience.stall / CHECKS;
    let mut left = patience.stall;
    loop {
        tokio::time::sleep(period).await;
        let bytes = written.swap(0, Ordering::Relaxed);
        let paid = Duration::from_secs(bytes) / patience.min_rate.max(1);
        left = left.saturating_add(paid).min(patience.stall);
        let activity = entry.activity();
        if activity != Activity::Serving {
            left = left.saturating_sub(period);
        }
        match activity {
            Activity::Sending if left.is_zero() => return,
            Activity::Idle(time) if left.is_zero() && time >= patience.idle => return,
            Activity::Serving | Activity::Sending | Activity::Idle(_) => {}
        }
    }
}

/// A stream that counts what is written to it.
#[derive(Debug)]
pub(super) struct Counted<S> {
    stream: S,
    written: Arc<AtomicU64>,
}

impl<S> Counted<S> {
    /// The stream, and its counter.
    pub(super) fn new(stream: S) -> (Self, Arc<AtomicU64>) {
        let written = Arc::new(AtomicU64::new(0));
        (Self { stream, written: Arc::clone(&written) }, written)
    }

    fn count(&self, length: usize) -> Poll<io::Result<usize>> {
        self.written.fetch_add(length as u64, Ordering::Relaxed);
        Poll::Ready(Ok(length))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.count(length)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bytes))?;
        self.count(length)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
