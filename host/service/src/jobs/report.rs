//! Metrics and log lines about jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use assurance_core::domain::job::{JobRunEndKind, JobStatus, Lane, LeasedJob};
use assurance_core::domain::time::Timestamp;
use assurance_store::jobs::LaneDepth;

const DEPTH: &str = "assurance_jobs";
const OLDEST_DUE: &str = "assurance_jobs_oldest_due_age_seconds";
const FAILED: &str = "assurance_failed_jobs";
const RUNS: &str = "assurance_job_runs_total";
const RUN_SECONDS: &str = "assurance_job_run_seconds";

/// Registers the descriptions of the job metrics.
pub(super) fn describe() {
    describe_gauge!(DEPTH, "Waiting and running jobs of all processes, by lane");
    describe_gauge!(
        OLDEST_DUE,
        "Time since which the oldest due job of a lane waits; 0 without one"
    );
    describe_gauge!(FAILED, "Stored jobs that failed for good, by status (failed, dead)");
    describe_counter!(RUNS, "Ended job runs, by area, lane and outcome");
    describe_histogram!(RUN_SECONDS, "Duration of job runs, by area and lane");
}

/// Sets the metrics of the lanes' queue lengths and waits.
pub(super) fn depths(depths: &BTreeMap<Lane, LaneDepth>, now: Timestamp) {
    for (lane, depth) in depths {
        for (state, count) in [("waiting", depth.waiting), ("running", depth.running)] {
            gauge!(DEPTH, "lane" => lane.as_str(), "state" => state).set(count as f64);
        }
        let waits_ms = depth.next_due.map_or(0, |due| now.ms_since(due).max(0));
        gauge!(OLDEST_DUE, "lane" => lane.as_str()).set(waits_ms as f64 / 1_000.0);
    }
}

/// Sets the metric of stored jobs that failed for good.
pub(super) fn failed(failed: &[(JobStatus, u64)]) {
    for (status, count) in failed {
        gauge!(FAILED, "status" => status.as_str()).set(*count as f64);
    }
}

/// Logs and counts the end of a job run. `how` is `None` if the lease was lost and the run's
/// effects were discarded.
pub(super) fn ended(leased: &LeasedJob, how: Option<&JobRunEndKind>, took: Duration) {
    let (area, lane) = (&leased.job.area, leased.job.lane.as_str());
    let outcome = outcome(how);
    counter!(RUNS, "area" => area.clone(), "lane" => lane, "outcome" => outcome).increment(1);
    histogram!(RUN_SECONDS, "area" => area.clone(), "lane" => lane).record(took.as_secs_f64());
    match how {
        Some(JobRunEndKind::Failed { error } | JobRunEndKind::Dead { error }) => {
            tracing::error!(error, outcome, "job failed for good");
        }
        Some(JobRunEndKind::Retry { at, error }) => {
            tracing::info!(error, at = at.to_rfc3339(), "job failed; it will be retried");
        }
        None => tracing::warn!("job lease expired during the run; its results were discarded"),
        Some(_) => tracing::debug!(outcome, took_ms = took.as_millis(), "job run ended"),
    }
}

fn outcome(how: Option<&JobRunEndKind>) -> &'static str {
    match how {
        Some(JobRunEndKind::Done { .. }) => "succeeded",
        Some(JobRunEndKind::Continue { .. }) => "continued",
        Some(JobRunEndKind::Retry { .. }) => "retrying",
        Some(JobRunEndKind::Release { .. }) => "released",
        Some(JobRunEndKind::Failed { .. }) => "failed",
        Some(JobRunEndKind::Dead { .. }) => "dead",
        None => "lease_lost",
    }
}
