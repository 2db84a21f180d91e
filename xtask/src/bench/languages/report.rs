//! Output of `--languages`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{PUBLISH, READ};
use crate::bench::load::{LoadRequest, LoadResults};
use crate::bench::report::Latency;

/// Results of the benchmark's area in one language; for loads the medians of the rounds.
#[derive(Serialize)]
pub(super) struct LanguageResults {
    pub(super) language: String,
    pub(super) component_bytes: usize,
    /// Times from a deployment's request to the first response of a version that was not compiled
    /// before.
    pub(super) fresh: Latency,
    pub(super) cached: Latency,
    pub(super) read: LoadResults,
    pub(super) write: LoadResults,
}

/// All results of one run of the benchmark of guest languages.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    pub(super) rounds: usize,
    pub(super) seconds: u32,
    /// Number of connections of the load that reads.
    pub(super) readers: u32,
    pub(super) writers: u32,
    pub(super) rows: Vec<LanguageResults>,
    /// Reason why a language was not measured, by language.
    pub(super) not_measured: BTreeMap<String, String>,
}

impl Report {
    /// Prints the results as tables for a terminal or for BENCHMARKS.md.
    pub(super) fn print(&self) {
        println!("\nmachine: {}", self.machine);
        println!(
            "one area in each language, SQLite; {} rounds of {} s\n",
            self.rounds, self.seconds
        );
        println!(
            "| language | component KiB | deployed, compiled fresh ms (max) | cached ms (max) |"
        );
        println!("|---|---|---|---|");
        for LanguageResults { language, component_bytes, fresh, cached, .. } in &self.rows {
            let kib = component_bytes >> 10;
            println!("| {language} | {kib} | {fresh} | {cached} |");
        }
        println!("\n| operation | language | requests/s | p50 ms | p99 ms | CPU µs | errors |");
        println!("|---|---|---|---|---|---|---|");
        self.print_load(&READ, self.readers, |row| &row.read);
        self.print_load(&PUBLISH, self.writers, |row| &row.write);
        for (language, why) in &self.not_measured {
            println!("\nnot measured in {language}: {why}");
        }
    }

    fn print_load(
        &self,
        operation: &LoadRequest,
        connections: u32,
        of: fn(&LanguageResults) -> &LoadResults,
    ) {
        for row in &self.rows {
            let seen = of(row);
            println!(
                "| {}, connections: {connections} | {} | {:.0} | {:.2} | {:.2} | {:.0} | {} |",
                operation.name,
                row.language,
                seen.requests_per_second,
                seen.latency.p50_ms,
                seen.latency.p99_ms,
                seen.cpu_us_per_request,
                seen.errors,
            );
        }
    }
}
