//! Moves documents while all nodes serve.
//!
//! Migration 32 created the partitioned table and a trigger that writes each
//! change to both tables. This module copies the documents that the trigger has
//! not seen, in batches in the order of the primary key. The position is part of
//! each batch's transaction. At the end, one short transaction compares the
//! numbers of documents and replaces the table. Statements name `documents` in
//! both states, so nodes of both releases go on.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use uuid::Uuid;

use super::super::collections::{self, try_lock};
use super::super::error::Error;
use super::super::{ConnectionPools, Store};
use super::{MoveProgress, progress, progress_of};

/// Key of the advisory lock of the node that moves documents.
const LOCK: i64 = 0x6173_7375_7265_6d76;
/// Interval at which nodes check whether another node has moved all documents.
const POLL: Duration = Duration::from_secs(2);
/// Number of documents that one statement copies. It locks these documents
/// against changes for some milliseconds.
const BATCH: i64 = 500;
/// Interval at which the progress of moving documents is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Maximum time in milliseconds that the replacement of the old documents table
/// waits for its lock, because all other work on documents waits behind it.
const LOCK_TIMEOUT_MS: u32 = 1_000;

/// Statement that copies the next batch of documents. The rows are locked (`FOR
/// SHARE`), so that a document is not deleted between its reading and the
/// insertion of its copy. A document that the trigger has written is not
/// overwritten.
const COPY: &str = "WITH batch AS MATERIALIZED (\
     SELECT * FROM documents WHERE (workspace_id, collection, id) > ($1, $2, $3) \
     ORDER BY workspace_id, collection, id LIMIT $4 FOR SHARE), \
     copied AS (INSERT INTO documents_by_collection SELECT * FROM batch ON CONFLICT DO NOTHING), \
     last AS (SELECT workspace_id, collection, id FROM batch \
     ORDER BY workspace_id DESC, collection DESC, id DESC LIMIT 1) \
     UPDATE documents_moved AS m SET workspace_id = last.workspace_id, \
     collection = last.collection, id = last.id, \
     copied = m.copied + (SELECT count(*) FROM batch) FROM last \
     RETURNING m.workspace_id, m.collection, m.id";

/// Moves all documents, or waits until another node has moved them.
pub(super) async fn run(store: &Store) -> Result<(), Error> {
    while store.read(async |c| progress(c).await).await?.is_some() {
        // A connection of its own: the move takes none from requests, and its
        // end releases the locks.
        let ConnectionPools::Postgres { options, .. } = &store.0.databases else { return Ok(()) };
        let mut c = options.connect().await?;
        if try_lock(&mut c, LOCK).await? {
            move_all(&mut c).await?;
        }
        drop(c);
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn move_all(c: &mut PgConnection) -> Result<(), Error> {
    if progress_of(c).await?.is_none() {
        return Ok(());
    }
    sqlx::raw_sql("SET statement_timeout = 0; ANALYZE documents").execute(&mut *c).await?;
    tracing::info!("moving documents into a table for each collection; this node serves meanwhile");
    copy_all(c).await?;
    sqlx::raw_sql("ANALYZE documents_by_collection").execute(&mut *c).await?;
    wait_for_older_snapshots(c).await?;
    collections::lock(c).await?;
    let replace = format!(
        "BEGIN; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; SELECT replace_documents(); COMMIT"
    );
    sqlx::raw_sql(AssertSqlSafe(replace)).execute(c).await?;
    tracing::info!("all documents are in the tables of their collections");
    Ok(())
}

async fn copy_all(c: &mut PgConnection) -> Result<(), Error> {
    let mut position: (Uuid, String, String) =
        sqlx::query_as("SELECT workspace_id, collection, id FROM documents_moved")
            .fetch_one(&mut *c)
            .await?;
    let mut logged = Instant::now();
    while let Some(next) = copy(c, &position).await? {
        position = next;
        if logged.elapsed() >= LOG_EVERY {
            logged = Instant::now();
            if let Some(MoveProgress { copied, total }) = progress_of(c).await? {
                tracing::info!(copied, total, "moving documents");
            }
        }
    }
    Ok(())
}

/// Copies the documents after a position. Returns the position of the last one;
/// `None` if there are no more.
async fn copy(
    c: &mut PgConnection,
    (workspace, collection, id): &(Uuid, String, String),
) -> Result<Option<(Uuid, String, String)>, Error> {
    loop {
        let query = sqlx::query_as(COPY).bind(workspace).bind(collection).bind(id).bind(BATCH);
        match query.fetch_optional(&mut *c).await.map_err(Error::from) {
            // A deadlock with a request that changes several documents.
            Err(Error::RunAgain) => {}
            copied => return copied,
        }
    }
}

/// Waits until no transaction has a snapshot from before the last copy: it would
/// not see the copies in the table that replaces the one it has read.
async fn wait_for_older_snapshots(c: &mut PgConnection) -> Result<(), Error> {
    let last: String =
        sqlx::query_scalar("SELECT pg_current_xact_id()::xid::text").fetch_one(&mut *c).await?;
    let older = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
                 AND pid <> pg_backend_pid() AND age(backend_xmin) >= age($1::xid))";
    while sqlx::query_scalar(older).bind(&last).fetch_one(&mut *c).await? {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
