//! State of this node that is not in the registry: areas that run from its folder, versions that
//! failed to load, and versions that are kept in memory for a fast rollback.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use super::super::claimed_keys::ClaimedKeys;
use super::super::folder::RefusedFile;
use super::node_plan::NodeStep;
use super::staleness_guard::{ServingBlocked, StalenessGuard};
use super::state::{AreaRevisions, DesiredArea, DesiredAreas, RunningArea};
use crate::registry::{AreaVersion, Snapshot};
use assurance_core::config;
use assurance_core::domain::deployment::{NodeAreaReport, NodeVersionState};
use assurance_core::domain::time::Timestamp;

/// Wait after a version failed to load on this node for the first time before
/// the next attempt. It doubles with each further failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Longest wait after a version failed to load on this node.
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// This process as one of the nodes that share the database.
pub struct LocalNode {
    pub(in crate::app) id: Uuid,
    /// Host name of this machine.
    pub(in crate::app) host: String,
    warm_versions: usize,
    /// Whether the component folder is scanned for changed files while the node serves.
    watches_folder: bool,
    pub(super) staleness: StalenessGuard,
    /// Rows of areas that tasks apply to this node.
    pub(super) applying: ClaimedKeys<AreaRevisions>,
    known: Mutex<LocalNodeState>,
    /// Notified when this node should write a new report.
    news: Notify,
}

#[derive(Default)]
struct LocalNodeState {
    /// Areas that run from the folder, with the time at which the file was written.
    files: BTreeMap<String, Timestamp>,
    failures: BTreeMap<String, VersionLoadFailure>,
    /// Components of the folder that were refused.
    refused_files: BTreeMap<PathBuf, RefusedFile>,
    /// Load failures of versions on trial, by area.
    trial_failures: BTreeMap<String, VersionLoadFailure>,
    /// Versions of all areas that are kept in memory for a fast rollback; the last used one is at
    /// the end.
    warm: Vec<Arc<AreaVersion>>,
}

struct VersionLoadFailure {
    digest: String,
    why: String,
    at: Instant,
    /// Wait after the failure before the next attempt.
    pause: Duration,
}

impl VersionLoadFailure {
    /// Returns the failure of a version that follows the area's last one. The
    /// wait is longer if the same version failed before.
    fn after(last: Option<&Self>, digest: &str, why: String) -> Self {
        let last = last.filter(|last| last.digest == digest);
        let pause = last.map_or(FIRST_RETRY, |last| LONGEST_RETRY.min(last.pause * 2));
        Self { digest: digest.to_owned(), why, at: Instant::now(), pause }
    }
}

impl LocalNode {
    /// Creates the state of this node. The live versions count as just read from the database.
    #[must_use]
    pub fn new(areas: &config::AreasConfig) -> Self {
        Self {
            id: Uuid::new_v4(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            warm_versions: areas.warm_versions as usize,
            watches_folder: areas.watch,
            staleness: StalenessGuard::new(Duration::from_millis(u64::from(areas.max_stale_ms))),
            applying: ClaimedKeys::default(),
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

    /// Returns the live versions and files that could not be loaded on this node, one line each.
    pub(in crate::app) fn load_failures(&self) -> Vec<String> {
        let known = self.known.lock();
        let versions = known.failures.iter().map(|(area, why)| format!("{area}: {}", why.why));
        let files = known.refused_files.iter();
        let files = files.map(|(path, file)| format!("{}: {}", path.display(), file.why));
        versions.chain(files).collect()
    }

    /// Records that a component of the folder was refused.
    pub(super) fn note_refused_file(&self, path: &Path, file: RefusedFile) {
        self.known.lock().refused_files.insert(path.to_path_buf(), file);
    }

    /// Deletes the refusal of a component that was installed or deleted.
    pub(super) fn forget_refused_file(&self, file: &Path) {
        self.known.lock().refused_files.remove(file);
    }

    /// Deletes the refusals of files that do not matter any more: files that were deleted, and
    /// files that are older than the last decision about their area, which this node would not use.
    /// A scan of a watched folder finds the deleted files itself.
    pub(super) fn forget_unused_files(&self, desired: &DesiredAreas) {
        let mut unused = self.known.lock().refused_files.clone();
        unused.retain(|path, file| {
            let row = desired.get(&file.area).and_then(|area| area.pointer.as_ref());
            row.is_some_and(|row| row.changed_at >= file.stamp.written_at())
                || !self.watches_folder && path.try_exists().is_ok_and(|exists| !exists)
        });
        // A scan may have refused a newer file meanwhile.
        let is_used = |path: &PathBuf, file: &mut RefusedFile| {
            unused.get(path).is_none_or(|unused| unused.stamp != file.stamp)
        };
        self.known.lock().refused_files.retain(is_used);
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
                .filter(|failure| failure.at.elapsed() < failure.pause)
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

    /// Records that a version on trial could not be loaded.
    pub(super) fn trial_failed(&self, area: &str, digest: &str, why: String) {
        let mut known = self.known.lock();
        let failure = VersionLoadFailure::after(known.trial_failures.get(area), digest, why);
        known.trial_failures.insert(area.to_owned(), failure);
    }

    /// Returns whether the version that the step would run failed to load on
    /// this node, whether or not it is due to be tried again.
    pub(super) fn has_failed(&self, step: &NodeStep<'_>) -> bool {
        let known = self.known.lock();
        let (failure, digest) = match step {
            NodeStep::EndTrial => return false,
            NodeStep::GoLive(row) => (known.failures.get(&row.area), row.digest.as_deref()),
            NodeStep::BeginTrial(trial) => {
                (known.trial_failures.get(&trial.area), Some(trial.digest.as_str()))
            }
        };
        failure.is_some_and(|failure| digest == Some(failure.digest.as_str()))
    }

    /// Deletes the load failure of the area's trial, because the trial runs or has ended.
    pub(super) fn trial_recovered(&self, area: &str) {
        self.known.lock().trial_failures.remove(area);
    }

    /// Records that a live version could not be loaded.
    pub(super) fn failed(&self, area: &str, digest: &str, why: String) {
        let mut known = self.known.lock();
        let failure = VersionLoadFailure::after(known.failures.get(area), digest, why);
        known.failures.insert(area.to_owned(), failure);
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
            let failures = [known.failures.get(area), known.trial_failures.get(area)];
            let told: Vec<String> = failures
                .into_iter()
                .flatten()
                .map(|failure| format!("{} does not answer here: {}", failure.digest, failure.why))
                .collect();
            let why = (!told.is_empty()).then(|| told.join("; "));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_fails_again_and_again_is_tried_less_often() {
        let mut last: Option<VersionLoadFailure> = None;
        let mut fails = |digest: &str| {
            let failure = VersionLoadFailure::after(last.as_ref(), digest, "it traps".into());
            last.insert(failure).pause.as_secs()
        };
        assert_eq!(["a", "a", "a", "a", "a", "a"].map(&mut fails), [1, 2, 4, 8, 10, 10]);
        assert_eq!(fails("b"), 1);
    }
}
