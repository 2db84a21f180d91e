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
    /// Where looking for a part of a text is quick.
    pub searched: Vec<Searched>,
}

/// A text that is searched for a part of it, in pages ordered by another
/// field (or by itself) first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The declared field that is looked into.
    pub text: String,
    /// The declared field that orders; never null where the text is not.
    pub by: String,
    /// Fields that leave few documents each, where a query fixes one of them:
    /// those are looked through sooner than the texts of all.
    pub unless: Vec<String>,
}
