//! What an area declared, as its calls need it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::domain::job::Lane;
use crate::domain::manifest::JobSpec;
use crate::store::CollectionScope;

/// What an area's calls may reach.
#[derive(Clone, Debug, Default)]
pub struct AreaScope {
    /// The area's name.
    pub area: String,
    /// By the name the guest may write: the short one of its own collections,
    /// `area.name` of those of others that it may read.
    pub collections: BTreeMap<String, CollectionScope>,
    /// The events the area publishes, and who is run for each.
    pub events: BTreeMap<String, Vec<Subscriber>>,
    /// The jobs it runs, by kind.
    pub jobs: BTreeMap<String, JobSpec>,
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
    /// Events published.
    pub max_events: u32,
    /// Bytes of one blob written by the guest, and of one read.
    pub max_blob_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_documents: 10_000,
            max_bytes: 64 << 20,
            max_jobs: 1_000,
            max_events: 1_000,
            max_blob_bytes: 32 << 20,
        }
    }
}

/// What a route's earlier calls have shown.
///
/// A read-only call with a single read needs no transaction around it: one
/// statement sees one state. Which routes are like that is learned: the first
/// call that reads twice is run again with a snapshot, and from then on all
/// calls of its route open one.
#[derive(Debug, Default)]
pub struct Habit {
    reads_twice: AtomicBool,
}

impl Habit {
    pub(super) fn reads_twice(&self) -> bool {
        self.reads_twice.load(Ordering::Relaxed)
    }

    pub(super) fn read_twice(&self) {
        self.reads_twice.store(true, Ordering::Relaxed);
    }
}
