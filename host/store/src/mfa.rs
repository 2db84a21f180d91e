//! Second factors: authenticator secrets, recovery codes, and counts of wrong
//! codes.

use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, fetch_optional, scalar};
use super::error::{Error, changed_or};
use assurance_core::domain::id::UserId;
use assurance_core::domain::time::Timestamp;

/// SHA-256 of a recovery code.
pub type RecoveryCodeHash = [u8; 32];

/// A person's authenticator (TOTP).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totp {
    /// Encrypted secret of the authenticator, bound to this person.
    pub sealed_secret: Vec<u8>,
    /// Time at which the person confirmed the authenticator; `None` while
    /// enrollment is pending.
    pub confirmed_at: Option<Timestamp>,
    /// Time until which recovery codes are locked.
    pub recovery_locked_until: Timestamp,
}

/// State of a person's second factor for the security page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MfaStatus {
    /// Whether an authenticator is confirmed.
    pub enabled: bool,
    /// Number of unused recovery codes.
    pub recovery_codes: i64,
    /// Time until which recovery codes are locked.
    pub recovery_locked_until: Timestamp,
}

/// Begins a person's enrollment of an authenticator and replaces a pending one.
/// Returns [`Error::AlreadyExists`] if an authenticator is confirmed.
pub async fn begin_enrolment(
    connection: &mut Connection,
    user: UserId,
    sealed_secret: &[u8],
) -> Result<(), Error> {
    let sql = "INSERT INTO totp (user_id, sealed_secret, last_step, recovery_locked_until) \
               VALUES ($1, $2, 0, 0) ON CONFLICT (user_id) DO UPDATE \
               SET sealed_secret = excluded.sealed_secret, last_step = 0 \
               WHERE totp.confirmed_at IS NULL";
    changed_or(execute!(connection, sql, user.0, sealed_secret), Error::AlreadyExists)
}

/// Returns the person's authenticator and locks it until the transaction ends;
/// `None` if there is none.
pub async fn lock(connection: &mut Connection, user: UserId) -> Result<Option<Totp>, Error> {
    let sql = "UPDATE totp SET last_step = last_step WHERE user_id = $1 \
               RETURNING sealed_secret, confirmed_at, recovery_locked_until";
    // All rows are read, so that SQLite's error at the end of the statement is reported.
    let mut rows: Vec<(Vec<u8>, Option<i64>, i64)> = fetch_all!(connection, sql, user.0);
    Ok(rows.pop().map(|(sealed_secret, confirmed_at, locked_until)| Totp {
        sealed_secret,
        confirmed_at: confirmed_at.map(Timestamp),
        recovery_locked_until: Timestamp(locked_until),
    }))
}

/// Marks a time step of authenticator codes as used. Returns false if this step
/// or a later one was used before.
pub async fn take_step(
    connection: &mut Connection,
    user: UserId,
    step: i64,
) -> Result<bool, Error> {
    let sql = "UPDATE totp SET last_step = $2 WHERE user_id = $1 AND last_step < $2";
    let changed = execute!(connection, sql, user.0, step);
    Ok(changed == 1)
}

/// Marks a person's pending authenticator as confirmed.
pub async fn confirm(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(connection, "UPDATE totp SET confirmed_at = $2 WHERE user_id = $1", user.0, now.0);
    Ok(())
}

/// Deletes a person's authenticator with the recovery codes and recorded wrong
/// codes.
pub async fn remove(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    for statement in [
        "DELETE FROM recovery_codes WHERE user_id = $1",
        "DELETE FROM second_factor_failures WHERE user_id = $1",
        "DELETE FROM totp WHERE user_id = $1",
    ] {
        execute!(connection, statement, user.0);
    }
    Ok(())
}

/// Replaces all recovery codes of a person.
pub async fn replace_recovery_codes(
    connection: &mut Connection,
    user: UserId,
    hashes: &[RecoveryCodeHash],
) -> Result<(), Error> {
    execute!(connection, "DELETE FROM recovery_codes WHERE user_id = $1", user.0);
    for hash in hashes {
        let sql = "INSERT INTO recovery_codes (user_id, code_hash) VALUES ($1, $2)";
        execute!(connection, sql, user.0, &hash[..]);
    }
    Ok(())
}

/// Marks a person's recovery code as used. Returns false if there is no such
/// unused code.
pub async fn take_recovery_code(
    connection: &mut Connection,
    user: UserId,
    hash: &RecoveryCodeHash,
    now: Timestamp,
) -> Result<bool, Error> {
    let sql = "UPDATE recovery_codes SET used_at = $3 \
               WHERE user_id = $1 AND code_hash = $2 AND used_at IS NULL";
    let changed = execute!(connection, sql, user.0, &hash[..], now.0);
    Ok(changed == 1)
}

/// Records a wrong code and deletes the person's wrong codes at or before
/// `since`. Returns the number of the remaining ones, including this one.
pub async fn record_failure(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
    since: Timestamp,
) -> Result<i64, Error> {
    let sql = "DELETE FROM second_factor_failures WHERE user_id = $1 AND failed_at <= $2";
    execute!(connection, sql, user.0, since.0);
    let sql = "INSERT INTO second_factor_failures (user_id, id, failed_at) VALUES ($1, $2, $3)";
    execute!(connection, sql, user.0, Uuid::new_v4(), now.0);
    let sql = "SELECT COUNT(*) FROM second_factor_failures WHERE user_id = $1";
    Ok(scalar!(connection, sql, user.0))
}

/// Locks a person's recovery codes until a time; a past time unlocks them.
pub async fn lock_recovery(
    connection: &mut Connection,
    user: UserId,
    until: Timestamp,
) -> Result<(), Error> {
    let sql = "UPDATE totp SET recovery_locked_until = $2 WHERE user_id = $1";
    execute!(connection, sql, user.0, until.0);
    Ok(())
}

/// Deletes the recorded wrong codes of a person.
pub async fn forget_failures(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    execute!(connection, "DELETE FROM second_factor_failures WHERE user_id = $1", user.0);
    Ok(())
}

/// Returns the state of a person's second factor for the security page.
pub async fn status(connection: &mut Connection, user: UserId) -> Result<MfaStatus, Error> {
    let sql = "SELECT confirmed_at, recovery_locked_until, (SELECT COUNT(*) FROM recovery_codes r \
               WHERE r.user_id = totp.user_id AND r.used_at IS NULL) FROM totp WHERE user_id = $1";
    let row: Option<(Option<i64>, i64, i64)> = fetch_optional!(connection, sql, user.0);
    let (confirmed_at, locked_until, recovery_codes) = row.unwrap_or((None, 0, 0));
    Ok(MfaStatus {
        enabled: confirmed_at.is_some(),
        recovery_codes,
        recovery_locked_until: Timestamp(locked_until),
    })
}
