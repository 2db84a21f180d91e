//! What this process knows beside the live areas: which of them its folder
//! has, which it could not bring to life and why, and the versions that it
//! keeps ready so that going back compiles nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use super::fence::{Closed, Fence};
use crate::config;
use crate::domain::deployment::{NodeReport, NodeState, Pointer};
use crate::domain::time::Timestamp;
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
    /// By area, the one that was live last at the end.
    warm: BTreeMap<String, Vec<Arc<AreaVersion>>>,
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
    pub fn admit(&self, area: &str) -> Result<(), Closed> {
        self.fence.admit(area)
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

    pub(super) fn id(&self) -> Uuid {
        self.id
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
        let running = live.area(&pointer.area).map(|area| &area.digest);
        if running == pointer.digest.as_ref() {
            return false;
        }
        let known = self.known.lock();
        let newer_file = known.files.get(&pointer.area).is_some_and(|at| *at > pointer.changed_at);
        let failed = known.failures.get(&pointer.area).is_some_and(|failure| {
            Some(&failure.digest) == pointer.digest.as_ref() && failure.at.elapsed() < RETRY
        });
        !newer_file && !failed
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

    /// Keeps a version ready, and lets go of those that were not live for the
    /// longest.
    pub(super) fn keep_warm(&self, version: &Arc<AreaVersion>) {
        let mut known = self.known.lock();
        let versions = known.warm.entry(version.manifest.name.clone()).or_default();
        versions.retain(|other| other.digest != version.digest);
        versions.push(Arc::clone(version));
        let surplus = versions.len().saturating_sub(self.warm_versions);
        versions.drain(..surplus);
    }

    /// A version that is ready.
    pub(super) fn warm(&self, area: &str, digest: &str) -> Option<Arc<AreaVersion>> {
        let known = self.known.lock();
        known.warm.get(area)?.iter().find(|version| version.digest == digest).cloned()
    }

    /// What this process runs, for the others to read.
    pub(super) fn report(&self, live: &Snapshot, now: Timestamp) -> Vec<NodeReport> {
        let known = self.known.lock();
        let line = |area: &str, digest: Option<&String>, why: Option<String>| NodeReport {
            node: self.id,
            host: self.host.clone(),
            area: area.to_owned(),
            digest: digest.cloned(),
            state: if why.is_none() { NodeState::Running } else { NodeState::Failed },
            why,
            seen_at: now,
        };
        let running = live.areas().map(|area| {
            let name = &area.manifest.name;
            line(name, Some(&area.digest), known.failures.get(name).map(Failure::told))
        });
        let missing = known.failures.iter().filter(|(area, _)| live.area(area).is_none());
        running.chain(missing.map(|(area, f)| line(area, None, Some(f.told())))).collect()
    }
}

impl Failure {
    fn told(&self) -> String {
        format!("{} does not answer here: {}", self.digest, self.why)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", &self.id).finish_non_exhaustive()
    }
}
