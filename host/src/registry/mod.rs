//! Which version of which area answers.
//!
//! The registry is one pointer to the live [`Snapshot`]. Readers load it once
//! per request and never wait; an installation builds the next snapshot beside
//! it and swaps the pointer.

mod checks;
mod compared;
pub mod compatibility;
mod contract;
mod cost;
mod dependents;
#[cfg(test)]
pub(crate) mod fixtures;
mod meter;
pub mod openapi;
mod parameters;
mod pieces;
mod schema;
mod scope;
mod snapshot;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use compared::{Asked, Compared, Copying, Counts, Difference, Example, differences};
pub use contract::{BadManifest, Ceilings, RouteContract};
pub use dependents::Dependent;
pub use meter::Meter;
pub use openapi::{Document, HostOperation};
pub use parameters::{canonical_uuid, decode};
pub use schema::{compile as compile_schema, violations};
pub use scope::EVENT_JOB;
pub use snapshot::{AreaVersion, Found, Match, Snapshot};
pub use trial::{Figures, Latency, OnTrial, Side, Told};

use self::pieces::{Piece, Pieces, TrialPiece};
use crate::domain::manifest::Manifest;
use crate::domain::trial::Trial;
use crate::runtime::Loaded;
use crate::work::{AreaScope, LimitsByArea};

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

    /// The area's version on trial, as it would be then.
    #[must_use]
    pub fn trial(&self) -> Option<&Arc<OnTrial>> {
        self.next.trial(&self.change.area)
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
        self.plan_piece(version.manifest.name.clone(), known(version))
    }

    fn plan_piece(&self, name: String, piece: Piece) -> Result<Plan, Refusal> {
        let base = self.snapshot();
        let mut pieces = Pieces::from(base.as_ref());
        // A trial is a comparison with what was live.
        pieces.trials.remove(&name);
        pieces.live.insert(name.clone(), piece);
        let next = self.assemble(pieces, Some(&name))?;
        Ok(plan(base, next, name))
    }

    /// Checks a version that is to be tried beside the live one.
    ///
    /// # Errors
    /// No such area is live, or the version's manifest cannot be used.
    pub fn plan_trial(&self, trial: &Trial, loaded: Loaded) -> Result<Plan, Refusal> {
        self.plan_trial_piece(trial, loaded.into())
    }

    /// The same of a version that was planned before.
    ///
    /// # Errors
    /// No such area is live, or the version's manifest cannot be used.
    pub fn plan_trial_again(&self, trial: &Trial, version: &AreaVersion) -> Result<Plan, Refusal> {
        self.plan_trial_piece(trial, known(version))
    }

    fn plan_trial_piece(&self, trial: &Trial, piece: Piece) -> Result<Plan, Refusal> {
        let base = self.snapshot();
        let (name, trial) = (trial.area.clone(), trial.clone());
        base.area(&name).ok_or_else(|| Refusal::NotLive(name.clone()))?;
        let mut pieces = Pieces::from(base.as_ref());
        pieces.trials.insert(name.clone(), TrialPiece { trial, piece, figures: Arc::default() });
        let next = self.assemble(pieces, None)?;
        Ok(plan(base, next, name))
    }

    /// Plans the end of a trial.
    ///
    /// # Errors
    /// See [`Registry::plan`].
    pub fn plan_trial_end(&self, name: &str) -> Result<Plan, Refusal> {
        let base = self.snapshot();
        let mut pieces = Pieces::from(base.as_ref());
        pieces.trials.remove(name);
        let next = self.assemble(pieces, None)?;
        Ok(plan(base, next, name.to_owned()))
    }

    /// Checks a removal.
    ///
    /// # Errors
    /// No such area is live.
    pub fn plan_removal(&self, name: &str) -> Result<Plan, Refusal> {
        let base = self.snapshot();
        let mut pieces = Pieces::from(base.as_ref());
        pieces.trials.remove(name);
        pieces.live.remove(name).ok_or_else(|| Refusal::NotLive(name.to_owned()))?;
        let next = self.assemble(pieces, None)?;
        Ok(plan(base, next, name.to_owned()))
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

    /// Contracts and scopes of all versions, given which are live.
    fn assemble(&self, pieces: Pieces, newcomer: Option<&str>) -> Result<Arc<Snapshot>, Refusal> {
        let manifests: Vec<Arc<Manifest>> =
            pieces.live.values().map(|piece| Arc::clone(&piece.manifest)).collect();
        let live: Vec<&Manifest> = manifests.iter().map(Arc::as_ref).collect();
        let events = event_names(&live);
        let same_events = events == self.snapshot().events();
        let among = Among { live: &live, events, same_events };
        let mut areas = BTreeMap::new();
        for (name, piece) in pieces.live {
            areas.insert(name, Arc::new(self.version(piece, &among)?));
        }
        let mut trials = BTreeMap::new();
        for (name, TrialPiece { trial, piece, figures }) in pieces.trials {
            let version = Arc::new(self.version(piece, &among)?);
            trials.insert(name, Arc::new(OnTrial { trial, version, figures }));
        }
        let host = Arc::clone(&self.host);
        Ok(Arc::new(Snapshot::new(areas, trials, host, newcomer)?))
    }

    /// One version among the live ones, itself in place of its area's.
    fn version(&self, piece: Piece, among: &Among<'_>) -> Result<AreaVersion, Refusal> {
        let stale = !among.same_events && contract::depends_on_events(&piece.manifest);
        let routes = match piece.routes {
            Some(routes) if !stale => routes,
            _ => contract::compile(&piece.manifest, &among.events, &self.ceilings)?.into(),
        };
        let name = &piece.manifest.name;
        let own = |live: &Manifest| live.name == *name;
        let all = among.live.iter().map(|live| if own(live) { &piece.manifest } else { *live });
        let live: Vec<&Manifest> = all.collect();
        Ok(AreaVersion {
            scope: Arc::new(AreaScope {
                digest: piece.digest.clone(),
                ..scope::of(&piece.manifest, &live, self.limits.of(name))
            }),
            manifest: piece.manifest,
            digest: piece.digest,
            generation: piece.generation,
            imports: piece.imports,
            code: piece.code,
            routes,
        })
    }
}

/// Among which areas a version is put.
struct Among<'a> {
    live: &'a [&'a Manifest],
    events: Vec<String>,
    /// The events are those of the current snapshot.
    same_events: bool,
}

/// A version that was planned before.
fn known(version: &AreaVersion) -> Piece {
    let mut piece = Piece::from(version);
    if contract::depends_on_events(&piece.manifest) {
        // It was compiled when other events may have been live.
        piece.routes = None;
    }
    piece
}

fn plan(base: Arc<Snapshot>, next: Arc<Snapshot>, area: String) -> Plan {
    let (before, now) = (base.area(&area).cloned(), next.area(&area).cloned());
    Plan { base, next, change: Change { area, before, now } }
}

fn event_names(live: &[&Manifest]) -> Vec<String> {
    let mut names: Vec<String> =
        live.iter().flat_map(|area| area.publishes.iter().map(|e| e.name.clone())).collect();
    names.sort();
    names
}
