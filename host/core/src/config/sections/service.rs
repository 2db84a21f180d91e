//! Configuration of listeners, readiness, database and keys.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::config::section::section;
use crate::domain::health::HealthCheckName;

/// Secret text of the configuration, which is never printed or logged.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "serde_json::Value")]
#[schemars(with = "String")]
pub struct SecretString(Zeroizing<String>);

impl SecretString {
    /// Returns the secret text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretString {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl TryFrom<serde_json::Value> for SecretString {
    type Error = &'static str;

    /// Converts a JSON string to a secret. Unlike serde's own error, the error
    /// does not contain the value.
    fn try_from(value: serde_json::Value) -> Result<Self, Self::Error> {
        match value {
            serde_json::Value::String(text) => Ok(text.into()),
            _ => Err("is not a text; put it in quotes"),
        }
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Serialize for SecretString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(secret)")
    }
}

section! {
    /// The listener for API clients.
    pub struct ApiListenerConfig {
        /// Address and port of the listener for API clients; port 0 selects a free
        /// port.
        #[schemars(with = "String")]
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)),
        /// Public URL of this service for clients, scheme and host, without a path;
        /// not set: http and the listener's address.
        pub base_url: Option<String>,
        /// Origins that browsers may call from; empty: CORS is off. Browsers send
        /// the session's cookie from origins of the same site only; pages of
        /// others need an access token.
        pub cors_origins: Vec<String>,
        /// Addresses or networks of proxies whose `X-Forwarded-For` is used.
        pub trusted_proxies: Vec<String>,
        /// Maximum time for running requests to end after SIGTERM, in seconds.
        pub drain_seconds: u32 = 20; min 1,
        /// Time after SIGTERM for which the service still accepts requests, in
        /// milliseconds. It reports that it is not ready, and each HTTP/1 response
        /// closes its connection. Set it to the time that the load balancer needs
        /// to detect this.
        pub shutdown_delay_ms: u32 = 1_000,
        /// Maximum number of open connections of API clients. A further connection
        /// replaces the one that has been idle for longest.
        pub max_connections: u32 = 4096; min 1,
        /// Maximum number of open connections from one address, or from one IPv6
        /// /64 network; further ones are closed at once. Trusted proxies have no
        /// limit.
        pub max_connections_per_address: u32 = 1024; min 1,
    }
}

section! {
    /// The listener for operators.
    pub struct OperatorsListenerConfig {
        /// Address and port of the listener for operators; port 0 selects a free
        /// port.
        #[schemars(with = "String")]
        pub listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8081)),
        /// File with the operators' bearer token, mode 0600; created if missing;
        /// not set: `operators.token` in the data folder.
        pub token_file: Option<PathBuf>,
        /// Allow `listen` to be another address than loopback, although tokens are
        /// then sent without TLS. Only for a private network, or behind a proxy
        /// with TLS.
        pub allow_http: bool = false,
    }
}

section! {
    /// When a node reports that it is not ready.
    pub struct ReadinessConfig {
        /// Checks that only degrade a node: it still accepts requests. The checks
        /// are database, writes, areas, master_key, clock, schema and blobs.
        /// Without blobs in this list, a lost bucket takes every node out of
        /// service. With schema in it, nodes stay in service while a newer release
        /// is rolled out.
        pub degraded_by: Vec<HealthCheckName> = vec![HealthCheckName::Blobs],
        /// Maximum difference between this machine's clock and the database's
        /// clock, in milliseconds.
        pub max_clock_difference_ms: u32 = 5_000; min 1,
    }
}

section! {
    /// Storage of documents, sessions and jobs.
    pub struct DatabaseConfig {
        /// URL of the database: `sqlite://PATH` or
        /// `postgres://USER:PASSWORD@HOST/NAME`; not set: an embedded database in
        /// the data folder.
        pub url: Option<SecretString>,
        /// Maximum number of database connections of this process.
        pub max_connections: u32 = 16; min 1,
        /// Maximum time that a request waits for a database connection, in
        /// milliseconds.
        pub acquire_timeout_ms: u64 = 3_000,
        /// Maximum time of one statement in PostgreSQL, in milliseconds; 0: no
        /// limit. If its response is 5 s late, the connection is closed. Building
        /// indexes and migrating have no limit.
        pub statement_timeout_ms: u32 = 30_000,
        /// Maximum time that a statement waits for a lock in PostgreSQL, in
        /// milliseconds; 0: no limit.
        pub lock_timeout_ms: u32 = 2_000,
        /// Time after which PostgreSQL ends an idle transaction, in milliseconds;
        /// 0: no limit.
        pub idle_in_transaction_timeout_ms: u32 = 60_000,
        /// Time after which PostgreSQL ends a session whose client does not
        /// respond, in milliseconds; 0: the server's own setting.
        pub unreachable_timeout_ms: u32 = 20_000,
        /// Allow several processes to serve one SQLite database. Each has its own
        /// rate limits, and starts the others' jobs with a delay.
        pub allow_several_processes: bool = false,
    }
}

section! {
    /// Master key, from which the keys that protect stored secrets, cursors and
    /// tokens are derived.
    pub struct MasterKeyConfig {
        /// File with the 32-byte master key, mode 0600; not set: `master.key` in
        /// the data folder. It is created if it is missing and nobody has used the
        /// database yet. Without the key, stored secrets are lost.
        pub master_key_file: Option<PathBuf>,
        /// The master key in base64, instead of a file; meant for
        /// ASSURANCE_KEYS__MASTER_KEY. It must be the same on every node.
        pub master_key: Option<SecretString>,
    }
}
