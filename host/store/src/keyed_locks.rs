//! Locks by key. A lock is created on first use and removed when nobody holds
//! it or waits for it.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use dashmap::DashMap;

/// Number of locks in the map above which unused ones are removed.
const SWEEP_ABOVE: usize = 1_024;

/// A map of locks by key. A lock stays in the map while a guard of it exists.
#[derive(Debug)]
pub(super) struct KeyedLocks<K: Eq + Hash, L> {
    locks: DashMap<K, Weak<L>>,
}

impl<K: Eq + Hash, L> Default for KeyedLocks<K, L> {
    fn default() -> Self {
        Self { locks: DashMap::new() }
    }
}

impl<K: Eq + Hash, L> KeyedLocks<K, L> {
    /// Returns the key's lock; `make` creates it if it is missing.
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
