//! Operators' tokens. A token's secret is shown once and stored as a hash. Revocation takes effect
//! at once on all nodes.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

use assurance_core::domain::deployment::{AuditAction, NewAuditEntry};
use assurance_core::domain::operator::{OperatorTokenInfo, TokenScope};
use assurance_core::domain::time::Timestamp;
use assurance_store::{self as store, Store, TransactionAccess, audit, operator_tokens};

/// Name in the audit log of the token from the file `operators.token_file`. No other token can have
/// it.
pub const BOOTSTRAP: &str = "operators.token";

/// Maximum length of an operator token's name, in characters.
const MAX_NAME_CHARS: usize = 120;

/// An operator token that was just created, with its secret. The secret cannot be read again.
#[derive(Debug)]
pub struct CreatedOperatorToken {
    /// The operator token without its secret.
    pub token: OperatorTokenInfo,
    /// Bearer token that the operator sends with each request.
    pub secret: Zeroizing<String>,
}

/// Reason why an operator token was not created; each message includes the fix.
#[derive(Debug, thiserror::Error)]
pub enum CreateOperatorTokenError {
    /// The operator token's name is empty, too long, or has control characters.
    #[error("the name of a token has 1 to {MAX_NAME_CHARS} characters on one line")]
    InvalidName,
    /// A valid operator token has this name.
    #[error("there is a token {0:?}; revoke it first, or choose another name")]
    NameTaken(String),
    /// The database is unavailable.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Creates an operator token and its audit log entry.
///
/// # Errors
/// See [`CreateOperatorTokenError`].
pub async fn create(
    store: &Store,
    now: Timestamp,
    name: &str,
    scopes: BTreeSet<TokenScope>,
) -> Result<CreatedOperatorToken, CreateOperatorTokenError> {
    check_name(name)?;
    let random: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
    let secret = Zeroizing::new(format!("aot_{}", URL_SAFE_NO_PAD.encode(*random)));
    let (id, name) = (Uuid::now_v7(), name.to_owned());
    let token = OperatorTokenInfo { id, name, scopes, created_at: now, revoked_at: None };
    let mut tx = store.begin(TransactionAccess::WriteLocked).await?;
    match operator_tokens::insert(&mut tx, &token, &hash(&secret)).await {
        Err(store::Error::AlreadyExists) => {
            return Err(CreateOperatorTokenError::NameTaken(token.name));
        }
        other => other?,
    }
    let line =
        line(now, AuditAction::TokenCreated, json!({"token": token.name, "scopes": token.scopes}));
    audit::append(&mut tx, &line).await?;
    tx.commit().await?;
    Ok(CreatedOperatorToken { token, secret })
}

fn check_name(name: &str) -> Result<(), CreateOperatorTokenError> {
    if name == BOOTSTRAP {
        return Err(CreateOperatorTokenError::NameTaken(name.to_owned()));
    }
    let fits = !name.trim().is_empty() && name.chars().count() <= MAX_NAME_CHARS;
    if fits && !name.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(CreateOperatorTokenError::InvalidName)
    }
}

/// Revokes an operator token on every node and adds an audit log entry.
///
/// # Errors
/// [`store::Error::NotFound`] if no valid token has this name.
pub async fn revoke(store: &Store, now: Timestamp, name: &str) -> Result<(), store::Error> {
    let mut tx = store.begin(TransactionAccess::WriteLocked).await?;
    if !operator_tokens::revoke(&mut tx, name, now).await? {
        return Err(store::Error::NotFound);
    }
    audit::append(&mut tx, &line(now, AuditAction::TokenRevoked, json!({"token": name}))).await?;
    tx.commit().await
}

/// Returns all operator tokens, oldest first.
///
/// # Errors
/// The database is unavailable.
pub async fn list(store: &Store) -> Result<Vec<OperatorTokenInfo>, store::Error> {
    store.read(async |c| operator_tokens::list(c).await).await
}

/// Returns the valid operator token with this secret; `None` if there is none.
///
/// # Errors
/// The database is unavailable.
pub async fn find(store: &Store, secret: &str) -> Result<Option<OperatorTokenInfo>, store::Error> {
    store.read(async |c| operator_tokens::find(c, &hash(secret)).await).await
}

/// Returns the stored form of an operator token's secret: its SHA-256 hash.
#[must_use]
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Creates the audit log entry for an operator token that was created or revoked with the command
/// line.
fn line(at: Timestamp, step: AuditAction, changed: serde_json::Value) -> NewAuditEntry {
    let (who, changed) = ("command line".to_owned(), Some(changed));
    NewAuditEntry { at, who, area: None, digest: None, step, why: None, changed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_s_name_has_at_most_120_characters_on_one_line() {
        for good in ["ci", "Überwachung", &"x".repeat(MAX_NAME_CHARS)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", " ", "a\nb", &"x".repeat(MAX_NAME_CHARS + 1)] {
            let refused = check_name(bad);
            assert!(matches!(refused, Err(CreateOperatorTokenError::InvalidName)), "{bad:?}");
        }
        let taken = check_name(BOOTSTRAP).unwrap_err().to_string();
        assert!(taken.contains("choose another name"), "{taken}");
    }
}
