//! Metrics and log lines about jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use assurance_core::domain::job::{JobEndKind, Lane, LeasedJob};
use assurance_store::jobs::LaneDepth;

const DEPTH: &str = "assurance_jobs";
const RUNS: &str = "assurance_job_runs_total";
const RUN_SECONDS: &str = "assurance_job_run_seconds";

/// Registers the descriptions of the metrics.
pub(super) fn describe() {
    describe_gauge!(DEPTH, "Waiting and running jobs of all processes, by lane");
    describe_counter!(RUNS, "Ended job runs, by area, lane and outcome");
    describe_histogram!(RUN_SECONDS, "Duration of job runs, by area and lane");
}

/// Sets the metrics of the lanes' queue lengths.
pub(super) fn depths(depths: &BTreeMap<Lane, LaneDepth>) {
    for (lane, depth) in depths {
        for (state, count) in [("waiting", depth.waiting), ("running", depth.running)] {
            #[expect(clippy::cast_precision_loss, reason = "a gauge is an f64")]
            gauge!(DEPTH, "lane" => lane.as_str(), "state" => state).set(count as f64);
        }
    }
}

/// Records the end of a run. `how` is `None` if the lease was lost and the run's effects were
/// discarded.
pub(super) fn ended(leased: &LeasedJob, how: Option<&JobEndKind>, took: Duration) {
    let (area, lane) = (&leased.job.area, leased.job.lane.as_str());
    let outcome = outcome(how);
    counter!(RUNS, "area" => area.clone(), "lane" => lane, "outcome" => outcome).increment(1);
    histogram!(RUN_SECONDS, "area" => area.clone(), "lane" => lane).record(took.as_secs_f64());
    match how {
        Some(JobEndKind::Failed { error } | JobEndKind::Dead { error }) => {
            tracing::error!(error, outcome, "job failed for good");
        }
        Some(JobEndKind::Retry { at, error }) => {
            tracing::info!(error, at = at.to_rfc3339(), "job failed; it will be retried");
        }
        None => tracing::warn!("job lease expired during the run; its results were discarded"),
        Some(_) => tracing::debug!(outcome, took_ms = took.as_millis(), "job run ended"),
    }
}

fn outcome(how: Option<&JobEndKind>) -> &'static str {
    match how {
        Some(JobEndKind::Done { .. }) => "succeeded",
        Some(JobEndKind::Continue { .. }) => "continued",
        Some(JobEndKind::Retry { .. }) => "retrying",
        Some(JobEndKind::Release { .. }) => "released",
        Some(JobEndKind::Failed { .. }) => "failed",
        Some(JobEndKind::Dead { .. }) => "dead",
        None => "lease_lost",
    }
}
