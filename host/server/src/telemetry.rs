//! Logs and metrics. Secrets are never log fields: their types do not implement printing.

use std::io::{self, IsTerminal as _, Write};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use tracing_subscriber::EnvFilter;

use assurance_core::config::{LogConfig, LogFormat};

/// Upper bounds of duration buckets in seconds, from a cached read to a long job.
const DURATION_BUCKETS: [f64; 18] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 15.0, 30.0, 60.0,
];

/// Metric: version and commit of the binary.
const BUILD: &str = "assurance_build_info";
/// Metric of log lines that could not be written.
const DROPPED_LINES: &str = "assurance_log_lines_dropped_total";

/// Starts logging to standard error, once per process.
///
/// # Errors
/// The filter is invalid, or logging was started before.
pub fn start_logging(log: &LogConfig) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogWriter)
        .with_ansi(io::stderr().is_terminal())
        // The default would print to standard error and panic if that fails.
        .log_internal_errors(false);
    let begun = match log.format {
        LogFormat::Human => lines.compact().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
    };
    begun.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

/// Standard error. A line that cannot be written (full disk, closed pipe) is dropped and counted:
/// logging never fails a request.
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

/// Metrics of the process, for the operators' listener.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts recording metrics, once per process.
    ///
    /// # Errors
    /// A recorder is already installed.
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
        metrics::describe_gauge!(BUILD, "Version and commit of the binary; always 1");
        metrics::gauge!(BUILD, "version" => env!("ASSURANCE_VERSION")).set(1.0);
        Collector::default().describe();
        Ok(Self(handle))
    }

    /// Returns all metrics in the Prometheus text format. Reads those of the process from the
    /// operating system.
    #[must_use]
    pub fn render(&self) -> String {
        Collector::default().collect();
        self.0.render()
    }

    /// Aggregates samples into histograms, so that memory use is constant without scrapes. Call it
    /// every few seconds.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}
