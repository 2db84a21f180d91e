//! Answers kept for a short time, dropped at once when this node changes
//! what they say. Sharded: no lock is shared by all requests.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use crate::domain::time::Timestamp;

/// How many answers are added between two sweeps; bounds the map to what
/// that time needs and this many more.
const SWEEP_EVERY: u64 = 1_024;

#[derive(Debug)]
pub(super) struct Cache<K: Eq + Hash, V> {
    entries: DashMap<K, (V, Timestamp)>,
    keep_ms: i64,
    /// Counts invalidations: an answer asked for before one is not kept.
    generation: AtomicU64,
    added: AtomicU64,
}

/// The moment before a question; see [`Cache::put`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket(u64);

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
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

    /// To be taken before the database is asked.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.generation.load(Ordering::Acquire))
    }

    /// Keeps an answer, unless something was invalidated since the ticket.
    pub(super) fn put(&self, ticket: Ticket, key: K, value: V, asked_at: Timestamp) {
        if self.keep_ms == 0 {
            return;
        }
        if self.added.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.entries.retain(|_, (_, at)| self.is_fresh(*at, asked_at));
        }
        let entry = self.entries.entry(key);
        // Compared under the shard's lock, which `invalidate` takes after it
        // has counted: either it is seen here, or it removes what is put here.
        if self.generation.load(Ordering::Acquire) == ticket.0 {
            entry.insert((value, asked_at));
        }
    }

    pub(super) fn invalidate(&self, key: &K) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.entries.remove(key);
    }

    pub(super) fn invalidate_where(&self, doomed: impl Fn(&K) -> bool) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.entries.retain(|key, _| !doomed(key));
    }

    fn is_fresh(&self, asked_at: Timestamp, now: Timestamp) -> bool {
        // A clock set back must not keep an answer alive.
        (0..self.keep_ms).contains(&now.ms_since(asked_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000);

    #[test]
    fn an_answer_is_kept_for_its_time_only() {
        let cache = Cache::new(1_000);
        cache.put(cache.ticket(), 1, "one", NOW);
        assert_eq!(cache.get(&1, NOW.plus_ms(999)), Some("one"));
        assert_eq!(cache.get(&1, NOW.plus_ms(1_000)), None);
        assert_eq!(cache.get(&1, NOW.plus_ms(-5_000)), None);
    }

    #[test]
    fn an_answer_older_than_an_invalidation_is_not_kept() {
        let cache = Cache::new(1_000);
        let ticket = cache.ticket();
        cache.invalidate(&1);
        cache.put(ticket, 1, "stale", NOW);
        assert_eq!(cache.get(&1, NOW), None);
    }

    #[test]
    fn without_a_time_nothing_is_kept() {
        let cache = Cache::new(0);
        cache.put(cache.ticket(), 1, "one", NOW);
        assert_eq!(cache.get(&1, NOW), None);
    }

    #[test]
    fn old_answers_do_not_pile_up() {
        let cache = Cache::new(1_000);
        for n in 0..20_000_i64 {
            cache.put(cache.ticket(), n, n, NOW.plus_ms(n));
        }
        assert!(cache.entries.len() <= 3_100, "{}", cache.entries.len());
    }
}
