//! Requests that a test makes.

use serde_json::Value;
use uuid::Uuid;

use super::USER;
use crate::wit::assurance::area::types::{Body, Parameter, Part, ReceivedBlob, Role};

/// A request to be made.
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
    /// To an operation, by [`USER`] as an owner.
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

    /// By this user.
    pub fn by(mut self, user: Uuid) -> Self {
        self.user = user;
        self
    }

    /// In this role.
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// With a parameter.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.push(Parameter { name: name.to_owned(), value: value.into().to_string() });
        self
    }

    /// With a JSON body.
    #[expect(clippy::needless_pass_by_value, reason = "called with json!")]
    pub fn json(self, body: Value) -> Self {
        self.json_text(body.to_string())
    }

    /// With a JSON body in exactly these characters.
    pub fn json_text(mut self, body: impl Into<String>) -> Self {
        self.body = Body::Json(body.into());
        self
    }

    /// With a multipart body.
    pub fn form(mut self, parts: Vec<Part>) -> Self {
        self.body = Body::Form(parts);
        self
    }

    /// With content that is in the area's blobs already.
    pub fn blob(mut self, blob: ReceivedBlob) -> Self {
        self.body = Body::Blob(blob);
        self
    }

    /// By a signed link with these claims.
    pub fn link(mut self, claims: Value) -> Self {
        self.link = Some(claims);
        self
    }

    /// With an `Idempotency-Key`.
    pub fn key(mut self, key: &str) -> Self {
        self.idempotency_key = Some(key.to_owned());
        self
    }

    /// With `If-Match`.
    pub fn if_match(mut self, version: u64) -> Self {
        self.if_match = Some(version);
        self
    }
}
