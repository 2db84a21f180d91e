//! Where the service listens and keeps things.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::domain::health::Check;

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
    /// How long after SIGTERM the service still accepts requests, in
    /// milliseconds. It is not ready then, and each HTTP/1 answer ends its
    /// connection. Set it to the time a balancer takes to notice.
    pub shutdown_delay_ms: u32,
    /// Open connections at most. A further one takes the place of the one
    /// that has been without a request for longest.
    pub max_connections: u32,
    /// Open connections of one address at most, and of one IPv6 network of 64
    /// bits; further ones are closed at once. Trusted proxies may have any
    /// number.
    pub max_connections_per_address: u32,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            base_url: None,
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            drain_seconds: 20,
            shutdown_delay_ms: 1_000,
            max_connections: 4096,
            max_connections_per_address: 1024,
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

/// When a node reports that it is not ready.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Readiness {
    /// Checks that only degrade a node: it still takes requests. The checks
    /// are database, writes, areas, master_key, clock, schema and blobs. With
    /// blobs left out, a lost bucket takes every node out of service; with
    /// schema added, nodes stay in service while a newer release is rolled out.
    pub degraded_by: Vec<Check>,
    /// How far this machine's clock may be from the database's, in
    /// milliseconds.
    pub max_clock_difference_ms: u32,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { degraded_by: vec![Check::Blobs], max_clock_difference_ms: 5_000 }
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
    /// How long PostgreSQL may take for one statement, in milliseconds; 0: no
    /// bound. Building indexes and migrating have none.
    pub statement_timeout_ms: u32,
    /// How long a statement waits for a lock in PostgreSQL, in milliseconds; 0:
    /// no bound.
    pub lock_timeout_ms: u32,
    /// How long PostgreSQL keeps a transaction open that sends no statement, in
    /// milliseconds; 0: no bound.
    pub idle_in_transaction_timeout_ms: u32,
    /// How long PostgreSQL keeps a session whose client does not answer, in
    /// milliseconds; 0: as the server is configured.
    pub unreachable_timeout_ms: u32,
    /// Let several processes serve one SQLite database. Each has its own rate
    /// limits and learns late of the others' jobs.
    pub allow_several_processes: bool,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            max_connections: 16,
            acquire_timeout_ms: 3_000,
            statement_timeout_ms: 30_000,
            lock_timeout_ms: 2_000,
            idle_in_transaction_timeout_ms: 60_000,
            unreachable_timeout_ms: 20_000,
            allow_several_processes: false,
        }
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
