//! A map by the references of a bill of materials.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// What there is under each reference.
///
/// References begin alike (`pkg:npm/…`), so that an ordered map is slow by
/// comparing what is the same. Here they are ordered by a hash, and compared
/// only where that is equal; no choice of references makes it slower than the
/// ordered map, as one could a hash table.
#[derive(Debug)]
pub(super) struct References<'a, T>(BTreeMap<(u64, Cow<'a, str>), T>);

impl<T> Default for References<'_, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'a, T> References<'a, T> {
    pub(super) fn get<'r>(&'r self, reference: &'r str) -> Option<&'r T> {
        let map: &'r BTreeMap<(u64, Cow<'r, str>), T> = &self.0;
        map.get(&key(Cow::Borrowed(reference)))
    }

    /// What there is, or was put there just now.
    pub(super) fn or_insert(&mut self, reference: Cow<'a, str>, value: T) -> &mut T {
        self.0.entry(key(reference)).or_insert(value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn key(reference: Cow<'_, str>) -> (u64, Cow<'_, str>) {
    let mut hasher = DefaultHasher::new();
    reference.hash(&mut hasher);
    (hasher.finish(), reference)
}
