//! What passes between the host and an area: requests, replies, refusals.
//!
//! The WIT package `assurance:area` says the same for guests; `runtime`
//! translates.

use std::sync::Arc;

use super::id::{JobId, UserId, WorkspaceId};
use super::role::Role;
use super::time::Timestamp;

/// The circumstances of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Everything in the call belongs to it.
    pub workspace: WorkspaceId,
    /// The one moment at which the call happens.
    pub now: Timestamp,
    /// Feeds the guest's ids and the host's random bytes for this call.
    pub seed: [u8; 32],
    /// What it is made for. The guest is not told.
    pub origin: Origin,
}

/// What a call is made for, as operators find it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A request, or a shadow's copy of it, by the request's id.
    Request(Arc<str>),
    /// A job or event delivery.
    Job(JobId),
    /// To see whether a version answers at all.
    Rehearsal,
}

/// One checked parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// As declared.
    pub name: String,
    /// A JSON scalar of the declared type.
    pub value: String,
}

/// One part of a multipart body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// As declared.
    pub name: String,
    /// Files only.
    pub filename: Option<String>,
    /// Where the client said.
    pub content_type: Option<String>,
    /// The bytes.
    pub content: Vec<u8>,
}

/// Content streamed to the blob store before the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedBlob {
    /// For the `blobs` capability.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// Where the client said.
    pub content_type: Option<String>,
}

/// A request body, of the kind the route declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The route takes none.
    None,
    /// Valid against the route's schema.
    Json(String),
    /// Valid against the route's parts.
    Form(Vec<Part>),
    /// Streamed.
    Blob(ReceivedBlob),
}

/// One operation, routed, authorised and validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The circumstances.
    pub call: Call,
    /// Who asks.
    pub user: UserId,
    /// The user's role in the workspace.
    pub role: Role,
    /// The route's operation id.
    pub operation: String,
    /// Given or defaulted parameters.
    pub parameters: Vec<Parameter>,
    /// The body.
    pub body: Body,
    /// Where the route takes one and the client sent it.
    pub idempotency_key: Option<String>,
    /// The version in `If-Match`.
    pub if_match: Option<u64>,
    /// Where this service answers for clients.
    pub base_url: String,
    /// The claims of the signed link it came by.
    pub link: Option<String>,
}

/// What a success carries beside the route's status.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reply {
    /// JSON, or nothing for a 204.
    pub body: Option<String>,
    /// Sent as `ETag`.
    pub version: Option<u64>,
    /// An earlier result of an area that keeps its own idempotency record.
    pub replayed: bool,
}

/// The kinds of refusal an area can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Right shape, wrong content.
    ValidationFailed,
    /// Not this caller.
    PermissionDenied,
    /// Not there, or not the caller's.
    NotFound,
    /// Not in a state that allows this.
    Conflict,
    /// `If-Match` names another version.
    VersionConflict,
    /// Something needed is away for the moment.
    Unavailable,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer or parameter name.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

/// An area's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Decides the status.
    pub kind: ProblemKind,
    /// More exact than the kind.
    pub code: Option<String>,
    /// For a person.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Named violations.
    pub violations: Vec<Violation>,
}

/// One job or event delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The circumstances.
    pub call: Call,
    /// The job.
    pub id: super::id::JobId,
    /// The job's kind.
    pub kind: String,
    /// A JSON object.
    pub payload: String,
    /// 1 at the first run.
    pub attempt: u32,
    /// What the last `continue` left.
    pub checkpoint: Option<String>,
}
