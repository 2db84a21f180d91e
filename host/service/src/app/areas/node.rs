//! State of this node that is not in the registry: areas that run from its folder, versions that
//! failed to load, and versions that are kept in memory for a fast rollback.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use super::staleness_guard::{ServingBlocked, StalenessGuard};
use super::state::{DesiredArea, DesiredAreas, RunningArea};
use crate::registry::{AreaVersion, Snapshot};
use assurance_core::config;
use assurance_core::domain::deployment::{NodeAreaReport, NodeVersionState};
use assurance_core::domain::time::Timestamp;

/// Wait after a version failed to load on this node before the next attempt.
const RETRY: Duration = Duration::from_secs(10);

/// This process as one of the nodes that share the database.
pub struct LocalNode {
    id: Uuid,
    host: String,
    warm_versions: usize,
    pub(super) staleness: StalenessGuard,
    known: Mutex<LocalNodeState>,
    /// Notified when this node should write a new report.
    news: Notify,
}

#[derive(Default)]
struct LocalNodeState {
    /// Areas that run from the folder, with the time at which the file was written.
    files: BTreeMap<String, Timestamp>,
    failures: BTreeMap<String, VersionLoadFailure>,
    /// Components of the folder that were refused, with the reason.
    refused_files: BTreeMap<PathBuf, String>,
    /// Load failures of versions on trial, by area.
    trial_failures: BTreeMap<String, VersionLoadFailure>,
    /// Changes that tasks are applying: area, revision of the row of the live version, revision of
    /// the running trial.
    applying: BTreeSet<(String, (i64, i64))>,
    /// Versions of all areas that are kept in memory for a fast rollback; the last used one is at
    /// the end.
    warm: Vec<Arc<AreaVersion>>,
}

struct VersionLoadFailure {
    digest: String,
    why: String,
    at: Instant,
}

impl LocalNode {
    /// Creates the state of this node. The live versions count as just read from the database.
    #[must_use]
    pub fn new(areas: &config::AreasConfig) -> Self {
        Self {
            id: Uuid::new_v4(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            warm_versions: areas.warm_versions as usize,
            staleness: StalenessGuard::new(Duration::from_millis(u64::from(areas.max_stale_ms))),
            known: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Checks whether this node may serve requests of an area.
    ///
    /// # Errors
    /// The reason why the node returns 503.
    pub fn admit(&self, area: &AreaVersion) -> Result<(), ServingBlocked> {
        self.staleness.admit(&area.manifest.name)?;
        if area.is_loaded() { Ok(()) } else { Err(ServingBlocked::NotLoaded) }
    }

    /// Checks whether the node may return 404 for a path that matches no live route.
    ///
    /// # Errors
    /// The node does not know all live routes, so it must return 503.
    pub fn admit_unknown_path(&self, live: &Snapshot) -> Result<(), ServingBlocked> {
        if !self.is_sure() {
            return Err(ServingBlocked::Unsure);
        }
        let known = self.known.lock();
        let has_routes = |(area, failure): (&String, &VersionLoadFailure)| {
            live.area(area).is_some_and(|area| area.digest == failure.digest)
        };
        if known.refused_files.is_empty() && known.failures.iter().all(has_routes) {
            Ok(())
        } else {
            Err(ServingBlocked::NotLoaded)
        }
    }

    /// Returns whether this node's knowledge of the live versions is recent enough to serve.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.staleness.is_sure()
    }

    /// Waits until [`LocalNode::changed`] requests a new report of this node.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Requests a new report of this node, because its areas changed.
    pub(super) fn changed(&self) {
        self.news.notify_one();
    }

    pub(in crate::app) fn id(&self) -> Uuid {
        self.id
    }

    /// Returns the host name of this machine.
    pub(in crate::app) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the live versions and files that could not be loaded on this node, one line each.
    pub(in crate::app) fn load_failures(&self) -> Vec<String> {
        let known = self.known.lock();
        let versions = known.failures.iter().map(|(area, why)| format!("{area}: {}", why.why));
        let files = known.refused_files.iter();
        versions.chain(files.map(|(file, why)| format!("{}: {why}", file.display()))).collect()
    }

    /// Records that a component of the folder was refused.
    pub(super) fn note_refused_file(&self, file: &Path, why: String) {
        self.known.lock().refused_files.insert(file.to_path_buf(), why);
    }

    /// Deletes the refusal of a component that was installed or deleted.
    pub(super) fn forget_refused_file(&self, file: &Path) {
        self.known.lock().refused_files.remove(file);
    }

    /// Deletes load failures of versions that no row names, and of versions that run now. Unblocks
    /// the areas whose live version runs.
    pub(super) fn forget_resolved(&self, live: &Snapshot, desired: &DesiredAreas) {
        let named = |area: &str| desired.get(area).and_then(DesiredArea::live);
        let runs_live = |area: &str| {
            let running = live.running(area).map(|version| version.digest.as_str());
            running.is_some() && running == named(area)
        };
        self.staleness.unblock(runs_live);
        let mut known = self.known.lock();
        known.failures.retain(|area, failure| {
            !runs_live(area) && named(area) == Some(failure.digest.as_str())
        });
        known.trial_failures.retain(|area, failure| {
            let trial = desired.get(area).and_then(DesiredArea::running_trial);
            trial.is_some_and(|trial| trial.digest == failure.digest)
        });
    }

    /// Records that an area runs from a file, with the time at which the file was written.
    pub(super) fn note_file(&self, area: &str, written_at: Timestamp) {
        self.known.lock().files.insert(area.to_owned(), written_at);
    }

    /// Records that an area does not run from a file. Returns whether it did before.
    pub(super) fn forget_file(&self, area: &str) -> bool {
        self.known.lock().files.remove(area).is_some()
    }

    /// Returns whether the area runs from a file.
    pub(super) fn is_from_file(&self, area: &str) -> bool {
        self.known.lock().files.contains_key(area)
    }

    /// Returns the state of an area on this node: its version, trial and recent load failures.
    pub(super) fn running(&self, live: &Snapshot, area: &str) -> RunningArea {
        let version = live.area(area);
        let known = self.known.lock();
        let recent = |failures: &BTreeMap<String, VersionLoadFailure>| {
            failures
                .get(area)
                .filter(|failure| failure.at.elapsed() < RETRY)
                .map(|failure| failure.digest.clone())
        };
        RunningArea {
            digest: version.map(|version| version.digest.clone()),
            loaded: version.is_some_and(|version| version.is_loaded()),
            trial: live.trial(area).map(|on_trial| on_trial.trial.clone()),
            file_written_at: known.files.get(area).copied(),
            failed: recent(&known.failures),
            failed_trial: recent(&known.trial_failures),
        }
    }

    /// Records that a task begins to apply these revisions of an area's rows. Returns false if
    /// another task applies them already.
    pub(super) fn begin_applying(&self, area: &str, revisions: (i64, i64)) -> bool {
        self.known.lock().applying.insert((area.to_owned(), revisions))
    }

    /// Records that the task that applied these revisions of an area's rows has ended.
    pub(super) fn end_applying(&self, area: &str, revisions: (i64, i64)) {
        self.known.lock().applying.remove(&(area.to_owned(), revisions));
    }

    /// Records that a version on trial could not be loaded.
    pub(super) fn trial_failed(&self, area: &str, digest: &str, why: String) {
        let failure = VersionLoadFailure { digest: digest.to_owned(), why, at: Instant::now() };
        self.known.lock().trial_failures.insert(area.to_owned(), failure);
    }

    /// Deletes the load failure of the area's trial, because the trial runs or has ended.
    pub(super) fn trial_recovered(&self, area: &str) {
        self.known.lock().trial_failures.remove(area);
    }

    /// Records that a live version could not be loaded.
    pub(super) fn failed(&self, area: &str, digest: &str, why: String) {
        let failure = VersionLoadFailure { digest: digest.to_owned(), why, at: Instant::now() };
        self.known.lock().failures.insert(area.to_owned(), failure);
    }

    /// Deletes the area's load failure, because the area runs the right version.
    pub(super) fn recovered(&self, area: &str) {
        self.known.lock().failures.remove(area);
        self.staleness.set_withdrawn(area, false);
    }

    /// Keeps a version in memory for a fast rollback. Drops the least recently used ones above
    /// `areas.warm_versions`.
    pub(super) fn keep_warm(&self, version: &Arc<AreaVersion>) {
        let mut known = self.known.lock();
        let warm = &mut known.warm;
        let is_same =
            |other: &mut Arc<AreaVersion>| is(other, &version.manifest.name, &version.digest);
        let mut dropped: Vec<_> = warm.extract_if(.., is_same).collect();
        warm.push(Arc::clone(version));
        let surplus = warm.len().saturating_sub(self.warm_versions);
        dropped.extend(warm.drain(..surplus));
        drop(known);
        // Freeing machine code takes about a third of a millisecond.
        tokio::task::spawn_blocking(move || drop(dropped));
    }

    /// Returns a version that is kept in memory; `None` if it is not.
    pub(super) fn warm(&self, area: &str, digest: &str) -> Option<Arc<AreaVersion>> {
        let known = self.known.lock();
        known.warm.iter().find(|version| is(version, area, digest)).cloned()
    }

    /// Returns this node's report to the fleet: one entry for each area.
    pub(super) fn report(&self, live: &Snapshot, now: Timestamp) -> Vec<NodeAreaReport> {
        let known = self.known.lock();
        let line = |area: &str, digest: Option<&String>| {
            let failure = known.failures.get(area).or_else(|| known.trial_failures.get(area));
            let why = failure.map(VersionLoadFailure::report);
            NodeAreaReport {
                node: self.id,
                host: self.host.clone(),
                area: area.to_owned(),
                digest: digest.cloned(),
                candidate: live.trial(area).map(|on_trial| on_trial.version.digest.clone()),
                state: match (&why, digest) {
                    (Some(_), _) => NodeVersionState::Failed,
                    (None, Some(_)) => NodeVersionState::Running,
                    (None, None) => NodeVersionState::Loading,
                },
                why,
                seen_at: now,
            }
        };
        let digest = |area: &Arc<AreaVersion>| area.is_loaded().then(|| area.digest.clone());
        let running = live.areas().map(|area| line(&area.manifest.name, digest(area).as_ref()));
        let missing = known.failures.keys().filter(|area| live.area(area).is_none());
        running.chain(missing.map(|area| line(area, None))).collect()
    }
}

fn is(version: &AreaVersion, area: &str, digest: &str) -> bool {
    version.digest == digest && version.manifest.name == area
}

impl VersionLoadFailure {
    fn report(&self) -> String {
        format!("{} does not answer here: {}", self.digest, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{AreaTargetState, Registry};
    use crate::testing;
    use assurance_contract::ContractLimits;
    use assurance_contract::fixtures::{manifest, route};
    use assurance_core::domain::deployment::LivePointer;
    use assurance_work::{AreaCode, LimitsByArea};

    struct StubAreaCode;

    impl AreaCode for StubAreaCode {}

    fn rows(digest: &str) -> DesiredAreas {
        let pointer = LivePointer {
            area: "notes".into(),
            digest: Some(digest.into()),
            previous: None,
            revision: 1,
            changed_at: Timestamp(1),
            changed_by: "ada".into(),
        };
        let desired = DesiredArea { pointer: Some(pointer), trial: None };
        [("notes".to_owned(), desired)].into()
    }

    #[test]
    fn a_withdrawn_version_that_is_live_again_is_served() {
        let registry = Registry::new(vec![], ContractLimits::default(), LimitsByArea::default());
        let notes = route("list_notes", "/v1/workspaces/{workspace_id}/notes");
        let loaded = testing::loaded(manifest("notes", vec![notes]), Arc::new(StubAreaCode));
        let version = registry.compile(loaded).unwrap();
        let plan = registry.plan("notes", AreaTargetState::Live(&version)).unwrap();
        registry.activate(plan).unwrap();
        let (config, _folder) = testing::config();
        let (live, node) = (registry.snapshot(), LocalNode::new(&config.areas));
        // The version was rolled back, and the one before does not load.
        node.failed("notes", "b", "it does not load".into());
        node.staleness.set_withdrawn("notes", true);
        // Operators activate a third version, which takes long to load.
        node.forget_resolved(&live, &rows("c"));
        assert_eq!(node.admit(&version), Err(ServingBlocked::Withdrawn));
        node.forget_resolved(&live, &rows(&version.digest));
        assert_eq!(node.admit(&version), Ok(()));
    }
}
