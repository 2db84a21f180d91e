//! The operators' bearer token.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Operators;
use crate::http::code::Code;
use crate::http::problem::Refusal;

/// What the audit log calls who holds the token of the file.
const BOOTSTRAP: &str = "operators.token";

/// Who asks, as the audit log will name them.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    pub(super) name: String,
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let operator = parts.extensions.get::<Self>().cloned();
        operator.ok_or_else(|| Refusal::internal(anyhow::anyhow!("a route without a guard")))
    }
}

pub(super) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Lets through who has the token; hashes are compared, in constant time.
pub(super) async fn require(
    State(operators): State<Operators>,
    mut request: Request,
    next: Next,
) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION);
    let token = sent.and_then(|value| value.to_str().ok()).and_then(bearer);
    let known = token.is_some_and(|token| hash(token).ct_eq(&operators.token_hash).into());
    if known {
        request.extensions_mut().insert(Operator { name: BOOTSTRAP.to_owned() });
        return next.run(request).await;
    }
    Refusal::new(Code::Unauthenticated, "Authorization: needs the operators' bearer token.")
        .hint("It is in the file that operators.token_file names.")
        .challenge("Bearer")
        .into_response()
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
