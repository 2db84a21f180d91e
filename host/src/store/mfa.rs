//! Second factors: authenticator secrets, recovery codes, and wrong codes.

use uuid::Uuid;

use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::UserId;
use crate::domain::time::Timestamp;

/// SHA-256 of a recovery code.
pub type CodeHash = [u8; 32];

/// A person's authenticator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totp {
    /// Opens under the master key, for this person only.
    pub sealed_secret: Vec<u8>,
    /// Nothing while enrolment is pending.
    pub confirmed_at: Option<Timestamp>,
    /// Recovery codes are not taken before.
    pub recovery_locked_until: Timestamp,
}

/// What a person's security page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// An authenticator is confirmed.
    pub enabled: bool,
    /// Unused ones.
    pub recovery_codes: i64,
    /// Recovery codes are not taken before.
    pub recovery_locked_until: Timestamp,
}

/// Begins an enrolment, in place of a pending one; [`Error::AlreadyExists`]
/// where an authenticator is confirmed.
pub async fn begin_enrolment(
    connection: &mut Connection,
    user: UserId,
    sealed_secret: &[u8],
) -> Result<(), Error> {
    let changed = on!(connection, c => {
        sqlx::query(
            "INSERT INTO totp (user_id, sealed_secret, last_step, recovery_locked_until) \
             VALUES ($1, $2, 0, 0) ON CONFLICT (user_id) DO UPDATE \
             SET sealed_secret = excluded.sealed_secret, last_step = 0 \
             WHERE totp.confirmed_at IS NULL",
        )
        .bind(user.0)
        .bind(sealed_secret)
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    if changed == 0 { Err(Error::AlreadyExists) } else { Ok(()) }
}

/// The person's authenticator; keeps others from deciding on it until the
/// transaction ends.
pub async fn lock(connection: &mut Connection, user: UserId) -> Result<Option<Totp>, Error> {
    let row: Option<(Vec<u8>, Option<i64>, i64)> = on!(connection, c => {
        sqlx::query_as(
            "UPDATE totp SET last_step = last_step WHERE user_id = $1 \
             RETURNING sealed_secret, confirmed_at, recovery_locked_until",
        )
        .bind(user.0)
        .fetch_optional(&mut *c)
        .await?
    });
    Ok(row.map(|(sealed_secret, confirmed_at, locked_until)| Totp {
        sealed_secret,
        confirmed_at: confirmed_at.map(Timestamp),
        recovery_locked_until: Timestamp(locked_until),
    }))
}

/// Takes a time step; false where it, or a later one, was taken before.
pub async fn take_step(
    connection: &mut Connection,
    user: UserId,
    step: i64,
) -> Result<bool, Error> {
    let changed = on!(connection, c => {
        sqlx::query("UPDATE totp SET last_step = $2 WHERE user_id = $1 AND last_step < $2")
            .bind(user.0)
            .bind(step)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    Ok(changed == 1)
}

/// Makes a pending authenticator count.
pub async fn confirm(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("UPDATE totp SET confirmed_at = $2 WHERE user_id = $1")
            .bind(user.0)
            .bind(now.0)
            .execute(&mut *c)
            .await?.rows_affected()
    });
    Ok(())
}

/// Removes the authenticator with its recovery codes and failures.
pub async fn remove(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    on!(connection, c => {
        for statement in [
            "DELETE FROM recovery_codes WHERE user_id = $1",
            "DELETE FROM second_factor_failures WHERE user_id = $1",
            "DELETE FROM totp WHERE user_id = $1",
        ] {
            sqlx::query(statement).bind(user.0).execute(&mut *c).await?;
        }
    });
    Ok(())
}

/// Replaces all recovery codes.
pub async fn replace_recovery_codes(
    connection: &mut Connection,
    user: UserId,
    hashes: &[CodeHash],
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("DELETE FROM recovery_codes WHERE user_id = $1")
            .bind(user.0)
            .execute(&mut *c)
            .await?;
        for hash in hashes {
            sqlx::query("INSERT INTO recovery_codes (user_id, code_hash) VALUES ($1, $2)")
                .bind(user.0)
                .bind(&hash[..])
                .execute(&mut *c)
                .await?;
        }
    });
    Ok(())
}

/// Uses up a recovery code; false where there is no such unused one.
pub async fn take_recovery_code(
    connection: &mut Connection,
    user: UserId,
    hash: &CodeHash,
    now: Timestamp,
) -> Result<bool, Error> {
    let changed = on!(connection, c => {
        sqlx::query(
            "UPDATE recovery_codes SET used_at = $3 \
             WHERE user_id = $1 AND code_hash = $2 AND used_at IS NULL",
        )
        .bind(user.0)
        .bind(&hash[..])
        .bind(now.0)
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    Ok(changed == 1)
}

/// Records a wrong code, forgets those before `since`, and counts the rest.
pub async fn record_failure(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
    since: Timestamp,
) -> Result<i64, Error> {
    let (count,): (i64,) = on!(connection, c => {
        sqlx::query("DELETE FROM second_factor_failures WHERE user_id = $1 AND failed_at <= $2")
            .bind(user.0)
            .bind(since.0)
            .execute(&mut *c)
            .await?;
        sqlx::query("INSERT INTO second_factor_failures (user_id, id, failed_at) VALUES ($1, $2, $3)")
            .bind(user.0)
            .bind(Uuid::new_v4())
            .bind(now.0)
            .execute(&mut *c)
            .await?;
        sqlx::query_as("SELECT COUNT(*) FROM second_factor_failures WHERE user_id = $1")
            .bind(user.0)
            .fetch_one(&mut *c)
            .await?
    });
    Ok(count)
}

/// Locks the recovery codes until then; a moment that is past unlocks them.
pub async fn lock_recovery(
    connection: &mut Connection,
    user: UserId,
    until: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("UPDATE totp SET recovery_locked_until = $2 WHERE user_id = $1")
            .bind(user.0)
            .bind(until.0)
            .execute(&mut *c)
            .await?.rows_affected()
    });
    Ok(())
}

/// Forgets the wrong codes.
pub async fn forget_failures(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("DELETE FROM second_factor_failures WHERE user_id = $1")
            .bind(user.0)
            .execute(&mut *c)
            .await?.rows_affected()
    });
    Ok(())
}

/// What a person's security page shows.
pub async fn status(connection: &mut Connection, user: UserId) -> Result<Status, Error> {
    let row: Option<(Option<i64>, i64, i64)> = on!(connection, c => {
        sqlx::query_as(
            "SELECT confirmed_at, recovery_locked_until, (SELECT COUNT(*) FROM recovery_codes r \
             WHERE r.user_id = totp.user_id AND r.used_at IS NULL) FROM totp WHERE user_id = $1",
        )
        .bind(user.0)
        .fetch_optional(&mut *c)
        .await?
    });
    let (confirmed_at, locked_until, recovery_codes) = row.unwrap_or((None, 0, 0));
    Ok(Status {
        enabled: confirmed_at.is_some(),
        recovery_codes,
        recovery_locked_until: Timestamp(locked_until),
    })
}
