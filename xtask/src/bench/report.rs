//! Output of the benchmark: a table and JSON.

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::load::LoadResults;

/// Percentiles of the times of one measurement, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Latency {
    /// Returns the percentiles of these times; zeros if there are no times.
    pub(crate) fn of(mut times_ms: Vec<f64>) -> Self {
        times_ms.sort_by(f64::total_cmp);
        let last = times_ms.len().saturating_sub(1);
        let at = |share: usize| {
            let index = (times_ms.len() * share / 100).min(last);
            times_ms.get(index).copied().unwrap_or_default()
        };
        Self { p50_ms: at(50), p99_ms: at(99), max_ms: at(100) }
    }
}

/// Prints the median and, in brackets, the maximum.
impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ({:.1})", self.p50_ms, self.max_ms)
    }
}

/// Results of one operation on one database, for component and twin; medians of the rounds.
#[derive(Serialize)]
pub(crate) struct OperationResults {
    pub(crate) operation: &'static str,
    pub(crate) backend: &'static str,
    pub(crate) component: LoadResults,
    pub(crate) twin: LoadResults,
    /// Median over the rounds of the component's rate divided by the twin's.
    pub(crate) ratio: f64,
    /// Processor time of the component minus that of the twin, in microseconds
    /// for each request.
    pub(crate) extra_cpu_us: f64,
}

/// Latencies of a healthy area, alone and next to an area that uses all its resources.
#[derive(Serialize)]
pub(crate) struct NeighbourLatency {
    pub(crate) quiet: LoadResults,
    pub(crate) beside_a_loop: LoadResults,
}

/// All results of one run of the benchmark of components and their twin.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) machine: String,
    pub(crate) rounds: usize,
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
    pub(crate) start_ms: Vec<f64>,
    pub(crate) rows: Vec<OperationResults>,
    pub(crate) neighbour: NeighbourLatency,
    pub(crate) in_process: String,
}

impl Report {
    /// Prints the results as a table for a terminal or for BENCHMARKS.md.
    pub(crate) fn print(&self) {
        println!("\nmachine: {}", self.machine);
        println!(
            "{} rounds of {} s, {} connections, component and native twin in turn; medians\n",
            self.rounds, self.seconds, self.connections
        );
        println!(
            "| operation | database | component req/s | twin req/s | of native | extra CPU µs | p99 ms | errors |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for row in &self.rows {
            println!(
                "| {} | {} | {:.0} | {:.0} | {:.2} | {:+.1} | {:.1} / {:.1} | {} |",
                row.operation,
                row.backend,
                row.component.requests_per_second,
                row.twin.requests_per_second,
                row.ratio,
                row.extra_cpu_us,
                row.component.latency.p99_ms,
                row.twin.latency.p99_ms,
                row.component.errors + row.twin.errors,
            );
        }
        println!("\nstart, compiled cache warm: {:.0?} ms until serving", self.start_ms);
        println!(
            "a healthy area's p99: {:.1} ms quiet, {:.1} ms beside an area that loops ({:.0} and {:.0} req/s)",
            self.neighbour.quiet.latency.p99_ms,
            self.neighbour.beside_a_loop.latency.p99_ms,
            self.neighbour.quiet.requests_per_second,
            self.neighbour.beside_a_loop.requests_per_second,
        );
        println!("\nin process:\n{}", self.in_process);
    }
}

/// Writes the results of a benchmark's run to a JSON file.
pub(crate) fn write(path: &Path, results: &impl Serialize) -> anyhow::Result<()> {
    std::fs::write(path, serde_json::to_vec_pretty(results)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\n{}", path.display());
    Ok(())
}

/// Returns the median; for an even number of values the lower one.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[(figures.len() - 1) / 2]
}

/// Returns the results of a load with the median over the rounds for each value.
pub(crate) fn medians(rounds: &[LoadResults]) -> LoadResults {
    let of = |figure: fn(&LoadResults) -> f64| median(rounds.iter().map(figure).collect());
    LoadResults {
        requests_per_second: of(|m| m.requests_per_second),
        latency: Latency {
            p50_ms: of(|m| m.latency.p50_ms),
            p99_ms: of(|m| m.latency.p99_ms),
            max_ms: of(|m| m.latency.max_ms),
        },
        errors: rounds.iter().map(|m| m.errors).sum(),
        cpu_us_per_request: of(|m| m.cpu_us_per_request),
    }
}
