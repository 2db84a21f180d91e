//! Creates an account with the token of an invitation mail.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::login::AdmittedSignInClient;
use super::session::SessionView;
use super::{busy, secret, session_cookie};
use crate::http::code::Code;
use crate::http::extract::{NoQuery, StrictJson, host_body};
use crate::http::problem::Refusal;
use assurance_identity::{PeopleError, RegistrationRequest};
use assurance_service::app::App;

/// A new account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NewAccount {
    /// Token from the mail. It determines the address of the account.
    #[schemars(length(min = 1, max = 2048))]
    token: String,
    /// Name shown to other members.
    #[schemars(length(min = 1, max = 120))]
    display_name: String,
    /// Password for sign-ins.
    #[schemars(length(min = 1, max = 1024))]
    password: String,
}
host_body!(NewAccount);

/// Creates the account of an invited person and signs the person in.
pub(in crate::http) async fn register(
    State(app): State<App>,
    attempt: AdmittedSignInClient,
    _: NoQuery,
    StrictJson(given): StrictJson<NewAccount>,
) -> Result<(StatusCode, Response), Refusal> {
    let wish = RegistrationRequest {
        voucher: given.token,
        display_name: given.display_name,
        password: given.password,
        ip: Some(attempt.address),
        user_agent: attempt.user_agent,
    };
    let session = app.identity.register(wish).await.map_err(refused)?;
    let cookie = session_cookie(&app, Some(&session.cookie));
    let view = SessionView::new(&session.principal, session.csrf_token);
    Ok((StatusCode::CREATED, secret(([cookie], Json(view)))))
}

fn refused(error: PeopleError) -> Refusal {
    match error {
        PeopleError::InvalidVoucher => {
            Refusal::invalid_one("/token", "is not valid, or has expired")
                .hint("Ask for the invitation to be sent again.")
        }
        PeopleError::EmailTaken(_) => {
            Refusal::new(Code::Conflict, "An account with this e-mail address exists already.")
                .hint("Sign in with POST /v1/auth/login, then accept the invitation.")
        }
        PeopleError::InvalidName => Refusal::invalid_one("/display_name", &error.to_string()),
        PeopleError::InvalidPassword { .. } => {
            Refusal::invalid_one("/password", &error.to_string())
        }
        PeopleError::Hash(_) => busy(),
        PeopleError::Store(error) => error.into(),
        other => Refusal::internal(other),
    }
}
