//! Documents and questions about them.

use super::super::bindings::assurance::area::documents as wit;
use crate::domain::document::{
    Condition, Document, Group, Order, Page, Query, Start, Test, Value, Write,
};

pub(in super::super) fn query(query: wit::Query) -> Query {
    Query {
        collection: query.collection,
        conditions: conditions(query.conditions),
        order: query
            .order
            .into_iter()
            .map(|order| Order { field: order.field, descending: order.descending })
            .collect(),
        start: match query.start {
            wit::Start::First => Start::First,
            wit::Start::Cursor(cursor) => Start::Cursor(cursor),
            wit::Start::After(id) => Start::After(id),
        },
        limit: query.limit,
    }
}

pub(in super::super) fn conditions(conditions: Vec<wit::Condition>) -> Vec<Condition> {
    let condition = |c: wit::Condition| Condition { fields: c.fields, test: test(c.test) };
    conditions.into_iter().map(condition).collect()
}

fn test(test: wit::Test) -> Test {
    match test {
        wit::Test::Equals(value) => Test::Equals(from_guest(value)),
        wit::Test::OneOf(values) => Test::OneOf(values.into_iter().map(from_guest).collect()),
        wit::Test::Range((lower, upper)) => {
            Test::Range(lower.map(from_guest), upper.map(from_guest))
        }
        wit::Test::Prefix(text) => Test::Prefix(text),
        wit::Test::Contains(text) => Test::Contains(text),
    }
}

fn from_guest(value: wit::Value) -> Value {
    match value {
        wit::Value::Text(text) => Value::Text(text),
        wit::Value::Integer(number) => Value::Integer(number),
        wit::Value::Boolean(truth) => Value::Boolean(truth),
        wit::Value::Null => Value::Null,
    }
}

fn to_guest(value: Value) -> wit::Value {
    match value {
        Value::Text(text) => wit::Value::Text(text),
        Value::Integer(number) => wit::Value::Integer(number),
        Value::Boolean(truth) => wit::Value::Boolean(truth),
        Value::Null => wit::Value::Null,
    }
}

pub(in super::super) fn document(document: Document) -> wit::Document {
    wit::Document {
        id: document.id,
        version: document.version,
        body: document.body,
        created_at: document.created_at.0,
        updated_at: document.updated_at.0,
    }
}

pub(in super::super) fn page(page: Page) -> wit::Page {
    wit::Page { documents: page.documents.into_iter().map(document).collect(), next: page.next }
}

pub(in super::super) fn group(group: Group) -> wit::Group {
    wit::Group { values: group.values.into_iter().map(to_guest).collect(), count: group.count }
}

pub(in super::super) fn write(write: wit::Write) -> Write {
    match write {
        wit::Write::Create((id, body)) => Write::Create { id, body },
        wit::Write::Replace((id, expected, body)) => Write::Replace { id, expected, body },
        wit::Write::Delete((id, expected)) => Write::Delete { id, expected },
    }
}
