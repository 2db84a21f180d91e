//! Converts documents and queries.

use super::super::bindings::assurance::area::documents as wit;
use super::same;
use assurance_core::domain::document::{
    Document, DocumentPage, DocumentWrite, FieldTest, FieldValue, GroupCount, PageStart, Query,
    QueryCondition, SortField,
};

pub(in super::super) fn query(query: wit::Query) -> Query {
    Query {
        collection: query.collection,
        conditions: conditions(query.conditions),
        order: query
            .order
            .into_iter()
            .map(|order| SortField { field: order.field, descending: order.descending })
            .collect(),
        start: query.start.into(),
        limit: query.limit,
    }
}

pub(in super::super) fn conditions(conditions: Vec<wit::Condition>) -> Vec<QueryCondition> {
    let condition = |c: wit::Condition| QueryCondition { fields: c.fields, test: test(c.test) };
    conditions.into_iter().map(condition).collect()
}

fn test(test: wit::Test) -> FieldTest {
    match test {
        wit::Test::Equals(value) => FieldTest::Equals(value.into()),
        wit::Test::OneOf(values) => {
            FieldTest::OneOf(values.into_iter().map(FieldValue::from).collect())
        }
        wit::Test::Range((lower, upper)) => {
            FieldTest::Range(lower.map(FieldValue::from), upper.map(FieldValue::from))
        }
        wit::Test::Prefix(text) => FieldTest::Prefix(text),
        wit::Test::Contains(text) => FieldTest::Contains(text),
    }
}

same!(wit::Value => FieldValue { Text(text), Integer(number), Boolean(truth), Null });
same!(FieldValue => wit::Value { Text(text), Integer(number), Boolean(truth), Null });
same!(wit::Start => PageStart { First, Cursor(cursor), After(id) });

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
    wit::Group {
        values: group.values.into_iter().map(wit::Value::from).collect(),
        count: group.count,
    }
}

pub(in super::super) fn write(write: wit::Write) -> DocumentWrite {
    match write {
        wit::Write::Create((id, body)) => DocumentWrite::Create { id, body },
        wit::Write::Replace((id, expected, body)) => DocumentWrite::Replace { id, expected, body },
        wit::Write::Delete((id, expected)) => DocumentWrite::Delete { id, expected },
    }
}
