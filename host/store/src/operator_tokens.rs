//! Operators' tokens, stored by the hash of their secret.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, fetch_optional};
use super::error::{Error, changed_or, unreadable};
use assurance_core::domain::operator::{OperatorTokenInfo, TokenScope};
use assurance_core::domain::time::Timestamp;

type Row = (Uuid, String, String, i64, Option<i64>);

/// Adds an operator's token. Returns [`Error::AlreadyExists`] if a valid token
/// has the same name.
pub async fn insert(
    connection: &mut Connection,
    token: &OperatorTokenInfo,
    hash: &[u8; 32],
) -> Result<(), Error> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let added = execute!(
        connection,
        "INSERT INTO operator_tokens (id, name, token_hash, scopes, created_at) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING",
        token.id,
        &token.name,
        &hash[..],
        scopes.join(" "),
        token.created_at.0
    );
    changed_or(added, Error::AlreadyExists)
}

/// Returns the operator's valid token with this hash; `None` if there is none.
pub async fn find(
    connection: &mut Connection,
    hash: &[u8; 32],
) -> Result<Option<OperatorTokenInfo>, Error> {
    let sql = "SELECT id, name, scopes, created_at, revoked_at FROM operator_tokens \
               WHERE token_hash = $1 AND revoked_at IS NULL";
    let row: Option<Row> = fetch_optional!(connection, sql, &hash[..]);
    row.map(token).transpose()
}

/// Lists all operators' tokens, including revoked ones, oldest first.
pub async fn list(connection: &mut Connection) -> Result<Vec<OperatorTokenInfo>, Error> {
    let sql = "SELECT id, name, scopes, created_at, revoked_at FROM operator_tokens \
               ORDER BY created_at, id";
    let rows: Vec<Row> = fetch_all!(connection, sql);
    rows.into_iter().map(token).collect()
}

/// Revokes the operators' valid token with this name. Returns whether there was
/// one.
pub async fn revoke(
    connection: &mut Connection,
    name: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let sql = "UPDATE operator_tokens SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL";
    let revoked = execute!(connection, sql, name, now.0);
    Ok(revoked > 0)
}

fn token((id, name, scopes, created_at, revoked_at): Row) -> Result<OperatorTokenInfo, Error> {
    let scopes: Result<BTreeSet<TokenScope>, String> =
        scopes.split_whitespace().map(str::parse).collect();
    let scopes = scopes.map_err(|problem| unreadable("operator_tokens.scopes", problem))?;
    let (created_at, revoked_at) = (Timestamp(created_at), revoked_at.map(Timestamp));
    Ok(OperatorTokenInfo { id, name, scopes, created_at, revoked_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_both;

    fn made(name: &str) -> OperatorTokenInfo {
        OperatorTokenInfo {
            id: Uuid::new_v4(),
            name: name.into(),
            scopes: [TokenScope::Read, TokenScope::Deploy].into(),
            created_at: Timestamp(1),
            revoked_at: None,
        }
    }

    on_both! {
        async fn a_token_opens_until_it_is_revoked(store: &Store) {
            let mut connection = store.writer().await.unwrap();
            let ci = made("ci");
            insert(&mut connection, &ci, &[1; 32]).await.unwrap();
            assert_eq!(find(&mut connection, &[1; 32]).await.unwrap(), Some(ci));
            assert_eq!(find(&mut connection, &[2; 32]).await.unwrap(), None);
            let taken = insert(&mut connection, &made("ci"), &[2; 32]).await;
            assert!(matches!(taken, Err(Error::AlreadyExists)), "{taken:?}");
            assert!(revoke(&mut connection, "ci", Timestamp(2)).await.unwrap());
            assert!(!revoke(&mut connection, "ci", Timestamp(3)).await.unwrap());
            assert_eq!(find(&mut connection, &[1; 32]).await.unwrap(), None);
            insert(&mut connection, &made("ci"), &[2; 32]).await.unwrap();
            let all = list(&mut connection).await.unwrap();
            let revoked: Vec<_> = all.iter().map(|token| token.revoked_at).collect();
            assert!(revoked.contains(&Some(Timestamp(2))) && revoked.contains(&None), "{all:?}");
        }
    }
}
