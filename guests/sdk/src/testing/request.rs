//! Requests for tests.

use serde_json::Value;
use uuid::Uuid;

use super::USER;
use crate::wit::assurance::area::types::{Body, Parameter, Part, ReceivedBlob, Role};

/// A test request to pass to [`FakeHost::call`](super::FakeHost::call).
#[derive(Clone, Debug)]
#[must_use]
pub struct Request {
    pub(super) operation: String,
    pub(super) user: Uuid,
    pub(super) role: Role,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Body,
    pub(super) idempotency_key: Option<String>,
    pub(super) if_match: Option<u64>,
    pub(super) link: Option<Value>,
}

impl Request {
    /// Creates a request to an operation, sent by [`USER`] as an owner.
    pub fn to(operation: &str) -> Self {
        Self {
            operation: operation.to_owned(),
            user: USER,
            role: Role::Owner,
            parameters: Vec::new(),
            body: Body::None,
            idempotency_key: None,
            if_match: None,
            link: None,
        }
    }

    /// Sets the user who sends the request.
    pub fn by(mut self, user: Uuid) -> Self {
        self.user = user;
        self
    }

    /// Sets the role of the calling user.
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Adds a path, query or header parameter to the request.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.push(Parameter { name: name.to_owned(), value: value.into().to_string() });
        self
    }

    /// Sets the request's JSON body.
    pub fn json(self, body: Value) -> Self {
        self.json_text(body.to_string())
    }

    /// Sets the request's JSON body to exactly this text.
    pub fn json_text(mut self, body: impl Into<String>) -> Self {
        self.body = Body::Json(body.into());
        self
    }

    /// Sets the request's multipart body.
    pub fn form(mut self, parts: Vec<Part>) -> Self {
        self.body = Body::Form(parts);
        self
    }

    /// Sets a request body whose content is already one of the area's blobs.
    pub fn blob(mut self, blob: ReceivedBlob) -> Self {
        self.body = Body::Blob(blob);
        self
    }

    /// Sets the claims of the signed link by which the request is made.
    pub fn link(mut self, claims: Value) -> Self {
        self.link = Some(claims);
        self
    }

    /// Sets the request's `Idempotency-Key`.
    pub fn key(mut self, key: &str) -> Self {
        self.idempotency_key = Some(key.to_owned());
        self
    }

    /// Sets the request's `If-Match` to this resource version.
    pub fn if_match(mut self, version: u64) -> Self {
        self.if_match = Some(version);
        self
    }
}
