//! Converts documents and queries.

use super::super::bindings::assurance::area::documents as wit;
use assurance_core::domain::document::{
    Condition, Document, DocumentPage, DocumentWrite, FieldTest, FieldValue, GroupCount, Order,
    PageStart, Query,
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
            wit::Start::First => PageStart::First,
            wit::Start::Cursor(cursor) => PageStart::Cursor(cursor),
            wit::Start::After(id) => PageStart::After(id),
        },
        limit: query.limit,
    }
}

pub(in super::super) fn conditions(conditions: Vec<wit::Condition>) -> Vec<Condition> {
    let condition = |c: wit::Condition| Condition { fields: c.fields, test: test(c.test) };
    conditions.into_iter().map(condition).collect()
}

fn test(test: wit::Test) -> FieldTest {
    match test {
        wit::Test::Equals(value) => FieldTest::Equals(from_guest(value)),
        wit::Test::OneOf(values) => FieldTest::OneOf(values.into_iter().map(from_guest).collect()),
        wit::Test::Range((lower, upper)) => {
            FieldTest::Range(lower.map(from_guest), upper.map(from_guest))
        }
        wit::Test::Prefix(text) => FieldTest::Prefix(text),
        wit::Test::Contains(text) => FieldTest::Contains(text),
    }
}

fn from_guest(value: wit::Value) -> FieldValue {
    match value {
        wit::Value::Text(text) => FieldValue::Text(text),
        wit::Value::Integer(number) => FieldValue::Integer(number),
        wit::Value::Boolean(truth) => FieldValue::Boolean(truth),
        wit::Value::Null => FieldValue::Null,
    }
}

fn to_guest(value: FieldValue) -> wit::Value {
    match value {
        FieldValue::Text(text) => wit::Value::Text(text),
        FieldValue::Integer(number) => wit::Value::Integer(number),
        FieldValue::Boolean(truth) => wit::Value::Boolean(truth),
        FieldValue::Null => wit::Value::Null,
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

pub(in super::super) fn page(page: DocumentPage) -> wit::Page {
    wit::Page { documents: page.documents.into_iter().map(document).collect(), next: page.next }
}

pub(in super::super) fn group(group: GroupCount) -> wit::Group {
    wit::Group { values: group.values.into_iter().map(to_guest).collect(), count: group.count }
}

pub(in super::super) fn write(write: wit::Write) -> DocumentWrite {
    match write {
        wit::Write::Create((id, body)) => DocumentWrite::Create { id, body },
        wit::Write::Replace((id, expected, body)) => DocumentWrite::Replace { id, expected, body },
        wit::Write::Delete((id, expected)) => DocumentWrite::Delete { id, expected },
    }
}
