//! Work beside requests: jobs, the way out to the network, the log.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::Secret;
use crate::domain::job::Lane;

/// The durable queue and its workers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Jobs {
    /// Run jobs in this process.
    pub enabled: bool,
    /// How often the queue is asked when nothing wakes a worker, in
    /// milliseconds.
    pub poll_ms: u32,
    /// A process that is not heard of for so long loses its jobs, in
    /// milliseconds.
    pub lease_ms: u32,
    /// How often a process is heard of, in milliseconds.
    pub heartbeat_ms: u32,
    /// How long a job that goes on step by step keeps its place, in
    /// milliseconds; then the lane's other jobs have their turn.
    pub slice_ms: u32,
    /// The longest time an area may give one run of its jobs, in milliseconds;
    /// a job kind that names more has this.
    pub max_timeout_ms: u32,
    /// Jobs that one area may have waiting in one workspace. Beyond them it can
    /// enqueue no more until some have run. Events that others publish are
    /// always delivered.
    pub max_waiting_per_area: u32,
    /// How long a succeeded job can still be seen, in minutes; the delivery
    /// of an event goes at once.
    pub keep_succeeded_minutes: u32,
    /// How long a failed or dead job is kept with its last error, in hours.
    pub keep_failed_hours: u32,
    /// How long running jobs may take to end after SIGTERM, in seconds; the
    /// others are cancelled and run again, on another host or at the next start.
    pub drain_seconds: u32,
    /// Each lane's share of this process.
    pub lanes: Lanes,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            enabled: true,
            poll_ms: 1_000,
            lease_ms: 15_000,
            heartbeat_ms: 5_000,
            slice_ms: 2_000,
            max_timeout_ms: 600_000,
            max_waiting_per_area: 100_000,
            keep_succeeded_minutes: 60,
            keep_failed_hours: 720,
            drain_seconds: 5,
            lanes: Lanes::default(),
        }
    }
}

/// Each lane's share of this process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lanes {
    /// Audits.
    pub scanner: LaneShare,
    /// Bringing in what was uploaded or submitted.
    pub ingest: LaneShare,
    /// Model calls.
    pub assistant: LaneShare,
    /// Messages to the outside: webhooks, mail.
    pub delivery: LaneShare,
    /// Everything that can wait.
    pub maintenance: LaneShare,
    /// Events to the areas that subscribe to them.
    pub events: LaneShare,
}

/// One lane's share of this process, and its patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneShare {
    /// Jobs that run at a time; 0: none in this process.
    pub capacity: u32,
    /// The part of the capacity that one workspace's jobs take at most, in
    /// percent, rounded up to whole jobs. The rest is for the others: their
    /// jobs do not wait for one of these to end.
    pub workspace_percent: u32,
    /// The part of the capacity that jobs about one resource take at most, in
    /// percent, rounded up to whole jobs. In the lane `delivery` the resource
    /// is the webhook.
    pub resource_percent: u32,
    /// The first wait before a failed job runs again, in milliseconds; it
    /// doubles with every attempt, and varies by a fifth.
    pub backoff_first_ms: u32,
    /// The longest such wait, in milliseconds.
    pub backoff_max_ms: u32,
}

impl Default for Lanes {
    // What waits on the network has more places than what computes; what a
    // person waits for is tried again sooner.
    fn default() -> Self {
        let share = |capacity, backoff_first_ms, backoff_max_ms| LaneShare {
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
            delivery: LaneShare { resource_percent: 25, ..share(16, 1_000, 900_000) },
            maintenance: share(2, 10_000, 3_600_000),
            events: share(8, 1_000, 900_000),
        }
    }
}

impl Lanes {
    /// One lane's share.
    #[must_use]
    pub fn of(&self, lane: Lane) -> LaneShare {
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

/// The one way out to the network.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Egress {
    /// Development: also send to loopback addresses, and to these over http.
    pub allow_loopback: bool,
    /// Certificates (PEM) trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// How long a connection may take to open, in milliseconds.
    pub connect_timeout_ms: u32,
    /// The longest time from the first byte sent to the last received, in
    /// milliseconds.
    pub max_timeout_ms: u32,
    /// Largest answer read, in bytes.
    pub max_response_bytes: u32,
}

impl Default for Egress {
    fn default() -> Self {
        Self {
            allow_loopback: false,
            ca_file: None,
            connect_timeout_ms: 5_000,
            max_timeout_ms: 120_000,
            max_response_bytes: 16_777_216,
        }
    }
}

/// Mail to people.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mail {
    /// `smtps://USER:PASSWORD@HOST`, `smtp://USER:PASSWORD@HOST?tls=required`
    /// or `smtp://HOST`; not set: messages are written into the folder `mail`
    /// of the data folder.
    pub smtp_url: Option<Secret>,
    /// Whom messages are from, `Assurance <assurance@example.com>`; needed
    /// with a mail server.
    pub from: Option<String>,
    /// How long one message may take, in milliseconds.
    pub timeout_ms: u32,
    /// Messages to one address in a day, from all workspaces together.
    pub max_per_recipient_per_day: u32,
    /// Messages from one workspace in a day.
    pub max_per_workspace_per_day: u32,
    /// Seconds between two messages to one address; the second waits in the
    /// queue.
    pub recipient_pause_seconds: u32,
}

impl Default for Mail {
    fn default() -> Self {
        Self {
            smtp_url: None,
            from: None,
            timeout_ms: 15_000,
            max_per_recipient_per_day: 10,
            max_per_workspace_per_day: 500,
            recipient_pause_seconds: 10,
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For a terminal.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// What is logged, and how.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// human or json.
    pub format: LogFormat,
    /// Which lines, as `tracing` directives: `info`, `info,assurance=debug`.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Human, filter: "info".into() }
    }
}
