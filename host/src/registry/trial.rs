//! A version on trial as this process runs it, and what its calls and those of
//! the live version have shown since it began.

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
use super::compared::Compared;
use super::contract::RouteContract;
use crate::domain::trial::Trial;

/// A version on trial, beside the live one.
#[derive(Debug)]
pub struct OnTrial {
    /// What operators decided.
    pub trial: Trial,
    /// The version.
    pub version: Arc<AreaVersion>,
    /// What is known of both versions' calls.
    pub figures: Arc<Figures>,
}

impl OnTrial {
    /// How the version on trial answers an operation of the live one; nothing,
    /// where it does not have it.
    #[must_use]
    pub fn route(&self, operation: &str) -> Option<&RouteContract> {
        self.version.routes.iter().find(|contract| contract.route.operation_id == operation)
    }
}

/// What the calls of an area have shown in this process since a trial began.
#[derive(Debug, Default)]
pub struct Figures {
    /// Of the live version.
    pub live: Side,
    /// Of the version on trial.
    pub candidate: Side,
    /// How the answers of a shadow differ.
    pub compared: Arc<Compared>,
    doubt: Notify,
}

impl Figures {
    /// Rings when the version on trial has failed.
    pub async fn doubted(&self) {
        self.doubt.notified().await;
    }

    /// A call of the version on trial failed: somebody should look.
    pub fn doubt(&self) {
        self.doubt.notify_one();
    }
}

/// One version's calls.
#[derive(Default)]
pub struct Side(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    ended: u64,
    failed: u64,
    /// Seconds, by operation.
    took: BTreeMap<String, DDSketch>,
}

impl Side {
    /// A request was answered.
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

    /// A run of a job ended. How long jobs take depends on the job.
    pub fn ran(&self, failed: bool) {
        self.0.lock().count(failed);
    }

    /// All of that at this moment.
    #[must_use]
    pub fn told(&self) -> Told {
        let calls = self.0.lock();
        let of = |(operation, sketch): (&String, &DDSketch)| {
            let quantile = |q| sketch.quantile(q).ok().flatten().unwrap_or_default() * 1_000.0;
            let (calls, p50_ms, p99_ms) = (sketch.count() as u64, quantile(0.5), quantile(0.99));
            (operation.clone(), Latency { calls, p50_ms, p99_ms })
        };
        let operations = calls.took.iter().map(of).collect();
        Told { calls: calls.ended, faults: calls.failed, operations }
    }
}

impl Calls {
    fn count(&mut self, failed: bool) {
        self.ended += 1;
        self.failed += u64::from(failed);
    }
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told().fmt(f)
    }
}

/// What one version's calls have shown.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Told {
    /// Requests answered and runs of jobs.
    pub calls: u64,
    /// Those that failed by the version's own fault.
    pub faults: u64,
    /// How long requests took.
    pub operations: BTreeMap<String, Latency>,
}

/// How long the requests of an operation took, to a hundredth.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Latency {
    /// How many there were.
    pub calls: u64,
    /// Half of them took less, in milliseconds.
    pub p50_ms: f64,
    /// All but a hundredth took less, in milliseconds.
    pub p99_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_showed_is_told_by_operation() {
        let side = Side::default();
        for n in 1..=100_u64 {
            side.answered("list_notes", Duration::from_millis(n), n > 98);
        }
        side.ran(true);
        let told = side.told();
        assert_eq!((told.calls, told.faults), (101, 3));
        let latency = told.operations["list_notes"];
        assert_eq!(latency.calls, 100);
        assert!((48.0..52.0).contains(&latency.p50_ms), "{latency:?}");
        assert!((96.0..101.0).contains(&latency.p99_ms), "{latency:?}");
    }
}
