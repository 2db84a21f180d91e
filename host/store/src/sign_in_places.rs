//! Devices and networks that accounts have signed in from.

use super::connection::{Connection, execute, scalar};
use super::error::Error;
use assurance_core::domain::time::Timestamp;

/// Returns whether the account has signed in from a device or network since a
/// time.
pub async fn is_known(
    connection: &mut Connection,
    account: &str,
    place: &str,
    since: Timestamp,
) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sign_in_places \
               WHERE account = $1 AND place = $2 AND seen_at > $3)";
    Ok(scalar!(connection, sql, account.to_owned(), place.to_owned(), since.0))
}

/// Records a sign-in of the account from a device or network.
pub async fn keep(
    connection: &mut Connection,
    account: &str,
    place: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let sql = "INSERT INTO sign_in_places (account, place, seen_at) VALUES ($1, $2, $3) \
               ON CONFLICT (account, place) DO UPDATE SET seen_at = excluded.seen_at";
    execute!(connection, sql, account.to_owned(), place.to_owned(), now.0);
    Ok(())
}

/// Deletes one device or network of the account.
pub async fn forget(connection: &mut Connection, account: &str, place: &str) -> Result<(), Error> {
    let sql = "DELETE FROM sign_in_places WHERE account = $1 AND place = $2";
    execute!(connection, sql, account.to_owned(), place.to_owned());
    Ok(())
}

/// Deletes an account's devices or networks (`kind`: `device`, `network`)
/// except the `most` that were used last.
pub async fn keep_newest(
    connection: &mut Connection,
    account: &str,
    kind: &str,
    most: u32,
) -> Result<(), Error> {
    let sql = "DELETE FROM sign_in_places WHERE account = $1 AND place LIKE $2 AND place NOT IN \
               (SELECT place FROM sign_in_places WHERE account = $1 AND place LIKE $2 \
               ORDER BY seen_at DESC, place LIMIT $3)";
    execute!(connection, sql, account.to_owned(), format!("{kind} %"), i64::from(most));
    Ok(())
}

/// Deletes the devices and networks of all accounts that were last used at or
/// before a time. Returns their number.
pub async fn sweep(connection: &mut Connection, before: Timestamp) -> Result<u64, Error> {
    Ok(execute!(connection, "DELETE FROM sign_in_places WHERE seen_at <= $1", before.0))
}
