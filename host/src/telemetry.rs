//! Logs and metrics. Nothing secret is ever a log field: secrets live in types
//! that do not print.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::{Log, LogFormat};

/// Seconds; from a cached read to a long job.
const DURATION_BUCKETS: [f64; 15] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    60.0,
];

/// Log lines that could not be written.
const DROPPED_LINES: &str = "assurance_log_lines_dropped_total";

/// Begins logging to standard error, once per process.
///
/// # Errors
/// Where the filter is wrong, or logging has begun already.
pub fn start_logging(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogWriter)
        .with_ansi(io::stderr().is_terminal())
        // It would print to standard error, and panic where that fails.
        .log_internal_errors(false)
        .with_span_events(FmtSpan::NONE);
    let begun = match log.format {
        LogFormat::Human => lines.compact().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
    };
    begun.map_err(|error| anyhow::anyhow!("logging cannot begin: {error}"))
}

/// Standard error. A line that cannot be written (a full disk, a closed pipe)
/// is dropped and counted: logging never fails a request.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if io::stderr().lock().write_all(line).is_err() {
            metrics::counter!(DROPPED_LINES).increment(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Is this a usable filter? The answer says what is wrong and the way out.
///
/// # Errors
/// Where it is not.
pub fn check_filter(filter: &str) -> Result<(), String> {
    EnvFilter::try_new(filter).map(|_| ()).map_err(|error| {
        format!("{filter:?} is no filter ({error}); try info, or info,assurance=debug")
    })
}

/// The process's metrics, for the operators' listener.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Begins recording, once per process.
    ///
    /// # Errors
    /// Where a recorder is installed already.
    pub fn install() -> anyhow::Result<Self> {
        let durations = Matcher::Suffix("_seconds".to_owned());
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(durations, &DURATION_BUCKETS)?
            .install_recorder()?;
        metrics::describe_counter!(
            DROPPED_LINES,
            "Log lines dropped because standard error could not be written."
        );
        metrics::counter!(DROPPED_LINES).absolute(0);
        Ok(Self(handle))
    }

    /// Everything recorded so far, in the Prometheus text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds samples into histograms, so that memory stays flat when nobody
    /// scrapes; call it every few seconds.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}
