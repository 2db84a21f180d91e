//! Documents of areas, their changes, and queries for documents.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// One stored document of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Id of the document, chosen by the area; 1 to 200 characters.
    pub id: String,
    /// Version of the document: 1 at creation, incremented by each change.
    pub version: u64,
    /// Content of the document, a JSON object.
    pub body: String,
    /// Time at which the document was created.
    pub created_at: Timestamp,
    /// Time at which the document was last written.
    pub updated_at: Timestamp,
}

/// A value of a document's declared field, as queries and indexes use it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// The field is missing, or JSON `null`.
    Null,
    /// JSON `true` or `false`.
    Boolean(bool),
    /// A JSON integer.
    Integer(i64),
    /// A JSON string.
    Text(String),
}

/// Comparison of a document's field with given values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum FieldTest {
    /// The field has this value.
    Equals(FieldValue),
    /// The field has one of these values.
    OneOf(Vec<FieldValue>),
    /// The field's value is at least the first bound and less than the second.
    /// `None` leaves a side open.
    Range(Option<FieldValue>, Option<FieldValue>),
    /// The field's text starts with this prefix.
    Prefix(String),
    /// The field's text contains this text; case is ignored.
    Contains(String),
}

/// Condition of a query: a document matches if any of the fields passes the
/// test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueryCondition {
    /// Names of declared fields, at least one of which must pass the test.
    pub fields: Vec<String>,
    /// Comparison that one of the fields must pass.
    pub test: FieldTest,
}

/// One field of a sort order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SortField {
    /// Name of the declared field that documents are sorted by.
    pub field: String,
    /// Whether the largest value comes first.
    pub descending: bool,
}

/// Document that a page of a query starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// The first document in the query's order.
    First,
    /// The document after the page that returned this cursor.
    Cursor(String),
    /// The document after the one with this id.
    After(String),
}

/// A query for one page of documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// `name` for a collection of the calling area, `area.name` for one of
    /// another area.
    pub collection: String,
    /// Conditions that a document must meet, all of them.
    pub conditions: Vec<QueryCondition>,
    /// Sort order. Equal documents are ordered by id in the direction of the
    /// last field. If empty: id, descending.
    pub order: Vec<SortField>,
    /// Document that the page starts with.
    pub start: PageStart,
    /// Maximum number of documents on the page, 1 to 1000.
    pub limit: u32,
}

/// Documents that a [`Query`] found, one page of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentPage {
    /// Documents of the page, in the query's order; at most `limit`.
    pub documents: Vec<Document>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// One row of a grouped count: the number of documents with the same values in
/// the grouping fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCount {
    /// Values of the grouping fields, in the order of the request.
    pub values: Vec<FieldValue>,
    /// Number of documents that have these values.
    pub count: u64,
}

/// Creation, replacement or deletion of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentWrite {
    /// Creates a document; fails if the id exists.
    Create {
        /// Id of the new document.
        id: String,
        /// Content of the new document, a JSON object.
        body: String,
    },
    /// Replaces a document; fails if it does not exist.
    Replace {
        /// Id of the document to replace.
        id: String,
        /// Version that the document must have to be replaced; `None` accepts any.
        expected: Option<u64>,
        /// New content of the document, a JSON object.
        body: String,
    },
    /// Deletes a document; fails if it does not exist.
    Delete {
        /// Id of the document to delete.
        id: String,
        /// Version that the document must have to be deleted; `None` accepts any.
        expected: Option<u64>,
    },
}
