//! Rate limits, request limits, and limits of one call.

use std::path::PathBuf;

use super::service::SecretString;
use crate::config::section::section;

section! {
    /// Rate limits. A request of class light, standard or heavy consumes the
    /// configured number of units.
    pub struct RatesConfig {
        /// Enable rate limits.
        pub enabled: bool = true,
        /// Units a session regains per minute.
        pub session_per_minute: u32 = 6_000; min 1,
        /// Units a session may use at once.
        pub session_burst: u32 = 1_000,
        /// Units a workspace regains per minute.
        pub workspace_per_minute: u32 = 30_000; min 1,
        /// Units a workspace may use at once.
        pub workspace_burst: u32 = 5_000,
        /// Sign-in requests an address may make per minute.
        pub sign_in_per_minute: u32 = 30; min 1,
        /// Invalid sessions that an address may try per minute. Beyond them, only
        /// sessions that this node has recognized within the last 15 minutes are
        /// accepted from the address.
        pub unknown_sessions_per_minute: u32 = 300; min 1,
        /// Pages (the reference, the OpenAPI document) that an address may request
        /// per minute.
        pub pages_per_minute: u32 = 600; min 1,
        /// Units that a small read consumes.
        pub light_units: u32 = 1,
        /// Units that an ordinary call consumes.
        pub standard_units: u32 = 2,
        /// Units that an import or a rebuild consumes.
        pub heavy_units: u32 = 20,
        /// Redis or Valkey server in which the nodes of a fleet share rate limits:
        /// `redis://USER:PASSWORD@HOST:6379/0`, or `rediss://` with TLS; not set:
        /// in the PostgreSQL database. One server, not a cluster.
        pub redis_url: Option<SecretString>,
        /// Interval at which the nodes of a fleet exchange their usage, in
        /// milliseconds. A client that spreads its requests over nodes can exceed
        /// its limit by the requests of two intervals and 1/64 of its burst on each
        /// further node, at most by its burst on each. The excess is charged, so
        /// the average is the configured limit. A node that cannot exchange applies
        /// its limits alone.
        pub share_ms: u32 = 500; min 1,
    }
}

section! {
    /// Size and time limits of requests, and data limits of one call.
    pub struct LimitsConfig {
        /// Largest request body, decompressed, in bytes, unless the route sets a
        /// limit.
        pub max_body_bytes: u64 = 1_048_576,
        /// Largest streamed upload, in bytes.
        pub max_upload_bytes: u64 = 104_857_600,
        /// Largest component that operators may upload, in bytes.
        pub max_component_bytes: u64 = 67_108_864,
        /// Largest request header section, in bytes.
        pub max_header_bytes: u32 = 32_768,
        /// Maximum time to send a request header, and to send the first request
        /// after connecting, in milliseconds.
        pub header_timeout_ms: u32 = 10_000,
        /// Maximum time to send a request body (for a streamed body: its next
        /// chunk), and time after which a response must be read at
        /// `min_download_rate`, in milliseconds.
        pub body_timeout_ms: u32 = 30_000,
        /// Minimum average rate of a streamed upload that takes longer than
        /// `body_timeout_ms`, in bytes per second.
        pub min_upload_rate: u32 = 8_192; min 1,
        /// Minimum average rate of reading a response that takes longer than
        /// `body_timeout_ms`, in bytes per second.
        pub min_download_rate: u32 = 1_024; min 1,
        /// Maximum idle time of an HTTP/2 connection, in milliseconds. HTTP/1
        /// connections have `header_timeout_ms`.
        pub idle_timeout_ms: u32 = 120_000; min 1,
        /// Deadline of an area's call, in milliseconds, unless the route sets one.
        pub deadline_ms: u32 = 1_000; min 1,
        /// The longest deadline that a route may set, in milliseconds.
        pub max_deadline_ms: u32 = 30_000,
        /// Time that a request may take beyond its route's deadline, in
        /// milliseconds: waiting for the database, retries after write conflicts,
        /// committing. Then it is answered with 503.
        pub request_grace_ms: u32 = 9_000,
        /// Maximum number of retries of one request after write conflicts.
        pub max_reruns: u32 = 8,
        /// Documents one call may read and write.
        pub max_documents: u32 = 10_000; min 1,
        /// Workspaces that one person may create; operators create more.
        pub max_workspaces_per_person: u32 = 50,
        /// Bytes of documents that one call may read and write.
        pub max_document_bytes: u64 = 67_108_864,
        /// Jobs that one call may enqueue.
        pub max_jobs: u32 = 1_000,
        /// Events that one call may publish.
        pub max_events: u32 = 1_000,
        /// Largest payload of one job, and largest data of one event, in bytes.
        pub max_payload_bytes: u64 = 1_048_576,
        /// Total bytes of the payloads of one call's jobs and events; an event
        /// counts once for each subscriber, and once if it has none.
        pub max_outgoing_bytes: u64 = 16_777_216,
        /// Total bytes of network responses that one step of a job may read.
        pub max_incoming_bytes: u64 = 67_108_864,
        /// Total bytes of blobs that one call may read and write.
        pub max_blob_bytes: u64 = 134_217_728,
        /// Bytes of documents and blobs that one area may store in one workspace. A
        /// node measures the usage each time it has written a sixteenth of the
        /// limit.
        pub max_stored_bytes_per_area: u64 = 21_474_836_480,
        /// Bytes of documents and blobs that one workspace may store.
        pub max_stored_bytes_per_workspace: u64 = 53_687_091_200,
    }
}

section! {
    /// How long responses are kept for idempotency keys.
    pub struct IdempotencyConfig {
        /// Hours for which the response to a request with an idempotency key is kept.
        pub keep_hours: u32 = 24; min 1,
    }
}

section! {
    /// Limits of calls, instances and compilations; cache of compiled areas.
    pub struct RuntimeConfig {
        /// Linear memory of one instance, in bytes.
        pub max_memory_bytes: u64 = 67_108_864,
        /// Memory of all instances together, beyond the first MiB of each, in
        /// bytes.
        pub max_total_memory_bytes: u64 = 1_073_741_824,
        /// Instances of all areas that may run at the same time in this process.
        pub max_instances: u32 = 1024; min 1,
        /// Concurrent instances of one area. An instance with several memories, or
        /// with more than three tables, counts as several.
        pub max_concurrent_per_area: u32 = 256; min 1,
        /// Concurrent requests of one area that have exceeded four times the first
        /// time slice, and as many concurrent jobs. Further requests are refused as
        /// overloaded; further jobs wait.
        #[serde(alias = "max_overstaying_per_area")]
        pub max_long_calls_per_area: u32 = 4; min 1,
        /// Interval of wasmtime's epoch ticks, at which running guests yield, in milliseconds.
        pub epoch_tick_ms: u32 = 1; min 1,
        /// First time slice of a call, in milliseconds. A guest that computes for
        /// longer continues at low priority.
        pub first_slice_ms: u32 = 5,
        /// Largest reply of an area, in bytes.
        pub max_reply_bytes: u64 = 16_777_216,
        /// Calls of host functions that one call may make.
        pub max_host_calls: u32 = 20_000; min 1,
        /// Processor time for which a call may block other writers, in
        /// milliseconds: on SQLite all writers, on PostgreSQL those of its
        /// workspace. A call blocks them from its first query that includes its own
        /// writes until its commit.
        pub max_turn_cpu_ms: u32 = 250; min 1,
        /// Total time for which a call may block other writers, in milliseconds.
        pub max_turn_ms: u32 = 5_000; min 1,
        /// Log lines of one call; further lines are counted and dropped.
        pub max_log_lines: u32 = 200,
        /// Memory that compiling one component may take, in bytes.
        pub max_compile_memory_bytes: u64 = 2_147_483_648,
        /// Processor time that compiling one component may take, in milliseconds.
        pub max_compile_cpu_ms: u32 = 120_000; min 1,
        /// Total time that compiling one component may take, in milliseconds.
        pub max_compile_ms: u32 = 180_000; min 1,
        /// Folder of compiled areas; not set: `compiled` in the data folder.
        pub cache_dir: Option<PathBuf>,
    }
}
