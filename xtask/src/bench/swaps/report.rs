//! What `--swaps` prints and keeps.

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::steady::Figures;

/// Some times of one thing.
#[derive(Serialize)]
pub(super) struct Times {
    median_ms: f64,
    max_ms: f64,
}

impl Times {
    pub(super) fn of(mut times_ms: Vec<f64>) -> Self {
        times_ms.sort_by(f64::total_cmp);
        let at = |index: usize| times_ms.get(index).copied().unwrap_or_default();
        Self { median_ms: at(times_ms.len() / 2), max_ms: at(times_ms.len().saturating_sub(1)) }
    }
}

/// From the request that deploys to the version's first answer.
#[derive(Serialize)]
pub(super) struct Deployments {
    pub(super) component_bytes: usize,
    pub(super) fresh: Times,
    pub(super) cached: Times,
}

/// Everything one run measured.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    /// Requests a second that were sent.
    pub(super) rate: u32,
    /// By what operators did meanwhile.
    pub(super) phases: Vec<(&'static str, Figures)>,
    /// Resident, before and after the last phase.
    pub(super) memory_bytes: [u64; 2],
    pub(super) deployments: Deployments,
}

impl Report {
    pub(super) fn print(&self) {
        println!("machine: {}", self.machine);
        println!("{} requests a second, a shadow throughout\n", self.rate);
        println!(
            "| meanwhile | requests/s | p50 ms | p99 ms | max ms | wrong | failed by canaries |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (name, seen) in &self.phases {
            println!(
                "| {name} | {:.0} | {:.2} | {:.2} | {:.1} | {} | {} |",
                seen.requests_per_second,
                seen.p50_ms,
                seen.p99_ms,
                seen.max_ms,
                seen.wrong,
                seen.failed_by_canaries,
            );
        }
        let [before, after] = self.memory_bytes.map(|bytes| bytes >> 20);
        println!("\nmemory before and after the last phase: {before} and {after} MiB");
        let Deployments { component_bytes, fresh, cached } = &self.deployments;
        println!(
            "deployed and answering, {} KiB: compiled fresh in {:.0} ms (at most {:.0}), cached in \
             {:.1} ms (at most {:.1})",
            component_bytes >> 10,
            fresh.median_ms,
            fresh.max_ms,
            cached.median_ms,
            cached.max_ms,
        );
    }

    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
        println!("\nkept in {}", file.display());
        Ok(())
    }
}
