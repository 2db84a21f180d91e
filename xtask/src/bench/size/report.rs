//! Output of `--size`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::lists::DependencyListTimes;

/// Maximum time for one measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// Percentiles of one request that is repeated sequentially.
#[derive(Serialize)]
pub(super) struct LatencyPercentiles {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl LatencyPercentiles {
    /// Measures a request `samples` times, or as often as a minute allows; the first one does not
    /// count.
    pub(super) fn of(
        samples: usize,
        mut request: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        request()?;
        let (mut times, all) = (Vec::new(), Instant::now());
        while times.len() < samples && (times.is_empty() || all.elapsed() < PATIENCE) {
            let begun = Instant::now();
            request()?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        Ok(Self { p50_ms: at(50), p99_ms: at(99), max_ms: at(100) })
    }
}

/// Results for rebuilds of the control room.
#[derive(Serialize)]
pub(super) struct Rebuild {
    pub(super) backend: &'static str,
    pub(super) findings: usize,
    pub(super) times: LatencyPercentiles,
    /// Maximum linear memory of one call of the area so far, in bytes.
    pub(super) guest_memory_bytes: u64,
}

/// Results for imports of SBOMs.
#[derive(Serialize)]
pub(super) struct SbomImportTimings {
    pub(super) backend: &'static str,
    pub(super) components: usize,
    pub(super) seconds: Vec<f64>,
}

/// All results of one run.
#[derive(Serialize)]
pub(super) struct Report {
    machine: String,
    pub(super) imports: Vec<SbomImportTimings>,
    pub(super) rebuilds: Vec<Rebuild>,
    pub(super) lists: Vec<DependencyListTimes>,
    /// Maximum memory of the host's process by database, including guests, in bytes.
    pub(super) host_memory_bytes: BTreeMap<&'static str, u64>,
}

impl Report {
    pub(super) fn new(machine: String) -> Self {
        Self {
            machine,
            imports: Vec::new(),
            rebuilds: Vec::new(),
            lists: Vec::new(),
            host_memory_bytes: BTreeMap::new(),
        }
    }

    /// Prints the tables for a terminal or for BENCHMARKS.md.
    pub(super) fn print(&self) {
        println!("\nmachine: {}\n", self.machine);
        println!("| what | database | p50 ms | p99 ms | max ms |\n|---|---|---|---|---|");
        for Rebuild { backend, findings, times, .. } in &self.rebuilds {
            println!("| control room of {findings} findings | {backend} | {times} |");
        }
        for DependencyListTimes { filter, first, far_page, far } in &self.lists {
            println!("| dependencies, filter: {filter}, page 1 | postgres | {first} |");
            println!("| the same, page {far_page} | postgres | {far} |");
        }
        for SbomImportTimings { backend, components, seconds } in &self.imports {
            println!("\naudits of {components} components, {backend}: {seconds:.2?} s");
        }
        println!();
        for Rebuild { backend, findings, guest_memory_bytes, .. } in &self.rebuilds {
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

impl std::fmt::Display for LatencyPercentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} | {:.1} | {:.1}", self.p50_ms, self.p99_ms, self.max_ms)
    }
}
