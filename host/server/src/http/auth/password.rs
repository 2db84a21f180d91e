//! Changes the caller's own password.

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::login::{self, AdmittedSignInClient};
use super::{busy, check_recent};
use crate::http::extract::{NoQuery, StrictJson, host_body};
use crate::http::problem::Refusal;
use crate::http::session::SignedInUser;
use assurance_identity::{ChangePasswordError, PasswordChange, PeopleError, SignInError};
use assurance_service::app::App;

/// Current and new password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewPassword")]
pub(in crate::http) struct PasswordChangeBody {
    /// The current password.
    #[schemars(length(min = 1, max = 1024))]
    current_password: String,
    /// The new password.
    #[schemars(length(min = 1, max = 1024))]
    new_password: String,
}
host_body!(PasswordChangeBody);

/// Replaces the caller's password. The caller's other sessions end.
pub(in crate::http) async fn change(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    attempt: AdmittedSignInClient,
    _: NoQuery,
    StrictJson(body): StrictJson<PasswordChangeBody>,
) -> Result<StatusCode, Refusal> {
    check_recent(&app, &principal, "A password is changed")?;
    let change = PasswordChange {
        current: body.current_password,
        new: body.new_password,
        ip: Some(attempt.address),
    };
    let changed = app.identity.change_password(&principal, change).await;
    changed.map(|()| StatusCode::NO_CONTENT).map_err(|error| refused(&app, error))
}

fn refused(app: &App, error: ChangePasswordError) -> Refusal {
    match error {
        ChangePasswordError::Current(SignInError::WrongCredentials) => {
            Refusal::invalid_one("/current_password", "is not the password of this account")
        }
        ChangePasswordError::Current(error) => login::refused(app, error),
        ChangePasswordError::New(error @ PeopleError::InvalidPassword { .. }) => {
            Refusal::invalid_one("/new_password", &error.to_string())
        }
        ChangePasswordError::New(PeopleError::Hash(_)) => busy(),
        ChangePasswordError::New(PeopleError::Store(error)) => error.into(),
        ChangePasswordError::New(other) => Refusal::internal(other),
    }
}
