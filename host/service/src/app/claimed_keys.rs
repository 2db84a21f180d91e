//! Keys that tasks of this process have claimed.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashSet;

/// Keys that tasks of this process have claimed, each by one task at a time.
#[derive(Debug)]
pub struct ClaimedKeys<K: Eq + Hash>(Arc<DashSet<K>>);

impl<K: Eq + Hash> Default for ClaimedKeys<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> ClaimedKeys<K> {
    /// Claims a key until the returned claim is dropped. Returns `None` if a task has claimed it.
    #[must_use]
    pub fn claim(&self, key: &K) -> Option<ClaimedKey<K>> {
        let (keys, key) = (Arc::clone(&self.0), key.clone());
        keys.insert(key.clone()).then(|| ClaimedKey { keys, key })
    }
}

/// Claim of a key by a task; dropping it releases the key.
#[derive(Debug)]
pub struct ClaimedKey<K: Eq + Hash> {
    keys: Arc<DashSet<K>>,
    key: K,
}

impl<K: Eq + Hash> Drop for ClaimedKey<K> {
    fn drop(&mut self) {
        self.keys.remove(&self.key);
    }
}
