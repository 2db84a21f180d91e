//! What this process knows beside the live areas: which of them its folder
//! has, which it could not bring to life and why, and the versions that it
//! keeps ready so that going back compiles nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use super::fence::{Closed, Fence};
use crate::config;
use crate::domain::deployment::{NodeReport, NodeState, Pointer};
use crate::domain::time::Timestamp;
use crate::domain::trial::Trial;
use crate::registry::{AreaVersion, Snapshot};

/// Before a version that could not be brought to life is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// This process among those that share the database.
pub struct Node {
    id: Uuid,
    host: String,
    warm_versions: usize,
    pub(super) fence: Fence,
    known: Mutex<Known>,
    /// Rung when there is something to report.
    news: Notify,
}

#[derive(Default)]
struct Known {
    /// Areas that answer from the folder, and when the file was written.
    files: BTreeMap<String, Timestamp>,
    failures: BTreeMap<String, Failure>,
    /// Components of the folder that were refused, and why.
    refused_files: BTreeMap<PathBuf, String>,
    /// Of versions on trial.
    trial_failures: BTreeMap<String, Failure>,
    /// Of all areas, the one that was wanted last at the end.
    warm: Vec<Arc<AreaVersion>>,
}

struct Failure {
    digest: String,
    why: String,
    at: Instant,
}

impl Node {
    /// A process that has just learned what is live.
    #[must_use]
    pub fn new(areas: &config::Areas) -> Self {
        Self {
            id: Uuid::new_v4(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            warm_versions: areas.warm_versions as usize,
            fence: Fence::new(Duration::from_millis(u64::from(areas.max_stale_ms))),
            known: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Whether an area may answer here.
    ///
    /// # Errors
    /// Not for the moment.
    pub fn admit(&self, area: &AreaVersion) -> Result<(), Closed> {
        self.fence.admit(&area.manifest.name)?;
        if area.is_loaded() { Ok(()) } else { Err(Closed::NotLoaded) }
    }

    /// Whether a path that no live version here has is certainly none of the
    /// service's.
    ///
    /// # Errors
    /// Not for the moment: this process does not know all live routes.
    pub fn admit_unknown_path(&self, live: &Snapshot) -> Result<(), Closed> {
        if !self.is_sure() {
            return Err(Closed::Unsure);
        }
        let known = self.known.lock();
        let has_routes = |(area, failure): (&String, &Failure)| {
            live.area(area).is_some_and(|area| area.digest == failure.digest)
        };
        if known.refused_files.is_empty() && known.failures.iter().all(has_routes) {
            Ok(())
        } else {
            Err(Closed::NotLoaded)
        }
    }

    /// Whether this process knows which versions are live.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.fence.is_sure()
    }

    /// Waits until this process runs something else than it last reported.
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

    /// What should answer here and cannot, one line each.
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

    /// A component of the folder was taken in, or is gone.
    pub(super) fn forget_refused_file(&self, file: &Path) {
        self.known.lock().refused_files.remove(file);
    }

    /// Forgets failures to load what nothing asks for any more: the pointer is
    /// back at the version that runs, or the area was taken out.
    pub(super) fn forget_met(&self, live: &Snapshot, pointers: &[Pointer]) {
        let mut known = self.known.lock();
        if known.failures.is_empty() {
            return;
        }
        known.failures.retain(|area, failure| {
            let wanted = pointers.iter().find(|pointer| pointer.area == *area);
            let wanted = wanted.and_then(|pointer| pointer.digest.as_ref());
            let running = live.running(area).map(|version| &version.digest);
            if wanted.is_some() && running == wanted {
                self.fence.set_withdrawn(area, false);
                return false;
            }
            wanted == Some(&failure.digest)
        });
    }

    /// An area answers from a file of this age.
    pub(super) fn answers_from_file(&self, area: &str, written_at: Timestamp) {
        self.known.lock().files.insert(area.to_owned(), written_at);
    }

    /// An area answers from no file any more. Answers whether it did.
    pub(super) fn forget_file(&self, area: &str) -> bool {
        self.known.lock().files.remove(area).is_some()
    }

    /// Whether the area answers from a file.
    pub(super) fn is_from_file(&self, area: &str) -> bool {
        self.known.lock().files.contains_key(area)
    }

    /// Whether this process has yet to do what the pointer says: not while a
    /// newer file answers, nor right after it failed.
    pub(super) fn is_behind(&self, live: &Snapshot, pointer: &Pointer) -> bool {
        let is_met = match &pointer.digest {
            Some(digest) => live.running(&pointer.area).is_some_and(|area| area.digest == *digest),
            None => live.area(&pointer.area).is_none(),
        };
        if is_met {
            return false;
        }
        let known = self.known.lock();
        let newer_file = known.files.get(&pointer.area).is_some_and(|at| *at > pointer.changed_at);
        let failure = known.failures.get(&pointer.area);
        let failed = failure.is_some_and(|failure| failure.is_recent(pointer.digest.as_deref()));
        !newer_file && !failed
    }

    /// Whether this process has yet to try what the row says; not right after
    /// that failed.
    pub(super) fn is_behind_trial(&self, live: &Snapshot, trial: &Trial) -> bool {
        if live.trial(&trial.area).is_some_and(|on_trial| on_trial.trial == *trial) {
            return false;
        }
        let known = self.known.lock();
        let failure = known.trial_failures.get(&trial.area);
        !failure.is_some_and(|failure| failure.is_recent(Some(&trial.digest)))
    }

    /// A version should be tried here and cannot.
    pub(super) fn trial_failed(&self, area: &str, digest: &str, why: String) {
        let failure = Failure { digest: digest.to_owned(), why, at: Instant::now() };
        self.known.lock().trial_failures.insert(area.to_owned(), failure);
    }

    /// The area's trial is here as it should be.
    pub(super) fn trial_recovered(&self, area: &str) {
        self.known.lock().trial_failures.remove(area);
    }

    /// A version should answer here and cannot.
    pub(super) fn failed(&self, area: &str, digest: &str, why: String) {
        let failure = Failure { digest: digest.to_owned(), why, at: Instant::now() };
        self.known.lock().failures.insert(area.to_owned(), failure);
    }

    /// The area does what it should.
    pub(super) fn recovered(&self, area: &str) {
        self.known.lock().failures.remove(area);
        self.fence.set_withdrawn(area, false);
    }

    /// Keeps a version ready, and lets go of those that were not wanted for the
    /// longest.
    pub(super) fn keep_warm(&self, version: &Arc<AreaVersion>) {
        let mut known = self.known.lock();
        let warm = &mut known.warm;
        let is_same =
            |other: &mut Arc<AreaVersion>| is(other, &version.manifest.name, &version.digest);
        let mut let_go: Vec<_> = warm.extract_if(.., is_same).collect();
        warm.push(Arc::clone(version));
        let surplus = warm.len().saturating_sub(self.warm_versions);
        let_go.extend(warm.drain(..surplus));
        drop(known);
        // The kernel takes machine code back for a third of a millisecond.
        tokio::task::spawn_blocking(move || drop(let_go));
    }

    /// A version that is ready.
    pub(super) fn warm(&self, area: &str, digest: &str) -> Option<Arc<AreaVersion>> {
        let known = self.known.lock();
        known.warm.iter().find(|version| is(version, area, digest)).cloned()
    }

    /// What this process runs, for the others to read.
    pub(super) fn report(&self, live: &Snapshot, now: Timestamp) -> Vec<NodeReport> {
        let known = self.known.lock();
        let line = |area: &str, digest: Option<&String>| {
            let failure = known.failures.get(area).or_else(|| known.trial_failures.get(area));
            let why = failure.map(Failure::told);
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

impl Failure {
    fn told(&self) -> String {
        format!("{} does not answer here: {}", self.digest, self.why)
    }

    fn is_recent(&self, digest: Option<&str>) -> bool {
        Some(self.digest.as_str()) == digest && self.at.elapsed() < RETRY
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", &self.id).finish_non_exhaustive()
    }
}
