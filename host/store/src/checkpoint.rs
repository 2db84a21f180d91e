//! Checkpoints of SQLite: copies the write-ahead log into the database file.
//!
//! By itself, SQLite does this in the commit after which the log has 1,000
//! pages, and all writers wait for it. A task on another connection copies the
//! pages while others write. The log is written from its start again only if
//! all of it is copied when a transaction begins. So when the log is long, the
//! task copies the few pages of the meantime while no other transaction writes.

use std::time::Duration;

use metrics::histogram;
use sqlx::SqliteConnection;
use tokio::time::Instant;

use super::pool::Pool;

/// Number of 4 KiB pages in SQLite's write-ahead log from which a commit itself
/// makes a checkpoint, if the background task is too slow.
pub(super) const WRITER_PAGES: &str = "16000";
/// Number of pages in the write-ahead log from which the background task copies
/// all of it, while no other transaction writes.
const LONG_LOG: i64 = 4_000;
/// Number of pages in the write-ahead log that are not copied yet from which
/// the background task makes a checkpoint. Fewer would be copied several times,
/// because many commits change the same pages.
const PAGES: i64 = 2_000;
/// Shortest and longest pause between two checks of the write-ahead log; the
/// pause doubles while the log has few pages.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

const CHECKPOINT_SECONDS: &str = "assurance_database_checkpoint_seconds";

/// Describes the metric of checkpoints.
pub(super) fn describe_metrics() {
    metrics::describe_histogram!(
        CHECKPOINT_SECONDS,
        "Duration of checkpoints that no writer waits for (SQLite)"
    );
}

/// Makes checkpoints of the write-ahead log until the pool is closed.
pub(super) async fn run(readers: Pool<SqliteConnection>, writer: Pool<SqliteConnection>) {
    let mut pause = PAUSES[1];
    loop {
        tokio::time::sleep(pause).await;
        pause = match copy(&readers, &writer).await {
            Ok(true) => PAUSES[0],
            Ok(false) => PAUSES[1].min(pause * 2),
            Err(sqlx::Error::PoolClosed) => return,
            Err(error) => {
                tracing::warn!(%error, "checkpoint failed; the next one copies its pages");
                PAUSES[1]
            }
        };
    }
}

/// Makes a checkpoint if the write-ahead log has many pages that are not copied
/// yet, and returns whether it did.
async fn copy(
    readers: &Pool<SqliteConnection>,
    writer: &Pool<SqliteConnection>,
) -> Result<bool, sqlx::Error> {
    let mut connection = readers.acquire().await?;
    let (_, pages, copied) = checkpoint(&mut connection, "NOOP").await?;
    let due = pages - copied >= PAGES;
    if due {
        let begun = Instant::now();
        checkpoint(&mut connection, "PASSIVE").await?;
        histogram!(CHECKPOINT_SECONDS).record(begun.elapsed().as_secs_f64());
    }
    connection.release();
    if due && pages >= LONG_LOG {
        // Its connection is the write lock. No other is held meanwhile, because
        // a transaction may wait for a reader.
        let mut writer = writer.acquire().await?;
        checkpoint(&mut writer, "PASSIVE").await?;
        writer.release();
    }
    Ok(due)
}

/// Runs SQLite's checkpoint in a mode. Returns 1 if another one was running,
/// and the numbers of pages in the log and of those copied; both are -1 if there
/// is no log.
async fn checkpoint(
    connection: &mut SqliteConnection,
    mode: &'static str,
) -> Result<(i64, i64, i64), sqlx::Error> {
    let statement = sqlx::AssertSqlSafe(format!("PRAGMA wal_checkpoint({mode})"));
    sqlx::query_as(statement).fetch_one(connection).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestStore, execute, fresh, rows};
    use crate::{Backend, ConnectionPools};

    type SqlitePool = Pool<SqliteConnection>;

    async fn with_table() -> (TestStore, SqlitePool, SqlitePool) {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let mut writer = fresh.store.writer().await.unwrap();
        execute(&mut writer, "CREATE TABLE pages (bytes BLOB)").await;
        writer.release();
        let ConnectionPools::Sqlite { readers, writer, .. } = &fresh.store.0.databases else {
            unreachable!()
        };
        let (readers, writer) = (readers.clone(), writer.clone());
        (fresh, readers, writer)
    }

    /// Commits a transaction that writes about this number of pages.
    async fn write(fresh: &TestStore, pages: i64) {
        let mut writer = fresh.store.writer().await.unwrap();
        let bytes = pages * 4_096;
        execute(&mut writer, &format!("INSERT INTO pages VALUES (zeroblob({bytes}))")).await;
        writer.release();
    }

    async fn log(readers: &SqlitePool) -> (i64, i64) {
        let mut connection = readers.acquire().await.unwrap();
        let (_, pages, copied) = checkpoint(&mut connection, "NOOP").await.unwrap();
        connection.release();
        (pages, copied)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_pages_are_copied_while_another_transaction_writes() {
        let (fresh, readers, writer) = with_table().await;
        write(&fresh, PAGES - 500).await;
        assert!(!copy(&readers, &writer).await.unwrap(), "too few pages");
        write(&fresh, 1_000).await;
        let (before, _) = log(&readers).await;
        let mut open = fresh.store.begin(crate::TransactionAccess::WriteLocked).await.unwrap();
        execute(&mut open, "INSERT INTO pages VALUES ('open')").await;
        assert!(copy(&readers, &writer).await.unwrap());
        assert_eq!(log(&readers).await, (before, before));
        open.commit().await.unwrap();
        let mut reader = fresh.store.reader().await.unwrap();
        assert_eq!(rows::<(i64,)>(&mut reader, "SELECT count(*) FROM pages").await, [(3,)]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_log_is_written_from_its_start_although_others_write() {
        let (fresh, readers, writer) = with_table().await;
        write(&fresh, LONG_LOG).await;
        let mut open = fresh.store.begin(crate::TransactionAccess::WriteLocked).await.unwrap();
        execute(&mut open, "INSERT INTO pages VALUES (zeroblob(40960))").await;
        let copying = tokio::spawn(async move { copy(&readers, &writer).await.map(|_| readers) });
        tokio::time::sleep(Duration::from_millis(300)).await;
        open.commit().await.unwrap();
        let readers = copying.await.unwrap().unwrap();
        write(&fresh, 1).await;
        let (pages, _) = log(&readers).await;
        assert!(pages < 100, "{pages} pages");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_log_stays_short_without_the_task() {
        let (fresh, readers, _) = with_table().await;
        for _ in 0..20 {
            write(&fresh, 2_000).await;
        }
        let (pages, _) = log(&readers).await;
        let most: i64 = WRITER_PAGES.parse().unwrap();
        assert!(pages < most + 4_000, "{pages} pages");
    }
}
