//! Database checks for readiness: clock, a test write, and the schema version.

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use super::connection::{Connection, scalars};
use super::error::Error;
use super::sql::database_time;
use super::{Store, TransactionAccess, migrations};
use assurance_core::domain::time::{Clock, DatabaseClock, Timestamp};

/// Maximum number of retries of the test write. Only this process's heartbeat
/// writes the same row.
const MAX_RERUNS: u32 = 3;

/// Returns the clock that all processes of this database share: the database's
/// own on PostgreSQL, the machine's on SQLite.
///
/// # Errors
/// The database does not respond within the acquire timeout.
pub async fn clock(store: &Store) -> Result<Clock, Error> {
    let measured = store.in_time(store.read(async |c| query_time(c).await));
    Ok(match measured.await? {
        None => Clock::System,
        Some((said, asked)) => {
            Clock::Shared(Arc::new(DatabaseClock::new(said, asked, Instant::now())))
        }
    })
}

/// Adjusts a clock that follows the database by the database's current time.
/// Does nothing for other clocks.
pub async fn measure(connection: &mut Connection, clock: &Clock) -> Result<(), Error> {
    if let Clock::Shared(clock) = clock
        && let Some((said, asked)) = query_time(connection).await?
    {
        clock.measured(said, asked, Instant::now());
    }
    Ok(())
}

/// Returns PostgreSQL's time, and when the query was sent; `None` on SQLite.
async fn query_time(connection: &mut Connection) -> Result<Option<(Timestamp, Instant)>, Error> {
    let asked = Instant::now();
    Ok(database_time(connection).await?.map(|said| (said, asked)))
}

/// Commits a small write as requests do: in a transaction, on PostgreSQL with a
/// connection of the serializable pool, on SQLite with the write lock. Retries
/// after write conflicts, as requests do.
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
    let mut tx = store.begin(TransactionAccess::Write).await?;
    store.upgrade(&mut tx).await?;
    super::nodes::see(&mut tx, node, host, now).await?;
    tx.commit().await
}

/// Returns the newest applied migration that this release does not contain;
/// `None` if there is none.
///
/// # Errors
/// The database does not respond.
pub async fn newer_migration(connection: &mut Connection) -> Result<Option<i64>, Error> {
    let known = migrations::of(connection.backend());
    let applied: Vec<i64> =
        scalars!(connection, "SELECT version FROM _sqlx_migrations ORDER BY version DESC");
    Ok(applied.into_iter().find(|version| !known.version_exists(*version)))
}
