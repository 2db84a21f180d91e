//! Data of the whole installation: the check value of the master key, and the
//! values encrypted under it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, optional_scalar, scalar};
use super::error::Error;
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::sealed::{
    SealedValue, authenticator_place, response_place, secret_place,
};
use assurance_core::domain::time::Timestamp;

/// Maximum number of secrets, and of authenticators, that [`sealed_values`]
/// returns.
const SECRETS: i64 = 10_000;
/// Maximum number of stored responses that [`sealed_values`] returns; they may
/// be large.
const RESPONSES: i64 = 100;

/// Returns the check value of the database's master key; `None` if no process
/// has stored one yet.
pub async fn key_check(connection: &mut Connection) -> Result<Option<Vec<u8>>, Error> {
    Ok(optional_scalar!(connection, "SELECT key_check FROM installation WHERE id = 1"))
}

/// Stores the check value of a master key unless one is stored, and returns the
/// stored one. Of two processes with different keys, one wins.
pub async fn claim_key_check(
    connection: &mut Connection,
    value: &[u8],
    now: Timestamp,
) -> Result<Option<Vec<u8>>, Error> {
    let sql = "INSERT INTO installation (id, key_check, created_at) VALUES (1, $1, $2) \
               ON CONFLICT (id) DO NOTHING";
    execute!(connection, sql, value, now.0);
    key_check(connection).await
}

/// Returns whether the database is unused: no people, no workspaces, no
/// encrypted values.
pub async fn is_unused(connection: &mut Connection) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM workspaces) \
               OR EXISTS (SELECT 1 FROM secrets) OR EXISTS (SELECT 1 FROM totp) \
               OR EXISTS (SELECT 1 FROM idempotency WHERE body IS NOT NULL)";
    let used: bool = scalar!(connection, sql);
    Ok(!used)
}

/// Returns the newest values encrypted under the master key, of each kind.
pub async fn sealed_values(connection: &mut Connection) -> Result<Vec<SealedValue>, Error> {
    let mut values = secrets(connection).await?;
    values.extend(authenticators(connection).await?);
    values.extend(responses(connection).await?);
    Ok(values)
}

async fn secrets(connection: &mut Connection) -> Result<Vec<SealedValue>, Error> {
    let sql = "SELECT workspace_id, area, name, origin, sealed FROM secrets \
               ORDER BY updated_at DESC LIMIT $1";
    let rows: Vec<(Uuid, String, String, String, Vec<u8>)> = fetch_all!(connection, sql, SECRETS);
    let value = |(workspace, area, name, origin, sealed): (Uuid, String, String, String, _)| {
        let place = secret_place(WorkspaceId(workspace), &area, &name, &origin);
        SealedValue { place, sealed }
    };
    Ok(rows.into_iter().map(value).collect())
}

async fn authenticators(connection: &mut Connection) -> Result<Vec<SealedValue>, Error> {
    let sql = "SELECT user_id, sealed_secret FROM totp ORDER BY user_id DESC LIMIT $1";
    let rows: Vec<(Uuid, Vec<u8>)> = fetch_all!(connection, sql, SECRETS);
    let value = |(user, sealed)| SealedValue { place: authenticator_place(UserId(user)), sealed };
    Ok(rows.into_iter().map(value).collect())
}

async fn responses(connection: &mut Connection) -> Result<Vec<SealedValue>, Error> {
    let sql = "SELECT workspace_id, user_id, operation, key, body FROM idempotency \
               WHERE body IS NOT NULL ORDER BY expires_at DESC LIMIT $1";
    let rows: Vec<(Uuid, Uuid, String, String, String)> = fetch_all!(connection, sql, RESPONSES);
    let value = |(workspace, user, operation, key, body): (Uuid, Uuid, String, String, String)| {
        let place = response_place(WorkspaceId(workspace), UserId(user), &operation, &key);
        // A value that is not base64 cannot be decrypted with any key; empty
        // data has the same effect.
        SealedValue { place, sealed: STANDARD_NO_PAD.decode(body).unwrap_or_default() }
    };
    Ok(rows.into_iter().map(value).collect())
}
