//! The number of files that the process may open; each connection is one.

use assurance_core::config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of open files that are no connections of clients: databases, blobs, logs, webhooks and
/// other requests of the service.
const OTHER_FILES: u64 = 512;

/// Raises the limit of open files (the soft limit, RLIMIT_NOFILE of setrlimit(2)) to the highest
/// one that the process may set. Shells and supervisors often set 1,024, fewer than the default
/// number of connections; at the limit, the listeners could accept none, health checks included.
/// Warns if the connections that the configuration allows can still exceed the limit.
pub(super) fn raise_limit(config: &Config) {
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let allowed =
        if setrlimit(Resource::Nofile, highest).is_ok() { limit.maximum } else { limit.current };
    let needed = u64::from(config.api.max_connections) + OTHER_FILES;
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        tracing::warn!(
            allowed,
            needed,
            "the process may open fewer files than api.max_connections can need; raise the limit \
             (`LimitNOFILE=` of systemd, `ulimit -Hn`) or lower api.max_connections"
        );
    }
}
