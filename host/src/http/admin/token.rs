//! Operators' bearer tokens: the one in the file, which may do everything, and
//! those made by `assurance token create`, which may do what their scopes say.

use std::collections::BTreeSet;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::Operators;
use crate::app::operators::{self, BOOTSTRAP};
use crate::domain::operator::Scope;
use crate::http::code::Code;
use crate::http::listen::Peer;
use crate::http::problem::Refusal;

/// Who asks, as the audit log will name them.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    pub(super) name: String,
    scopes: BTreeSet<Scope>,
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let operator = parts.extensions.get::<Self>().cloned();
        operator.ok_or_else(|| Refusal::internal(anyhow::anyhow!("a route without a guard")))
    }
}

pub(super) fn hash(token: &str) -> [u8; 32] {
    operators::hash(token)
}

/// Lets through who has a token.
pub(super) async fn require(
    State(operators): State<Operators>,
    mut request: Request,
    next: Next,
) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION);
    let token = sent.and_then(|value| value.to_str().ok()).and_then(bearer);
    let operator = match token {
        Some(token) => who(&operators, token).await,
        None => Ok(None),
    };
    match operator {
        Ok(Some(operator)) => {
            request.extensions_mut().insert(operator);
            next.run(request).await
        }
        Ok(None) => {
            let peer = request.extensions().get::<Peer>();
            tracing::warn!(
                target: "security",
                event = "operator_refused",
                client.address = peer.map(|peer| peer.0.ip().to_string()),
                http.path = request.uri().path(),
                "request without a valid operators' token"
            );
            Refusal::new(Code::Unauthenticated, "Authorization: needs an operators' bearer token.")
                .hint(
                    "One is in the file that operators.token_file names; `assurance token create` \
                     makes others.",
                )
                .challenge("Bearer")
                .into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Whose token it is; hashes are compared, in constant time.
async fn who(operators: &Operators, token: &str) -> Result<Option<Operator>, Refusal> {
    if hash(token).ct_eq(&operators.token_hash).into() {
        let scopes = Scope::ALL.into_iter().collect();
        return Ok(Some(Operator { name: BOOTSTRAP.to_owned(), scopes }));
    }
    let known = operators::find(&operators.app.store, token).await?;
    Ok(known.map(|token| Operator { name: token.name, scopes: token.scopes }))
}

/// Lets through whose token has the scope.
pub(super) async fn allow(
    State(scope): State<Scope>,
    operator: Operator,
    request: Request,
    next: Next,
) -> Response {
    if operator.scopes.contains(&scope) {
        return next.run(request).await;
    }
    let has: Vec<&str> = operator.scopes.iter().map(|scope| scope.as_str()).collect();
    let detail = format!(
        "This needs a token with the scope {scope}; {:?} has {}.",
        operator.name,
        has.join(" and ")
    );
    Refusal::new(Code::PermissionDenied, detail)
        .hint(format!("assurance token create --name NAME --scope {scope}"))
        .into_response()
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
