//! How much is let through, and what one call may use.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Sessions that nobody has which an address may ask with per minute; then
    /// it gets in with those only that were recognised here lately.
    pub unknown_sessions_per_minute: u32,
    /// Pages (the reference, the OpenAPI document) an address may ask for per
    /// minute.
    pub pages_per_minute: u32,
    /// Units of a small read.
    pub light_units: u32,
    /// Units of an ordinary call.
    pub standard_units: u32,
    /// Units of an import or a rebuild.
    pub heavy_units: u32,
    /// How often the nodes of a fleet (on one PostgreSQL) tell each other what
    /// they let through, in milliseconds. A client that spreads its requests
    /// over them gets through beyond its limit at most what it sends in two
    /// of these times, and no more than its burst at each other node; it owes
    /// that, so in the long run it gets what the limit says. A node that
    /// cannot reach the database limits by itself.
    pub share_ms: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            enabled: true,
            session_per_minute: 6_000,
            session_burst: 1_000,
            workspace_per_minute: 30_000,
            workspace_burst: 5_000,
            sign_in_per_minute: 30,
            unknown_sessions_per_minute: 300,
            pages_per_minute: 600,
            light_units: 1,
            standard_units: 2,
            heavy_units: 20,
            share_ms: 500,
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
    /// Largest component that operators may bring, in bytes.
    pub max_component_bytes: u64,
    /// Largest request header section, in bytes.
    pub max_header_bytes: u32,
    /// How long a client may take to send its header, and its first request
    /// after it has connected, in milliseconds.
    pub header_timeout_ms: u32,
    /// How long a client may take to send its body (a streamed one: its next
    /// piece), or may take a response more slowly than `min_download_rate`, in
    /// milliseconds.
    pub body_timeout_ms: u32,
    /// What a streamed upload must bring on average, once it has taken longer
    /// than `body_timeout_ms`, in bytes per second.
    pub min_upload_rate: u32,
    /// What a client must take of a response on average, once it has taken longer
    /// than `body_timeout_ms`, in bytes per second.
    pub min_download_rate: u32,
    /// How long an HTTP/2 connection may be without a request, in milliseconds.
    /// HTTP/1 connections have `header_timeout_ms`.
    pub idle_timeout_ms: u32,
    /// How long an area may take to answer where a route names no other, in
    /// milliseconds.
    pub deadline_ms: u32,
    /// The longest deadline a route may name, in milliseconds.
    pub max_deadline_ms: u32,
    /// How long a request may take beyond its route's deadline, in milliseconds:
    /// waiting for the database, running again, committing. Then it is answered
    /// with 503.
    pub request_grace_ms: u32,
    /// Times a call is run again after losing a write conflict.
    pub max_reruns: u32,
    /// Documents one call may read and write.
    pub max_documents: u32,
    /// Workspaces that one person may create; operators create more.
    pub max_workspaces_per_person: u32,
    /// Bytes of documents one call may read and write.
    pub max_document_bytes: u64,
    /// Jobs one call may enqueue.
    pub max_jobs: u32,
    /// Events one call may publish.
    pub max_events: u32,
    /// Largest payload of one job, and largest data of one event, in bytes.
    pub max_payload_bytes: u64,
    /// Bytes of payloads one call may hand over with its jobs and events, an
    /// event's once for each of its subscribers.
    pub max_outgoing_bytes: u64,
    /// Bytes of answers from the network that one step of a job may take.
    pub max_incoming_bytes: u64,
    /// Bytes of blobs one call may read and write, all together.
    pub max_blob_bytes: u64,
    /// Bytes of documents and blobs that one area may keep in one workspace.
    /// Measured after each sixteenth of it that a node has written.
    pub max_stored_bytes_per_area: u64,
    /// Bytes of documents and blobs that one workspace may keep.
    pub max_stored_bytes_per_workspace: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 1_048_576,
            max_upload_bytes: 104_857_600,
            max_component_bytes: 67_108_864,
            max_header_bytes: 32_768,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            min_upload_rate: 8_192,
            min_download_rate: 1_024,
            idle_timeout_ms: 120_000,
            deadline_ms: 1_000,
            max_deadline_ms: 30_000,
            request_grace_ms: 9_000,
            max_reruns: 8,
            max_workspaces_per_person: 50,
            max_documents: 10_000,
            max_document_bytes: 67_108_864,
            max_jobs: 1_000,
            max_events: 1_000,
            max_payload_bytes: 1_048_576,
            max_outgoing_bytes: 16_777_216,
            max_incoming_bytes: 67_108_864,
            max_blob_bytes: 134_217_728,
            max_stored_bytes_per_area: 21_474_836_480,
            max_stored_bytes_per_workspace: 53_687_091_200,
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
    /// Memory of all instances together, beyond the first MiB of each, in
    /// bytes.
    pub max_total_memory_bytes: u64,
    /// Instances alive at a time, all areas.
    pub max_instances: u32,
    /// Instances alive at a time, one area.
    pub max_concurrent_per_area: u32,
    /// Calls of one area at a time that compute for longer than the first
    /// slice.
    pub max_overstaying_per_area: u32,
    /// How often running guests are looked at, in milliseconds.
    pub epoch_tick_ms: u32,
    /// A guest that computes for longer goes on at low priority, in
    /// milliseconds.
    pub first_slice_ms: u32,
    /// Largest reply of an area, in bytes.
    pub max_reply_bytes: u64,
    /// Host calls of one call.
    pub max_host_calls: u32,
    /// Processor time for which a call may keep others from writing: on SQLite
    /// everybody, on PostgreSQL its workspace. A call does so from its first
    /// query for what it has written itself to its commit. In milliseconds.
    pub max_turn_cpu_ms: u32,
    /// Time for which it may do so in all, in milliseconds.
    pub max_turn_ms: u32,
    /// Log lines of one call; further ones are counted and dropped.
    pub max_log_lines: u32,
    /// Memory that compiling one component may take, in bytes.
    pub max_compile_memory_bytes: u64,
    /// Processor time that compiling one component may take, in milliseconds.
    pub max_compile_cpu_ms: u32,
    /// Time that compiling one component may take in all, in milliseconds.
    pub max_compile_ms: u32,
    /// Where compiled areas are kept; not set: `compiled` in the data folder.
    pub cache_dir: Option<PathBuf>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            max_memory_bytes: 67_108_864,
            max_total_memory_bytes: 1_073_741_824,
            max_instances: 1024,
            max_concurrent_per_area: 256,
            max_overstaying_per_area: 4,
            epoch_tick_ms: 1,
            first_slice_ms: 5,
            max_reply_bytes: 16_777_216,
            max_host_calls: 20_000,
            max_turn_cpu_ms: 250,
            max_turn_ms: 5_000,
            max_log_lines: 200,
            max_compile_memory_bytes: 2_147_483_648,
            max_compile_cpu_ms: 120_000,
            max_compile_ms: 180_000,
            cache_dir: None,
        }
    }
}
