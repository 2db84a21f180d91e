//! Output of `--size`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value as Json;

use super::lists::DependencyListTimes;
use crate::bench::report::Latency;

/// Maximum time in which one measurement repeats its request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures a request `samples` times sequentially, or as often as a minute allows; the first one
/// does not count.
pub(super) fn repeated(
    samples: usize,
    mut request: impl FnMut() -> anyhow::Result<Json>,
) -> anyhow::Result<Latency> {
    request()?;
    let (mut times, all) = (Vec::new(), Instant::now());
    while times.len() < samples && (times.is_empty() || all.elapsed() < PATIENCE) {
        let begun = Instant::now();
        request()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Latency::of(times))
}

/// Times of rebuilds of the control room with one number of findings.
#[derive(Serialize)]
pub(super) struct ControlRoomRebuildTimes {
    pub(super) backend: &'static str,
    pub(super) findings: usize,
    pub(super) times: Latency,
    /// Maximum linear memory of one call of the area so far, in bytes.
    pub(super) guest_memory_bytes: u64,
}

/// Times of imports of SBOMs with one number of components.
#[derive(Serialize)]
pub(super) struct SbomImportTimes {
    pub(super) backend: &'static str,
    pub(super) components: usize,
    pub(super) seconds: Vec<f64>,
}

/// All results of one run of the benchmark of a large workspace.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    pub(super) imports: Vec<SbomImportTimes>,
    pub(super) rebuilds: Vec<ControlRoomRebuildTimes>,
    pub(super) lists: Vec<DependencyListTimes>,
    /// Maximum memory of the host's process by database, including guests, in bytes.
    pub(super) host_memory_bytes: BTreeMap<&'static str, u64>,
}

impl Report {
    /// Prints the results as tables for a terminal or for BENCHMARKS.md.
    pub(super) fn print(&self) {
        println!("\nmachine: {}\n", self.machine);
        println!("| what | database | p50 ms | p99 ms | max ms |\n|---|---|---|---|---|");
        for ControlRoomRebuildTimes { backend, findings, times, .. } in &self.rebuilds {
            println!("| control room of {findings} findings | {backend} | {} |", columns(times));
        }
        for DependencyListTimes { filter, first, far_page, far } in &self.lists {
            println!("| dependencies, filter: {filter}, page 1 | postgres | {} |", columns(first));
            println!("| the same, page {far_page} | postgres | {} |", columns(far));
        }
        for SbomImportTimes { backend, components, seconds } in &self.imports {
            println!("\naudits of {components} components, {backend}: {seconds:.2?} s");
        }
        println!();
        for ControlRoomRebuildTimes { backend, findings, guest_memory_bytes, .. } in &self.rebuilds
        {
            let mib = guest_memory_bytes.div_ceil(1 << 20);
            println!(
                "memory of a control-room call at its most, {findings} findings, {backend}: {mib} MiB"
            );
        }
        for (backend, bytes) in &self.host_memory_bytes {
            println!("memory of the host at its most, {backend}: {} MiB", bytes >> 20);
        }
    }
}

fn columns(Latency { p50_ms, p99_ms, max_ms }: &Latency) -> String {
    format!("{p50_ms:.1} | {p99_ms:.1} | {max_ms:.1}")
}
