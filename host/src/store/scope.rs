//! What an area may do with which collections, as its manifest declared it.

use std::collections::BTreeMap;

use crate::domain::manifest::{FieldKind, Index};

/// One collection, as an area sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionScope {
    /// `area.name`, of lower-case letters, digits, `_` and one `.`; it is put
    /// literally into SQL, so that partial indexes match.
    pub full_name: String,
    /// The asking area's own, so that it may write.
    pub own: bool,
    /// What can be asked for.
    pub fields: BTreeMap<String, FieldKind>,
    /// What is quick, and what is unique.
    pub indexes: Vec<Index>,
}
