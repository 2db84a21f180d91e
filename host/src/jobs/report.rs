//! What operators see of jobs: a metric for everything, a log line for what
//! somebody should look at.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::domain::job::{JobEndKind, Lane, LeasedJob};
use crate::store::jobs::Depth;

const DEPTH: &str = "assurance_jobs";
const RUNS: &str = "assurance_job_runs_total";
const RUN_SECONDS: &str = "assurance_job_run_seconds";

/// Says what the metrics mean.
pub(super) fn describe() {
    describe_gauge!(DEPTH, "Jobs that wait or run, all processes, by lane");
    describe_counter!(RUNS, "Runs of jobs that ended, by area, lane and outcome");
    describe_histogram!(RUN_SECONDS, "How long a run of a job took, by area and lane");
}

/// How full the lanes are.
pub(super) fn depths(depths: &BTreeMap<Lane, Depth>) {
    for (lane, depth) in depths {
        for (state, count) in [("waiting", depth.waiting), ("running", depth.running)] {
            #[expect(clippy::cast_precision_loss, reason = "a gauge is an f64")]
            gauge!(DEPTH, "lane" => lane.as_str(), "state" => state).set(count as f64);
        }
    }
}

/// A run ended; without an end, its lease was lost and nothing of it is kept.
pub(super) fn ended(leased: &LeasedJob, how: Option<&JobEndKind>, took: Duration) {
    let (area, lane) = (&leased.job.area, leased.job.lane.as_str());
    let outcome = outcome(how);
    counter!(RUNS, "area" => area.clone(), "lane" => lane, "outcome" => outcome).increment(1);
    histogram!(RUN_SECONDS, "area" => area.clone(), "lane" => lane).record(took.as_secs_f64());
    match how {
        Some(JobEndKind::Failed { error } | JobEndKind::Dead { error }) => {
            tracing::error!(error, outcome, "a job will not run again");
        }
        Some(JobEndKind::Retry { at, error }) => {
            tracing::info!(error, at = at.to_rfc3339(), "a job will be tried again");
        }
        None => tracing::warn!("a job's lease was lost; what the run did is dropped"),
        Some(_) => tracing::debug!(outcome, took_ms = took.as_millis(), "a run of a job ended"),
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
