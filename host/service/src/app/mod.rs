//! Use cases of the service, independent of HTTP and the command line.

pub mod answer;
pub mod areas;
pub mod call;
mod claimed_keys;
pub mod folder;
pub mod health;
mod idempotency;
mod idempotency_guard;
mod limiter;
pub mod members;
pub mod operators;
mod record;
pub mod replay;
mod shadow;
#[cfg(test)]
mod tests;
pub mod workspaces;

use std::ops::Deref;
use std::sync::Arc;

pub use idempotency::KeysInFlight;
pub use idempotency_guard::HostOperationError;
pub use limiter::{Limiter, RateLimitStatus, RateLimited, RatePolicy, share_rates};

use crate::registry::Registry;
use assurance_core::config::Config;
use assurance_core::domain::time::Clock;
use assurance_core::recordings::Recordings;
use assurance_core::secrets::Keys;
use assurance_identity::IdentityService;
use assurance_runtime::Runtime;
use assurance_store::Store;

/// State of this process that every use case needs. Cloning is cheap.
#[derive(Clone)]
pub struct App(Arc<AppParts>);

/// Contents of an [`App`]: configuration, store, registry and the other shared
/// services.
pub struct AppParts {
    /// The service's validated configuration.
    pub config: Config,
    /// Public URL of the service, without a trailing slash.
    pub base_url: String,
    /// Source of the current time.
    pub clock: Clock,
    /// Database and blob store.
    pub store: Store,
    /// Keys derived from the master key.
    pub keys: Arc<Keys>,
    /// Compiles and runs components.
    pub runtime: Runtime,
    /// Registry of the live areas.
    pub registry: Arc<Registry>,
    /// Users, sessions and memberships.
    pub identity: IdentityService,
    /// Rate limits and their current state.
    pub limiter: Limiter,
    /// Idempotency keys of requests running in this process.
    pub in_flight: KeysInFlight,
    /// Records calls of areas, as configured.
    pub recordings: Recordings,
    /// State of this node of the fleet.
    pub node: areas::LocalNode,
    /// Last report of this node's readiness checks.
    pub health: health::HealthCheckState,
    /// Locked while the live areas of this node change.
    pub installing: tokio::sync::Mutex<()>,
}

impl App {
    /// Creates the state that the use cases share.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}
