//! Counts of failed sign-ins: by account and place (device or network), and by
//! address.

use super::connection::{Connection, execute, fetch_one};
use super::error::Error;
use assurance_core::domain::time::Timestamp;

/// Number and times of the failed sign-ins of one subject: an account at a
/// place (device or network), or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignInFailures {
    /// Number of failed sign-ins since the last success; for failures that are
    /// counted per day, since the day began.
    pub count: i64,
    /// Time of the last failure; for failures that are counted per day, of the
    /// first one.
    pub last_at: Timestamp,
    /// Time before which no attempt to sign in is accepted.
    pub blocked_until: Timestamp,
}

/// Returns the failed sign-ins of a subject (an account at a place, or an
/// address). Other attempts on the subject wait until the transaction ends.
pub async fn lock(
    connection: &mut Connection,
    subject: &str,
    now: Timestamp,
) -> Result<SignInFailures, Error> {
    let sql = "INSERT INTO sign_in_failures (subject, failures, last_failed_at, blocked_until) \
               VALUES ($1, 0, $2, 0) ON CONFLICT (subject) DO UPDATE \
               SET failures = sign_in_failures.failures \
               RETURNING failures, last_failed_at, blocked_until";
    let (count, last_at, blocked_until): (i64, i64, i64) =
        fetch_one!(connection, sql, subject, now.0);
    Ok(SignInFailures {
        count,
        last_at: Timestamp(last_at),
        blocked_until: Timestamp(blocked_until),
    })
}

/// Stores the failed sign-ins of a subject, which [`lock`] has returned before.
pub async fn put(
    connection: &mut Connection,
    subject: &str,
    failures: &SignInFailures,
) -> Result<(), Error> {
    execute!(
        connection,
        "UPDATE sign_in_failures SET failures = $2, last_failed_at = $3, blocked_until = $4 \
         WHERE subject = $1",
        subject,
        failures.count,
        failures.last_at.0,
        failures.blocked_until.0
    );
    Ok(())
}

/// Subtracts one failure that was counted before an attempt to sign in, which
/// then did not fail. Restores `former` as the time of the last failure if no
/// other was counted after `counted_at`.
pub async fn take_back(
    connection: &mut Connection,
    subject: &str,
    counted_at: Timestamp,
    former: Timestamp,
) -> Result<(), Error> {
    let sql = "UPDATE sign_in_failures SET failures = failures - 1, blocked_until = 0, \
               last_failed_at = CASE WHEN last_failed_at = $2 THEN $3 ELSE last_failed_at END \
               WHERE subject = $1 AND failures > 0";
    execute!(connection, sql, subject, counted_at.0, former.0);
    Ok(())
}

/// Deletes the failed sign-ins of one subject (an account at a place, or an
/// address).
pub async fn forget(connection: &mut Connection, subject: &str) -> Result<(), Error> {
    execute!(connection, "DELETE FROM sign_in_failures WHERE subject = $1", subject);
    Ok(())
}

/// Deletes all failed sign-ins of an account, from all places. The account is
/// hexadecimal after its first word, so it contains no pattern characters.
pub async fn forget_all(connection: &mut Connection, account: &str) -> Result<(), Error> {
    let sql = "DELETE FROM sign_in_failures WHERE subject LIKE $1";
    execute!(connection, sql, format!("{account} %"));
    Ok(())
}

/// Deletes the failed sign-ins of subjects whose last recorded failure was at
/// or before a time. Returns their number.
pub async fn sweep(connection: &mut Connection, before: Timestamp) -> Result<u64, Error> {
    Ok(execute!(connection, "DELETE FROM sign_in_failures WHERE last_failed_at <= $1", before.0))
}
