//! Removes a member of a workspace, once for each `Idempotency-Key`.

use serde_json::json;

use super::App;
use super::call::CommittedResponse;
use super::idempotency_guard::{HostOperationError, IdempotencyGuard, once};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_identity::RemoveMemberError;

/// A request to remove a member from a workspace.
#[derive(Debug)]
pub struct MemberRemovalRequest {
    /// Workspace from which the member is removed.
    pub workspace: WorkspaceId,
    /// The signed-in user who sent the request.
    pub caller: UserId,
    /// The user to remove. If it is the caller, the caller leaves the workspace.
    pub user: UserId,
    /// Key from `Idempotency-Key`; `None` without one.
    pub idempotency_key: Option<String>,
}

/// Removes a member from a workspace, or returns the stored response for the idempotency key. A
/// user who has already left gets the stored response, too.
///
/// # Errors
/// See [`HostOperationError`]; no member was removed.
pub async fn remove(
    app: &App,
    removal: MemberRemovalRequest,
) -> Result<CommittedResponse, HostOperationError<RemoveMemberError>> {
    let MemberRemovalRequest { workspace, caller, user, idempotency_key } = removal;
    let operation = (workspace, caller, "remove_member");
    let request = json!({ "user_id": user });
    let guard = IdempotencyGuard::of_host(app, operation, idempotency_key, &request)?;
    let response = CommittedResponse { status: 204, body: None, version: None, replayed: false };
    let removing = async {
        let record = guard.as_ref().map(|guard| guard.record(app, &response, app.clock.now()));
        let removed = app.identity.remove_member_by(caller, workspace, user, record).await;
        removed.map(|()| response)
    };
    once(app, guard.as_ref(), removing).await
}
