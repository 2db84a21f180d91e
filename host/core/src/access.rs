//! Isolation profiles of operations and job kinds, recorded during earlier
//! calls. They decide whether the next call runs optimistically or takes the
//! write lock first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;

/// Isolation that the calls of one route or job kind need, and how often they
/// conflict; recorded during earlier calls.
///
/// A call with a single read needs no snapshot, because one statement sees one
/// state. A call that writes and reads documents only by id needs no
/// transaction while it runs: the statement that writes checks that the
/// documents have not changed.
///
/// If a call reads or writes in another way, it runs again with a stronger
/// isolation. All later calls of the route start with that isolation.
#[derive(Debug, Default)]
pub struct IsolationProfile {
    needs_snapshot: AtomicBool,
    needs_transaction: AtomicBool,
    score: AtomicU32,
}

/// Points that one write conflict adds to the conflict score of a route or job
/// kind. A success subtracts one.
const CONFLICT_POINTS: u32 = 4;
/// Conflict score from which calls of a route or job kind take the write lock
/// before they run.
const LOCK_SCORE: u32 = 16;
/// Upper bound of the conflict score. It bounds the number of successes after
/// which a route runs optimistically again.
const MAX_SCORE: u32 = 64;

/// Isolation profile of each job kind of an area.
#[derive(Clone, Debug, Default)]
pub struct JobIsolationProfiles(Arc<Mutex<BTreeMap<String, Arc<IsolationProfile>>>>);

impl JobIsolationProfiles {
    /// Returns the isolation profile of a job kind; creates it if it is
    /// missing.
    #[must_use]
    pub fn of(&self, kind: &str) -> Arc<IsolationProfile> {
        let mut patterns = self.0.lock();
        match patterns.get(kind) {
            Some(pattern) => Arc::clone(pattern),
            None => Arc::clone(patterns.entry(kind.to_owned()).or_default()),
        }
    }
}

impl IsolationProfile {
    /// Returns whether calls of this route or job kind read more than once and
    /// so need a snapshot.
    pub fn needs_snapshot(&self) -> bool {
        self.needs_snapshot.load(Ordering::Relaxed)
    }

    /// Records that a call read more than once, so that later calls start with
    /// a snapshot.
    pub fn note_second_read(&self) {
        self.needs_snapshot.store(true, Ordering::Relaxed);
    }

    /// Returns whether writing calls make queries whose result only a
    /// serializable transaction can protect: document queries, counts, people,
    /// secrets, on PostgreSQL blobs.
    pub fn needs_transaction(&self) -> bool {
        self.needs_transaction.load(Ordering::Relaxed)
    }

    /// Records that a writing call made a query that only a serializable
    /// transaction can protect; see [`IsolationProfile::needs_transaction`].
    pub fn note_query(&self) {
        self.needs_transaction.store(true, Ordering::Relaxed);
    }

    /// Returns whether write conflicts are so frequent that calls should take
    /// the write lock before they run.
    pub fn is_contended(&self) -> bool {
        self.score.load(Ordering::Relaxed) >= LOCK_SCORE
    }

    /// Records the end of a serializable call; `conflict` is true after a write
    /// conflict. The conflict score is approximate: two concurrent updates may
    /// count as one.
    pub fn note_end(&self, conflict: bool) {
        let score = self.score.load(Ordering::Relaxed);
        let now = if conflict {
            (score + CONFLICT_POINTS).min(MAX_SCORE)
        } else {
            score.saturating_sub(1)
        };
        if now != score {
            self.score.store(now, Ordering::Relaxed);
        }
    }
}
