//! Signals, and what a second one does.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, noticed from the moment this exists.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn install() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one of either.
    pub(super) async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}

/// Ends the process without waiting for anything, with the exit code of one
/// that the signal ended. What was acknowledged is on disk; jobs run again when
/// their lease is over.
pub(super) fn at_once(signal: SignalKind) -> ! {
    tracing::warn!("second signal: the process ends without waiting for requests and jobs");
    std::process::exit(128 + signal.as_raw_value())
}
