//! Moves the documents of a database of an older release, where all collections
//! shared one table, into the tables of their collections.
//!
//! On PostgreSQL, the nodes serve meanwhile: see `postgres`. SQLite's only
//! process moves them before it serves: see `sqlite`.

mod postgres;
pub(super) mod sqlite;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sqlx::PgConnection;

use super::connection::{Connection, DriverConnection};
use super::error::Error;
use super::{Backend, Store};

/// Pause before a failed move of documents to the tables of their collections
/// continues.
const PAUSE: Duration = Duration::from_secs(5);

/// Progress of the move of an older release's documents into the tables of
/// their collections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoveProgress {
    /// Number of documents that were copied so far.
    pub copied: u64,
    /// Number of documents in the old table, estimated by the database.
    pub total: u64,
}

/// Returns the progress of the move of documents into the tables of their
/// collections; `None` if there is nothing to move.
///
/// # Errors
/// The database does not respond.
pub async fn progress(connection: &mut Connection) -> Result<Option<MoveProgress>, Error> {
    match connection.raw() {
        DriverConnection::Sqlite(_) => Ok(None),
        DriverConnection::Postgres(c) => progress_of(c).await,
    }
}

async fn progress_of(c: &mut PgConnection) -> Result<Option<MoveProgress>, Error> {
    let sql = "SELECT copied, greatest(copied, reltuples)::bigint FROM documents_moved, pg_class \
               WHERE oid = 'documents'::regclass";
    let row: Option<(i64, i64)> = sqlx::query_as(sql).fetch_optional(c).await?;
    Ok(row.map(|(copied, total)| MoveProgress {
        copied: copied.cast_unsigned(),
        total: total.cast_unsigned(),
    }))
}

impl Store {
    /// Moves the documents of an older release, if there are any, into the
    /// tables of their collections, and continues after errors. Several nodes
    /// may call this: one of them works, the others wait. A move that a stopped
    /// process left continues where it was.
    pub async fn move_documents(&self) {
        if self.backend() == Backend::Sqlite {
            return;
        }
        while let Err(error) = postgres::run(self).await {
            tracing::warn!(%error, "documents are not moved yet; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
