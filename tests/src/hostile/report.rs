//! Results of tenants and attackers as tables.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::tenants::Sample;
use super::{Outcomes, Records};

/// Result of the hostile test.
#[derive(Debug)]
pub struct Report {
    quiet: Latencies,
    attacked: Latencies,
    /// Responses to tenants other than 2xx by status; 0 means no response.
    pub failures: Vec<(u16, u64)>,
    outcomes: Outcomes,
    readiness: Vec<(String, u64)>,
    /// Maximum resident size of the host, in bytes.
    pub peak_bytes: u64,
    /// Status of `/health/ready` after the attack.
    pub ready_after: u16,
    /// Whether the original process is running.
    pub same_process: bool,
}

/// Latencies of tenants, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Latencies {
    requests: usize,
    read_p50: f64,
    read_p99: f64,
    write_p50: f64,
    write_p99: f64,
}

impl Report {
    /// Returns the tenants' 99th percentile during the attack divided by that before it, for reads
    /// and for writes.
    #[must_use]
    pub fn slowdown(&self) -> (f64, f64) {
        let (quiet, attacked) = (self.quiet, self.attacked);
        (attacked.read_p99 / quiet.read_p99, attacked.write_p99 / quiet.write_p99)
    }

    /// Returns the share of the tenants' requests that failed.
    #[must_use]
    pub fn failed_share(&self) -> f64 {
        let failed: u64 = self.failures.iter().map(|(_, count)| count).sum();
        failed as f64 / (self.quiet.requests + self.attacked.requests) as f64
    }

    /// Returns the number of responses to attackers with status 500, which give no reason.
    #[must_use]
    pub fn unexplained(&self) -> u64 {
        let unexplained =
            self.outcomes.iter().filter(|((_, outcome), _)| outcome.starts_with("500"));
        unexplained.map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| tenants | requests | read p50 | read p99 | write p50 | write p99 |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (name, it) in [("quiet", self.quiet), ("attacked", self.attacked)] {
            writeln!(
                f,
                "| {name} | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms |",
                it.requests, it.read_p50, it.read_p99, it.write_p50, it.write_p99
            )?;
        }
        let (reads, writes) = self.slowdown();
        writeln!(f, "\np99 under attack: reads x {reads:.1}, writes x {writes:.1}")?;
        writeln!(f, "tenants' failures: {:?}", self.failures)?;
        writeln!(f, "readiness: {:?}, after: {}", self.readiness, self.ready_after)?;
        writeln!(f, "peak memory: {} MB", self.peak_bytes / 1_000_000)?;
        writeln!(f, "same process: {}\n", self.same_process)?;
        writeln!(f, "| attacker | outcome | times |\n|---|---|---|")?;
        for ((attacker, outcome), count) in &self.outcomes {
            writeln!(f, "| {attacker} | {outcome} | {count} |")?;
        }
        Ok(())
    }
}

/// Compares the time before the attack with the time of the attack.
pub(super) fn summarize(
    records: &Records,
    (from, to): (Instant, Instant),
    ready_after: u16,
    same_process: bool,
) -> Report {
    let samples = records.samples.lock();
    let (quiet, rest): (Vec<Sample>, Vec<Sample>) = samples.iter().partition(|s| s.at < from);
    let attacked: Vec<Sample> = rest.into_iter().filter(|sample| sample.at < to).collect();
    let mut failures = std::collections::BTreeMap::new();
    for failed in samples.iter().filter(|sample| sample.status / 100 != 2) {
        *failures.entry(failed.status).or_default() += 1;
    }
    Report {
        quiet: latencies(&quiet),
        attacked: latencies(&attacked),
        failures: failures.into_iter().collect(),
        outcomes: records.outcomes.lock().clone(),
        readiness: records.readiness.lock().clone().into_iter().collect(),
        peak_bytes: records.peak_bytes.load(Ordering::Relaxed),
        ready_after,
        same_process,
    }
}

fn latencies(samples: &[Sample]) -> Latencies {
    let sorted = |writes: bool| {
        let took = samples.iter().filter(|sample| sample.writes == writes).map(|s| s.took);
        let mut took: Vec<Duration> = took.collect();
        took.sort_unstable();
        took
    };
    let (reads, writes) = (sorted(false), sorted(true));
    Latencies {
        requests: samples.len(),
        read_p50: percentile(&reads, 50),
        read_p99: percentile(&reads, 99),
        write_p50: percentile(&writes, 50),
        write_p99: percentile(&writes, 99),
    }
}

/// Returns a percentile in milliseconds; 0 without samples.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |took| took.as_secs_f64() * 1_000.0)
}
