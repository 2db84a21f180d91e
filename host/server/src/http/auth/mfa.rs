//! The second factor: an authenticator (RFC 6238) and recovery codes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_recent, of_code, secret, session_cookie};
use crate::http::extract::{NoQuery, StrictJson, host_body};
use crate::http::problem::Refusal;
use crate::http::session::SignedInUser;
use assurance_service::app::App;

/// A code of the second factor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CodeGiven")]
pub(in crate::http) struct CodeBody {
    /// Code from the authenticator. A recovery code is accepted where the operation says so.
    #[schemars(length(min = 6, max = 64))]
    code: String,
}
host_body!(CodeBody);

/// Secret for the authenticator.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Enrolment")]
pub(in crate::http) struct EnrollmentView {
    /// Secret in Base32, for manual entry into an authenticator.
    secret: String,
    /// URL of the secret, for a QR code.
    otpauth_url: String,
}

/// Recovery codes; shown once.
#[derive(Serialize, JsonSchema)]
pub(in crate::http) struct RecoveryCodes {
    /// Each works once in place of a code from the authenticator.
    recovery_codes: Vec<String>,
}

/// A confirmed second factor.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfirmedAuthenticator")]
pub(in crate::http) struct MfaConfirmationView {
    /// Each works once in place of a code from the authenticator; shown once.
    recovery_codes: Vec<String>,
    /// CSRF token of the new session, which replaces the session of the request.
    csrf_token: String,
}

/// Starts the enrolment of an authenticator and returns its secret.
pub(in crate::http) async fn enrol(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
) -> Result<Response, Refusal> {
    check_recent(&app, &principal, "A second factor is changed")?;
    let told = app.identity.enroll_totp(&principal).await.map_err(|error| of_code(&app, error))?;
    Ok(secret(Json(EnrollmentView {
        secret: told.secret.to_string(),
        otpauth_url: told.otpauth_url.to_string(),
    })))
}

/// Confirms the enrolment of an authenticator with one of its codes. The session gets a new id, and
/// the user's other sessions end.
pub(in crate::http) async fn confirm(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
    StrictJson(given): StrictJson<CodeBody>,
) -> Result<Response, Refusal> {
    check_recent(&app, &principal, "A second factor is changed")?;
    let confirmed = app.identity.confirm_totp(&principal, &given.code).await;
    let confirmed = confirmed.map_err(|error| of_code(&app, error))?;
    let cookie = session_cookie(&app, Some(&confirmed.session.cookie));
    let view = MfaConfirmationView {
        recovery_codes: confirmed.recovery_codes,
        csrf_token: confirmed.session.csrf_token,
    };
    Ok(secret(([cookie], Json(view))))
}

/// Removes the caller's second factor. The caller's other sessions end.
pub(in crate::http) async fn disable(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
    StrictJson(given): StrictJson<CodeBody>,
) -> Result<StatusCode, Refusal> {
    check_recent(&app, &principal, "A second factor is changed")?;
    let disabled = app.identity.disable_totp(&principal, &given.code).await;
    disabled.map(|()| StatusCode::NO_CONTENT).map_err(|error| of_code(&app, error))
}

/// Replaces all recovery codes of the caller and returns the new ones.
pub(in crate::http) async fn renew_recovery_codes(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
    StrictJson(given): StrictJson<CodeBody>,
) -> Result<Response, Refusal> {
    check_recent(&app, &principal, "A second factor is changed")?;
    let renewed = app.identity.renew_recovery_codes(&principal, &given.code).await;
    let recovery_codes = renewed.map_err(|error| of_code(&app, error))?;
    Ok(secret(Json(RecoveryCodes { recovery_codes })))
}
