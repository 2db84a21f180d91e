//! A version on trial in this process, with statistics of its calls and of the live version's
//! calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use sketches_ddsketch::DDSketch;
use tokio::sync::Notify;

use super::AreaVersion;
use super::compared::ShadowComparisonCollector;
use assurance_contract::CompiledRoute;
use assurance_core::domain::trial::Trial;

/// A version on trial next to the live one, with the statistics of both.
#[derive(Debug)]
pub struct VersionOnTrial {
    /// Mode, share and workspaces that operators chose for the trial.
    pub trial: Trial,
    /// The area's version that is on trial.
    pub version: Arc<AreaVersion>,
    /// Statistics of the calls of the live version and of the version on trial.
    pub figures: Arc<TrialStats>,
}

impl VersionOnTrial {
    /// Returns the route of the version on trial for an operation; `None` if the version does not
    /// have the operation.
    #[must_use]
    pub fn route(&self, operation: &str) -> Option<&CompiledRoute> {
        self.version.routes.iter().find(|contract| contract.route.operation_id == operation)
    }
}

/// Statistics of an area's calls in this process since a trial began, for both versions.
#[derive(Debug, Default)]
pub struct TrialStats {
    /// Counters of the live version's calls.
    pub live: TrialSideCounters,
    /// Counters of the calls of the version on trial.
    pub candidate: TrialSideCounters,
    /// Differences between the responses of a shadow version and the live version.
    pub compared: Arc<ShadowComparisonCollector>,
    /// Notified after a call of either version has failed.
    pub failure: Notify,
}

/// Counters of one version's calls during a trial.
#[derive(Default)]
pub struct TrialSideCounters(Mutex<CallCounters>);

#[derive(Default)]
struct CallCounters {
    ended: u64,
    failed: u64,
    /// Latency of requests in seconds, by operation.
    took: BTreeMap<String, DDSketch>,
}

impl TrialSideCounters {
    /// Counts a request that got a response, with its latency.
    pub fn answered(&self, operation: &str, took: Duration, failed: bool) {
        let mut calls = self.0.lock();
        calls.count(failed);
        if !calls.took.contains_key(operation) {
            calls.took.insert(operation.to_owned(), DDSketch::default());
        }
        if let Some(sketch) = calls.took.get_mut(operation) {
            sketch.add(took.as_secs_f64());
        }
    }

    /// Counts the end of a job's run, or a request that was refused for want of an instance or a
    /// budget. Their latency is not recorded: it depends on the job, or is not the version's.
    pub fn ran(&self, failed: bool) {
        self.0.lock().count(failed);
    }

    /// Returns the present statistics of the version's calls.
    #[must_use]
    pub fn stats(&self) -> TrialSideStats {
        let calls = self.0.lock();
        let of = |(operation, sketch): (&String, &DDSketch)| {
            let quantile = |q| sketch.quantile(q).ok().flatten().unwrap_or_default() * 1_000.0;
            let (calls, p50_ms, p99_ms) = (sketch.count() as u64, quantile(0.5), quantile(0.99));
            (operation.clone(), LatencySummary { calls, p50_ms, p99_ms })
        };
        let operations = calls.took.iter().map(of).collect();
        TrialSideStats { calls: calls.ended, faults: calls.failed, operations }
    }
}

impl CallCounters {
    fn count(&mut self, failed: bool) {
        self.ended += 1;
        self.failed += u64::from(failed);
    }
}

impl fmt::Debug for TrialSideCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(f)
    }
}

/// Statistics of one version's calls.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "SideStats")]
pub struct TrialSideStats {
    /// Number of requests and job runs.
    pub calls: u64,
    /// Number of calls that failed by the version's own fault, or were refused for want of an
    /// instance or a budget.
    pub faults: u64,
    /// Latency of requests, by operation.
    pub operations: BTreeMap<String, LatencySummary>,
}

/// Latency of one operation's requests, with 1 % accuracy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LatencyHistogram")]
pub struct LatencySummary {
    /// Number of requests.
    pub calls: u64,
    /// Median, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_showed_is_told_by_operation() {
        let side = TrialSideCounters::default();
        for n in 1..=100_u64 {
            side.answered("list_notes", Duration::from_millis(n), n > 98);
        }
        side.ran(true);
        let stats = side.stats();
        assert_eq!((stats.calls, stats.faults), (101, 3));
        let latency = stats.operations["list_notes"];
        assert_eq!(latency.calls, 100);
        assert!((48.0..52.0).contains(&latency.p50_ms), "{latency:?}");
        assert!((96.0..101.0).contains(&latency.p99_ms), "{latency:?}");
    }
}
