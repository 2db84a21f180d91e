//! The state of this process that is not in the registry: which areas come from
//! its folder, which versions failed to load and why, and the versions that stay
//! in memory so that a rollback compiles nothing.

use std::collections::BTreeMap;
use std::fmt;
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
use assurance_core::domain::deployment::{NodeReport, NodeState};
use assurance_core::domain::time::Timestamp;

/// How long after a failure to load a version the next attempt is made.
const RETRY: Duration = Duration::from_secs(10);

/// This process among those that share the database.
pub struct LocalNode {
    id: Uuid,
    host: String,
    warm_versions: usize,
    pub(super) staleness: StalenessGuard,
    known: Mutex<KnownFiles>,
    /// Notified when there is something to report.
    news: Notify,
}

#[derive(Default)]
struct KnownFiles {
    /// Areas that run from the folder, and when the file was written.
    files: BTreeMap<String, Timestamp>,
    failures: BTreeMap<String, NodeFailure>,
    /// Components of the folder that were refused, and why.
    refused_files: BTreeMap<PathBuf, String>,
    /// Of versions on trial.
    trial_failures: BTreeMap<String, NodeFailure>,
    /// Of all areas, the last used one at the end.
    warm: Vec<Arc<AreaVersion>>,
}

struct NodeFailure {
    digest: String,
    why: String,
    at: Instant,
}

impl LocalNode {
    /// State of a process that has just read the live pointers.
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

    /// Whether an area may serve here.
    ///
    /// # Errors
    /// Why it returns 503.
    pub fn admit(&self, area: &AreaVersion) -> Result<(), ServingBlocked> {
        self.staleness.admit(&area.manifest.name)?;
        if area.is_loaded() { Ok(()) } else { Err(ServingBlocked::NotLoaded) }
    }

    /// Whether a path that no live version here has returns 404.
    ///
    /// # Errors
    /// This process does not know all live routes, so the path returns 503.
    pub fn admit_unknown_path(&self, live: &Snapshot) -> Result<(), ServingBlocked> {
        if !self.is_sure() {
            return Err(ServingBlocked::Unsure);
        }
        let known = self.known.lock();
        let has_routes = |(area, failure): (&String, &NodeFailure)| {
            live.area(area).is_some_and(|area| area.digest == failure.digest)
        };
        if known.refused_files.is_empty() && known.failures.iter().all(has_routes) {
            Ok(())
        } else {
            Err(ServingBlocked::NotLoaded)
        }
    }

    /// Whether this process knows which versions are live.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.staleness.is_sure()
    }

    /// Waits until what this process runs has changed.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// The live areas have changed.
    pub(super) fn changed(&self) {
        self.news.notify_one();
    }

    pub(in crate::app) fn id(&self) -> Uuid {
        self.id
    }

    /// The machine that this process runs on.
    pub(in crate::app) fn host(&self) -> &str {
        &self.host
    }

    /// Live versions and files that do not load here, one line each.
    pub(in crate::app) fn unmet(&self) -> Vec<String> {
        let known = self.known.lock();
        let versions = known.failures.iter().map(|(area, why)| format!("{area}: {}", why.why));
        let files = known.refused_files.iter();
        versions.chain(files.map(|(file, why)| format!("{}: {why}", file.display()))).collect()
    }

    /// A component of the folder was refused.
    pub(super) fn note_refused_file(&self, file: &Path, why: String) {
        self.known.lock().refused_files.insert(file.to_path_buf(), why);
    }

    /// A component of the folder was installed, or is gone.
    pub(super) fn forget_refused_file(&self, file: &Path) {
        self.known.lock().refused_files.remove(file);
    }

    /// Forgets failures to load a version that no row names any more, or that
    /// runs by now.
    pub(super) fn forget_resolved(&self, live: &Snapshot, desired: &DesiredAreas) {
        let mut known = self.known.lock();
        known.failures.retain(|area, failure| {
            let named = desired.get(area).and_then(DesiredArea::live);
            let running = live.running(area).map(|version| version.digest.as_str());
            if named.is_some() && running == named {
                self.staleness.set_withdrawn(area, false);
                return false;
            }
            named == Some(failure.digest.as_str())
        });
        known.trial_failures.retain(|area, failure| {
            let trial = desired.get(area).and_then(DesiredArea::running_trial);
            trial.is_some_and(|trial| trial.digest == failure.digest)
        });
    }

    /// An area runs from a file of this age.
    pub(super) fn note_file(&self, area: &str, written_at: Timestamp) {
        self.known.lock().files.insert(area.to_owned(), written_at);
    }

    /// An area no longer runs from a file. Returns whether it did.
    pub(super) fn forget_file(&self, area: &str) -> bool {
        self.known.lock().files.remove(area).is_some()
    }

    /// Whether the area runs from a file.
    pub(super) fn is_from_file(&self, area: &str) -> bool {
        self.known.lock().files.contains_key(area)
    }

    /// What this process runs of an area.
    pub(super) fn running(&self, live: &Snapshot, area: &str) -> RunningArea {
        let version = live.area(area);
        let known = self.known.lock();
        let recent = |failures: &BTreeMap<String, NodeFailure>| {
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

    /// A version on trial does not load here.
    pub(super) fn trial_failed(&self, area: &str, digest: &str, why: String) {
        let failure = NodeFailure { digest: digest.to_owned(), why, at: Instant::now() };
        self.known.lock().trial_failures.insert(area.to_owned(), failure);
    }

    /// Forgets the failure of the area's trial, because it runs or has ended.
    pub(super) fn trial_recovered(&self, area: &str) {
        self.known.lock().trial_failures.remove(area);
    }

    /// A live version does not load here.
    pub(super) fn failed(&self, area: &str, digest: &str, why: String) {
        let failure = NodeFailure { digest: digest.to_owned(), why, at: Instant::now() };
        self.known.lock().failures.insert(area.to_owned(), failure);
    }

    /// Forgets the area's failure, because it runs the version it should.
    pub(super) fn recovered(&self, area: &str) {
        self.known.lock().failures.remove(area);
        self.staleness.set_withdrawn(area, false);
    }

    /// Keeps a version in memory, and drops those that were used the longest ago.
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
        // The kernel takes machine code back for a third of a millisecond.
        tokio::task::spawn_blocking(move || drop(dropped));
    }

    /// A version that is in memory.
    pub(super) fn warm(&self, area: &str, digest: &str) -> Option<Arc<AreaVersion>> {
        let known = self.known.lock();
        known.warm.iter().find(|version| is(version, area, digest)).cloned()
    }

    /// Reports of what this process runs, one for each area.
    pub(super) fn report(&self, live: &Snapshot, now: Timestamp) -> Vec<NodeReport> {
        let known = self.known.lock();
        let line = |area: &str, digest: Option<&String>| {
            let failure = known.failures.get(area).or_else(|| known.trial_failures.get(area));
            let why = failure.map(NodeFailure::report);
            NodeReport {
                node: self.id,
                host: self.host.clone(),
                area: area.to_owned(),
                digest: digest.cloned(),
                candidate: live.trial(area).map(|on_trial| on_trial.version.digest.clone()),
                state: match (&why, digest) {
                    (Some(_), _) => NodeState::Failed,
                    (None, Some(_)) => NodeState::Running,
                    (None, None) => NodeState::Loading,
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

impl NodeFailure {
    fn report(&self) -> String {
        format!("{} does not answer here: {}", self.digest, self.why)
    }
}

impl fmt::Debug for LocalNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", &self.id).finish_non_exhaustive()
    }
}
