//! Configuration of jobs, outgoing requests, mail and the log.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::SecretString;
use crate::config::section::section;
use crate::domain::job::Lane;

section! {
    /// The durable job queue and its workers.
    pub struct JobsConfig {
        /// Whether this process runs jobs.
        pub enabled: bool = true,
        /// Interval at which workers poll the queue without a notification, in
        /// milliseconds.
        pub poll_ms: u32 = 1_000; min 1,
        /// Time without a heartbeat after which a process loses the leases of its
        /// jobs, in milliseconds.
        pub lease_ms: u32 = 15_000,
        /// Interval at which a process renews its leases, in milliseconds.
        pub heartbeat_ms: u32 = 5_000; min 1,
        /// Time for which a worker continues one job step by step, in milliseconds.
        /// Then it returns the job to the queue, and other jobs of the lane run.
        pub slice_ms: u32 = 2_000,
        /// The longest timeout of a job's run, in milliseconds; a job kind with a
        /// longer timeout gets this one.
        pub max_timeout_ms: u32 = 600_000; min 1,
        /// Jobs of one area that may wait in one workspace, deliveries of events
        /// included. Beyond them, requests that add more get 429 until some have
        /// run, and a job of the area that enqueues more fails.
        pub max_waiting_per_area: u32 = 100_000; min 1,
        /// Minutes for which a succeeded job is kept; a delivered event is deleted
        /// at once.
        pub keep_succeeded_minutes: u32 = 60,
        /// Hours for which a failed or dead job is kept with its last error.
        pub keep_failed_hours: u32 = 720,
        /// Maximum time for running jobs to end after SIGTERM, in seconds. Jobs
        /// that are still running are cancelled and run again, on another host or
        /// at the next start.
        pub drain_seconds: u32 = 5,
        /// Capacity and backoff of each lane in this process.
        pub lanes: LanesConfig,
    }
}

/// Capacity and backoff of each lane in this process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LanesConfig {
    /// Jobs that run audits.
    pub scanner: LaneConfig,
    /// Jobs that import uploads and submitted evidence.
    pub ingest: LaneConfig,
    /// Jobs that call language models.
    pub assistant: LaneConfig,
    /// Jobs that send outgoing messages: webhooks, mail.
    pub delivery: LaneConfig,
    /// Maintenance jobs without urgency.
    pub maintenance: LaneConfig,
    /// Deliveries of events to the areas that subscribe to them.
    pub events: LaneConfig,
}

/// Capacity and backoff of one lane in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneConfig {
    /// Maximum number of concurrent jobs of the lane; 0: none in this process.
    pub capacity: u32,
    /// Largest part of the capacity for jobs of one workspace, in percent,
    /// rounded up to whole jobs. Other workspaces' jobs can use the rest
    /// without waiting for these to end.
    pub workspace_percent: u32,
    /// Largest part of the capacity for jobs about one resource, in percent,
    /// rounded up to whole jobs. In the lane `delivery` the resource is the
    /// webhook.
    pub resource_percent: u32,
    /// First delay before a failed job runs again, in milliseconds; it doubles
    /// with every attempt and varies by 20 %.
    pub backoff_first_ms: u32,
    /// Longest delay before a failed job runs again, in milliseconds.
    pub backoff_max_ms: u32,
}

impl Default for LanesConfig {
    // Lanes that wait for the network have more capacity than lanes that
    // compute. Work that a person waits for is retried earlier.
    fn default() -> Self {
        let share = |capacity, backoff_first_ms, backoff_max_ms| LaneConfig {
            capacity,
            workspace_percent: 75,
            resource_percent: 100,
            backoff_first_ms,
            backoff_max_ms,
        };
        Self {
            scanner: share(2, 5_000, 900_000),
            ingest: share(4, 1_000, 300_000),
            assistant: share(4, 1_000, 60_000),
            delivery: LaneConfig { resource_percent: 25, ..share(16, 1_000, 900_000) },
            maintenance: share(2, 10_000, 3_600_000),
            events: share(8, 1_000, 900_000),
        }
    }
}

impl LanesConfig {
    /// Returns the capacity and backoff of a lane.
    #[must_use]
    pub fn of(&self, lane: Lane) -> LaneConfig {
        match lane {
            Lane::Scanner => self.scanner,
            Lane::Ingest => self.ingest,
            Lane::Assistant => self.assistant,
            Lane::Delivery => self.delivery,
            Lane::Maintenance => self.maintenance,
            Lane::Events => self.events,
        }
    }
}

section! {
    /// Outgoing network requests: limits and trusted certificates.
    pub struct EgressConfig {
        /// Development: also allow requests to loopback addresses, and http for
        /// these.
        pub allow_loopback: bool = false,
        /// File with certificates (PEM) that are trusted in addition to the
        /// system's.
        pub ca_file: Option<PathBuf>,
        /// Maximum time to open a connection to another service, in milliseconds.
        pub connect_timeout_ms: u32 = 5_000; min 1,
        /// Maximum time of one outgoing request, from connecting to the last byte
        /// received, in milliseconds.
        pub max_timeout_ms: u32 = 120_000; min 1,
        /// Largest response to an outgoing request, in bytes.
        pub max_response_bytes: u32 = 16_777_216,
    }
}

section! {
    /// Outgoing mail: server, sender and limits.
    pub struct MailConfig {
        /// URL of the mail server: `smtps://USER:PASSWORD@HOST`,
        /// `smtp://USER:PASSWORD@HOST?tls=required` or `smtp://HOST`; not set:
        /// messages are written into the folder `mail` of the data folder.
        pub smtp_url: Option<SecretString>,
        /// Sender of all messages, for example `Assurance <assurance@example.com>`;
        /// required with a mail server.
        pub from: Option<String>,
        /// Maximum time to send one message, in milliseconds.
        pub timeout_ms: u32 = 15_000; min 1,
        /// Messages to one address per day, from all workspaces together.
        pub max_per_recipient_per_day: u32 = 10,
        /// Messages from one workspace per day.
        pub max_per_workspace_per_day: u32 = 500,
        /// Minimum time between two messages to one address, in seconds; the second
        /// message waits in the queue.
        pub recipient_pause_seconds: u32 = 10,
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Log lines as readable text, for a terminal.
    #[default]
    Human,
    /// One JSON object per log line.
    Json,
}

section! {
    /// Log level, filter and format.
    pub struct LogConfig {
        /// Format of log lines: human or json.
        pub format: LogFormat = LogFormat::Human,
        /// Which lines are logged, as `tracing` directives: `info`,
        /// `info,assurance=debug`.
        pub filter: String = "info".into(),
        /// Log one line for each request, with the target `access` at the level
        /// info: method, path without query, route, status, duration and ids.
        pub access: bool = true,
    }
}
