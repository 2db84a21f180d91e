//! Authenticates requests with `Authorization: Bearer` and an access token of a
//! workspace. A browser does not send that header by itself, so no CSRF token
//! is needed.

use axum::http::request::Parts;

use super::code::Code;
use super::problem::Refusal;
use super::session::find_credential;
use assurance_identity::{AuthenticatedCredential, SessionPrincipal, TokenPrincipal};
use assurance_service::app::App;

/// Value of `WWW-Authenticate` for a client whose token is not valid.
const CHALLENGE: &str = "Bearer error=\"invalid_token\"";

/// Returns the principal of an access token, and adds the token's id to the
/// request's log span.
///
/// # Errors
/// 401 if the token never existed, has expired or was revoked, without
/// distinction; 429 if the client's address has sent too many unknown tokens.
pub(super) async fn enter(app: &App, parts: &Parts, text: &str) -> Result<TokenPrincipal, Refusal> {
    let principal = match app.identity.remembered_token(text) {
        Some(principal) => principal,
        None => {
            let unknown = app.identity.is_unknown_token(text);
            let asking = app.identity.authenticate_token(text);
            find_credential(app, parts, unknown, asking).await?.ok_or_else(invalid)?
        }
    };
    tracing::Span::current().record("access_token.id", tracing::field::display(principal.token.id));
    Ok(principal)
}

/// Returns the session of a request to an operation that does not accept access
/// tokens.
///
/// # Errors
/// 403 for an access token.
pub(super) fn session_only(
    credential: AuthenticatedCredential,
) -> Result<SessionPrincipal, Refusal> {
    match credential {
        AuthenticatedCredential::Session(principal) => Ok(principal),
        AuthenticatedCredential::Token(_) => {
            let detail = "This operation needs a session; it takes no access token.";
            let hint = "Sign in with POST /v1/auth/login. /openapi.json lists for each operation \
                        what it takes.";
            Err(Refusal::new(Code::PermissionDenied, detail).hint(hint))
        }
    }
}

/// Returns the refusal of a request with both an access token and a session
/// cookie, because they could belong to different users.
pub(super) fn two_credentials() -> Refusal {
    let detail = "Authorization: is sent together with the cookie service_session.";
    Refusal::new(Code::MalformedRequest, detail).hint("Send either the access token or the cookie.")
}

fn invalid() -> Refusal {
    Refusal::new(Code::Unauthenticated, "Authorization: the access token is not valid.")
        .hint("Ask an admin of the workspace for a new one.")
        .challenge(CHALLENGE)
}
