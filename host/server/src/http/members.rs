//! The members of a workspace.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::code::Code;
use super::context::RequestContext;
use super::extract::NoQuery;
use super::parameters::uuid;
use super::problem::Refusal;
use super::session::{AuthenticatedCaller, SignedInUser};
use super::workspaces::not_listed;
use super::{area, headers, parameters, session};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::manifest::{ParameterKind, ParameterPlace, ParameterSpec, RateClass};
use assurance_core::domain::people::Member;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_identity::RemoveMemberError;
use assurance_service::app::members::{self, MemberRemovalRequest};
use assurance_service::app::{App, HostOperationError};

/// A member, as every other member sees it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Member")]
pub(super) struct MemberView {
    user_id: Uuid,
    #[schemars(extend("format" = "email"))]
    email: String,
    display_name: String,
    /// Role in this workspace: viewer, member, admin or owner.
    role: String,
    /// Time at which the user became a member.
    #[schemars(extend("format" = "date-time"))]
    joined_at: String,
}

/// One page of members.
#[derive(Serialize, JsonSchema)]
pub(super) struct MemberPage {
    items: Vec<MemberView>,
    /// Value for the parameter `cursor` of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl From<(Member, Timestamp)> for MemberView {
    fn from((member, joined_at): (Member, Timestamp)) -> Self {
        Self {
            user_id: member.user.0,
            email: member.email,
            display_name: member.display_name,
            role: member.role.to_string(),
            joined_at: joined_at.to_rfc3339(),
        }
    }
}

/// Describes the path parameter `workspace_id` of the host's own operations.
pub(super) fn workspace_parameter() -> ParameterSpec {
    in_path("workspace_id", "The workspace; you must be a member of it.")
}

/// Describes a path parameter that is a UUID.
pub(super) fn in_path(name: &str, summary: &str) -> ParameterSpec {
    ParameterSpec {
        name: name.to_owned(),
        place: ParameterPlace::Path,
        summary: summary.to_owned(),
        kind: ParameterKind::Uuid,
        required: true,
        default: None,
    }
}

/// Lists the members of a workspace, sorted by e-mail.
pub(super) async fn list(
    State(app): State<App>,
    context: RequestContext,
    AuthenticatedCaller(credential): AuthenticatedCaller,
    workspace: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<MemberPage>, Refusal> {
    let workspace = workspace.ok().map(|Path(text)| text);
    let workspace = WorkspaceId(uuid("workspace_id", workspace.as_deref())?);
    let membership = app.identity.membership_by(&credential, workspace).await?;
    membership.ok_or_else(Refusal::not_found)?;
    session::spend_workspace(&app, &context, workspace, RateClass::Light)?;
    let page = parameters::page(query.as_deref().unwrap_or_default())?;
    let found = app.identity.members_of(workspace, page.cursor.as_deref(), page.limit).await;
    let (found, next_cursor) = found.map_err(not_listed)?;
    Ok(Json(MemberPage { items: found.into_iter().map(Into::into).collect(), next_cursor }))
}

/// Removes a member from a workspace. A member may remove itself.
pub(super) async fn remove(
    State(app): State<App>,
    context: RequestContext,
    SignedInUser(principal): SignedInUser,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
    _: NoQuery,
) -> Result<Response, Refusal> {
    let (workspace, user) = path.ok().map(|Path(path)| path).unzip();
    let workspace = WorkspaceId(uuid("workspace_id", workspace.as_deref())?);
    let user = UserId(uuid("user_id", user.as_deref())?);
    let caller = principal.user.id;
    // A user who has left is not a member, but still gets the stored response. A member whose role
    // is too low is refused below and takes nothing from the others.
    let own = app.identity.membership(caller, workspace).await?;
    if own.is_some_and(|own| user == caller || own.role >= Role::Admin) {
        session::spend_workspace(&app, &context, workspace, RateClass::Standard)?;
    }
    let key = headers::idempotency_key(&headers, false);
    let removal = MemberRemovalRequest {
        workspace,
        caller,
        user,
        idempotency_key: key.map_err(|(name, what)| Refusal::invalid_one(name, what))?,
    };
    Ok(area::respond(members::remove(&app, removal).await.map_err(not_removed)?))
}

fn not_removed(error: HostOperationError<RemoveMemberError>) -> Refusal {
    let error = match error {
        HostOperationError::Operation(error) => error,
        HostOperationError::Refused(refused) => return Refusal::of_host_call(refused),
    };
    match error {
        RemoveMemberError::NotAMember => Refusal::not_found(),
        RemoveMemberError::RoleTooLow { own, needed } => {
            let detail = format!(
                "Removing this member requires the role {needed}; your role in this workspace \
                    is {own}."
            );
            Refusal::new(Code::PermissionDenied, detail)
        }
        RemoveMemberError::LastOwner => {
            let detail = "user_id: is the last owner of the workspace who can sign in; every \
                          workspace keeps one.";
            let hint = "Invite another owner, or ask an operator to make a member an owner. Then \
                send the request again.";
            Refusal::new(Code::Conflict, detail).hint(hint)
        }
        RemoveMemberError::Store(error) => error.into(),
    }
}
