//! Converts between the host's and the guest's types.

use area_sdk::wit::assurance::area::{documents, types};
use assurance_core::domain::area::{self, ProblemKind, Request, RequestBody};
use assurance_core::domain::document::{
    Document, DocumentPage, DocumentWrite, FieldTest, FieldValue, PageStart, Query, QueryCondition,
    SortField,
};
use assurance_core::domain::role::Role;
use assurance_work::DocumentError;

pub(crate) fn request(request: &Request) -> types::Request {
    types::Request {
        call: types::Call {
            workspace: request.call.workspace.to_string(),
            now: request.call.now.0,
            seed: seed(&request.call.seed),
        },
        actor: types::Actor { user: request.user.to_string(), role: role(request.role) },
        operation: request.operation.clone(),
        parameters: request.parameters.iter().map(parameter).collect(),
        body: match &request.body {
            RequestBody::Json(text) => types::Body::Json(text.clone()),
            RequestBody::None => types::Body::None,
            RequestBody::Form(_) | RequestBody::Blob(_) => {
                panic!("no measured operation takes such a body")
            }
        },
        idempotency_key: request.idempotency_key.clone(),
        if_match: request.if_match,
        base_url: request.base_url.clone(),
        link: request.link.clone(),
    }
}

fn seed(seed: &[u8; 32]) -> (u64, u64) {
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&seed[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    (half(0), half(8))
}

fn role(role: Role) -> types::Role {
    match role {
        Role::Viewer => types::Role::Viewer,
        Role::Member => types::Role::Member,
        Role::Admin => types::Role::Admin,
        Role::Owner => types::Role::Owner,
    }
}

fn parameter(parameter: &area::Parameter) -> types::Parameter {
    types::Parameter { name: parameter.name.clone(), value: parameter.value.clone() }
}

pub(crate) fn answer(
    answer: Result<types::Reply, types::Problem>,
) -> Result<area::SuccessReply, area::Problem> {
    match answer {
        Ok(reply) => Ok(area::SuccessReply {
            body: reply.body,
            version: reply.version,
            replayed: reply.replayed,
        }),
        Err(problem) => Err(area::Problem {
            kind: match problem.kind {
                types::ProblemKind::ValidationFailed => ProblemKind::ValidationFailed,
                types::ProblemKind::PermissionDenied => ProblemKind::PermissionDenied,
                types::ProblemKind::NotFound => ProblemKind::NotFound,
                types::ProblemKind::Conflict => ProblemKind::Conflict,
                types::ProblemKind::VersionConflict => ProblemKind::VersionConflict,
                types::ProblemKind::Unavailable => ProblemKind::Unavailable,
            },
            code: problem.code,
            detail: problem.detail,
            hint: problem.hint,
            violations: problem
                .violations
                .into_iter()
                .map(|v| area::Violation { pointer: v.pointer, message: v.message })
                .collect(),
        }),
    }
}

pub(crate) fn document(document: Document) -> documents::Document {
    documents::Document {
        id: document.id,
        version: document.version,
        body: document.body,
        created_at: document.created_at.0,
        updated_at: document.updated_at.0,
    }
}

pub(crate) fn page(page: DocumentPage) -> documents::Page {
    documents::Page {
        documents: page.documents.into_iter().map(document).collect(),
        next: page.next,
    }
}

pub(crate) fn document_error(error: DocumentError) -> documents::Error {
    match error {
        DocumentError::NotFound => documents::Error::NotFound,
        DocumentError::AlreadyExists => documents::Error::AlreadyExists,
        DocumentError::VersionConflict(version) => documents::Error::VersionConflict(version),
        DocumentError::UniqueConflict(fields) => documents::Error::UniqueConflict(fields),
        DocumentError::InvalidCursor => documents::Error::InvalidCursor,
        DocumentError::Misuse(text) => documents::Error::Misuse(text),
        DocumentError::LimitExceeded => documents::Error::LimitExceeded,
    }
}

pub(crate) fn query(query: &documents::Query) -> Query {
    Query {
        collection: query.collection.clone(),
        conditions: query.conditions.iter().map(condition).collect(),
        order: query
            .order
            .iter()
            .map(|order| SortField { field: order.field.clone(), descending: order.descending })
            .collect(),
        start: match &query.start {
            documents::Start::First => PageStart::First,
            documents::Start::Cursor(cursor) => PageStart::Cursor(cursor.clone()),
            documents::Start::After(id) => PageStart::After(id.clone()),
        },
        limit: query.limit,
    }
}

fn condition(condition: &documents::Condition) -> QueryCondition {
    let test = match &condition.test {
        documents::Test::Equals(wanted) => FieldTest::Equals(value(wanted)),
        documents::Test::OneOf(wanted) => FieldTest::OneOf(wanted.iter().map(value).collect()),
        documents::Test::Range((low, high)) => {
            FieldTest::Range(low.as_ref().map(value), high.as_ref().map(value))
        }
        documents::Test::Prefix(text) => FieldTest::Prefix(text.clone()),
        documents::Test::Contains(text) => FieldTest::Contains(text.clone()),
    };
    QueryCondition { fields: condition.fields.clone(), test }
}

fn value(value: &documents::Value) -> FieldValue {
    match value {
        documents::Value::Text(text) => FieldValue::Text(text.clone()),
        documents::Value::Integer(number) => FieldValue::Integer(*number),
        documents::Value::Boolean(truth) => FieldValue::Boolean(*truth),
        documents::Value::Null => FieldValue::Null,
    }
}

pub(crate) fn write(write: &documents::Write) -> DocumentWrite {
    match write.clone() {
        documents::Write::Create((id, body)) => DocumentWrite::Create { id, body },
        documents::Write::Replace((id, expected, body)) => {
            DocumentWrite::Replace { id, expected, body }
        }
        documents::Write::Delete((id, expected)) => DocumentWrite::Delete { id, expected },
    }
}
