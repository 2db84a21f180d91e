//! Types of a request to an area and of its result.

use std::sync::Arc;

use serde_json::Value as Json;

use assurance_contract::CompiledRoute;
use assurance_core::domain::area::{Parameter, Problem, RequestBody, SuccessReply};
use assurance_core::domain::id::{AccessTokenId, SessionId, UserId, WorkspaceId};
use assurance_core::domain::role::Role;
use assurance_store::{self as store, blobs::StoredBlob};
use assurance_work::CallError;

/// Authorized sender of a request, with the user's role in the workspace.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// User who acts: the user of the session, or the user who created the access token.
    pub user: UserId,
    /// Role of the user in the workspace, or of the access token if that is lower.
    pub role: Role,
    /// Session of the user; `None` for an access token, and if a signed link authorized the
    /// request.
    pub session: Option<SessionId>,
    /// Access token of the request; `None` for a session or a signed link.
    pub token: Option<AccessTokenId>,
}

/// A request to an area that was validated against its route.
#[derive(Debug)]
pub struct AreaRequest {
    /// Request id, as in the response's `X-Request-Id` and in logs.
    pub id: Arc<str>,
    /// Authorized sender of the request.
    pub caller: Caller,
    /// Workspace that the request may access.
    pub workspace: WorkspaceId,
    /// Path and query parameters; missing optional ones have their defaults.
    pub parameters: Vec<Parameter>,
    /// Request body in the form that the handler receives.
    pub body: RequestBody,
    /// Parsed request body; `None` if the body is not JSON.
    pub json: Option<Json>,
    /// Blob with the content of a streamed request body; `None` for other bodies.
    pub stored: Option<StoredBlob>,
    /// Key from `Idempotency-Key`; `None` without one, and if the route does not accept keys.
    pub idempotency_key: Option<String>,
    /// Expected resource version from `If-Match`.
    pub if_match: Option<u64>,
    /// Claims of the signed link that authorized the request; `None` without a signed link.
    pub link: Option<String>,
}

/// Successful response whose effects are committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedResponse {
    /// HTTP status: the route's, or that of the stored response.
    pub status: u16,
    /// Response body as JSON text; `None` for an empty response.
    pub body: Option<String>,
    /// Resource version for the response's `ETag`; `None` if the response has none.
    pub version: Option<u64>,
    /// Whether this is the stored response to an earlier request with the same idempotency key.
    pub replayed: bool,
}

impl CommittedResponse {
    /// Creates the response from a handler's successful reply on this route.
    pub(crate) fn new(route: &CompiledRoute, reply: SuccessReply) -> Self {
        Self {
            status: route.route.success_status,
            body: reply.body,
            version: reply.version,
            replayed: reply.replayed,
        }
    }
}

/// Reason why a request to an area was refused. The request had no effect.
#[derive(Debug)]
pub enum CallRefusal {
    /// The area's handler returned a problem.
    Problem(Problem),
    /// The idempotency key was used before with another body or other parameters.
    KeyReused,
    /// Another request with the same idempotency key is running.
    InProgress,
    /// Every attempt to execute the request failed with a write conflict.
    Contended,
    /// The call of the area failed; the error shows whether the area, the load or the host is to
    /// blame.
    Failed(CallError),
}

impl CallRefusal {
    /// Wraps an error of the host itself as a refusal.
    pub(crate) fn host(error: impl Into<anyhow::Error>) -> Self {
        Self::Failed(CallError::Host(error.into()))
    }
}

impl From<store::Error> for CallRefusal {
    fn from(error: store::Error) -> Self {
        Self::Failed(CallError::Store(error))
    }
}
