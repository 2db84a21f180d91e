//! Output of `--swaps`.

use serde::Serialize;

use super::fleet::{FleetMeasurement, FleetSwapTimes};
use crate::bench::report::Latency;
use crate::bench::steady::PhaseResults;

/// Times from the start of a deployment's request to the version's first
/// response.
#[derive(Serialize)]
pub(super) struct DeployToResponseTimes {
    pub(super) component_bytes: usize,
    pub(super) fresh: Latency,
    pub(super) cached: Latency,
}

/// All results of one run of the benchmark of swaps.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    /// Requests per second to the single node.
    pub(super) rate: u32,
    #[serde(flatten)]
    pub(super) one_node: OneNode,
    pub(super) fleet: FleetMeasurement,
}

/// Results of swaps on one node.
#[derive(Serialize)]
pub(super) struct OneNode {
    /// Results of the steady load by what operators did during it.
    pub(super) phases: Vec<(&'static str, PhaseResults)>,
    /// Resident memory before and after the last phase, in bytes.
    pub(super) memory_bytes: [u64; 2],
    pub(super) deployments: DeployToResponseTimes,
}

impl Report {
    pub(super) fn print(&self) {
        println!("machine: {}", self.machine);
        println!("{} requests a second, a shadow throughout\n", self.rate);
        println!(
            "| meanwhile | requests/s | p50 ms | p99 ms | max ms | wrong | failed by canaries |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (name, seen) in &self.one_node.phases {
            println!(
                "| {name} | {:.0} | {:.2} | {:.2} | {:.1} | {} | {} |",
                seen.requests_per_second,
                seen.latency.p50_ms,
                seen.latency.p99_ms,
                seen.latency.max_ms,
                seen.wrong,
                seen.failed_by_canaries,
            );
        }
        let [before, after] = self.one_node.memory_bytes.map(|bytes| bytes >> 20);
        println!("\nmemory before and after the last phase: {before} and {after} MiB\n");
        self.print_deployments();
    }

    fn print_deployments(&self) {
        println!("| deployed and answering | KiB | ms, median (max) |\n|---|---|---|");
        let print = |what: &str, bytes: usize, times: &Latency| {
            println!("| {what} | {} | {times} |", bytes >> 10);
        };
        let DeployToResponseTimes { component_bytes, fresh, cached } = &self.one_node.deployments;
        print("one node, compiled fresh", *component_bytes, fresh);
        print("one node, cached", *component_bytes, cached);
        let FleetMeasurement { nodes, component_bytes, fresh, cached } = &self.fleet;
        for (how, FleetSwapTimes { printed, answered }) in
            [("compiled fresh", fresh), ("cached", cached)]
        {
            print(&format!("{nodes} nodes, {how}, as printed"), *component_bytes, printed);
            print(&format!("{nodes} nodes, {how}, as clients see it"), *component_bytes, answered);
        }
    }
}
