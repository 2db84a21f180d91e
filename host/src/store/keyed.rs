//! Semaphores by key, made when they are asked for and forgotten when nobody
//! holds or waits for them.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Entries above which those that nobody uses are removed.
const SWEEP_ABOVE: usize = 1_024;

/// A semaphore for each key, all with as many permits.
#[derive(Debug)]
pub(super) struct Keyed<K: Eq + Hash> {
    permits: usize,
    // A permit keeps its semaphore alive.
    semaphores: DashMap<K, Weak<Semaphore>>,
}

impl<K: Eq + Hash> Keyed<K> {
    pub(super) fn new(permits: usize) -> Self {
        Self { permits, semaphores: DashMap::new() }
    }

    /// Waits for a permit of the key; first come, first served.
    pub(super) async fn acquire(&self, key: K) -> OwnedSemaphorePermit {
        self.of(key).acquire_owned().await.expect("these semaphores are never closed")
    }

    fn of(&self, key: K) -> Arc<Semaphore> {
        if self.semaphores.len() > SWEEP_ABOVE {
            self.semaphores.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let mut entry = self.semaphores.entry(key).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let semaphore = Arc::new(Semaphore::new(self.permits));
            *entry = Arc::downgrade(&semaphore);
            semaphore
        })
    }
}
