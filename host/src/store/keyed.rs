//! Locks by key, made when they are asked for and forgotten when nobody holds
//! or waits for them.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use dashmap::DashMap;

/// Entries above which those that nobody uses are removed.
const SWEEP_ABOVE: usize = 1_024;

/// A lock for each key. Its guards keep it alive.
#[derive(Debug)]
pub(super) struct Keyed<K: Eq + Hash, L> {
    locks: DashMap<K, Weak<L>>,
}

impl<K: Eq + Hash, L> Default for Keyed<K, L> {
    fn default() -> Self {
        Self { locks: DashMap::new() }
    }
}

impl<K: Eq + Hash, L> Keyed<K, L> {
    /// The key's lock, made by `make` if nobody uses one.
    pub(super) fn of(&self, key: K, make: impl FnOnce() -> L) -> Arc<L> {
        if self.locks.len() > SWEEP_ABOVE {
            self.locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let mut entry = self.locks.entry(key).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let lock = Arc::new(make());
            *entry = Arc::downgrade(&lock);
            lock
        })
    }
}
