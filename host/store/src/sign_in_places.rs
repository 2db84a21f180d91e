//! Devices and networks that accounts have signed in from.

use super::connection::{Connection, on};
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
    Ok(on!(connection, c => {
        sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM sign_in_places \
             WHERE account = $1 AND place = $2 AND seen_at > $3)",
        )
        .bind(account.to_owned())
        .bind(place.to_owned())
        .bind(since.0)
        .fetch_one(&mut *c)
        .await?
    }))
}

/// Records a sign-in of the account from a device or network.
pub async fn keep(
    connection: &mut Connection,
    account: &str,
    place: &str,
    now: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query(
            "INSERT INTO sign_in_places (account, place, seen_at) VALUES ($1, $2, $3) \
             ON CONFLICT (account, place) DO UPDATE SET seen_at = excluded.seen_at",
        )
        .bind(account.to_owned())
        .bind(place.to_owned())
        .bind(now.0)
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    Ok(())
}

/// Deletes one device or network of the account.
pub async fn forget(connection: &mut Connection, account: &str, place: &str) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query("DELETE FROM sign_in_places WHERE account = $1 AND place = $2")
            .bind(account.to_owned())
            .bind(place.to_owned())
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// Deletes all but the newest `most` places of one kind (`device`, `network`).
pub async fn keep_newest(
    connection: &mut Connection,
    account: &str,
    kind: &str,
    most: u32,
) -> Result<(), Error> {
    on!(connection, c => {
        sqlx::query(
            "DELETE FROM sign_in_places WHERE account = $1 AND place LIKE $2 AND place NOT IN \
             (SELECT place FROM sign_in_places WHERE account = $1 AND place LIKE $2 \
              ORDER BY seen_at DESC, place LIMIT $3)",
        )
        .bind(account.to_owned())
        .bind(format!("{kind} %"))
        .bind(i64::from(most))
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    Ok(())
}

/// Deletes the places of all accounts that were last used before a time.
pub async fn sweep(connection: &mut Connection, before: Timestamp) -> Result<u64, Error> {
    Ok(on!(connection, c => {
        sqlx::query("DELETE FROM sign_in_places WHERE seen_at <= $1")
            .bind(before.0)
            .execute(&mut *c)
            .await?
            .rows_affected()
    }))
}
