//! Which version of which area answers.
//!
//! The registry is one pointer to the live [`Snapshot`]. Readers load it once
//! per request and never wait; an installation builds the next snapshot beside
//! it and swaps the pointer.

mod checks;
pub mod compatibility;
mod contract;
#[cfg(test)]
pub(crate) mod fixtures;
mod meter;
pub mod openapi;
mod parameters;
mod schema;
mod scope;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use contract::{BadManifest, Ceilings, RouteContract};
pub use meter::Meter;
pub use openapi::HostOperation;
pub use parameters::{canonical_uuid, decode};
pub use schema::{compile as compile_schema, violations};
pub use scope::EVENT_JOB;
pub use snapshot::{AreaVersion, Found, Match, Snapshot};

use crate::domain::manifest::Manifest;
use crate::runtime::Loaded;
use crate::work::{AreaCode, LimitsByArea};

/// Why a version is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The manifest breaks a rule.
    #[error(transparent)]
    Manifest(#[from] BadManifest),
    /// Somebody else answers there.
    #[error("area {area:?} declares {route}, which is taken by {owner}; choose another path")]
    RouteTaken {
        /// Method and path.
        route: String,
        /// An area, or `host`.
        owner: String,
        /// The refused area.
        area: String,
    },
    /// Somebody else has the operation id.
    #[error("area {area:?} declares operation id {operation:?}, which is taken by {owner}")]
    OperationTaken {
        /// The id.
        operation: String,
        /// An area, or `host`.
        owner: String,
        /// The refused area.
        area: String,
    },
    /// Somebody else publishes the event.
    #[error("area {area:?} publishes {event:?}, which is published by {owner}")]
    EventTaken {
        /// The event's name.
        event: String,
        /// An area.
        owner: String,
        /// The refused area.
        area: String,
    },
    /// No such area is live.
    #[error("no area {0:?} is live")]
    NotLive(String),
}

/// What an installation or a removal changed.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which area.
    pub area: String,
    /// What answered before.
    pub before: Option<Arc<AreaVersion>>,
    /// What answers now.
    pub now: Option<Arc<AreaVersion>>,
}

/// A checked change, not yet live.
#[derive(Debug)]
pub struct Plan {
    base: Arc<Snapshot>,
    next: Arc<Snapshot>,
    change: Change,
}

impl Plan {
    /// What will change.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }
}

/// The live areas.
#[derive(Debug)]
pub struct Registry {
    current: ArcSwap<Snapshot>,
    /// Held while the pointer is swapped; readers never take it.
    activating: Mutex<()>,
    host: Arc<[HostOperation]>,
    ceilings: Ceilings,
    limits: LimitsByArea,
}

impl Registry {
    /// A registry without areas, beside the host's own operations.
    #[must_use]
    pub fn new(host: Vec<HostOperation>, ceilings: Ceilings, limits: LimitsByArea) -> Self {
        let host: Arc<[HostOperation]> = host.into();
        let current = ArcSwap::from_pointee(Snapshot::empty(Arc::clone(&host)));
        Self { current, activating: Mutex::new(()), host, ceilings, limits }
    }

    /// The live areas at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Checks a loaded version against the live ones.
    ///
    /// # Errors
    /// Every way in which the version cannot go live.
    pub fn plan(&self, loaded: Loaded) -> Result<Plan, Refusal> {
        self.plan_piece(loaded.manifest.name.clone(), loaded.into())
    }

    /// Checks a version that was planned before; its routes are not compiled
    /// again.
    ///
    /// # Errors
    /// Every way in which the version cannot go live.
    pub fn plan_again(&self, version: &AreaVersion) -> Result<Plan, Refusal> {
        let mut piece = Piece::from(version);
        if contract::depends_on_events(&piece.manifest) {
            // It was compiled when other events may have been live.
            piece.routes = None;
        }
        self.plan_piece(version.manifest.name.clone(), piece)
    }

    fn plan_piece(&self, name: String, piece: Piece) -> Result<Plan, Refusal> {
        let base = self.snapshot();
        let before = base.area(&name).cloned();
        let mut pieces = pieces_of(&base);
        pieces.insert(name.clone(), piece);
        let next = self.assemble(pieces, Some(&name))?;
        let now = next.area(&name).cloned();
        Ok(Plan { base, next, change: Change { area: name, before, now } })
    }

    /// Checks a removal.
    ///
    /// # Errors
    /// No such area is live.
    pub fn plan_removal(&self, name: &str) -> Result<Plan, Refusal> {
        let base = self.snapshot();
        let mut pieces = pieces_of(&base);
        pieces.remove(name).ok_or_else(|| Refusal::NotLive(name.to_owned()))?;
        let next = self.assemble(pieces, None)?;
        let before = base.area(name).cloned();
        Ok(Plan { base, next, change: Change { area: name.to_owned(), before, now: None } })
    }

    /// Makes a plan live; nothing, where another change came between and the
    /// plan must be made again.
    pub fn activate(&self, plan: Plan) -> Option<Change> {
        let _one_at_a_time = self.activating.lock();
        if !Arc::ptr_eq(&self.current.load(), &plan.base) {
            return None;
        }
        self.current.store(plan.next);
        Some(plan.change)
    }

    /// Contracts and scopes of all areas, given which are live.
    fn assemble(
        &self,
        pieces: BTreeMap<String, Piece>,
        newcomer: Option<&str>,
    ) -> Result<Arc<Snapshot>, Refusal> {
        let manifests: Vec<Arc<Manifest>> =
            pieces.values().map(|piece| Arc::clone(&piece.manifest)).collect();
        let live: Vec<&Manifest> = manifests.iter().map(Arc::as_ref).collect();
        let events = event_names(&live);
        let same_events = events == self.snapshot().events();
        let mut areas = BTreeMap::new();
        for (name, piece) in pieces {
            let stale = !same_events && contract::depends_on_events(&piece.manifest);
            let routes = match piece.routes {
                Some(routes) if !stale => routes,
                _ => contract::compile(&piece.manifest, &events, &self.ceilings)?.into(),
            };
            let version = AreaVersion {
                scope: Arc::new(scope::of(&piece.manifest, &live, self.limits.of(&name))),
                manifest: piece.manifest,
                digest: piece.digest,
                imports: piece.imports,
                code: piece.code,
                routes,
            };
            areas.insert(name, Arc::new(version));
        }
        let host = Arc::clone(&self.host);
        Ok(Arc::new(Snapshot::new(areas, host, newcomer)?))
    }
}

/// A version before it is known what it can reach; its routes too, where they
/// were compiled before.
struct Piece {
    manifest: Arc<Manifest>,
    digest: String,
    imports: Vec<String>,
    code: Arc<dyn AreaCode>,
    routes: Option<Arc<[RouteContract]>>,
}

impl From<Loaded> for Piece {
    fn from(loaded: Loaded) -> Self {
        Self {
            manifest: Arc::new(loaded.manifest),
            digest: loaded.digest,
            imports: loaded.imports,
            code: loaded.code,
            routes: None,
        }
    }
}

impl From<&AreaVersion> for Piece {
    fn from(area: &AreaVersion) -> Self {
        Self {
            manifest: Arc::clone(&area.manifest),
            digest: area.digest.clone(),
            imports: area.imports.clone(),
            code: Arc::clone(&area.code),
            routes: Some(Arc::clone(&area.routes)),
        }
    }
}

fn pieces_of(snapshot: &Snapshot) -> BTreeMap<String, Piece> {
    let pieces = snapshot.areas().map(|area| (area.manifest.name.clone(), area.as_ref().into()));
    pieces.collect()
}

fn event_names(live: &[&Manifest]) -> Vec<String> {
    let mut names: Vec<String> =
        live.iter().flat_map(|area| area.publishes.iter().map(|e| e.name.clone())).collect();
    names.sort();
    names
}
