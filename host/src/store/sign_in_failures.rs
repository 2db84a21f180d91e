//! What wrong passwords have led to, by account and place, and by address.

use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::time::Timestamp;

/// What is known of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// In a row.
    pub count: i64,
    /// The last of them; of failures that count by the day, the first.
    pub last_at: Timestamp,
    /// No attempt before.
    pub blocked_until: Timestamp,
}

/// Reads what is known, and keeps other attempts on the subject waiting until
/// the transaction ends.
pub async fn lock(
    connection: &mut Connection,
    subject: &str,
    now: Timestamp,
) -> Result<Failures, Error> {
    let (count, last_at, blocked_until): (i64, i64, i64) = on!(connection, c => {
        sqlx::query_as(
            "INSERT INTO sign_in_failures (subject, failures, last_failed_at, blocked_until) \
             VALUES ($1, 0, $2, 0) ON CONFLICT (subject) DO UPDATE \
             SET failures = sign_in_failures.failures \
             RETURNING failures, last_failed_at, blocked_until",
        )
        .bind(subject)
        .bind(now.0)
        .fetch_one(&mut *c)
        .await?
    });
    Ok(Failures { count, last_at: Timestamp(last_at), blocked_until: Timestamp(blocked_until) })
}

/// Writes what is known now.
pub async fn put(
    connection: &mut Connection,
    subject: &str,
    failures: &Failures,
) -> Result<(), Error> {
    on!(connection, c => sqlx::query(
        "UPDATE sign_in_failures SET failures = $2, last_failed_at = $3, blocked_until = $4 \
         WHERE subject = $1",
    )
    .bind(subject)
    .bind(failures.count)
    .bind(failures.last_at.0)
    .bind(failures.blocked_until.0)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(())
}

/// Takes back one failure that turned out to be none.
pub async fn take_back(connection: &mut Connection, subject: &str) -> Result<(), Error> {
    on!(connection, c => sqlx::query(
        "UPDATE sign_in_failures SET failures = failures - 1, blocked_until = 0 \
         WHERE subject = $1 AND failures > 0",
    )
    .bind(subject)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(())
}

/// Forgets one subject.
pub async fn forget(connection: &mut Connection, subject: &str) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("DELETE FROM sign_in_failures WHERE subject = $1")
            .bind(subject)
            .execute(&mut *c)
            .await?.rows_affected()
    });
    Ok(())
}

/// Forgets all of an account, wherever its failures came from. The account is
/// hexadecimal after its first word, so nothing in it is a pattern.
pub async fn forget_all(connection: &mut Connection, account: &str) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("DELETE FROM sign_in_failures WHERE subject LIKE $1")
            .bind(format!("{account} %"))
            .execute(&mut *c)
            .await?.rows_affected()
    });
    Ok(())
}

/// Forgets everything that old.
pub async fn sweep(connection: &mut Connection, before: Timestamp) -> Result<u64, Error> {
    Ok(on!(connection, c => {
        sqlx::query("DELETE FROM sign_in_failures WHERE last_failed_at <= $1")
            .bind(before.0)
            .execute(&mut *c)
            .await?
            .rows_affected()
    }))
}
