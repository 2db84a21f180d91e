//! Collections that an area can access, as declared in manifests.

use std::collections::BTreeMap;

use assurance_core::domain::manifest::{FieldKind, IndexSpec};

/// One collection that an area can access, with its declared fields and
/// indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessibleCollection {
    /// Full name `area.name`, with lower-case letters, digits, `_` and one `.`.
    /// It is a literal in SQL, so that partial indexes match.
    pub full_name: String,
    /// Whether the collection belongs to the calling area, which may then write
    /// it.
    pub own: bool,
    /// Declared fields, which queries can use.
    pub fields: BTreeMap<String, FieldKind>,
    /// Declared indexes of the collection, including unique ones.
    pub indexes: Vec<IndexSpec>,
    /// Text fields that have a substring index.
    pub searched: Vec<SubstringIndexSpec>,
}

/// A text field with a substring index, for pages that are ordered by another
/// field (or by itself).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubstringIndexSpec {
    /// The declared field that contains the text.
    pub text: String,
    /// The declared field that pages of search results are ordered by; never
    /// null if the text is not null.
    pub by: String,
    /// Fields with few documents per value. If a query fixes one of them, its
    /// documents are scanned instead of the substring index.
    pub unless: Vec<String>,
}
