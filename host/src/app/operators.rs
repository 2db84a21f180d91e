//! Operators' tokens: made once, shown once, kept as a hash, revoked at once.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::domain::deployment::{Audited, Step};
use crate::domain::operator::{Scope, Token};
use crate::domain::time::Timestamp;
use crate::store::{self, Access, Store, audit, operator_tokens};

/// The name, in the audit log, of the token in the file that
/// `operators.token_file` names. No other token has it.
pub const BOOTSTRAP: &str = "operators.token";

/// A token and its secret, which is never seen again.
#[derive(Debug)]
pub struct Made {
    /// What is kept.
    pub token: Token,
    /// What opens.
    pub secret: Zeroizing<String>,
}

/// Makes a token.
///
/// # Errors
/// [`store::Error::AlreadyExists`] where a good one has the name.
pub async fn create(
    store: &Store,
    now: Timestamp,
    name: &str,
    scopes: BTreeSet<Scope>,
) -> Result<Made, store::Error> {
    if name == BOOTSTRAP {
        return Err(store::Error::AlreadyExists);
    }
    let random: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
    let secret = Zeroizing::new(format!("aot_{}", URL_SAFE_NO_PAD.encode(*random)));
    let (id, name) = (Uuid::now_v7(), name.to_owned());
    let token = Token { id, name, scopes, created_at: now, revoked_at: None };
    let mut tx = store.begin(Access::WriteLocked).await?;
    operator_tokens::insert(&mut tx, &token, &hash(&secret)).await?;
    let line = line(now, Step::TokenCreated, json!({"token": token.name, "scopes": token.scopes}));
    audit::append(&mut tx, &line).await?;
    tx.commit().await?;
    Ok(Made { token, secret })
}

/// Makes a token open nothing, on every node.
///
/// # Errors
/// [`store::Error::NotFound`] where no good one has the name.
pub async fn revoke(store: &Store, now: Timestamp, name: &str) -> Result<(), store::Error> {
    let mut tx = store.begin(Access::WriteLocked).await?;
    if !operator_tokens::revoke(&mut tx, name, now).await? {
        return Err(store::Error::NotFound);
    }
    audit::append(&mut tx, &line(now, Step::TokenRevoked, json!({"token": name}))).await?;
    tx.commit().await
}

/// All tokens, oldest first.
///
/// # Errors
/// The database is away.
pub async fn list(store: &Store) -> Result<Vec<Token>, store::Error> {
    let mut connection = store.reader().await?;
    let tokens = operator_tokens::list(&mut connection).await?;
    connection.release();
    Ok(tokens)
}

/// The good token with this secret.
///
/// # Errors
/// The database is away.
pub async fn find(store: &Store, secret: &str) -> Result<Option<Token>, store::Error> {
    let mut connection = store.reader().await?;
    let token = operator_tokens::find(&mut connection, &hash(secret)).await?;
    connection.release();
    Ok(token)
}

/// How a secret is kept.
#[must_use]
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Tokens are made by who has the machine.
fn line(at: Timestamp, step: Step, changed: serde_json::Value) -> Audited {
    let (who, changed) = ("command line".to_owned(), Some(changed));
    Audited { at, who, area: None, digest: None, step, why: None, changed }
}
