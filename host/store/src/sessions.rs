//! Sessions, stored by the hash of their token.

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, fetch_optional, scalars};
use super::error::Error;
use assurance_core::domain::id::{SessionId, UserId};
use assurance_core::domain::people::{Session, User};
use assurance_core::domain::time::Timestamp;

/// SHA-256 of the token of a session, or of an access token.
pub type TokenHash = [u8; 32];

type SessionRow = (Uuid, i64, i64, i64, Option<String>, Option<String>);
type SessionAndUserRow =
    (Uuid, i64, i64, i64, Option<String>, Option<String>, Uuid, String, String, bool);

/// Adds a person's session with the hash of its token.
pub async fn insert(
    connection: &mut Connection,
    user: UserId,
    token_hash: &TokenHash,
    session: &Session,
) -> Result<(), Error> {
    execute!(
        connection,
        "INSERT INTO sessions \
         (id, token_hash, user_id, created_at, last_seen_at, expires_at, ip, user_agent) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        session.id.0,
        &token_hash[..],
        user.0,
        session.created_at.0,
        session.last_seen_at.0,
        session.expires_at.0,
        &session.ip,
        &session.user_agent
    );
    Ok(())
}

/// Finds a session and its person, expired or not, in one query. Returns `None`
/// for a person who is disabled.
pub async fn find(
    connection: &mut Connection,
    token_hash: &TokenHash,
) -> Result<Option<(Session, User)>, Error> {
    let sql = "SELECT s.id, s.created_at, s.last_seen_at, s.expires_at, s.ip, s.user_agent, \
               u.id, u.email, u.display_name, u.email_verified \
               FROM sessions s JOIN users u ON u.id = s.user_id \
               WHERE s.token_hash = $1 AND u.disabled_at IS NULL";
    let row: Option<SessionAndUserRow> = fetch_optional!(connection, sql, &token_hash[..]);
    Ok(row.map(|row| {
        let user =
            User { id: UserId(row.6), email: row.7, display_name: row.8, email_verified: row.9 };
        (session((row.0, row.1, row.2, row.3, row.4, row.5)), user)
    }))
}

/// Lists a person's sessions that have not ended, newest first.
pub async fn list(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
    idle_since: Timestamp,
) -> Result<Vec<Session>, Error> {
    let sql = "SELECT id, created_at, last_seen_at, expires_at, ip, user_agent FROM sessions \
               WHERE user_id = $1 AND expires_at > $2 AND last_seen_at > $3 \
               ORDER BY created_at DESC, id DESC";
    let rows: Vec<SessionRow> = fetch_all!(connection, sql, user.0, now.0, idle_since.0);
    Ok(rows.into_iter().map(session).collect())
}

/// Records a use of the session, unless a use later than `before` is already
/// recorded.
pub async fn touch(
    connection: &mut Connection,
    id: SessionId,
    now: Timestamp,
    before: Timestamp,
) -> Result<(), Error> {
    let sql = "UPDATE sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at <= $3";
    execute!(connection, sql, id.0, now.0, before.0);
    Ok(())
}

/// Ends one of a person's sessions; returns the hash of its token.
pub async fn delete(
    connection: &mut Connection,
    user: UserId,
    id: SessionId,
) -> Result<Option<TokenHash>, Error> {
    let sql = "DELETE FROM sessions WHERE id = $1 AND user_id = $2 RETURNING token_hash";
    // All rows are read: SQLite commits at the end of the statement, and the driver does not report
    // an error of it if the caller stops after the first row.
    Ok(hashes(scalars!(connection, sql, id.0, user.0)).pop())
}

/// Ends all of a person's sessions; returns the hashes of their tokens.
pub async fn delete_all(
    connection: &mut Connection,
    user: UserId,
) -> Result<Vec<TokenHash>, Error> {
    let sql = "DELETE FROM sessions WHERE user_id = $1 RETURNING token_hash";
    Ok(hashes(scalars!(connection, sql, user.0)))
}

/// Ends all of a person's sessions except one; returns the hashes of their
/// tokens.
pub async fn delete_others(
    connection: &mut Connection,
    user: UserId,
    kept: SessionId,
) -> Result<Vec<TokenHash>, Error> {
    let sql = "DELETE FROM sessions WHERE user_id = $1 AND id <> $2 RETURNING token_hash";
    Ok(hashes(scalars!(connection, sql, user.0, kept.0)))
}

/// Ends the oldest of a person's sessions beyond `keep`; returns the hashes of
/// their tokens.
pub async fn delete_beyond(
    connection: &mut Connection,
    user: UserId,
    keep: u32,
) -> Result<Vec<TokenHash>, Error> {
    let sql = "DELETE FROM sessions WHERE user_id = $1 AND id NOT IN (\
               SELECT id FROM sessions WHERE user_id = $1 \
               ORDER BY created_at DESC, id DESC LIMIT $2) RETURNING token_hash";
    Ok(hashes(scalars!(connection, sql, user.0, i64::from(keep))))
}

/// Deletes sessions that expired at or before `now`, or were last used at or
/// before `idle_since`. Returns their number.
pub async fn sweep(
    connection: &mut Connection,
    now: Timestamp,
    idle_since: Timestamp,
) -> Result<u64, Error> {
    let sql = "DELETE FROM sessions WHERE expires_at <= $1 OR last_seen_at <= $2";
    Ok(execute!(connection, sql, now.0, idle_since.0))
}

fn session(row: SessionRow) -> Session {
    Session {
        id: SessionId(row.0),
        created_at: Timestamp(row.1),
        last_seen_at: Timestamp(row.2),
        expires_at: Timestamp(row.3),
        ip: row.4,
        user_agent: row.5,
    }
}

fn hashes(stored: Vec<Vec<u8>>) -> Vec<TokenHash> {
    stored.into_iter().filter_map(|hash| hash.try_into().ok()).collect()
}
