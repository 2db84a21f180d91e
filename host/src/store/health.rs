//! What readiness asks of the database: its clock, whether a write commits,
//! and whether a newer release has migrated its schema.

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use super::connection::{Connection, Raw, on};
use super::error::Error;
use super::sql::DATABASE_NOW;
use super::{Access, Store, open};
use crate::domain::time::{Clock, SharedClock, Timestamp};

/// Only this process's own sign of life writes the same row.
const MAX_RERUNS: u32 = 3;

/// The clock that all processes of this database share: the database's on
/// PostgreSQL, and on SQLite, which serves one machine, that machine's.
///
/// # Errors
/// The database does not answer.
pub async fn clock(store: &Store) -> Result<Clock, Error> {
    let measured = store.in_time(async {
        let mut connection = store.reader().await?;
        let measured = ask_time(&mut connection).await?;
        connection.release();
        Ok(measured)
    });
    Ok(match measured.await? {
        None => Clock::System,
        Some((said, asked)) => {
            Clock::Shared(Arc::new(SharedClock::new(said, asked, Instant::now())))
        }
    })
}

/// Corrects a shared clock by the database's; does nothing to any other.
pub async fn measure(connection: &mut Connection, clock: &Clock) -> Result<(), Error> {
    if let Clock::Shared(clock) = clock
        && let Some((said, asked)) = ask_time(connection).await?
    {
        clock.measured(said, asked, Instant::now());
    }
    Ok(())
}

/// PostgreSQL's time, and when the question was sent.
async fn ask_time(connection: &mut Connection) -> Result<Option<(Timestamp, Instant)>, Error> {
    let Raw::Postgres(connection) = connection.raw() else { return Ok(None) };
    let statement = format!("SELECT {DATABASE_NOW}");
    let asked = Instant::now();
    let said = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(connection).await?;
    Ok(Some((Timestamp(said), asked)))
}

/// Commits a small write the way requests do: in a transaction, on
/// PostgreSQL with a connection of the serializable pool, on SQLite with the
/// turn to write. Runs again when it loses a race, as requests do.
///
/// # Errors
/// The write was not committed.
pub async fn check_write(
    store: &Store,
    node: Uuid,
    host: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let mut reruns = 0;
    loop {
        match write(store, node, host, now).await {
            Err(Error::RunAgain) if reruns < MAX_RERUNS => reruns += 1,
            ended => return ended,
        }
    }
}

async fn write(store: &Store, node: Uuid, host: &str, now: Timestamp) -> Result<(), Error> {
    let mut tx = store.begin(Access::Write).await?;
    store.upgrade(&mut tx).await?;
    super::nodes::see(&mut tx, node, host, now).await?;
    tx.commit().await
}

/// The newest migration that the database has and this release does not know;
/// `None` if it knows all.
///
/// # Errors
/// The database does not answer.
pub async fn newer_migration(connection: &mut Connection) -> Result<Option<i64>, Error> {
    let known = open::migrator(connection.backend());
    let applied: Vec<i64> = on!(connection, c => {
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations ORDER BY version DESC")
            .fetch_all(&mut *c)
            .await?
    });
    Ok(applied.into_iter().find(|version| !known.version_exists(*version)))
}
