//! The registry of live areas: maps each request to a version of an area.
//!
//! The registry is one pointer to the live [`Snapshot`]. A request loads it once and never waits.
//! An installation builds the next snapshot and swaps the pointer.

mod compared;
mod dependents;
mod live_metrics;
mod scope;
mod snapshot;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use compared::{
    ComparedRequest, DifferenceExample, ResponseDifference, ShadowComparisonCollector,
    ShadowCounts, ShadowPermit, differences,
};
pub use dependents::LostDependency;
pub use snapshot::{AreaVersion, RouteLookupResult, RouteMatch, Snapshot};
pub use trial::{LatencySummary, TrialSideCounters, TrialSideStats, TrialStats, VersionOnTrial};

use assurance_contract::{CompiledRoute, ContractLimits, HostOperation, InvalidManifest};
use assurance_core::domain::manifest::Manifest;
use assurance_core::domain::trial::Trial;
use assurance_runtime::LoadedArea;
use assurance_work::{AreaPolicy, LimitsByArea};

/// Why the registry refuses a change: a version cannot become live, or its area is not live.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The manifest is invalid.
    #[error(transparent)]
    Manifest(#[from] InvalidManifest),
    /// Another area or the host has the route that the area declares.
    #[error("area {area:?} declares {route}, which is taken by {owner}; choose another path")]
    RouteTaken {
        /// Method and path of the route that is taken; only its path if the host has the path.
        route: String,
        /// Area that has the route, or `host`.
        owner: String,
        /// Name of the refused area.
        area: String,
    },
    /// The path that the area declares is not distinguishable from another path.
    #[error("area {area:?} declares the path {path}: {error}; choose another path")]
    PathConflict {
        /// Path of the refused route.
        path: String,
        /// Name of the refused area.
        area: String,
        /// Description of the conflict; names the other path.
        error: String,
    },
    /// Another area or the host has the operation id that the area declares.
    #[error("area {area:?} declares operation id {operation:?}, which is taken by {owner}")]
    OperationTaken {
        /// Operation id that is taken.
        operation: String,
        /// Area that has the operation, or `host`.
        owner: String,
        /// Name of the refused area.
        area: String,
    },
    /// Another area publishes the event that the area declares.
    #[error("area {area:?} publishes {event:?}, which is published by {owner}")]
    EventTaken {
        /// Name of the event that is taken.
        event: String,
        /// Area that publishes the event.
        owner: String,
        /// Name of the refused area.
        area: String,
    },
    /// The area with this name is not live.
    #[error("no area {0:?} is live")]
    NotLive(String),
}

/// Change of one area in the registry, with its versions before and after.
#[derive(Clone, Debug)]
pub struct LiveVersionChange {
    /// Name of the area that changed.
    pub area: String,
    /// Live version before the change; `None` if the area is new.
    pub before: Option<Arc<AreaVersion>>,
    /// Live version after the change; `None` if the area was removed.
    pub now: Option<Arc<AreaVersion>>,
    /// Version that was on trial before the change; `None` if there was no trial. Its trial has
    /// ended, or began again.
    pub tried: Option<Arc<AreaVersion>>,
}

/// State that one area shall have in the next snapshot of the registry.
#[derive(Clone, Copy, Debug)]
pub enum AreaTargetState<'a> {
    /// This version shall be live; a running trial of the area ends.
    Live(&'a Arc<AreaVersion>),
    /// The area shall be absent from the registry.
    Removed,
    /// This version shall be on trial next to the live one.
    Trial(&'a Trial, &'a Arc<AreaVersion>),
    /// The area shall have no version on trial; its live version stays.
    NoTrial,
}

/// A validated change of the registry that is not live yet.
#[derive(Debug)]
pub struct RegistryChangePlan {
    base: Arc<Snapshot>,
    next: Arc<Snapshot>,
    change: LiveVersionChange,
    /// Whether the change only begins or ends a trial and keeps the live version.
    pub(crate) of_trial: bool,
}

/// The live areas of this process, as a pointer to the current snapshot.
#[derive(Debug)]
pub struct Registry {
    current: ArcSwap<Snapshot>,
    /// Locked while the pointer to the current snapshot is swapped; readers never lock it.
    activating: Mutex<()>,
    host: Arc<[HostOperation]>,
    ceilings: ContractLimits,
    limits: LimitsByArea,
}

impl Registry {
    /// Creates a registry without areas, with the host's own operations.
    #[must_use]
    pub fn new(host: Vec<HostOperation>, ceilings: ContractLimits, limits: LimitsByArea) -> Self {
        live_metrics::describe();
        let host: Arc<[HostOperation]> = host.into();
        let current = ArcSwap::from_pointee(Snapshot::empty(Arc::clone(&host)));
        Self { current, activating: Mutex::new(()), host, ceilings, limits }
    }

    /// Returns the current snapshot of the live areas.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Compiles the routes and schemas of a loaded version. That takes time, so it runs before the
    /// version is planned and off the serving threads.
    ///
    /// # Errors
    /// The version's manifest breaks a rule.
    pub fn compile(&self, loaded: LoadedArea) -> Result<Arc<AreaVersion>, RegistryError> {
        let LoadedArea { manifest, digest, code, generation, imports, .. } = loaded;
        let (snapshot, manifest) = (self.snapshot(), Arc::new(manifest));
        let others = snapshot.areas().map(|area| area.manifest.as_ref());
        let others = others.filter(|other| other.name != manifest.name);
        let live: Vec<&Manifest> = others.chain([manifest.as_ref()]).collect();
        let events = event_names(live.iter().copied());
        let routes = assurance_contract::compile(&manifest, &events, &self.ceilings)?.into();
        let scope = self.scope(&manifest, &digest, &live);
        Ok(Arc::new(AreaVersion { manifest, digest, generation, imports, code, scope, routes }))
    }

    /// Checks a change of one area against the other live areas. Returns the plan, which
    /// [`Registry::activate`] makes live.
    ///
    /// # Errors
    /// Every way in which a version cannot go live or be tried.
    pub fn plan(
        &self,
        area: &str,
        target: AreaTargetState<'_>,
    ) -> Result<RegistryChangePlan, RegistryError> {
        let base = self.snapshot();
        if matches!(target, AreaTargetState::Trial(..)) && base.area(area).is_none() {
            return Err(RegistryError::NotLive(area.to_owned()));
        }
        let of_trial = matches!(target, AreaTargetState::Trial(..) | AreaTargetState::NoTrial);
        let next = self.assemble(next_versions(&base, area, target), area)?;
        let (before, now) = (base.area(area).cloned(), next.area(area).cloned());
        let tried = base.trial(area).map(|on_trial| Arc::clone(&on_trial.version));
        let change = LiveVersionChange { area: area.to_owned(), before, now, tried };
        Ok(RegistryChangePlan { base, next, change, of_trial })
    }

    /// Makes a planned change live. Returns `None` if another change happened since the plan was
    /// made; the caller must plan again.
    pub fn activate(&self, plan: RegistryChangePlan) -> Option<LiveVersionChange> {
        let _one_at_a_time = self.activating.lock();
        if !Arc::ptr_eq(&self.current.load(), &plan.base) {
            return None;
        }
        live_metrics::report(&plan.change.area, &plan.base, &plan.next);
        self.current.store(plan.next);
        Some(plan.change)
    }

    /// Builds the next snapshot: computes the routes and scopes of all its versions. `changed` is
    /// the name of the area that changes.
    fn assemble(
        &self,
        (mut areas, mut trials): NextVersionsByArea,
        changed: &str,
    ) -> Result<Arc<Snapshot>, RegistryError> {
        let manifests: Vec<Arc<Manifest>> =
            areas.values().map(|area| Arc::clone(&area.manifest)).collect();
        let live: Vec<&Manifest> = manifests.iter().map(Arc::as_ref).collect();
        let events = event_names(live.iter().copied());
        let same_events = events == self.snapshot().events();
        let among = NextLiveAreas { live: &live, events, same_events, changed };
        for area in areas.values_mut() {
            *area = self.version(area, &among)?;
        }
        for on_trial in trials.values_mut() {
            let VersionOnTrial { trial, version, figures } = on_trial.as_ref();
            let (trial, figures) = (trial.clone(), Arc::clone(figures));
            let version = self.version(version, &among)?;
            *on_trial = Arc::new(VersionOnTrial { trial, version, figures });
        }
        let host = Arc::clone(&self.host);
        Ok(Arc::new(Snapshot::new(areas, trials, host, changed)?))
    }

    /// Computes one version's routes and scope in the next snapshot, with this version in place of
    /// its area's live one.
    fn version(
        &self,
        version: &AreaVersion,
        among: &NextLiveAreas<'_>,
    ) -> Result<Arc<AreaVersion>, RegistryError> {
        let manifest = &version.manifest;
        // A version that was compiled when other events were live is compiled again.
        let may_be_stale = !among.same_events || manifest.name == among.changed;
        let routes: Arc<[CompiledRoute]> =
            if may_be_stale && assurance_contract::depends_on_events(manifest) {
                assurance_contract::compile(manifest, &among.events, &self.ceilings)?.into()
            } else {
                Arc::clone(&version.routes)
            };
        let own = |live: &Manifest| live.name == manifest.name;
        let all = among.live.iter().map(|live| if own(live) { manifest.as_ref() } else { *live });
        let scope = self.scope(manifest, &version.digest, &all.collect::<Vec<_>>());
        Ok(Arc::new(AreaVersion { scope, routes, ..version.clone() }))
    }

    fn scope(&self, manifest: &Manifest, digest: &str, live: &[&Manifest]) -> Arc<AreaPolicy> {
        Arc::new(scope::of(manifest, digest, live, self.limits.of(&manifest.name)))
    }
}

/// Live versions and versions on trial of the next snapshot, by area.
type NextVersionsByArea =
    (BTreeMap<String, Arc<AreaVersion>>, BTreeMap<String, Arc<VersionOnTrial>>);

/// Manifests and events of the live areas in the next snapshot, which determine each version's
/// routes and scope.
struct NextLiveAreas<'a> {
    live: &'a [&'a Manifest],
    events: Vec<String>,
    /// Whether the live areas' events are those of the current snapshot. If so, compiled routes are
    /// reused.
    same_events: bool,
    /// Name of the area that the change is about.
    changed: &'a str,
}

/// Returns the versions of the next snapshot: those of the snapshot `base`, with the target state
/// of one area.
fn next_versions(base: &Snapshot, area: &str, target: AreaTargetState<'_>) -> NextVersionsByArea {
    let live = base.areas().map(|area| (area.manifest.name.clone(), Arc::clone(area)));
    let trials = base.trials().map(|one| (one.trial.area.clone(), Arc::clone(one)));
    let (mut live, mut trials): NextVersionsByArea = (live.collect(), trials.collect());
    // A trial compares a version with the live one, so it ends when the live version changes.
    trials.remove(area);
    match target {
        AreaTargetState::Live(version) => {
            live.insert(area.to_owned(), Arc::clone(version));
        }
        AreaTargetState::Removed => {
            live.remove(area);
        }
        AreaTargetState::Trial(trial, version) => {
            let (trial, version, figures) = (trial.clone(), Arc::clone(version), Arc::default());
            trials.insert(area.to_owned(), Arc::new(VersionOnTrial { trial, version, figures }));
        }
        AreaTargetState::NoTrial => {}
    }
    (live, trials)
}

/// Returns the names of the events that these areas publish and webhooks can subscribe to, sorted.
fn event_names<'a>(live: impl IntoIterator<Item = &'a Manifest>) -> Vec<String> {
    let events = live.into_iter().flat_map(|area| &area.publishes);
    let events = events.filter(|event| assurance_contract::is_subscribable(event));
    let mut names: Vec<String> = events.map(|event| event.name.clone()).collect();
    names.sort();
    names
}
