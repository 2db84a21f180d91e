//! Checkpoints of SQLite's write-ahead log.
//!
//! By default the commit that makes the log 1,000 pages long copies them into the
//! database and syncs both files, while other writers wait. A connection of its
//! own does this here, and commits go on meanwhile.

use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tokio_util::task::AbortOnDropHandle;

use super::error::Error;

/// Interval of checkpoints. One without new commits costs a few microseconds.
const EVERY: Duration = Duration::from_millis(200);
/// Length of the log, in pages of 4 KiB, from which writers wait for the end of
/// a checkpoint, so that the log begins anew. Under steady writes it would
/// otherwise grow without end.
const LONGEST_LOG: i64 = 16_384;

/// Maximum time for which writers wait for readers of the old log.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sets that commits make no checkpoints.
pub(super) const NO_AUTOMATIC: (&str, &str) = ("wal_autocheckpoint", "0");

/// Starts to make checkpoints, until the handle is dropped.
pub(super) async fn start(options: &SqliteConnectOptions) -> Result<AbortOnDropHandle<()>, Error> {
    let connection = options.clone().busy_timeout(PATIENCE).connect().await?;
    Ok(AbortOnDropHandle::new(tokio::spawn(run(connection))))
}

async fn run(mut connection: SqliteConnection) {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(error) = checkpoint(&mut connection).await {
            tracing::warn!(%error, "checkpoint failed; trying again");
        }
    }
}

/// Copies what is in the log. Returns the length of the log in pages.
async fn checkpoint(connection: &mut SqliteConnection) -> Result<i64, Error> {
    let length = run_checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)").await?;
    if length < LONGEST_LOG {
        return Ok(length);
    }
    run_checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)").await
}

async fn run_checkpoint(
    connection: &mut SqliteConnection,
    sql: &'static str,
) -> Result<i64, Error> {
    // Whether it was blocked, pages in the log, pages copied.
    let (_, length, _): (i64, i64, i64) = sqlx::query_as(sql).fetch_one(connection).await?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{execute, fresh};
    use crate::{Access, Backend};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_log_is_copied_and_begins_anew_under_steady_writes() {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let mut writer = fresh.store.writer().await.unwrap();
        execute(&mut writer, "CREATE TABLE filler (content BLOB)").await;
        for _ in 0..160 {
            execute(&mut writer, "INSERT INTO filler VALUES (zeroblob(1000000))").await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        writer.release();
        let file = fresh.settings.url.replace("sqlite:", "") + "-wal";
        let bytes = std::fs::metadata(file).unwrap().len();
        assert!(bytes < 120_000_000, "{bytes}");
        // A reader of an old state keeps the log, but stops neither commits nor
        // checkpoints.
        let read = fresh.store.begin(Access::Read).await.unwrap();
        let mut writer = fresh.store.writer().await.unwrap();
        execute(&mut writer, "INSERT INTO filler VALUES (zeroblob(1000000))").await;
        writer.release();
        read.commit().await.unwrap();
        fresh.store.close().await;
    }
}
