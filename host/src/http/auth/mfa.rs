//! The second factor: an authenticator (RFC 6238) and recovery codes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{of_code, secret, session_cookie};
use crate::app::App;
use crate::http::code::Code;
use crate::http::extract::{NoQuery, Strict, host_body};
use crate::http::problem::Refusal;
use crate::http::session::SignedIn;
use crate::identity::Principal;

/// A code.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct CodeGiven {
    /// From the authenticator; a recovery code where those are taken.
    #[schemars(length(min = 6, max = 64))]
    code: String,
}
host_body!(CodeGiven);

/// What the authenticator is to be given.
#[derive(Serialize, JsonSchema)]
pub(in crate::http) struct EnrolmentView {
    /// Base32, for typing.
    secret: String,
    /// For a QR code.
    otpauth_url: String,
}

/// Codes to be written down; shown once.
#[derive(Serialize, JsonSchema)]
pub(in crate::http) struct RecoveryCodes {
    /// Each works once in place of a code from the authenticator.
    recovery_codes: Vec<String>,
}

/// A confirmed second factor.
#[derive(Serialize, JsonSchema)]
pub(in crate::http) struct ConfirmedView {
    /// Each works once in place of a code from the authenticator; shown once.
    recovery_codes: Vec<String>,
    /// Of the new session that takes this one's place.
    csrf_token: String,
}

/// A session that was left open, or stolen, is not enough to change how its
/// person signs in.
fn check_recent(app: &App, principal: &Principal) -> Result<(), Refusal> {
    if app.identity.is_recent(principal) {
        return Ok(());
    }
    let minutes = app.config.sign_in.recent_minutes;
    let detail = format!(
        "A second factor is changed only within {minutes} minutes after signing in; this session \
         is older."
    );
    let hint = "Sign in again with POST /v1/auth/login, then repeat the request.";
    Err(Refusal::new(Code::PermissionDenied, detail).hint(hint))
}

/// Begins an enrolment.
pub(in crate::http) async fn enrol(
    State(app): State<App>,
    SignedIn(principal): SignedIn,
    _: NoQuery,
) -> Result<Response, Refusal> {
    check_recent(&app, &principal)?;
    let told = app.identity.enrol_totp(&principal).await.map_err(|error| of_code(&app, error))?;
    Ok(secret(Json(EnrolmentView {
        secret: told.secret.to_string(),
        otpauth_url: told.otpauth_url.to_string(),
    })))
}

/// Confirms the enrolment; the session gets a new id, and the others end.
pub(in crate::http) async fn confirm(
    State(app): State<App>,
    SignedIn(principal): SignedIn,
    _: NoQuery,
    Strict(given): Strict<CodeGiven>,
) -> Result<Response, Refusal> {
    check_recent(&app, &principal)?;
    let confirmed = app.identity.confirm_totp(&principal, &given.code).await;
    let confirmed = confirmed.map_err(|error| of_code(&app, error))?;
    let cookie = session_cookie(&app, Some(&confirmed.session.cookie));
    let view = ConfirmedView {
        recovery_codes: confirmed.recovery_codes,
        csrf_token: confirmed.session.csrf_token,
    };
    Ok(secret(([cookie], Json(view))))
}

/// Removes the second factor; other sessions end.
pub(in crate::http) async fn disable(
    State(app): State<App>,
    SignedIn(principal): SignedIn,
    _: NoQuery,
    Strict(given): Strict<CodeGiven>,
) -> Result<StatusCode, Refusal> {
    check_recent(&app, &principal)?;
    let disabled = app.identity.disable_totp(&principal, &given.code).await;
    disabled.map(|()| StatusCode::NO_CONTENT).map_err(|error| of_code(&app, error))
}

/// Replaces all recovery codes.
pub(in crate::http) async fn renew_recovery_codes(
    State(app): State<App>,
    SignedIn(principal): SignedIn,
    _: NoQuery,
    Strict(given): Strict<CodeGiven>,
) -> Result<Response, Refusal> {
    check_recent(&app, &principal)?;
    let renewed = app.identity.renew_recovery_codes(&principal, &given.code).await;
    let recovery_codes = renewed.map_err(|error| of_code(&app, error))?;
    Ok(secret(Json(RecoveryCodes { recovery_codes })))
}
