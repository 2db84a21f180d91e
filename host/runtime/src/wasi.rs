//! An empty implementation of WASI 0.2 for components from other toolchains. It
//! has no files, environment, arguments, sockets or input. What a guest prints
//! goes to its area's log. Its clocks are frozen at the call's time, and its
//! random numbers derive from the call's seed.

use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWrite;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, async_trait,
};

use super::instance::CallState;
use super::log::{GuestLog, GuestOutputStream};
use assurance_core::domain::time::Timestamp;

/// Maximum number of random bytes that a guest gets from one WASI call.
const MAX_RANDOM_BYTES: u64 = 1 << 20;
/// Maximum number of resources, such as pollables of clocks, that a call may
/// hold.
const MAX_RESOURCES: usize = 1_000;
/// Maximum number of bytes that a guest prints in one WASI call. Even if each
/// byte is a line, this takes less than a millisecond.
const MAX_PRINTED_BYTES: usize = 4_096;

/// WASI state of one call, without access to files, network or environment.
pub(super) struct EmptyWasi {
    context: WasiCtx,
    resources: ResourceTable,
}

impl EmptyWasi {
    /// Creates the WASI state of a call: its clocks show the time `now`, and
    /// its random numbers derive from a seed of [`wasi_seed`].
    pub(super) fn new(now: Timestamp, seed: [u8; 32], log: &GuestLog) -> Self {
        let moment = FrozenTime(u64::try_from(now.0).unwrap_or(0));
        let context = WasiCtxBuilder::new()
            .secure_random(randomness("wasi secure", &seed))
            .insecure_random(randomness("wasi insecure", &seed))
            .insecure_random_seed(0)
            .max_random_size(MAX_RANDOM_BYTES)
            .wall_clock(moment)
            .monotonic_clock(moment)
            .stdout(OutputLogWriter { log: log.clone(), target: GuestOutputStream::Stdout })
            .stderr(OutputLogWriter { log: log.clone(), target: GuestOutputStream::Stderr })
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(MAX_RESOURCES);
        Self { context, resources }
    }

    pub(super) fn view(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.context, table: &mut self.resources }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi_without_access().view()
    }
}

/// Derives the seed of WASI's random numbers. Unlike the call's own seed, from
/// which secrets are derived, it may appear in recordings.
pub(super) fn wasi_seed(seed: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update("wasi seed").chain_update(seed).finalize().into()
}

/// Returns the random number generator for one purpose. It is independent of
/// the `crypto` interface's.
fn randomness(purpose: &str, seed: &[u8; 32]) -> ChaCha20Rng {
    let digest = Sha256::new().chain_update(purpose).chain_update(seed).finalize();
    ChaCha20Rng::from_seed(digest.into())
}

/// Frozen time of all clocks of a call, in microseconds since the epoch.
#[derive(Clone, Copy)]
struct FrozenTime(u64);

impl HostWallClock for FrozenTime {
    fn resolution(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0)
    }
}

impl HostMonotonicClock for FrozenTime {
    fn resolution(&self) -> u64 {
        1000
    }

    fn now(&self) -> u64 {
        self.0.saturating_mul(1000)
    }
}

/// Writes what a guest prints to stdout or stderr to the log of its call.
#[derive(Clone)]
struct OutputLogWriter {
    log: GuestLog,
    target: GuestOutputStream,
}

impl IsTerminal for OutputLogWriter {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for OutputLogWriter {
    /// Returns a stream that discards everything: only WASI 0.3 uses it, which
    /// is not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for OutputLogWriter {
    fn write(&mut self, text: Bytes) -> StreamResult<()> {
        self.log.print(self.target, &text);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_PRINTED_BYTES)
    }
}

#[async_trait]
impl Pollable for OutputLogWriter {
    async fn ready(&mut self) {}
}
