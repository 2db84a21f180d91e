//! Removes a member of a workspace, once for each `Idempotency-Key`.

use serde_json::json;

use super::App;
use super::call::{CallRefusal, CommittedResponse};
use super::idempotency_guard::IdempotencyGuard;
use super::workspaces::earlier;
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

/// Why a member was not removed from a workspace.
#[derive(Debug)]
pub enum MemberRemovalError {
    /// A rule of memberships forbids the removal, or the database is unavailable.
    Member(RemoveMemberError),
    /// The idempotency key is refused, or its stored response cannot be read.
    Refused(CallRefusal),
}

impl From<CallRefusal> for MemberRemovalError {
    fn from(refused: CallRefusal) -> Self {
        Self::Refused(refused)
    }
}

/// Removes a member from a workspace, or returns the stored response for the idempotency key. A
/// user who has already left gets the stored response, too.
///
/// # Errors
/// See [`MemberRemovalError`]; no member was removed.
pub async fn remove(
    app: &App,
    removal: MemberRemovalRequest,
) -> Result<CommittedResponse, MemberRemovalError> {
    let MemberRemovalRequest { workspace, caller, user, idempotency_key } = removal;
    let operation = (workspace, caller, "remove_member");
    let request = json!({ "user_id": user });
    let guard = IdempotencyGuard::of_host(app, operation, idempotency_key, &request)?;
    if let Some(first) = earlier(app, guard.as_ref()).await? {
        return Ok(first);
    }
    let response = CommittedResponse { status: 204, body: None, version: None, replayed: false };
    let reply = guard.as_ref().map(|guard| guard.record(app, &response, app.clock.now()));
    match app.identity.remove_member_by(caller, workspace, user, reply).await {
        Ok(()) => Ok(response),
        // Another node may have removed the user for the same key.
        Err(error) => earlier(app, guard.as_ref()).await?.ok_or(MemberRemovalError::Member(error)),
    }
}
