//! WASI 0.2 for components that other languages' toolchains made: a world
//! with nothing in it. No files, environment, arguments, sockets or output;
//! its clocks stand at the call's moment, its randomness is the call's.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
};

use super::instance::CallState;
use crate::domain::time::Timestamp;

/// What a guest can ask for at a time.
const MAX_RANDOM_BYTES: u64 = 1 << 20;
/// Resources, such as pollables of clocks, that a call may hold at a time.
const MAX_RESOURCES: usize = 1_000;

/// One call's empty world.
pub(super) struct EmptyWorld {
    context: WasiCtx,
    resources: ResourceTable,
}

impl EmptyWorld {
    /// As of a moment, with a seed from [`wasi_seed`].
    pub(super) fn new(now: Timestamp, seed: [u8; 32]) -> Self {
        let moment = Moment(u64::try_from(now.0).unwrap_or(0));
        let context = WasiCtxBuilder::new()
            .secure_random(randomness("wasi secure", &seed))
            .insecure_random(randomness("wasi insecure", &seed))
            .insecure_random_seed(0)
            .max_random_size(MAX_RANDOM_BYTES)
            .wall_clock(moment)
            .monotonic_clock(moment)
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
        self.empty_world().view()
    }
}

/// The seed of what WASI has at random: it may be told where the call's own,
/// from which secrets are made, may not.
pub(super) fn wasi_seed(seed: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update("wasi seed").chain_update(seed).finalize().into()
}

/// Another stream than the `crypto` capability's.
fn randomness(purpose: &str, seed: &[u8; 32]) -> ChaCha20Rng {
    let digest = Sha256::new().chain_update(purpose).chain_update(seed).finalize();
    ChaCha20Rng::from_seed(digest.into())
}

/// Microseconds since the epoch, at which every clock stands.
#[derive(Clone, Copy)]
struct Moment(u64);

impl HostWallClock for Moment {
    fn resolution(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0)
    }
}

impl HostMonotonicClock for Moment {
    fn resolution(&self) -> u64 {
        1000
    }

    fn now(&self) -> u64 {
        self.0.saturating_mul(1000)
    }
}
