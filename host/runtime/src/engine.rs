//! The wasmtime engine: compiler settings, the instance pool, and the thread
//! that interrupts guests.

use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use wasmtime::component::Component;
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, OptLevel,
    PoolingAllocationConfig,
};

use super::settings::Settings;

/// Memory of a finished instance that is cleared in place instead of being
/// returned to the kernel, in bytes.
const KEPT_MEMORY_BYTES: usize = 1 << 20;
const KEPT_TABLE_BYTES: usize = 64 << 10;

/// Native stack of a guest, in bytes; `trap::explanation` names this limit.
/// Host functions use the rest of the fiber's stack.
const WASM_STACK_BYTES: usize = 512 << 10;
const FIBER_STACK_BYTES: usize = 1 << 20;

/// Maximum number of core modules that one component instantiates. Toolchains
/// of other languages link several modules into a component.
pub(super) const MODULES_PER_COMPONENT: u32 = 40;
const TABLES_PER_COMPONENT: u32 = 8;
const MEMORIES_PER_COMPONENT: u32 = 4;

/// Number of linear memories that the pool reserves for each instance. A
/// component that needs more memories or tables counts as several instances.
const MEMORIES_PER_INSTANCE: u32 = 1;
const TABLES_PER_INSTANCE: u32 = 3;

/// Creates the engine of the service. Uses the fastest safe method of this
/// machine to clear instances, and starts the thread that interrupts guests.
pub(super) fn start(settings: &Settings) -> anyhow::Result<Engine> {
    let engine = build(settings.config.runtime.max_instances, settings.most_memory_bytes())?;
    start_clock(&engine, settings.tick()).context("cannot start the epoch thread")?;
    Ok(engine)
}

/// Creates an engine that only compiles, compatible with the engine from
/// [`start`]. The code depends on the memory of an instance, not on the number
/// of instances.
pub(super) fn for_compiling(instance_bytes: usize) -> anyhow::Result<Engine> {
    let instances = 16;
    Ok(Engine::new(&config(instances, instance_bytes, Enabled::No))?)
}

/// Creates the engine. Clearing dirty pages with the page map scan is fastest.
/// It is not used if pages can be swapped out: a swapped page might not be
/// reported as dirty (wasmtime pull request 14357), and its content would be
/// visible to the next instance.
fn build(instances: u32, instance_bytes: usize) -> anyhow::Result<Engine> {
    if may_swap() {
        tracing::info!("instances are cleared without page-map scans: swap is active");
    } else if PoolingAllocationConfig::is_pagemap_scan_available() {
        tracing::info!("instances are cleared by page-map scans");
        return Ok(Engine::new(&config(instances, instance_bytes, Enabled::Yes))?);
    } else {
        tracing::info!("instances are cleared without page-map scans: the kernel has none");
    }
    Ok(Engine::new(&config(instances, instance_bytes, Enabled::No))?)
}

#[cfg(target_os = "linux")]
fn may_swap() -> bool {
    rustix::system::sysinfo().totalswap > 0
}

/// Returns true on systems other than Linux; the result does not matter there,
/// because only Linux has page-map scans.
#[cfg(not(target_os = "linux"))]
fn may_swap() -> bool {
    true
}

fn config(instances: u32, instance_bytes: usize, pagemap_scan: Enabled) -> Config {
    let pool = pool(instances, instance_bytes, pagemap_scan);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        // Makes replays of recorded calls deterministic on any processor.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .memory_init_cow(true)
        .table_lazy_init(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        // Nothing unwinds through guests, because their frames are walked by
        // pointer. Registering unwind information of many versions would be
        // costly.
        .native_unwind_info(false)
        .concurrency_support(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

fn pool(instances: u32, instance_bytes: usize, pagemap_scan: Enabled) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        // This limit is only a count and reserves no memory: the core instances
        // of one component take at most 1 MiB together.
        .total_core_instances(instances.saturating_mul(MODULES_PER_COMPONENT))
        .total_memories(instances.saturating_mul(MEMORIES_PER_INSTANCE))
        .total_tables(instances.saturating_mul(TABLES_PER_INSTANCE))
        .total_stacks(instances)
        .max_core_instances_per_component(MODULES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_memory_size(instance_bytes)
        .linear_memory_keep_resident(KEPT_MEMORY_BYTES)
        .table_keep_resident(KEPT_TABLE_BYTES)
        .pagemap_scan(pagemap_scan);
    pool
}

/// Returns the number of pool instances that one instance of this component
/// counts as, by the memories and tables that it needs.
pub(super) fn pool_places(component: &Component) -> u32 {
    // `None` means that the component imports modules; such a component fails
    // to link.
    let Some(needed) = component.resources_required() else { return 1 };
    let memories = needed.num_memories.div_ceil(MEMORIES_PER_INSTANCE);
    let tables = needed.num_tables.div_ceil(TABLES_PER_INSTANCE);
    memories.max(tables).max(1)
}

/// Starts the thread that increments the epoch for all guests at each tick. It
/// ends with the engine.
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
