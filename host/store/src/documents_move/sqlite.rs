//! Moves documents of SQLite when the database opens. Each collection is moved
//! in a transaction of its own; one that is already in `collections` is complete.

use std::time::Instant;

use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::super::collections::create_table_on_sqlite;
use super::super::error::Error;

/// Statement that lists the pairs of workspace and collection with documents in
/// a temporary table. It reads one index entry for each pair, and no documents.
pub(super) const GROUPS: &str = "CREATE TEMP TABLE groups AS WITH RECURSIVE g(w, c) AS (\
     SELECT * FROM (SELECT workspace_id, collection FROM documents \
     ORDER BY workspace_id, collection LIMIT 1) \
     UNION ALL SELECT d.workspace_id, d.collection FROM g, documents AS d \
     WHERE d.rowid = (SELECT rowid FROM documents WHERE (workspace_id, collection) > (g.w, g.c) \
     ORDER BY workspace_id, collection LIMIT 1)) SELECT w, c FROM g";

/// Moves all documents of the old table, if it exists, into the tables of their
/// collections, and drops the old table.
pub(crate) async fn run(connection: &mut SqliteConnection) -> Result<(), Error> {
    let old = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'documents'";
    if sqlx::query_scalar::<_, i64>(old).fetch_one(&mut *connection).await? == 0 {
        return Ok(());
    }
    sqlx::raw_sql(GROUPS).execute(&mut *connection).await?;
    let sql = "SELECT DISTINCT c FROM groups WHERE c NOT IN (SELECT name FROM collections) \
               ORDER BY c";
    let collections: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut *connection).await?;
    let of = collections.len();
    for (number, collection) in (1..).zip(&collections) {
        let begun = Instant::now();
        let documents = move_one(connection, collection).await?;
        let ms = begun.elapsed().as_millis();
        tracing::info!(collection, documents, ms, "moved collection {number} of {of}");
    }
    sqlx::raw_sql("DROP TABLE documents; DROP TABLE groups").execute(connection).await?;
    Ok(())
}

pub(super) async fn move_one(
    connection: &mut SqliteConnection,
    collection: &str,
) -> Result<u64, Error> {
    let mut tx = connection.begin().await?;
    create_table_on_sqlite(&mut tx, collection).await?;
    let copy = format!(
        "INSERT INTO \"{}\" SELECT d.workspace_id, d.id, d.version, d.created_at, d.updated_at, \
         d.body FROM groups AS g CROSS JOIN documents AS d ON d.workspace_id = g.w \
         AND d.collection = g.c WHERE g.c = $1 ORDER BY g.w",
        super::super::collections::table(collection)
    );
    let copied = sqlx::query(AssertSqlSafe(copy)).bind(collection).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(copied.rows_affected())
}
