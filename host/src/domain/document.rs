//! Documents and questions about them, as areas put them.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// One stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Chosen by the area; 1 to 200 characters.
    pub id: String,
    /// 1 at creation, one more at each change.
    pub version: u64,
    /// A JSON object.
    pub body: String,
    /// When it was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

/// A value of a declared field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Missing, or JSON `null`.
    Null,
    /// JSON `true` or `false`.
    Boolean(bool),
    /// A JSON integer.
    Integer(i64),
    /// A JSON string.
    Text(String),
}

/// What a field is held against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Test {
    /// The field has this value.
    Equals(Value),
    /// The field has one of these values.
    OneOf(Vec<Value>),
    /// Inclusive lower, exclusive upper bound.
    Range(Option<Value>, Option<Value>),
    /// The text begins so.
    Prefix(String),
    /// The text contains this, case ignored.
    Contains(String),
}

/// True when any of the fields passes the test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Declared fields, at least one.
    pub fields: Vec<String>,
    /// What they are held against.
    pub test: Test,
}

/// One step of an ordering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// A declared field.
    pub field: String,
    /// Largest first.
    pub descending: bool,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the beginning.
    First,
    /// After the page that gave this cursor.
    Cursor(String),
    /// After the document of this id.
    After(String),
}

/// One page's worth of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// `name` of the asking area, or `area.name` of another.
    pub collection: String,
    /// All must hold.
    pub conditions: Vec<Condition>,
    /// Ties are broken by id in the last direction; empty: id, descending.
    pub order: Vec<Order>,
    /// Where to begin.
    pub start: Start,
    /// 1 to 1000.
    pub limit: u32,
}

/// An answer to a [`Query`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// At most `limit` documents.
    pub documents: Vec<Document>,
    /// Nothing on the last page.
    pub next: Option<String>,
}

/// One row of a grouped count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// In the order of the fields asked for.
    pub values: Vec<Value>,
    /// How many documents have them.
    pub count: u64,
}

/// One change to one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Must not exist.
    Create {
        /// The new document's id.
        id: String,
        /// A JSON object.
        body: String,
    },
    /// Must exist.
    Replace {
        /// The document's id.
        id: String,
        /// The version it must be at; nothing: any.
        expected: Option<u64>,
        /// A JSON object.
        body: String,
    },
    /// Must exist.
    Delete {
        /// The document's id.
        id: String,
        /// The version it must be at; nothing: any.
        expected: Option<u64>,
    },
}
