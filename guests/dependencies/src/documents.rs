//! Operations on documents that several modules need.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope, Value};

/// Maximum number of keys by which one query selects documents.
pub(crate) const KEYS: usize = 500;

/// Stores the value of a document. `known` is the stored document with this id; `None` if there is
/// none, so that it is created.
pub(crate) fn put<T: Document>(
    scope: &Scope,
    id: &str,
    known: Option<Stored<T>>,
    value: T,
) -> Result<(), DocumentError> {
    match known {
        Some(known) => scope.documents().replace(&mut Stored { value, ..known }),
        None => scope.documents().create(id, &value),
    }
}

/// Returns the number of documents by key, which is in the field `field`. Keys without documents
/// are missing.
pub(crate) fn count_by_key<'k, T: Document>(
    scope: &Scope,
    field: &str,
    keys: impl Iterator<Item = &'k str>,
) -> Result<BTreeMap<String, usize>, DocumentError> {
    let keys: Vec<&str> = keys.collect::<BTreeSet<_>>().into_iter().collect();
    let mut counts = BTreeMap::new();
    for keys in keys.chunks(KEYS) {
        let documents = scope.documents::<T>().query().one_of(field, keys.iter().copied());
        for (key, count) in documents.count_by(&[field])? {
            if let [Value::Text(key)] = key.as_slice() {
                counts.insert(key.clone(), usize::try_from(count).unwrap_or(usize::MAX));
            }
        }
    }
    Ok(counts)
}
