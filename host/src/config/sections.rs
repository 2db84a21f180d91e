//! The sections of the configuration: one struct each, every limit a named
//! field with a unit and a default. The doc comments are what
//! `assurance config show` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::domain::job::Lane;
use crate::domain::manifest::Capability;

/// Text that is never printed or logged.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String")]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(secret)")
    }
}

/// The listener for API clients.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Api {
    /// Address and port; port 0 takes a free one.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Where clients reach this service, scheme and host, without a path; not
    /// set: http and the listener's address.
    pub base_url: Option<String>,
    /// Origins that browsers may call from; empty: none (CORS off).
    pub cors_origins: Vec<String>,
    /// Addresses or networks of proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<String>,
    /// How long requests in flight may take to end after SIGTERM, in seconds.
    pub drain_seconds: u32,
    /// Open connections at most.
    pub max_connections: u32,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            base_url: None,
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            drain_seconds: 20,
            max_connections: 4096,
        }
    }
}

/// The listener for operators.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Operators {
    /// Address and port; port 0 takes a free one.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Holds the bearer token, mode 0600; made when absent; not set:
    /// `operators.token` in the data folder.
    pub token_file: Option<PathBuf>,
}

impl Default for Operators {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8081)), token_file: None }
    }
}

/// Where documents, sessions and jobs are kept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `sqlite://PATH` or `postgres://USER:PASSWORD@HOST/NAME`; not set: an
    /// embedded database in the data folder.
    pub url: Option<Secret>,
    /// Connections at most, this process.
    pub max_connections: u32,
    /// How long a request waits for a connection, in milliseconds.
    pub acquire_timeout_ms: u64,
}

impl Default for Database {
    fn default() -> Self {
        Self { url: None, max_connections: 16, acquire_timeout_ms: 3_000 }
    }
}

/// Where uploads and component binaries are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Blobs {
    /// A folder; not set: `blobs` in the data folder.
    pub dir: Option<PathBuf>,
}

/// Which areas are loaded and what they may import.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Areas {
    /// Every `.wasm` file of this folder is loaded at start; not set: none.
    pub dir: Option<PathBuf>,
    /// Swap a component when its file changes (development).
    pub watch: bool,
    /// What each area may import: documents, blobs, events, jobs, secrets,
    /// crypto, directory, calendar, egress, log. `*` is for areas not named.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub grants: BTreeMap<String, BTreeSet<Capability>>,
}

impl Default for Areas {
    fn default() -> Self {
        use Capability as C;
        let harmless = BTreeSet::from([
            C::Documents,
            C::Blobs,
            C::Events,
            C::Jobs,
            C::Crypto,
            C::Directory,
            C::Calendar,
            C::Log,
        ]);
        // Secrets and the network only where an area's work is to send.
        let mut sending = harmless.clone();
        sending.extend([C::Secrets, C::Egress]);
        Self {
            dir: None,
            watch: false,
            grants: BTreeMap::from([("*".into(), harmless), ("webhooks".into(), sending)]),
        }
    }
}

impl Areas {
    /// What the operator grants an area.
    #[must_use]
    pub fn granted(&self, area: &str) -> BTreeSet<Capability> {
        self.grants.get(area).or_else(|| self.grants.get("*")).cloned().unwrap_or_default()
    }
}

/// Keys that protect stored secrets, cursors and tokens.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Holds the 32-byte master key, mode 0600; made when absent; not set:
    /// `master.key` in the data folder. Lose it and stored secrets are lost.
    pub master_key_file: Option<PathBuf>,
    /// The master key itself in base64, instead of a file; meant for
    /// ASSURANCE_KEYS__MASTER_KEY, the same on every node.
    pub master_key: Option<Secret>,
}

/// How long people stay signed in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// A session unused for so many minutes ends.
    pub idle_minutes: u32,
    /// Every session ends after so many hours.
    pub absolute_hours: u32,
    /// Send the cookie over https only; off only for a loopback listener.
    pub cookie_secure: bool,
    /// Sessions a person may have; a new one beyond them ends the oldest.
    pub max_per_user: u32,
    /// How long, in milliseconds, a node may answer from what it knows of
    /// sessions and members: other nodes' revocations show within it; 0: ask
    /// the database every time.
    pub cache_ms: u32,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            idle_minutes: 30,
            absolute_hours: 12,
            cookie_secure: true,
            max_per_user: 10,
            cache_ms: 1_000,
        }
    }
}

/// How passwords are hashed (Argon2id); the defaults are OWASP's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Passwords {
    /// Memory of one hash, in KiB.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub iterations: u32,
    /// Lanes of one hash.
    pub parallelism: u32,
    /// Hashes computed at a time; further sign-ins wait.
    pub max_concurrent: u32,
    /// Shortest password accepted, in characters.
    pub min_length: u32,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            memory_kib: 19_456,
            iterations: 2,
            parallelism: 1,
            max_concurrent: 2,
            min_length: 12,
        }
    }
}

/// What repeated wrong passwords and codes lead to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// Wrong attempts on one account before the next has to wait.
    pub account_free_failures: u32,
    /// Wrong attempts from one address before the next has to wait.
    pub address_free_failures: u32,
    /// The first wait, in seconds; it doubles with every failure.
    pub backoff_first_seconds: u32,
    /// The longest wait, in seconds.
    pub backoff_max_seconds: u32,
    /// Failures are forgotten after so many minutes without one.
    pub forget_minutes: u32,
    /// Wrong second-factor codes that lock the recovery codes.
    pub recovery_failures: u32,
    /// The time within which they count, in minutes.
    pub recovery_window_minutes: u32,
    /// How long recovery codes stay locked, in minutes; a valid
    /// authenticator code unlocks them before.
    pub recovery_lock_minutes: u32,
}

impl Default for SignIn {
    fn default() -> Self {
        Self {
            account_free_failures: 5,
            address_free_failures: 20,
            backoff_first_seconds: 1,
            backoff_max_seconds: 900,
            forget_minutes: 60,
            recovery_failures: 5,
            recovery_window_minutes: 15,
            recovery_lock_minutes: 60,
        }
    }
}

/// How many requests are let through (a request of class light, standard or
/// heavy takes so many units).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Limit requests at all.
    pub enabled: bool,
    /// Units a session regains per minute.
    pub session_per_minute: u32,
    /// Units a session may use at once.
    pub session_burst: u32,
    /// Units a workspace regains per minute.
    pub workspace_per_minute: u32,
    /// Units a workspace may use at once.
    pub workspace_burst: u32,
    /// Sign-in requests an address may make per minute.
    pub sign_in_per_minute: u32,
    /// Units of a small read.
    pub light_units: u32,
    /// Units of an ordinary call.
    pub standard_units: u32,
    /// Units of an import or a rebuild.
    pub heavy_units: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            enabled: true,
            session_per_minute: 1_200,
            session_burst: 300,
            workspace_per_minute: 12_000,
            workspace_burst: 3_000,
            sign_in_per_minute: 30,
            light_units: 1,
            standard_units: 2,
            heavy_units: 20,
        }
    }
}

/// Sizes and times of requests, and what one call may read and write.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest request body where a route names no other, decompressed, in
    /// bytes.
    pub max_body_bytes: u64,
    /// Largest streamed upload, in bytes.
    pub max_upload_bytes: u64,
    /// Largest request header section, in bytes.
    pub max_header_bytes: u32,
    /// How long a client may take to send its header, in milliseconds.
    pub header_timeout_ms: u32,
    /// How long a client may take to send its body, in milliseconds.
    pub body_timeout_ms: u32,
    /// How long an area may take to answer where a route names no other, in
    /// milliseconds.
    pub deadline_ms: u32,
    /// The longest deadline a route may name, in milliseconds.
    pub max_deadline_ms: u32,
    /// Times a call is run again after losing a write conflict.
    pub max_reruns: u32,
    /// Documents one call may read and write.
    pub max_documents: u32,
    /// Bytes of documents one call may read and write.
    pub max_document_bytes: u64,
    /// Jobs one call may enqueue.
    pub max_jobs: u32,
    /// Events one call may publish.
    pub max_events: u32,
    /// Bytes of blobs one call may read and write.
    pub max_blob_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 1_048_576,
            max_upload_bytes: 104_857_600,
            max_header_bytes: 32_768,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            deadline_ms: 1_000,
            max_deadline_ms: 30_000,
            max_reruns: 8,
            max_documents: 10_000,
            max_document_bytes: 67_108_864,
            max_jobs: 1_000,
            max_events: 1_000,
            max_blob_bytes: 134_217_728,
        }
    }
}

/// Idempotency keys.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Idempotency {
    /// How long a key's answer is kept, in hours.
    pub keep_hours: u32,
}

impl Default for Idempotency {
    fn default() -> Self {
        Self { keep_hours: 24 }
    }
}

/// What one call of an area may use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Runtime {
    /// Memory of one instance, in bytes.
    pub max_memory_bytes: u64,
    /// Instances alive at a time, all areas.
    pub max_instances: u32,
    /// Instances alive at a time, one area.
    pub max_concurrent_per_area: u32,
    /// How often running guests are looked at, in milliseconds.
    pub epoch_tick_ms: u32,
    /// A guest that computes for longer goes on at low priority, in
    /// milliseconds.
    pub first_slice_ms: u32,
    /// Largest reply of an area, in bytes.
    pub max_reply_bytes: u64,
    /// Host calls of one call.
    pub max_host_calls: u32,
    /// Log lines of one call; further ones are counted and dropped.
    pub max_log_lines: u32,
    /// Where compiled areas are kept; not set: `compiled` in the data folder.
    pub cache_dir: Option<PathBuf>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            max_memory_bytes: 67_108_864,
            max_instances: 256,
            max_concurrent_per_area: 64,
            epoch_tick_ms: 1,
            first_slice_ms: 5,
            max_reply_bytes: 16_777_216,
            max_host_calls: 20_000,
            max_log_lines: 200,
            cache_dir: None,
        }
    }
}

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
    /// How long a succeeded job can still be seen, in minutes; the delivery
    /// of an event goes at once.
    pub keep_succeeded_minutes: u32,
    /// How long a failed or dead job is kept with its last error, in hours.
    pub keep_failed_hours: u32,
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
            keep_succeeded_minutes: 60,
            keep_failed_hours: 720,
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
    /// Events and webhooks.
    pub delivery: LaneShare,
    /// Everything that can wait.
    pub maintenance: LaneShare,
}

/// One lane's share of this process, and its patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneShare {
    /// Jobs that run at a time; 0: none in this process.
    pub capacity: u32,
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
            backoff_first_ms,
            backoff_max_ms,
        };
        Self {
            scanner: share(2, 5_000, 900_000),
            ingest: share(4, 1_000, 300_000),
            assistant: share(4, 1_000, 60_000),
            delivery: share(8, 1_000, 900_000),
            maintenance: share(2, 10_000, 3_600_000),
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
