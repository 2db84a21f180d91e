//! The one engine: how components are compiled, where instances live, and the
//! clock that interrupts them.

use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, OptLevel,
    PoolingAllocationConfig,
};

use super::settings::Settings;

/// Memory of a finished instance that is wiped in place instead of being given
/// back to the kernel.
const KEPT_MEMORY_BYTES: usize = 1 << 20;
const KEPT_TABLE_BYTES: usize = 64 << 10;

/// A guest's own native stack, and the whole fiber's: host functions run on
/// what is left of it.
const WASM_STACK_BYTES: usize = 512 << 10;
const FIBER_STACK_BYTES: usize = 1 << 20;

/// What the parts of one component may come to: components made by other
/// languages' toolchains are linked from several modules.
const MODULES_PER_COMPONENT: u32 = 40;
const TABLES_PER_COMPONENT: u32 = 8;
const MEMORIES_PER_COMPONENT: u32 = 4;

/// Builds the engine with the quickest way of wiping instances that is safe
/// on this machine, and starts its clock.
pub(super) fn start(settings: &Settings) -> anyhow::Result<Engine> {
    let engine = build(settings)?;
    start_clock(&engine, settings.tick()).context("cannot start the epoch thread")?;
    Ok(engine)
}

/// An engine that only compiles, for the engine that [`start`] makes: what it
/// compiles depends on the memory of an instance, not on how many there are.
pub(super) fn for_compiling(instance_bytes: usize) -> anyhow::Result<Engine> {
    let settings =
        Settings { max_memory_bytes: instance_bytes, max_instances: 16, ..Settings::default() };
    Ok(Engine::new(&config(&settings, Enabled::No))?)
}

/// Scanning the page map for dirty pages is quickest, but must not be relied
/// on where pages can be swapped out: whether a swapped page is reported as
/// dirty is disputed (wasmtime pull request 14357), and what is missed would be
/// seen by the next instance.
fn build(settings: &Settings) -> anyhow::Result<Engine> {
    if rustix::system::sysinfo().totalswap > 0 {
        tracing::info!("instances are wiped without page-map scans: swap is active");
    } else if PoolingAllocationConfig::is_pagemap_scan_available() {
        tracing::info!("instances are wiped by page-map scans");
        return Ok(Engine::new(&config(settings, Enabled::Yes))?);
    } else {
        tracing::info!("instances are wiped without page-map scans: the kernel has none");
    }
    Ok(Engine::new(&config(settings, Enabled::No))?)
}

fn config(settings: &Settings, pagemap_scan: Enabled) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        // A recorded call does the same again on any processor.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .memory_init_cow(true)
        .table_lazy_init(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        // Nothing unwinds through guests: their frames are walked by pointer,
        // and a host with many versions would register them all in vain.
        .native_unwind_info(false)
        .concurrency_support(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(settings, pagemap_scan)));
    config
}

fn pool(settings: &Settings, pagemap_scan: Enabled) -> PoolingAllocationConfig {
    let instances = settings.max_instances;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(3))
        .total_stacks(instances)
        .max_core_instances_per_component(MODULES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_memory_size(settings.most_memory_bytes())
        .linear_memory_keep_resident(KEPT_MEMORY_BYTES)
        .table_keep_resident(KEPT_TABLE_BYTES)
        .pagemap_scan(pagemap_scan);
    pool
}

/// One thread counts time for all guests. It ends with the engine.
fn start_clock(engine: &Engine, tick: Duration) -> std::io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new().name("epochs".to_owned()).spawn(move || count(&engine, tick))?;
    Ok(())
}

fn count(engine: &EngineWeak, tick: Duration) {
    loop {
        thread::sleep(tick);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}
