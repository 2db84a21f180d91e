//! Signing in and out, and the second factor.

pub(super) mod login;
pub(super) mod mfa;
pub(super) mod register;
pub(super) mod session;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::code::Code;
use super::middleware::NotCompressed;
use super::problem::Refusal;
use crate::app::App;
use crate::domain::time::Timestamp;
use crate::identity::{CodeError, DEVICE_COOKIE, SESSION_COOKIE};

/// An answer with a secret in it.
fn secret(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.extensions_mut().insert(NotCompressed);
    response
}

/// `Set-Cookie` for a session; nothing: ends the one the client has.
fn session_cookie(app: &App, value: Option<&str>) -> (header::HeaderName, HeaderValue) {
    let secure = if app.config.session.cookie_secure { "; Secure" } else { "" };
    let (value, age) = match value {
        Some(value) => (value, i64::from(app.config.session.absolute_hours) * 3_600),
        None => ("", 0),
    };
    let text =
        format!("{SESSION_COOKIE}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    (header::SET_COOKIE, value)
}

/// `Set-Cookie` for the device that somebody signed in from. Only sign-ins
/// carry it, and it is no credential: failures elsewhere do not make its holder
/// wait.
fn device_cookie(app: &App, value: Option<&str>) -> (header::HeaderName, HeaderValue) {
    let secure = if app.config.session.cookie_secure { "; Secure" } else { "" };
    let value = value.unwrap_or_default();
    let age = i64::from(app.config.sign_in.known_place_days) * 86_400;
    let text = format!(
        "{DEVICE_COOKIE}={value}; Path=/v1/auth/login; Max-Age={age}; HttpOnly; \
         SameSite=Strict{secure}"
    );
    let value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    (header::SET_COOKIE, value)
}

/// Seconds from now until then, at least one.
fn seconds_until(app: &App, then: Timestamp) -> u64 {
    u64::try_from(then.ms_since(app.clock.now())).unwrap_or(0).div_ceil(1000).max(1)
}

fn too_many_attempts(app: &App, retry_at: Timestamp) -> Refusal {
    Refusal::new(Code::RateLimited, "There were too many failed attempts.")
        .hint("Wait as Retry-After says.")
        .retry_after(seconds_until(app, retry_at))
}

/// Why a code was refused, once signed in.
fn of_code(app: &App, error: CodeError) -> Refusal {
    match error {
        CodeError::Wrong => {
            Refusal::invalid_one("/code", "is not a code of this moment, or was used before")
        }
        CodeError::RecoveryLocked { until } => {
            Refusal::new(Code::RateLimited, "Recovery codes are locked after too many wrong codes.")
                .hint("Use a code from your authenticator.")
                .retry_after(seconds_until(app, until))
        }
        CodeError::TooManyAttempts { retry_at } => too_many_attempts(app, retry_at),
        CodeError::NotEnrolled => {
            Refusal::new(Code::Conflict, "There is no authenticator to do this with.")
                .hint("Enrol one with POST /v1/auth/mfa/enrol.")
        }
        CodeError::AlreadyEnabled => {
            Refusal::new(Code::Conflict, "An authenticator is confirmed already.")
                .hint("Disable it first with POST /v1/auth/mfa/disable.")
        }
        CodeError::Store(error) => error.into(),
        CodeError::Host(error) => Refusal::internal(anyhow::anyhow!(error)),
    }
}
