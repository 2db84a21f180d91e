//! Tables of collections, and their indexes.
//!
//! Each collection has a table of its own: on PostgreSQL a partition of
//! `documents`, on SQLite a table. A write therefore costs the same whatever
//! number of other collections exists, and each collection has its own
//! statistics. Tables are created without blocking reads and writes.

use std::borrow::Cow;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};

use super::connection::{Connection, DriverConnection, on, scalars};
use super::error::Error;
use super::indexes;
use super::scope::AccessibleCollection;
use super::{Backend, Store, search};

/// Key of the advisory lock for creating tables and indexes on PostgreSQL.
const LOCK: i64 = 0x6173_7375_7265_6978;
/// Interval at which a process tries to take the advisory lock for creating
/// tables and indexes.
const LOCK_POLL: Duration = Duration::from_millis(50);
/// Maximum length of a collection name that is used unchanged as its table's
/// name, in bytes. The name of the primary key is 5 bytes longer, and
/// PostgreSQL's names have at most 63.
const LONGEST_NAME: usize = 57;

/// Returns the name of a collection's table: the name of the collection, or its
/// beginning and a hash. The same as the SQL function `collection_table`.
pub(super) fn table(collection: &str) -> Cow<'_, str> {
    if collection.len() <= LONGEST_NAME {
        return Cow::Borrowed(collection);
    }
    let hash = hex::encode(Sha256::digest(collection));
    Cow::Owned(format!("{}~{}", &collection[..44], &hash[..12]))
}

/// Whether the area version whose collections are created is live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiveOrCandidate {
    /// The collections are created for the live version.
    Live,
    /// The version is prepared or tried, or is not live on all nodes. The others
    /// may not write the texts of its substring indexes, so these are not
    /// recorded as complete.
    Candidate,
}

/// Creates missing tables and indexes of the collections of a live area
/// version; see [`ensure_for`].
pub async fn ensure(store: &Store, collections: &[AccessibleCollection]) -> Result<(), Error> {
    ensure_for(store, collections, LiveOrCandidate::Live).await
}

/// Creates missing tables and indexes of the collections of an area version,
/// and waits until they are ready. PostgreSQL builds indexes concurrently with
/// writes; SQLite blocks other writers. Returns [`Error::UniqueConflict`] if
/// existing documents violate a unique index.
pub async fn ensure_for(
    store: &Store,
    collections: &[AccessibleCollection],
    version: LiveOrCandidate,
) -> Result<(), Error> {
    for scope in collections {
        indexes::check(scope).map_err(|what| Error::Database(sqlx::Error::Protocol(what)))?;
    }
    // Another area's long creation of an index must not delay this one.
    if store.read(async |connection| is_complete(connection, collections, version).await).await? {
        return Ok(());
    }
    let mut connection = store.writer().await?;
    unbind(&mut connection).await?;
    if let DriverConnection::Postgres(c) = connection.raw() {
        lock(c).await?;
    }
    let result = create(&mut connection, store.folding(), collections, version).await;
    unlock(&mut connection).await?;
    connection.release();
    result
}

async fn is_complete(
    connection: &mut Connection,
    collections: &[AccessibleCollection],
    version: LiveOrCandidate,
) -> Result<bool, Error> {
    let known = names(connection).await?;
    let searched = match connection.raw() {
        DriverConnection::Postgres(c) => search::is_complete(c, collections, version).await?,
        DriverConnection::Sqlite(_) => true,
    };
    Ok(searched
        && collections.iter().all(|scope| known.contains(&scope.full_name))
        && indexes::missing(connection, collections).await?.is_empty())
}

async fn create(
    connection: &mut Connection,
    folding: &str,
    collections: &[AccessibleCollection],
    version: LiveOrCandidate,
) -> Result<(), Error> {
    let known = names(connection).await?;
    for scope in collections.iter().filter(|scope| !known.contains(&scope.full_name)) {
        create_table(connection, &scope.full_name).await?;
    }
    for index in indexes::missing(connection, collections).await? {
        indexes::create(connection, index).await?;
    }
    if let DriverConnection::Postgres(c) = connection.raw() {
        search::ensure(c, folding, collections, version).await?;
    }
    Ok(())
}

/// Returns the full names of all collections that have a table.
pub(super) async fn names(connection: &mut Connection) -> Result<Vec<String>, Error> {
    let sql = "SELECT name FROM collections ORDER BY name";
    Ok(scalars!(connection, sql))
}

/// Creates the table of a collection whose name `indexes::check` has validated.
async fn create_table(connection: &mut Connection, collection: &str) -> Result<(), Error> {
    match connection.raw() {
        DriverConnection::Sqlite(c) => create_table_on_sqlite(c, collection).await,
        DriverConnection::Postgres(c) => {
            let table = table(collection);
            let sql =
                format!("SELECT create_collection('{collection}', '{table}'); ANALYZE \"{table}\"");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(c).await?;
            Ok(())
        }
    }
}

pub(super) async fn create_table_on_sqlite(
    c: &mut SqliteConnection,
    collection: &str,
) -> Result<(), Error> {
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS \"{}\" (workspace_id BLOB NOT NULL, id TEXT NOT NULL, \
         version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, \
         body TEXT NOT NULL, PRIMARY KEY (workspace_id, id)) STRICT; \
         INSERT OR IGNORE INTO collections VALUES ('{collection}')",
        table(collection)
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(c).await?;
    Ok(())
}

/// Number of changed documents from which a collection's outdated PostgreSQL
/// statistics make queries slow.
const CHANGED: i64 = 200;

/// Refreshes PostgreSQL's statistics of collections that have grown threefold
/// since they were made, and returns the number of these collections. The
/// server itself does this once a minute; until then it reads a new collection
/// by the wrong index.
///
/// # Errors
/// The database does not respond.
pub async fn refresh_statistics(store: &Store) -> Result<u64, Error> {
    if store.backend() == Backend::Sqlite {
        return Ok(0);
    }
    let mut connection = store.writer().await?;
    let grown = "SELECT quote_ident(s.relname) FROM pg_inherits AS i \
                 JOIN pg_class AS c ON c.oid = i.inhrelid \
                 JOIN pg_stat_user_tables AS s ON s.relid = c.oid \
                 WHERE i.inhparent = 'documents'::regclass \
                 AND s.n_mod_since_analyze > greatest($1, 2 * c.reltuples)";
    let DriverConnection::Postgres(c) = connection.raw() else { return Ok(0) };
    let grown: Vec<String> = sqlx::query_scalar(grown).bind(CHANGED).fetch_all(&mut *c).await?;
    for table in &grown {
        sqlx::raw_sql(AssertSqlSafe(format!("ANALYZE {table}"))).execute(&mut *c).await?;
    }
    connection.release();
    Ok(grown.len() as u64)
}

pub(super) async fn run(connection: &mut Connection, sql: String) -> Result<(), Error> {
    on!(connection, c => { sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *c).await?; });
    Ok(())
}

/// Takes the advisory lock, so that only one process creates tables and indexes
/// at a time. It polls instead of waiting in a statement: a waiting statement
/// holds a snapshot, and a concurrent index build waits for all older snapshots.
pub(super) async fn lock(c: &mut PgConnection) -> Result<(), Error> {
    while !try_lock(c, LOCK).await? {
        tokio::time::sleep(LOCK_POLL).await;
    }
    Ok(())
}

pub(super) async fn try_lock(c: &mut PgConnection, key: i64) -> Result<bool, Error> {
    let query = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(key);
    Ok(query.fetch_one(c).await?)
}

async fn unlock(connection: &mut Connection) -> Result<(), Error> {
    if let DriverConnection::Postgres(c) = connection.raw() {
        sqlx::query("SELECT pg_advisory_unlock($1)").bind(LOCK).execute(&mut *c).await?;
        sqlx::raw_sql("RESET statement_timeout; RESET lock_timeout").execute(c).await?;
    }
    connection.end_session_state();
    Ok(())
}

/// Removes the time limits of statements: building an index takes long, and a
/// concurrent build waits for all older transactions.
async fn unbind(connection: &mut Connection) -> Result<(), Error> {
    connection.begin_session_state();
    if let DriverConnection::Postgres(c) = connection.raw() {
        let unbound = "SET statement_timeout = 0; SET lock_timeout = 0";
        sqlx::raw_sql(unbound).execute(c).await?;
    }
    connection.remove_time_limit();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{collection as scope, fresh, on_both, put, rows};

    const BODY: &str = r#"{"name":"x"}"#;

    async fn missing(store: &Store, scopes: &[AccessibleCollection]) -> usize {
        let mut reader = store.reader().await.unwrap();
        indexes::missing(&mut reader, scopes).await.unwrap().len()
    }

    on_both! {
        async fn tables_and_indexes_are_made_once_by_many(store: &Store) {
            let scopes = [scope("a.b", true), scope("a.c", false), scope("b.b", false)];
            assert_eq!(missing(store, &scopes).await, 3);
            let all = (0..4).map(|_| ensure(store, &scopes));
            for result in futures::future::join_all(all).await {
                result.unwrap();
            }
            assert_eq!(missing(store, &scopes).await, 0);
            let mut reader = store.reader().await.unwrap();
            assert_eq!(names(&mut reader).await.unwrap(), ["a.b", "a.c", "b.b"]);
        }

        async fn documents_that_break_a_new_unique_index_are_told(store: &Store) {
            ensure(store, &[scope("a.b", false)]).await.unwrap();
            put(store, "1", BODY).await;
            put(store, "2", BODY).await;
            let refused = ensure(store, &[scope("a.b", true)]).await;
            let Err(Error::UniqueConflict { collection, fields }) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((collection.as_str(), fields), ("a.b", vec!["name".to_owned()]));
            assert_eq!(missing(store, &[scope("a.b", true)]).await, 1);
        }

        async fn collections_with_long_names_have_tables_of_their_own(store: &Store) {
            let long = |end: &str| format!("area.{}_{end}", "x".repeat(100));
            let scopes = [scope(&long("a"), true), scope(&long("b"), true)];
            ensure(store, &scopes).await.unwrap();
            assert_eq!(missing(store, &scopes).await, 0);
        }
    }

    #[tokio::test]
    async fn both_functions_name_the_same_table() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let mut writer = fresh.store.writer().await.unwrap();
        for name in
            ["a.b".to_owned(), format!("a.{}", "b".repeat(55)), format!("a.{}", "c".repeat(56))]
        {
            let sql = format!("SELECT collection_table('{name}')");
            let found: Vec<(String,)> = rows(&mut writer, &sql).await;
            assert_eq!(found[0].0, table(&name));
            assert!(found[0].0.len() <= LONGEST_NAME);
        }
    }
}
