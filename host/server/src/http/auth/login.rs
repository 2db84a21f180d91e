//! Sign-in and sign-out.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::{Json, RequestPartsExt};
use schemars::JsonSchema;
use serde::Deserialize;

use super::session::SessionView;
use super::{busy, device_cookie, secret, session_cookie, too_many_attempts};
use crate::http::client_address::address_of;
use crate::http::code::Code;
use crate::http::context::RequestContext;
use crate::http::extract::{NoQuery, StrictJson, host_body};
use crate::http::headers;
use crate::http::problem::Refusal;
use crate::http::session::{CHALLENGE, SignedInUser, refuse_foreign_page};
use assurance_identity::{DEVICE_COOKIE, SignInAttempt, SignInError};
use assurance_service::app::App;

/// Credentials of a sign-in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Login")]
pub(in crate::http) struct LoginBody {
    /// The account's e-mail address.
    #[schemars(length(min = 3, max = 320))]
    email: String,
    /// The account's password.
    #[schemars(length(min = 1, max = 1024))]
    password: String,
    /// A code from the account's authenticator, or a recovery code.
    #[schemars(length(max = 64))]
    code: Option<String>,
}
host_body!(LoginBody);

/// Client of a sign-in, a registration or a password change that passed the
/// rate limit of its address.
pub(in crate::http) struct AdmittedSignInClient {
    pub(super) address: std::net::IpAddr,
    /// Value of the client's device cookie; `None` if the client sent none.
    pub(super) device: Option<String>,
    pub(super) user_agent: Option<String>,
}

impl axum::extract::FromRequestParts<App> for AdmittedSignInClient {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        app: &App,
    ) -> Result<Self, Refusal> {
        refuse_foreign_page(app, &parts.headers)?;
        let context: RequestContext = parts.extract_with_state(app).await?;
        let address = address_of(parts, app);
        context.charge(app.limiter.sign_in(address))?;
        let device = headers::cookie(&parts.headers, DEVICE_COOKIE).map(ToOwned::to_owned);
        let user_agent = parts.headers.get(header::USER_AGENT);
        let user_agent = user_agent.and_then(|text| text.to_str().ok()).map(ToOwned::to_owned);
        Ok(Self { address, device, user_agent })
    }
}

/// Signs in and sets the session cookie.
pub(in crate::http) async fn login(
    State(app): State<App>,
    attempt: AdmittedSignInClient,
    _: NoQuery,
    StrictJson(given): StrictJson<LoginBody>,
) -> Result<Response, Refusal> {
    let given = SignInAttempt {
        email: given.email,
        password: given.password,
        code: given.code,
        ip: Some(attempt.address),
        user_agent: attempt.user_agent,
        device: attempt.device,
    };
    let session = app.identity.sign_in(given).await.map_err(|error| refused(&app, error))?;
    let cookie = session_cookie(&app, Some(&session.cookie));
    let device = device_cookie(&app, session.device.as_deref());
    let view = SessionView::new(&session.principal, session.csrf_token);
    Ok(secret((AppendHeaders([cookie, device]), Json(view))))
}

/// Ends the session and deletes its cookie.
pub(in crate::http) async fn logout(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    _: NoQuery,
) -> Result<Response, Refusal> {
    app.identity.sign_out(&principal).await?;
    Ok((StatusCode::NO_CONTENT, [session_cookie(&app, None)]).into_response())
}

pub(super) fn refused(app: &App, error: SignInError) -> Refusal {
    match error {
        SignInError::WrongCredentials | SignInError::WrongCode => Refusal::new(
            Code::InvalidCredentials,
            "The e-mail address, the password or the code is wrong.",
        )
        .challenge(CHALLENGE),
        SignInError::CodeRequired => Refusal::new(
            Code::MfaRequired,
            "/code: this account needs a code from its authenticator, or a recovery code.",
        )
        .challenge(CHALLENGE),
        SignInError::RecoveryLocked { until } => too_many_attempts(app, until)
            .hint("Recovery codes are locked; use a code from your authenticator."),
        SignInError::TooManyAttempts { retry_at } => too_many_attempts(app, retry_at),
        SignInError::Busy => busy(),
        SignInError::Store(error) => error.into(),
        SignInError::Host(error) => Refusal::internal(anyhow::anyhow!(error)),
    }
}
