//! Data exchanged between the host and an area: requests, replies, refusals.
//!
//! The WIT package `assurance:area` defines the same types for guests; the
//! crate `runtime` converts them.

use std::sync::Arc;

use super::id::{JobId, UserId, WorkspaceId};
use super::role::Role;
use super::time::Timestamp;

/// Workspace, time, random seed and cause of one call of an area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContext {
    /// Workspace whose data the call may access.
    pub workspace: WorkspaceId,
    /// Time of the call. It does not advance during the call.
    pub now: Timestamp,
    /// Seed of the guest's ids and the host's random bytes for this call.
    pub seed: [u8; 32],
    /// The request, job or smoke test that the call belongs to. Guests cannot
    /// read it.
    pub origin: CallOrigin,
}

/// Cause of a call; operators can search logs and recordings for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    /// A request, or a shadow's copy of it. Contains the request id.
    Request(Arc<str>),
    /// A job or event delivery. Contains the job's id.
    Job(JobId),
    /// A smoke test of a new version.
    SmokeTest,
}

/// One validated request parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the request parameter, as the area's manifest declares it.
    pub name: String,
    /// Value of the declared type, as a JSON scalar.
    pub value: String,
}

/// One part of a multipart body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartPart {
    /// Name of the form part, as the area's manifest declares it.
    pub name: String,
    /// File name; `None` for a text field.
    pub filename: Option<String>,
    /// `Content-Type` as the client sent it.
    pub content_type: Option<String>,
    /// Bytes of the part.
    pub content: Vec<u8>,
}

/// Content streamed to the blob store before the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedBlob {
    /// Name of the blob for the `blobs` capability.
    pub name: String,
    /// Size of the content in bytes.
    pub size: u64,
    /// SHA-256 of the content, in lower-case hex.
    pub sha256: String,
    /// `Content-Type` as the client sent it.
    pub content_type: Option<String>,
}

/// A request body, of the kind the route declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// The request has no body.
    None,
    /// JSON body, valid against the route's request schema.
    Json(String),
    /// Form parts that are valid against the route's declaration.
    Form(Vec<MultipartPart>),
    /// Content streamed to the blob store.
    Blob(ReceivedBlob),
}

/// One operation's request after routing, authorization and validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Context of the call.
    pub call: CallContext,
    /// The signed-in user who sent the request.
    pub user: UserId,
    /// The user's role in the workspace.
    pub role: Role,
    /// The route's operation id.
    pub operation: String,
    /// Path, query and header parameters; missing optional ones have their
    /// defaults.
    pub parameters: Vec<Parameter>,
    /// Validated body of the request.
    pub body: RequestBody,
    /// The `Idempotency-Key`, if the route accepts one and the client sent it.
    pub idempotency_key: Option<String>,
    /// Expected resource version from `If-Match`.
    pub if_match: Option<u64>,
    /// Public base URL of this service.
    pub base_url: String,
    /// Claims of the signed link that authorized the request.
    pub link: Option<String>,
}

/// A handler's success. The route defines its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reply {
    /// JSON body; `None` for a 204.
    pub body: Option<String>,
    /// Version of the resource; sent as `ETag`.
    pub version: Option<u64>,
    /// Whether this repeats an earlier result of an area that keeps its own
    /// idempotency records.
    pub replayed: bool,
}

/// The kinds of refusal an area can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The content is invalid although its shape is valid.
    ValidationFailed,
    /// The caller may not perform the operation.
    PermissionDenied,
    /// The resource does not exist, or the caller may not see it.
    NotFound,
    /// The state of the resource does not allow the operation.
    Conflict,
    /// `If-Match` has another version than the resource.
    VersionConflict,
    /// A required dependency is temporarily unavailable.
    Unavailable,
}

/// One invalid value of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer or parameter name of the value.
    pub pointer: String,
    /// Description of the violation, for a person.
    pub message: String,
}

/// An area's refusal of a request; sent as an RFC 9457 problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Kind of refusal; it defines the HTTP status.
    pub kind: ProblemKind,
    /// Problem code that is more specific than the kind.
    pub code: Option<String>,
    /// Description of the problem, for a person.
    pub detail: String,
    /// How to fix the request.
    pub hint: Option<String>,
    /// The invalid values of the request; may be empty.
    pub violations: Vec<Violation>,
}

/// One run of a job or event delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// Context of the call.
    pub call: CallContext,
    /// Id of the job.
    pub id: super::id::JobId,
    /// Kind of the job, or `event` for an event delivery.
    pub kind: String,
    /// Payload of the job, a JSON object.
    pub payload: String,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Checkpoint of the last finished step; `None` if no step has finished.
    pub checkpoint: Option<String>,
}
