//! Number of mails per day, for each recipient and for each sending workspace.

use super::connection::{Connection, execute, fetch_one};
use super::error::Error;
use assurance_core::domain::time::Timestamp;

/// Mails of one recipient or workspace on one day, which begins with the first
/// mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailCount {
    /// Number of mails on this day.
    pub mails: i64,
    /// Time of the day's first mail, at which the day begins.
    pub since: Timestamp,
    /// Time of the day's last mail.
    pub last_at: Timestamp,
}

/// Returns the mail count of a recipient or workspace (`subject`). Other mails
/// of the subject wait until the transaction ends.
pub async fn lock(
    connection: &mut Connection,
    subject: &str,
    now: Timestamp,
) -> Result<MailCount, Error> {
    let sql = "INSERT INTO mail_counts (subject, mails, since, last_at) VALUES ($1, 0, $2, 0) \
               ON CONFLICT (subject) DO UPDATE SET mails = mail_counts.mails \
               RETURNING mails, since, last_at";
    let (mails, since, last_at): (i64, i64, i64) =
        fetch_one!(connection, sql, subject.to_owned(), now.0);
    Ok(MailCount { mails, since: Timestamp(since), last_at: Timestamp(last_at) })
}

/// Stores the mail count of a recipient or workspace (`subject`), which
/// [`lock`] has returned before.
pub async fn put(
    connection: &mut Connection,
    subject: &str,
    count: &MailCount,
) -> Result<(), Error> {
    let sql = "UPDATE mail_counts SET mails = $2, since = $3, last_at = $4 WHERE subject = $1";
    execute!(connection, sql, subject.to_owned(), count.mails, count.since.0, count.last_at.0);
    Ok(())
}

/// Subtracts one mail of a recipient or workspace (`subject`) that was counted
/// but not sent.
pub async fn take_back(connection: &mut Connection, subject: &str) -> Result<(), Error> {
    let sql = "UPDATE mail_counts SET mails = mails - 1 WHERE subject = $1 AND mails > 0";
    execute!(connection, sql, subject.to_owned());
    Ok(())
}

/// Deletes the mail counts of days that began at or before a time. Returns
/// their number.
pub async fn sweep(connection: &mut Connection, before: Timestamp) -> Result<u64, Error> {
    Ok(execute!(connection, "DELETE FROM mail_counts WHERE since <= $1", before.0))
}
