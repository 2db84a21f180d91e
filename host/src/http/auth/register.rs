//! Making an account with the token of an invitation's mail.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::login::Attempt;
use super::session::SessionView;
use super::{secret, session_cookie};
use crate::app::App;
use crate::http::code::Code;
use crate::http::extract::{NoQuery, Strict, host_body};
use crate::http::problem::Refusal;
use crate::identity::{PeopleError, Registration};

/// Who makes an account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NewAccount {
    /// From the mail; it says which address the account is for.
    #[schemars(length(min = 1, max = 2048))]
    token: String,
    /// As the person wants to be called.
    #[schemars(length(min = 1, max = 120))]
    display_name: String,
    /// To sign in with from now on.
    #[schemars(length(min = 1, max = 1024))]
    password: String,
}
host_body!(NewAccount);

/// Makes the account and signs its person in.
pub(in crate::http) async fn register(
    State(app): State<App>,
    attempt: Attempt,
    _: NoQuery,
    Strict(given): Strict<NewAccount>,
) -> Result<(StatusCode, Response), Refusal> {
    let wish = Registration {
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
            Refusal::new(Code::Conflict, "There is an account of this e-mail address already.")
                .hint("Sign in with POST /v1/auth/login, and accept the invitation.")
        }
        PeopleError::InvalidName => Refusal::invalid_one("/display_name", &error.to_string()),
        PeopleError::InvalidPassword { .. } => {
            Refusal::invalid_one("/password", &error.to_string())
        }
        PeopleError::Hash(_) => {
            Refusal::new(Code::Unavailable, "Too many people sign in at the moment.").retry_after(1)
        }
        PeopleError::Store(error) => error.into(),
        other => Refusal::internal(other),
    }
}
