//! A cache for sessions and memberships. Entries expire after a short time and
//! are removed at once when this node changes them. It is sharded, so that
//! requests do not share one lock.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use assurance_core::domain::time::Timestamp;

/// Number of entries inserted into a cache between two removals of expired
/// ones.
const SWEEP_EVERY: u64 = 1_024;

#[derive(Debug)]
pub(super) struct ExpiringCache<K: Eq + Hash, V> {
    entries: DashMap<K, (V, Timestamp)>,
    keep_ms: i64,
    /// Number of invalidations of the cache; a value that was queried before
    /// one is not cached.
    generation: AtomicU64,
    added: AtomicU64,
}

/// Number of a cache's invalidations before a query to the database. The
/// query's result is cached only if that number is unchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct InvalidationCount(u64);

impl<K: Eq + Hash, V: Clone> ExpiringCache<K, V> {
    pub(super) fn new(keep_ms: u32) -> Self {
        Self {
            entries: DashMap::new(),
            keep_ms: i64::from(keep_ms),
            generation: AtomicU64::new(0),
            added: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let entry = self.entries.get(key)?;
        self.is_fresh(entry.1, now).then(|| entry.0.clone())
    }

    /// Returns the current number of invalidations, for `put`. Call it before
    /// the database query.
    pub(super) fn ticket(&self) -> InvalidationCount {
        InvalidationCount(self.generation.load(Ordering::Acquire))
    }

    /// Caches a value that was queried, unless something was invalidated since
    /// `ticket` was taken.
    pub(super) fn put(&self, ticket: InvalidationCount, key: K, value: V, asked_at: Timestamp) {
        if self.keep_ms == 0 {
            return;
        }
        if self.added.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.entries.retain(|_, (_, at)| self.is_fresh(*at, asked_at));
        }
        let entry = self.entries.entry(key);
        // Compared under the shard's lock, which `invalidate` takes after
        // counting: either its count is visible here, or it removes this entry.
        if self.generation.load(Ordering::Acquire) == ticket.0 {
            entry.insert((value, asked_at));
        }
    }

    pub(super) fn invalidate(&self, key: &K) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.entries.remove(key);
    }

    pub(super) fn invalidate_where(&self, doomed: impl Fn(&K, &V) -> bool) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.entries.retain(|key, (value, _)| !doomed(key, value));
    }

    fn is_fresh(&self, asked_at: Timestamp, now: Timestamp) -> bool {
        // A clock that was set back must not extend the lifetime.
        (0..self.keep_ms).contains(&now.ms_since(asked_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000);

    #[test]
    fn an_answer_is_kept_for_its_time_only() {
        let cache = ExpiringCache::new(1_000);
        cache.put(cache.ticket(), 1, "one", NOW);
        assert_eq!(cache.get(&1, NOW.plus_ms(999)), Some("one"));
        assert_eq!(cache.get(&1, NOW.plus_ms(1_000)), None);
        assert_eq!(cache.get(&1, NOW.plus_ms(-5_000)), None);
    }

    #[test]
    fn an_answer_older_than_an_invalidation_is_not_kept() {
        let cache = ExpiringCache::new(1_000);
        let ticket = cache.ticket();
        cache.invalidate(&1);
        cache.put(ticket, 1, "stale", NOW);
        assert_eq!(cache.get(&1, NOW), None);
    }

    #[test]
    fn without_a_time_nothing_is_kept() {
        let cache = ExpiringCache::new(0);
        cache.put(cache.ticket(), 1, "one", NOW);
        assert_eq!(cache.get(&1, NOW), None);
    }

    #[test]
    fn old_answers_do_not_pile_up() {
        let cache = ExpiringCache::new(1_000);
        for n in 0..20_000_i64 {
            cache.put(cache.ticket(), n, n, NOW.plus_ms(n));
        }
        assert!(cache.entries.len() <= 3_100, "{}", cache.entries.len());
    }
}
