//! What an area declared, as its calls need it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::domain::job::Lane;
use crate::domain::manifest::{JobSpec, LinkHolder};
use crate::store::{CollectionScope, Quota};

/// What an area's calls may reach.
#[derive(Clone, Debug, Default)]
pub struct AreaScope {
    /// The area's name.
    pub area: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its component, lower-case hex.
    pub digest: String,
    /// By the name the guest may write: the short one of its own collections,
    /// `area.name` of those of others that it may read.
    pub collections: BTreeMap<String, CollectionScope>,
    /// Areas whose blobs it may read.
    pub shared_blobs: BTreeSet<String>,
    /// Its routes that take a signed link, by operation id.
    pub links: BTreeMap<String, LinkHolder>,
    /// All areas that are live; of one that is not, there is nothing to read.
    pub live: BTreeSet<String>,
    /// The events the area publishes, and who is run for each.
    pub events: BTreeMap<String, Vec<Subscriber>>,
    /// The jobs it runs, by kind.
    pub jobs: BTreeMap<String, JobSpec>,
    /// How much one of its calls may do.
    pub limits: Limits,
    /// What its jobs' earlier runs have shown.
    pub habits: Habits,
    /// See [`Manifest::meets_secrets`](crate::domain::manifest::Manifest::meets_secrets).
    pub meets_secrets: bool,
}

/// An area that is run for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Its name.
    pub area: String,
    /// Where the delivery waits.
    pub lane: Lane,
    /// Before the delivery is dead.
    pub max_attempts: u32,
    /// One attempt.
    pub timeout_ms: u32,
}

/// How much one call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Documents read and written.
    pub max_documents: u32,
    /// Bytes of documents read and written.
    pub max_bytes: u64,
    /// Jobs enqueued.
    pub max_jobs: u32,
    /// Jobs of the area that wait in the workspace.
    pub max_waiting_jobs: u64,
    /// Bytes that may be kept.
    pub quota: Quota,
    /// Events published.
    pub max_events: u32,
    /// Bytes of one job's payload, and of one event's data.
    pub max_payload_bytes: u64,
    /// Bytes of payloads, an event's once for each subscriber.
    pub max_outgoing_bytes: u64,
    /// Bytes of what others answered to one step of a job.
    pub max_incoming_bytes: u64,
    /// Bytes of blobs read and written by the guest.
    pub max_blob_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_documents: 10_000,
            max_bytes: 64 << 20,
            max_jobs: 1_000,
            max_waiting_jobs: 100_000,
            quota: Quota { area: 20 << 30, workspace: 50 << 30 },
            max_events: 1_000,
            max_payload_bytes: 1 << 20,
            max_outgoing_bytes: 16 << 20,
            max_incoming_bytes: 64 << 20,
            max_blob_bytes: 32 << 20,
        }
    }
}

/// How much a call may do, by the area whose call it is.
#[derive(Clone, Debug, Default)]
pub struct LimitsByArea {
    /// Where nothing else is said.
    pub default: Limits,
    /// Of these areas.
    pub areas: BTreeMap<String, Limits>,
}

impl LimitsByArea {
    /// Of this area.
    #[must_use]
    pub fn of(&self, area: &str) -> Limits {
        self.areas.get(area).copied().unwrap_or(self.default)
    }
}

/// What a route's earlier calls have shown, so that later ones do without what
/// they do not need.
///
/// A call with a single read needs no snapshot: one statement sees one state.
/// A call that writes and only ever reads documents by their ids needs no
/// transaction while it runs: that they are still the same is checked by the
/// statement that writes. Which routes are like that is learned: the first
/// call that does more is run again with what it needs, and from then on all
/// calls of its route begin with it.
#[derive(Debug, Default)]
pub struct Habit {
    reads_twice: AtomicBool,
    asks: AtomicBool,
    losses: AtomicU32,
}

/// What one lost race counts for, against one call that went well.
const LOSS: u32 = 4;
/// From here on calls take the lock first.
const CONTENDED: u32 = 16;
/// A storm is forgotten after so many calls that went well.
const MAX_LOSSES: u32 = 64;

/// The habits of an area's jobs, by kind.
#[derive(Clone, Debug, Default)]
pub struct Habits(Arc<Mutex<BTreeMap<String, Arc<Habit>>>>);

impl Habits {
    /// The habit of one kind.
    #[must_use]
    pub fn of(&self, kind: &str) -> Arc<Habit> {
        let mut habits = self.0.lock();
        match habits.get(kind) {
            Some(habit) => Arc::clone(habit),
            None => Arc::clone(habits.entry(kind.to_owned()).or_default()),
        }
    }
}

impl Habit {
    /// Whether calls read more than once.
    pub(super) fn reads_twice(&self) -> bool {
        self.reads_twice.load(Ordering::Relaxed)
    }

    pub(super) fn read_twice(&self) {
        self.reads_twice.store(true, Ordering::Relaxed);
    }

    /// Whether calls that write ask what only a serializable transaction can
    /// answer for: queries, counts, people, secrets, blobs.
    pub(super) fn asks(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    pub(super) fn asked(&self) {
        self.asks.store(true, Ordering::Relaxed);
    }

    /// Whether calls lose so often that running optimistically is a waste.
    pub(super) fn is_contended(&self) -> bool {
        self.losses.load(Ordering::Relaxed) >= CONTENDED
    }

    /// A serializable call ended. Counted roughly: two at once may count as
    /// one.
    pub(super) fn ended(&self, lost: bool) {
        let losses = self.losses.load(Ordering::Relaxed);
        let now = if lost { (losses + LOSS).min(MAX_LOSSES) } else { losses.saturating_sub(1) };
        if now != losses {
            self.losses.store(now, Ordering::Relaxed);
        }
    }
}
