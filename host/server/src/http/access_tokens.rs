//! The access tokens of a workspace, managed by its admins.

use std::collections::HashMap;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::auth::{check_recent, secret};
use super::code::Code;
use super::context::RequestContext;
use super::extract::{NoQuery, StrictJson, host_body};
use super::parameters::uuid;
use super::problem::Refusal;
use super::session::SignedInUser;
use super::workspaces::not_listed;
use super::{parameters, session};
use assurance_core::domain::id::{AccessTokenId, WorkspaceId};
use assurance_core::domain::manifest::RateClass;
use assurance_core::domain::people::AccessToken;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_identity::{CreateAccessTokenError, NewAccessToken, SessionPrincipal};
use assurance_service::app::App;

/// An access token to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewAccessToken")]
pub(super) struct AccessTokenBody {
    /// Display name: the machine or pipeline that uses the token.
    #[schemars(length(min = 1, max = 120))]
    name: String,
    /// Highest role of requests with the token. If your own role is lower, that
    /// role applies.
    #[schemars(with = "String", extend("enum" = ["viewer", "member", "admin"]))]
    role: Role,
    /// Time at which the token expires; by default at most 365 days from now.
    expires_at: Timestamp,
}
host_body!(AccessTokenBody);

/// An access token without its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AccessToken")]
pub(super) struct AccessTokenView {
    id: Uuid,
    name: String,
    /// Highest role of requests with the token: viewer, member or admin.
    role: String,
    /// Member who created the token; requests with the token act as this user.
    user_id: Uuid,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    /// Time of the last use, precise to the minute; null before the first use.
    #[schemars(extend("format" = "date-time"))]
    last_used_at: Option<String>,
}

/// A new access token.
#[derive(Serialize, JsonSchema)]
pub(super) struct CreatedAccessToken {
    #[serde(flatten)]
    view: AccessTokenView,
    /// Token for the header `Authorization: Bearer`. Shown once.
    token: String,
}

/// One page of access tokens.
#[derive(Serialize, JsonSchema)]
pub(super) struct AccessTokenPage {
    items: Vec<AccessTokenView>,
    /// Value for the parameter `cursor` of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl From<AccessToken> for AccessTokenView {
    fn from(token: AccessToken) -> Self {
        Self {
            id: token.id.0,
            name: token.name,
            role: token.role.to_string(),
            user_id: token.user.0,
            created_at: token.created_at.to_rfc3339(),
            expires_at: token.expires_at.to_rfc3339(),
            last_used_at: token.last_used_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// Creates an access token. Only this response contains its secret.
pub(super) async fn create(
    State(app): State<App>,
    admin: WorkspaceAdmin,
    _: NoQuery,
    StrictJson(body): StrictJson<AccessTokenBody>,
) -> Result<Response, Refusal> {
    check_recent(&app, &admin.principal, "An access token is created")?;
    let AccessTokenBody { name, role, expires_at } = body;
    let (workspace, user) = (admin.workspace, admin.principal.user.id);
    let new = NewAccessToken { workspace, user, name, role, expires_at };
    let issued = app.identity.create_access_token(new).await.map_err(not_created)?;
    let token = issued.secret.to_string();
    let created = CreatedAccessToken { view: issued.token.into(), token };
    Ok(secret((StatusCode::CREATED, Json(created))))
}

/// Lists the access tokens of the workspace, newest first.
pub(super) async fn list(
    State(app): State<App>,
    admin: WorkspaceAdmin,
    RawQuery(query): RawQuery,
) -> Result<Json<AccessTokenPage>, Refusal> {
    let page = parameters::page(query.as_deref().unwrap_or_default())?;
    let (workspace, cursor) = (admin.workspace, page.cursor.as_deref());
    let found = app.identity.access_tokens_of(workspace, cursor, page.limit).await;
    let (found, next_cursor) = found.map_err(not_listed)?;
    Ok(Json(AccessTokenPage { items: found.into_iter().map(Into::into).collect(), next_cursor }))
}

/// Revokes an access token of any member.
pub(super) async fn revoke(
    State(app): State<App>,
    admin: WorkspaceAdmin,
    _: NoQuery,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    let token = path.ok().map(|Path((_, token))| token);
    let token = AccessTokenId(uuid("token_id", token.as_deref())?);
    let by = Some(admin.principal.user.id);
    if app.identity.revoke_access_token(admin.workspace, token, by).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Refusal::not_found())
    }
}

/// Caller who is a signed-in admin of the workspace in the path; other requests
/// are refused.
pub(super) struct WorkspaceAdmin {
    principal: SessionPrincipal,
    workspace: WorkspaceId,
}

impl FromRequestParts<App> for WorkspaceAdmin {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let context = RequestContext::from_request_parts(parts, app).await?;
        let SignedInUser(principal) = SignedInUser::from_request_parts(parts, app).await?;
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, app).await;
        let workspace = path.ok().and_then(|Path(mut path)| path.remove("workspace_id"));
        let workspace = WorkspaceId(uuid("workspace_id", workspace.as_deref())?);
        let membership = app.identity.membership(principal.user.id, workspace).await?;
        let membership = membership.ok_or_else(Refusal::not_found)?;
        session::check_role(&membership, Role::Admin)?;
        let class = if parts.method.is_safe() { RateClass::Light } else { RateClass::Standard };
        session::spend_workspace(app, &context, workspace, class)?;
        Ok(Self { principal, workspace })
    }
}

fn not_created(error: CreateAccessTokenError) -> Refusal {
    match error {
        CreateAccessTokenError::Name(_) => Refusal::invalid_one("/name", &error.to_string()),
        CreateAccessTokenError::RoleTooHigh(_) => Refusal::invalid_one("/role", &error.to_string()),
        CreateAccessTokenError::Expiry(_) => {
            Refusal::invalid_one("/expires_at", &error.to_string())
        }
        CreateAccessTokenError::TooMany(_) => Refusal::new(Code::Conflict, format!("{error}."))
            .hint("Revoke one that is no longer used."),
        CreateAccessTokenError::NotAMember => Refusal::not_found(),
        CreateAccessTokenError::Store(error) => error.into(),
    }
}
