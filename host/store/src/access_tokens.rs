//! Access tokens of workspaces, stored by the hash of their text.

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, fetch_optional, scalar, scalars};
use super::cursor::CursorBinding;
use super::error::{Error, parsed};
use super::sessions::TokenHash;
use assurance_core::domain::id::{AccessTokenId, UserId, WorkspaceId};
use assurance_core::domain::people::{AccessToken, User};
use assurance_core::domain::time::Timestamp;

type Row = (Uuid, Uuid, Uuid, String, String, i64, i64, Option<i64>);
type TokenAndMakerRow =
    (Uuid, Uuid, Uuid, String, String, i64, i64, Option<i64>, String, String, bool);

/// Adds an access token with the hash of its text.
pub async fn insert(
    connection: &mut Connection,
    token: &AccessToken,
    token_hash: &TokenHash,
) -> Result<(), Error> {
    execute!(
        connection,
        "INSERT INTO access_tokens \
         (id, token_hash, workspace_id, user_id, name, role, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        token.id.0,
        &token_hash[..],
        token.workspace.0,
        token.user.0,
        &token.name,
        token.role.as_str(),
        token.created_at.0,
        token.expires_at.0
    );
    Ok(())
}

/// Finds an access token, expired or not, and its maker in one query. Returns
/// `None` if there is no such token, or if its maker is disabled. Tokens of
/// former members are deleted with the membership.
pub async fn find(
    connection: &mut Connection,
    token_hash: &TokenHash,
) -> Result<Option<(AccessToken, User)>, Error> {
    let sql = "SELECT t.id, t.workspace_id, t.user_id, t.name, t.role, t.created_at, t.expires_at, \
               t.last_used_at, u.email, u.display_name, u.email_verified \
               FROM access_tokens t JOIN users u ON u.id = t.user_id \
               WHERE t.token_hash = $1 AND u.disabled_at IS NULL";
    let row: Option<TokenAndMakerRow> = fetch_optional!(connection, sql, &token_hash[..]);
    let Some(row) = row else { return Ok(None) };
    let id = UserId(row.2);
    let maker = User { id, email: row.8, display_name: row.9, email_verified: row.10 };
    let token = read((row.0, row.1, row.2, row.3, row.4, row.5, row.6, row.7))?;
    Ok(Some((token, maker)))
}

/// Records a use of the access token, unless a use later than `before` is
/// already recorded.
pub async fn touch(
    connection: &mut Connection,
    id: AccessTokenId,
    now: Timestamp,
    before: Timestamp,
) -> Result<(), Error> {
    let sql = "UPDATE access_tokens SET last_used_at = $2 \
               WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";
    execute!(connection, sql, id.0, now.0, before.0);
    Ok(())
}

/// Returns the number of a workspace's access tokens, including expired ones.
pub async fn count(connection: &mut Connection, workspace: WorkspaceId) -> Result<i64, Error> {
    let sql = "SELECT COUNT(*) FROM access_tokens WHERE workspace_id = $1";
    Ok(scalar!(connection, sql, workspace.0))
}

/// Returns one page of a workspace's access tokens, newest first, and the
/// cursor of the next page. Includes expired tokens. Returns
/// [`Error::InvalidCursor`] for a cursor of another list.
pub async fn page(
    connection: &mut Connection,
    workspace: WorkspaceId,
    cursor: Option<&str>,
    limit: u32,
    cursor_key: &[u8; 32],
) -> Result<(Vec<AccessToken>, Option<String>), Error> {
    let binding = CursorBinding::of_list(cursor_key, workspace.0, "a workspace's access tokens");
    let before: Uuid = binding.after(cursor)?.unwrap_or(Uuid::max());
    let sql = "SELECT id, workspace_id, user_id, name, role, created_at, expires_at, last_used_at \
               FROM access_tokens WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let rows: Vec<Row> = fetch_all!(connection, sql, workspace.0, before, i64::from(limit) + 1);
    let found: Vec<AccessToken> = rows.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(binding.page(found, limit, |token| token.id.to_string()))
}

/// Revokes one of a workspace's access tokens. Returns the hash of its text;
/// `None` if there is no such token.
pub async fn delete(
    connection: &mut Connection,
    workspace: WorkspaceId,
    id: AccessTokenId,
) -> Result<Option<TokenHash>, Error> {
    let sql = "DELETE FROM access_tokens WHERE id = $1 AND workspace_id = $2 RETURNING token_hash";
    // All rows are read, so that SQLite's error at the end of the statement is reported.
    let hashes: Vec<Vec<u8>> = scalars!(connection, sql, id.0, workspace.0);
    Ok(hashes.into_iter().next().and_then(|hash| hash.try_into().ok()))
}

/// Revokes all access tokens that a person has made, in all workspaces. Returns
/// their number.
pub async fn delete_of_user(connection: &mut Connection, user: UserId) -> Result<u64, Error> {
    Ok(execute!(connection, "DELETE FROM access_tokens WHERE user_id = $1", user.0))
}

/// Deletes a workspace's access tokens that expired at or before the time
/// `expired`. Returns their number.
pub async fn sweep(
    connection: &mut Connection,
    workspace: WorkspaceId,
    expired: Timestamp,
) -> Result<u64, Error> {
    let sql = "DELETE FROM access_tokens WHERE workspace_id = $1 AND expires_at <= $2";
    Ok(execute!(connection, sql, workspace.0, expired.0))
}

fn read(row: Row) -> Result<AccessToken, Error> {
    let (id, workspace, user, name, role, created_at, expires_at, last_used_at) = row;
    Ok(AccessToken {
        id: AccessTokenId(id),
        workspace: WorkspaceId(workspace),
        user: UserId(user),
        name,
        role: parsed("access_tokens.role", &role)?,
        created_at: Timestamp(created_at),
        expires_at: Timestamp(expires_at),
        last_used_at: last_used_at.map(Timestamp),
    })
}
