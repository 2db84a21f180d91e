//! Sign-in and sign-out, passwords, and the second factor.

pub(super) mod login;
pub(super) mod mfa;
pub(super) mod password;
pub(super) mod register;
pub(super) mod session;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::code::Code;
use super::middleware::NotCompressed;
use super::problem::Refusal;
use assurance_core::domain::time::Timestamp;
use assurance_identity::{CodeError, DEVICE_COOKIE, SESSION_COOKIE, SessionPrincipal};
use assurance_service::app::App;

/// Marks a response that contains a secret, so that it is not compressed.
pub(super) fn secret(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.extensions_mut().insert(NotCompressed);
    response
}

/// Returns `Set-Cookie` for a session; `None` deletes the cookie.
fn session_cookie(app: &App, value: Option<&str>) -> (header::HeaderName, HeaderValue) {
    let age = value.map_or(0, |_| i64::from(app.config.session.absolute_hours) * 3_600);
    let value = value.unwrap_or_default();
    set_cookie(app, &format!("{SESSION_COOKIE}={value}; Path=/; Max-Age={age}; SameSite=Lax"))
}

/// Returns `Set-Cookie` for the device that a user signed in from. Only sign-ins read the cookie,
/// and it is no credential: failed attempts from other devices do not delay its holder.
fn device_cookie(app: &App, value: Option<&str>) -> (header::HeaderName, HeaderValue) {
    let value = value.unwrap_or_default();
    let age = i64::from(app.config.sign_in.known_place_days) * 86_400;
    let cookie =
        format!("{DEVICE_COOKIE}={value}; Path=/v1/auth/login; Max-Age={age}; SameSite=Strict");
    set_cookie(app, &cookie)
}

/// Returns `Set-Cookie` for a cookie that scripts cannot read.
fn set_cookie(app: &App, cookie: &str) -> (header::HeaderName, HeaderValue) {
    let secure = if app.config.session.cookie_secure { "; Secure" } else { "" };
    let value = HeaderValue::from_str(&format!("{cookie}; HttpOnly{secure}"));
    (header::SET_COOKIE, value.unwrap_or(HeaderValue::from_static("")))
}

/// Returns the seconds until a time, at least 1.
fn seconds_until(app: &App, then: Timestamp) -> u64 {
    u64::try_from(then.ms_since(app.clock.now())).unwrap_or(0).div_ceil(1000).max(1)
}

fn too_many_attempts(app: &App, retry_at: Timestamp) -> Refusal {
    Refusal::new(Code::RateLimited, "There were too many failed attempts.")
        .hint("Wait for the seconds in Retry-After.")
        .retry_after(seconds_until(app, retry_at))
}

/// Returns the refusal of a request that needs a password hash while too many are computed.
fn busy() -> Refusal {
    Refusal::new(Code::Unavailable, "Too many users are signing in at the moment.").retry_after(1)
}

/// Requires a recent sign-in. A session that was left open or stolen must not be enough to change
/// the user's credentials, or to create credentials that outlive the session.
pub(super) fn check_recent(
    app: &App,
    principal: &SessionPrincipal,
    what: &str,
) -> Result<(), Refusal> {
    if app.identity.is_recent(principal) {
        return Ok(());
    }
    let minutes = app.config.sign_in.recent_minutes;
    let detail =
        format!("{what} only within {minutes} minutes after signing in; this session is older.");
    let hint = "Sign in again with POST /v1/auth/login, then repeat the request.";
    Err(Refusal::new(Code::PermissionDenied, detail).hint(hint))
}

/// Converts a refused code of a signed-in user.
fn of_code(app: &App, error: CodeError) -> Refusal {
    match error {
        CodeError::Wrong => {
            Refusal::invalid_one("/code", "is not a current code, or was used before")
        }
        CodeError::RecoveryLocked { until } => {
            Refusal::new(Code::RateLimited, "Recovery codes are locked after too many wrong codes.")
                .hint("Use a code from your authenticator.")
                .retry_after(seconds_until(app, until))
        }
        CodeError::TooManyAttempts { retry_at } => too_many_attempts(app, retry_at),
        CodeError::NotEnrolled => Refusal::new(Code::Conflict, "The account has no authenticator.")
            .hint("Enrol one with POST /v1/auth/mfa/enrol."),
        CodeError::AlreadyEnabled => {
            Refusal::new(Code::Conflict, "An authenticator is already confirmed.")
                .hint("Disable it first with POST /v1/auth/mfa/disable.")
        }
        CodeError::Store(error) => error.into(),
        CodeError::Host(error) => Refusal::internal(anyhow::anyhow!(error)),
    }
}
