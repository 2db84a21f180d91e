//! Signals that stop the service.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, received from the creation of this value on.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn install() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next SIGTERM or SIGINT.
    pub(super) async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}

/// Ends the process at once, with the exit code of a process that the signal killed. Acknowledged
/// writes are on disk; running jobs run again after their lease expires.
pub(super) fn at_once(signal: SignalKind) -> ! {
    tracing::warn!("second signal: the process stops without waiting for requests and jobs");
    std::process::exit(128 + signal.as_raw_value())
}
