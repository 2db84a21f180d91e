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
    /// Value of the request parameter, a JSON scalar of the declared type.
    pub value: String,
}

/// One part of a request's multipart body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedFormPart {
    /// Name of the form part, as the area's manifest declares it.
    pub name: String,
    /// File name of the form part, as the client sent it; `None` for a text
    /// field.
    pub filename: Option<String>,
    /// `Content-Type` of the form part, as the client sent it.
    pub content_type: Option<String>,
    /// Content of the form part.
    pub content: Vec<u8>,
}

/// Request body that was streamed to the blob store before the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedBlob {
    /// Name by which the area reads the uploaded content (capability `blobs`).
    pub name: String,
    /// Size of the uploaded content, in bytes.
    pub size: u64,
    /// SHA-256 of the uploaded content, in lower-case hex.
    pub sha256: String,
    /// `Content-Type` of the uploaded content, as the client sent it.
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
    Form(Vec<ReceivedFormPart>),
    /// Body of any type, streamed to the blob store.
    Blob(ReceivedBlob),
}

/// A request to one operation of an area, after routing, authorization and
/// validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Workspace, time, random seed and cause of the call that handles the
    /// request.
    pub call: CallContext,
    /// The signed-in user who sent the request.
    pub user: UserId,
    /// Role of the user in the workspace.
    pub role: Role,
    /// Operation id of the requested route.
    pub operation: String,
    /// Path, query and header parameters; missing optional ones have their
    /// defaults.
    pub parameters: Vec<Parameter>,
    /// Validated body of the request.
    pub body: RequestBody,
    /// The `Idempotency-Key`, if the route accepts one and the client sent it.
    pub idempotency_key: Option<String>,
    /// Expected resource version from `If-Match`; `None` if the client sent
    /// none.
    pub if_match: Option<u64>,
    /// Public base URL of this service.
    pub base_url: String,
    /// Claims of the signed link that authorized the request, as JSON; `None`
    /// if no link was used.
    pub link: Option<String>,
}

/// Successful reply of an area's handler. The route defines its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SuccessReply {
    /// JSON body of the reply; `None` for a 204.
    pub body: Option<String>,
    /// Version of the resource in the reply; sent as `ETag`.
    pub version: Option<u64>,
    /// Whether the reply repeats an earlier one, from an area that keeps its
    /// own idempotency records.
    pub replayed: bool,
}

/// Kinds of refusal that an area can return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The request is invalid, although it conforms to the schema.
    ValidationFailed,
    /// The caller may not perform the operation.
    PermissionDenied,
    /// The resource does not exist, or the caller may not see it.
    NotFound,
    /// The state of the resource does not allow the operation.
    Conflict,
    /// The version in `If-Match` is not the resource's current one.
    VersionConflict,
    /// Something that the operation requires is temporarily unavailable.
    Unavailable,
}

/// One invalid value of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Location of the invalid value: a JSON Pointer into the body, or the name
    /// of a parameter.
    pub pointer: String,
    /// Description of what is wrong with the value, for a person.
    pub message: String,
}

/// An area's refusal of a request; sent as an RFC 9457 problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Kind of refusal; it defines the HTTP status.
    pub kind: ProblemKind,
    /// Problem code that is more specific than the kind; `None` if there is
    /// none.
    pub code: Option<String>,
    /// Description of the reason for the refusal, for a person.
    pub detail: String,
    /// How to fix the request.
    pub hint: Option<String>,
    /// The invalid values of the request; may be empty.
    pub violations: Vec<Violation>,
}

/// One run of a job or event delivery, as the area receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// Workspace, time, random seed and cause of the call that runs the job.
    pub call: CallContext,
    /// Id of the job.
    pub id: super::id::JobId,
    /// Kind of the job, or `event` for an event delivery.
    pub kind: String,
    /// Payload of the job, a JSON object.
    pub payload: String,
    /// Number of this attempt of the job, from 1.
    pub attempt: u32,
    /// Checkpoint of the job's last finished step; `None` if no step has
    /// finished.
    pub checkpoint: Option<String>,
}
