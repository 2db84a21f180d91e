//! One load: wrk with one operation, and its cost for the server.

use std::process::Command;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::report::Latency;
use super::server::Server;
use crate::apt;

/// The HTTP request that a load sends repeatedly.
#[derive(Clone, Copy)]
pub(crate) struct LoadRequest {
    /// Name of the request in the tables of results.
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    /// Path of the request below the workspace.
    pub(crate) path: &'static str,
    pub(crate) body: Option<&'static str>,
    /// Whether each request has a unique `Idempotency-Key`.
    pub(crate) unique_key: bool,
}

impl LoadRequest {
    /// Returns a GET request to a path below the workspace.
    pub(crate) const fn get(name: &'static str, path: &'static str) -> Self {
        Self { name, method: "GET", path, body: None, unique_key: false }
    }
}

/// Number of connections of a load, and its duration.
#[derive(Clone, Copy)]
pub(crate) struct LoadExtent {
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
}

/// Results of one load on a server.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoadResults {
    pub(crate) requests_per_second: f64,
    #[serde(flatten)]
    pub(crate) latency: Latency,
    pub(crate) errors: u64,
    /// Processor time of the server for one request, user and system, in microseconds.
    pub(crate) cpu_us_per_request: f64,
}

#[derive(Deserialize)]
struct WrkSummary {
    requests: u64,
    duration_us: f64,
    errors: u64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

/// Installs the load generator wrk if it is missing.
pub(crate) fn require_wrk() -> anyhow::Result<()> {
    // `--version` returns a failure code; it suffices that the program starts.
    if Command::new("wrk").arg("--version").output().is_ok() {
        return Ok(());
    }
    apt::install(&["wrk"], "the benchmark sends its load with wrk")
}

/// Runs wrk with one request and load against a server. Returns the results.
pub(crate) fn run(
    server: &Server,
    operation: &LoadRequest,
    load: LoadExtent,
) -> anyhow::Result<LoadResults> {
    let cpu_before = server.cpu_us()?;
    let output = command(server, operation, load).output().context("wrk does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("RESULT ")) else {
        bail!("wrk gave no figures:\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    };
    let summary: WrkSummary = serde_json::from_str(line)?;
    let cpu = server.cpu_us()? - cpu_before;
    let requests = summary.requests as f64;
    Ok(LoadResults {
        requests_per_second: requests / (summary.duration_us / 1e6),
        latency: Latency {
            p50_ms: summary.p50_us / 1e3,
            p99_ms: summary.p99_us / 1e3,
            max_ms: summary.max_us / 1e3,
        },
        errors: summary.errors,
        cpu_us_per_request: cpu / requests,
    })
}

fn command(server: &Server, operation: &LoadRequest, load: LoadExtent) -> Command {
    let mut wrk = Command::new("wrk");
    wrk.args(["--threads", "1", "--timeout", "10s"])
        .arg("--connections")
        .arg(load.connections.to_string())
        .arg("--duration")
        .arg(format!("{}s", load.seconds))
        .arg("--script")
        .arg(server.script())
        .arg(server.url(operation.path))
        .env("LOAD_METHOD", operation.method)
        .env("LOAD_COOKIE", &server.person.cookie)
        .env("LOAD_CSRF", &server.person.csrf);
    if let Some(body) = operation.body {
        wrk.env("LOAD_BODY", body);
    }
    if let Some(workspaces) = &server.workspaces {
        wrk.env("LOAD_WORKSPACES", workspaces);
    }
    if operation.unique_key {
        wrk.env("LOAD_UNIQUE", format!("bench-{}", server.next_load()));
    }
    wrk
}
