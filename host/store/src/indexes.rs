//! Indexes that areas declare: partial expression indexes on the documents
//! table.
//!
//! An index's name contains its collection and a hash of its definition. The
//! same declaration therefore has the same name in every process and after
//! every restart.

use std::collections::BTreeSet;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, PgConnection};

use super::connection::{Connection, Raw, on};
use super::error::Error;
use super::scope::{CollectionScope, SearchableText};
use super::{Backend, Store, search};
use assurance_core::domain::manifest::{FieldKind, IndexSpec};

/// Key of the advisory lock for creating indexes on PostgreSQL.
const LOCK: i64 = 0x6173_7375_7265_6978;
/// Interval at which the advisory lock for creating indexes is polled.
const LOCK_POLL: Duration = Duration::from_millis(50);
/// Maximum number of fields in one index.
const MAX_FIELDS: usize = 8;

/// Checks that a collection's names are safe in SQL. The error is a message for
/// the area's author.
pub fn check(scope: &CollectionScope) -> Result<(), String> {
    let word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let parts: Vec<&str> = scope.full_name.split('.').collect();
    if parts.len() != 2 || !parts.iter().all(|part| word(part)) || scope.full_name.len() > 128 {
        return Err(format!("{:?} is not a valid collection name", scope.full_name));
    }
    let member = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if let Some(name) = scope.fields.keys().find(|name| !member(name)) {
        return Err(format!("{}: {name:?} is not a valid field name", scope.full_name));
    }
    let is_text = |name: &String| scope.fields.get(name) == Some(&FieldKind::Text);
    for SearchableText { text, by, unless } in &scope.searched {
        if let Some(name) = [text, by].into_iter().chain(unless).find(|name| !is_text(name)) {
            return Err(format!(
                "{}: search of {name:?}, which is not a declared text field",
                scope.full_name
            ));
        }
    }
    for index in &scope.indexes {
        if index.fields.is_empty() || index.fields.len() > MAX_FIELDS {
            return Err(format!("{}: an index has 1 to {MAX_FIELDS} fields", scope.full_name));
        }
        if index.fields.iter().collect::<BTreeSet<_>>().len() < index.fields.len() {
            return Err(format!("{}: an index has each field once", scope.full_name));
        }
        if let Some(name) = index.fields.iter().find(|name| !scope.fields.contains_key(*name)) {
            return Err(format!("{}: index of undeclared field {name:?}", scope.full_name));
        }
    }
    Ok(())
}

/// Creates missing indexes and waits until they are ready. PostgreSQL builds
/// them concurrently with writes; SQLite blocks other writers. Returns
/// [`Error::UniqueConflict`] if existing documents violate a unique index.
pub async fn ensure_indexes(store: &Store, collections: &[CollectionScope]) -> Result<(), Error> {
    let mut wanted = Vec::new();
    for scope in collections {
        check(scope).map_err(|what| Error::Database(sqlx::Error::Protocol(what)))?;
        let own = scope.indexes.iter().map(|index| (scope, index, index_name(scope, index)));
        wanted.extend(own);
    }
    let mut connection = store.writer().await?;
    let ready = ready(&mut connection).await?;
    wanted.retain(|(_, _, name)| !ready.contains(name));
    let searched = match connection.raw() {
        Raw::Postgres(c) => search::is_missing(c, collections).await?,
        Raw::Sqlite(_) => false,
    };
    if wanted.is_empty() && !searched {
        connection.release();
        return Ok(());
    }
    lock(&mut connection).await?;
    let mut result = Ok(());
    for (scope, index, name) in wanted {
        result = create(&mut connection, scope, index, &name).await;
        if result.is_err() {
            break;
        }
    }
    if let (Ok(()), Raw::Postgres(c)) = (&result, connection.raw()) {
        result = search::ensure(c, store.folding(), collections).await;
    }
    unlock(&mut connection).await?;
    connection.release();
    result
}

/// Drops indexes of these collections that they no longer declare. Call it only
/// when no older version can be activated again.
pub async fn drop_unused_indexes(
    store: &Store,
    collections: &[CollectionScope],
) -> Result<u64, Error> {
    let mut connection = store.writer().await?;
    unbind(&mut connection).await?;
    let mut dropped = 0;
    for scope in collections {
        let prefix = name_prefix(scope);
        let kept: Vec<String> =
            scope.indexes.iter().map(|index| index_name(scope, index)).collect();
        for name in ready(&mut connection).await? {
            if name.starts_with(&prefix) && !kept.contains(&name) {
                let how = match connection.backend() {
                    Backend::Sqlite => "DROP INDEX IF EXISTS",
                    Backend::Postgres => "DROP INDEX CONCURRENTLY IF EXISTS",
                };
                run(&mut connection, format!("{how} {name}")).await?;
                dropped += 1;
            }
        }
    }
    bind(&mut connection).await?;
    connection.release();
    Ok(dropped)
}

/// Converts a violated unique constraint into the error for the caller: an
/// existing row, or a declared index of one of these collections.
pub fn explain<'a>(error: Error, scopes: impl IntoIterator<Item = &'a CollectionScope>) -> Error {
    let Some(constraint) = error.broken_constraint() else { return error };
    if constraint == "documents_pkey" {
        return Error::AlreadyExists;
    }
    for scope in scopes {
        let broken = |index: &&IndexSpec| index.unique && index_name(scope, index) == constraint;
        if let Some(index) = scope.indexes.iter().find(broken) {
            let (collection, fields) = (scope.full_name.clone(), index.fields.clone());
            return Error::UniqueConflict { collection, fields };
        }
    }
    error
}

fn name_prefix(scope: &CollectionScope) -> String {
    format!("doc_{}_", &hex::encode(Sha256::digest(&scope.full_name))[..12])
}

fn index_name(scope: &CollectionScope, index: &IndexSpec) -> String {
    let kinds: Vec<_> = index.fields.iter().map(|name| (name, scope.fields.get(name))).collect();
    let holds = format!("{kinds:?}");
    let hash = hex::encode(Sha256::digest(holds));
    let kind = if index.unique { 'u' } else { 'i' };
    format!("{}{}_{kind}", name_prefix(scope), &hash[..16])
}

async fn ready(connection: &mut Connection) -> Result<BTreeSet<String>, Error> {
    let sql = match connection.backend() {
        Backend::Sqlite => {
            "SELECT name FROM sqlite_schema \
             WHERE type = 'index' AND tbl_name = 'documents' AND name LIKE 'doc\\_%' ESCAPE '\\'"
        }
        Backend::Postgres => {
            "SELECT relname::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
             WHERE indrelid = 'documents'::regclass AND indisvalid AND relname LIKE 'doc\\_%'"
        }
    };
    let names: Vec<String> =
        on!(connection, c => sqlx::query_scalar(sql).fetch_all(&mut *c).await?);
    Ok(names.into_iter().collect())
}

async fn create(
    connection: &mut Connection,
    scope: &CollectionScope,
    index: &IndexSpec,
    name: &str,
) -> Result<(), Error> {
    let backend = connection.backend();
    if backend == Backend::Postgres {
        // An interrupted build leaves an invalid index, which blocks the name.
        run(connection, format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
    }
    let result = run(connection, create_sql(backend, scope, index, name)).await;
    if let Err(error) = result {
        if backend == Backend::Postgres {
            run(connection, format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
        }
        // While SQLite creates an index, its error does not contain the index's
        // name.
        return Err(match error.broken_constraint() {
            Some(_) => Error::UniqueConflict {
                collection: scope.full_name.clone(),
                fields: index.fields.clone(),
            },
            None => error,
        });
    }
    Ok(())
}

fn create_sql(backend: Backend, scope: &CollectionScope, index: &IndexSpec, name: &str) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let how = match backend {
        Backend::Sqlite => "INDEX IF NOT EXISTS",
        Backend::Postgres => "INDEX CONCURRENTLY",
    };
    let mut columns = vec!["workspace_id".to_owned()];
    for field in &index.fields {
        // `check` has verified that each field is declared.
        if let Ok(field) = scope.field(field) {
            let nulls = if backend == Backend::Postgres { " NULLS FIRST" } else { "" };
            columns.push(format!("{}{nulls}", field.sql(backend)));
        }
    }
    if !index.unique {
        // Ties are broken by id, so the index ends with it.
        columns.push("id".to_owned());
    }
    let (columns, collection) = (columns.join(", "), &scope.full_name);
    format!(
        "CREATE {unique}{how} {name} ON documents ({columns}) WHERE collection = '{collection}'"
    )
}

async fn run(connection: &mut Connection, sql: String) -> Result<(), Error> {
    on!(connection, c => { sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *c).await?; });
    Ok(())
}

/// Takes the advisory lock, so that only one process creates indexes at a time.
/// It polls instead of waiting in a statement: a waiting statement holds a
/// snapshot, and a concurrent index build waits for all older snapshots.
async fn lock(connection: &mut Connection) -> Result<(), Error> {
    unbind(connection).await?;
    let Raw::Postgres(c) = connection.raw() else { return Ok(()) };
    while !try_lock(c).await? {
        tokio::time::sleep(LOCK_POLL).await;
    }
    Ok(())
}

async fn try_lock(c: &mut PgConnection) -> Result<bool, Error> {
    let query = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK);
    Ok(query.fetch_one(c).await?)
}

async fn unlock(connection: &mut Connection) -> Result<(), Error> {
    if let Raw::Postgres(c) = connection.raw() {
        sqlx::query("SELECT pg_advisory_unlock($1)").bind(LOCK).execute(c).await?;
    }
    bind(connection).await
}

/// Removes the session's timeouts: building an index takes long, and a
/// concurrent build waits for all older transactions.
async fn unbind(connection: &mut Connection) -> Result<(), Error> {
    connection.begin_session_state();
    if let Raw::Postgres(c) = connection.raw() {
        let unbound = "SET statement_timeout = 0; SET lock_timeout = 0";
        sqlx::raw_sql(unbound).execute(c).await?;
    }
    Ok(())
}

/// Restores the session's timeouts.
async fn bind(connection: &mut Connection) -> Result<(), Error> {
    if let Raw::Postgres(c) = connection.raw() {
        sqlx::raw_sql("RESET statement_timeout; RESET lock_timeout").execute(c).await?;
    }
    connection.end_session_state();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_both;
    use assurance_core::domain::manifest::FieldKind;

    fn scope(name: &str, unique: bool) -> CollectionScope {
        CollectionScope {
            full_name: name.into(),
            own: true,
            fields: [("name".to_owned(), FieldKind::Text)].into(),
            indexes: vec![IndexSpec { fields: vec!["name".into()], unique }],
            searched: vec![],
        }
    }

    async fn made(store: &Store) -> usize {
        ready(&mut store.reader().await.unwrap()).await.unwrap().len()
    }

    async fn put(store: &Store, id: &str) {
        let mut writer = store.writer().await.unwrap();
        let sql = "INSERT INTO documents (workspace_id, collection, id, version, created_at, \
                   updated_at, body) VALUES ($1, 'a.b', $2, 1, 0, 0, '{\"name\":\"x\"}')";
        on!(writer, c => {
            sqlx::query(sql).bind(uuid::Uuid::nil()).bind(id).execute(&mut *c).await.unwrap();
        });
        writer.release();
    }

    on_both! {
        async fn indexes_are_made_once_by_many(store: &Store) {
            let scopes = [scope("a.b", true), scope("a.c", false), scope("b.b", false)];
            let all = (0..4).map(|_| ensure_indexes(store, &scopes));
            for result in futures::future::join_all(all).await {
                result.unwrap();
            }
            assert_eq!(made(store).await, 3);
            let less = CollectionScope { indexes: vec![], ..scope("a.b", true) };
            assert_eq!(drop_unused_indexes(store, &[less]).await.unwrap(), 1);
            assert_eq!(drop_unused_indexes(store, &scopes).await.unwrap(), 0);
            assert_eq!(made(store).await, 2);
        }

        async fn documents_that_break_a_new_unique_index_are_told(store: &Store) {
            put(store, "1").await;
            put(store, "2").await;
            let refused = ensure_indexes(store, &[scope("a.b", true)]).await;
            let Err(Error::UniqueConflict { collection, fields }) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((collection.as_str(), fields), ("a.b", vec!["name".to_owned()]));
            assert_eq!(made(store).await, 0);
            ensure_indexes(store, &[scope("a.b", false)]).await.unwrap();
            assert_eq!(made(store).await, 1);
        }
    }

    #[test]
    fn what_is_no_declaration_never_reaches_the_database() {
        let field = |name: &str| CollectionScope {
            fields: [(name.to_owned(), FieldKind::Text)].into(),
            indexes: vec![],
            ..scope("a.b", false)
        };
        assert_eq!(check(&scope("a.b_2", false)), Ok(()));
        assert_eq!(check(&field("nameOf_2")), Ok(()));
        for name in ["a", "a.b.c", "a.b'", "A.b", ".b", "a.", "a.2", "a-b.c"] {
            assert!(check(&scope(name, false)).is_err(), "{name}");
        }
        for name in ["", "2", "a'b", "a.b", "a b", "é", "$a"] {
            assert!(check(&field(name)).is_err(), "{name}");
        }
        let undeclared = CollectionScope { fields: [].into(), ..scope("a.b", false) };
        assert!(check(&undeclared).is_err());
        let twice = IndexSpec { fields: vec!["name".into(), "name".into()], unique: false };
        assert!(check(&CollectionScope { indexes: vec![twice], ..scope("a.b", false) }).is_err());
    }
}
