//! The caller's session and account security: operations 1 and 2, and ending other sessions.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::secret;
use crate::http::extract::NoQuery;
use crate::http::parameters::uuid;
use crate::http::problem::Refusal;
use crate::http::session::SignedInUser;
use assurance_core::domain::id::SessionId;
use assurance_identity::{AccountSecurityStatus, SessionItem, SessionPrincipal};
use assurance_service::app::App;

/// The signed-in user and the CSRF token.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(in crate::http) struct SessionView {
    /// Value for `X-CSRF-Token`, which every write must send.
    csrf_token: String,
    /// The signed-in user.
    user: UserView,
}

/// A signed-in user.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionUser")]
struct UserView {
    display_name: String,
    #[schemars(extend("format" = "email"))]
    email: String,
    email_verified: bool,
    id: Uuid,
}

/// Security settings of the account.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SecurityStatus")]
pub(in crate::http) struct SecurityView {
    /// Whether an authenticator is confirmed.
    mfa_enabled: bool,
    /// Number of unused recovery codes.
    recovery_codes_remaining: i64,
    /// Whether recovery codes are refused for a while after too many wrong codes.
    recovery_locked: bool,
    /// The account's sessions, newest first.
    sessions: Vec<SessionItemView>,
}

/// One session of the account.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionItem")]
struct SessionItemView {
    id: Uuid,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    last_seen_at: String,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    ip: Option<String>,
    user_agent: Option<String>,
    /// Whether this is the session of the request.
    current: bool,
}

impl SessionView {
    pub(super) fn new(principal: &SessionPrincipal, csrf_token: String) -> Self {
        let user = &principal.user;
        Self {
            csrf_token,
            user: UserView {
                display_name: user.display_name.clone(),
                email: user.email.clone(),
                email_verified: user.email_verified,
                id: user.id.0,
            },
        }
    }
}

impl From<AccountSecurityStatus> for SecurityView {
    fn from(status: AccountSecurityStatus) -> Self {
        Self {
            mfa_enabled: status.mfa_enabled,
            recovery_codes_remaining: status.recovery_codes_remaining,
            recovery_locked: status.recovery_locked,
            sessions: status.sessions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<SessionItem> for SessionItemView {
    fn from(item: SessionItem) -> Self {
        Self {
            id: item.id.0,
            created_at: item.created_at.to_rfc3339(),
            last_seen_at: item.last_seen_at.to_rfc3339(),
            expires_at: item.expires_at.to_rfc3339(),
            ip: item.ip,
            user_agent: item.user_agent,
            current: item.current,
        }
    }
}

/// Returns the signed-in user (operation 1).
pub(in crate::http) async fn read(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
) -> Response {
    let token = app.identity.csrf_token(&principal);
    secret(Json(SessionView::new(&principal, token)))
}

/// Returns the security settings of the account (operation 2).
pub(in crate::http) async fn security(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
) -> Result<Json<SecurityView>, Refusal> {
    Ok(Json(app.identity.security_status(&principal).await?.into()))
}

/// Ends one of the caller's sessions.
pub(in crate::http) async fn revoke(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refusal> {
    let id = id.ok().map(|Path(id)| id);
    let id = uuid("session_id", id.as_deref())?;
    if app.identity.revoke(principal.user.id, SessionId(id)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Refusal::not_found())
    }
}
