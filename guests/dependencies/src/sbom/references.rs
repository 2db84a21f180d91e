//! A map whose keys are the references of an SBOM (`bom-ref` in CycloneDX, `SPDXID` in SPDX, or a
//! purl).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Map from references in an SBOM (`bom-ref`, `SPDXID` or purl) to values.
///
/// References have long common prefixes (`pkg:npm/…`), which make an ordered map slow. Here the
/// keys are ordered by a hash, and compared only if the hashes are equal. In contrast to a hash
/// table, no choice of references makes this map slower than an ordered map.
#[derive(Debug)]
pub(super) struct ReferenceMap<'a, T>(BTreeMap<(u64, Cow<'a, str>), T>);

impl<T> Default for ReferenceMap<'_, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'a, T> ReferenceMap<'a, T> {
    pub(super) fn get<'r>(&'r self, reference: &'r str) -> Option<&'r T> {
        let map: &'r BTreeMap<(u64, Cow<'r, str>), T> = &self.0;
        map.get(&key(Cow::Borrowed(reference)))
    }

    /// Returns the value of a reference. If the map lacks the reference, inserts `value` first.
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
