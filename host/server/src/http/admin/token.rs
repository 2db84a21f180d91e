//! Operators' bearer tokens: the token from the file, which has all scopes, and tokens made by
//! `assurance token create`, which have the scopes given there.

use std::collections::BTreeSet;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use subtle::ConstantTimeEq;

use super::OperatorsState;
use crate::http::code::Code;
use crate::http::headers::bearer;
use crate::http::listen::PeerAddress;
use crate::http::problem::Refusal;
use assurance_core::domain::operator::TokenScope;
use assurance_service::app::operators::{self, BOOTSTRAP};

/// The operator who sent the request, as named in the audit log.
#[derive(Clone, Debug)]
pub(super) struct AuthenticatedOperator {
    pub(super) name: String,
    scopes: BTreeSet<TokenScope>,
}

impl<S: Sync> FromRequestParts<S> for AuthenticatedOperator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let operator = parts.extensions.get::<Self>().cloned();
        operator.ok_or_else(|| Refusal::internal(anyhow::anyhow!("a route without a guard")))
    }
}

/// Middleware that refuses requests without a valid operators' token.
pub(super) async fn require(
    State(operators): State<OperatorsState>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let operator = match bearer(request.headers()) {
        Some(token) => who(&operators, token).await?,
        None => None,
    };
    let operator = operator.ok_or_else(|| refused(&request))?;
    request.extensions_mut().insert(operator);
    Ok(next.run(request).await)
}

fn refused(request: &Request) -> Refusal {
    let peer = request.extensions().get::<PeerAddress>();
    tracing::warn!(
        target: "security",
        event = "operator_refused",
        client.address = peer.map(|peer| peer.0.ip().to_string()),
        http.path = request.uri().path(),
        "request without a valid operators' token"
    );
    Refusal::new(Code::Unauthenticated, "Authorization: an operators' bearer token is required.")
        .hint(
            "Use the token in the file that operators.token_file names, or create one with \
             `assurance token create`.",
        )
        .challenge("Bearer")
}

/// Returns the operator who holds the token; `None` if the token is not valid.
/// Hashes are compared in constant time.
async fn who(
    operators: &OperatorsState,
    token: &str,
) -> Result<Option<AuthenticatedOperator>, Refusal> {
    if operators::hash(token).ct_eq(&operators.token_hash).into() {
        let scopes = TokenScope::ALL.into_iter().collect();
        return Ok(Some(AuthenticatedOperator { name: BOOTSTRAP.to_owned(), scopes }));
    }
    let known = operators::find(&operators.app.store, token).await?;
    Ok(known.map(|token| AuthenticatedOperator { name: token.name, scopes: token.scopes }))
}

/// Middleware that refuses requests whose operators' token lacks the scope.
pub(super) async fn allow(
    State(scope): State<TokenScope>,
    operator: AuthenticatedOperator,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if operator.scopes.contains(&scope) {
        return Ok(next.run(request).await);
    }
    let has: Vec<&str> = operator.scopes.iter().map(|scope| scope.as_str()).collect();
    let detail = format!(
        "This needs a token with the scope {scope}; {:?} has {}.",
        operator.name,
        has.join(" and ")
    );
    let hint = format!("assurance token create --name NAME --scope {scope}");
    Err(Refusal::new(Code::PermissionDenied, detail).hint(hint))
}
