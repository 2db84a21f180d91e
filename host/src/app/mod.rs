//! Use cases: what the service does, without saying how it is asked.

pub mod answer;
pub mod areas;
pub mod call;
pub mod folder;
pub mod health;
mod idempotency;
mod keyed;
mod limiter;
pub mod operators;
mod record;
pub mod replay;
mod shadow;
#[cfg(test)]
mod tests;
pub mod workspaces;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use idempotency::{Fingerprint, InFlight};
pub use limiter::{Limiter, Policy, Spent, Standing, share_rates};

use crate::config::Config;
use crate::domain::time::Clock;
use crate::identity::Identity;
use crate::recordings::Recordings;
use crate::registry::Registry;
use crate::runtime::{Loaded, Runtime};
use crate::secrets::Keys;
use crate::store::Store;

/// Everything a use case needs; cloning it is cheap.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// What an [`App`] is made of.
pub struct Parts {
    /// As checked at start.
    pub config: Config,
    /// Where clients reach the service, without a trailing slash.
    pub base_url: String,
    /// The time.
    pub clock: Clock,
    /// The database.
    pub store: Store,
    /// The master key's children.
    pub keys: Arc<Keys>,
    /// Runs components.
    pub runtime: Runtime,
    /// What a loaded version goes through before it is installed: nothing in
    /// the service, an exchange of its code in the benchmark's native twin.
    pub code_of: fn(Loaded) -> Loaded,
    /// The live areas.
    pub registry: Arc<Registry>,
    /// People and their sessions.
    pub identity: Identity,
    /// Who has asked how often.
    pub limiter: Limiter,
    /// Idempotent calls under way in this process.
    pub in_flight: InFlight,
    /// Which calls are written down, and where.
    pub recordings: Recordings,
    /// This process among those that share the database.
    pub node: areas::Node,
    /// Whether it can do its work.
    pub health: health::Health,
    /// Held while the live areas change.
    pub installing: tokio::sync::Mutex<()>,
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
