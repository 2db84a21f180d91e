//! Tests with databases of the release before each collection had a table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::migrate::MigrateDatabase as _;
use sqlx::{Connection as _, PgConnection, Sqlite, SqliteConnection};

use super::super::apply::{
    AutocommitOrTransaction, DocumentDelete, DocumentInsert, DocumentUpdate, Effects, apply,
};
use super::super::connection::Connection;
use super::super::documents::{CollectionKey, get};
use super::*;
use crate::testing::{TestStore, execute, prepared, rows};
use crate::{AccessibleCollection, collections, migrations};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::{FieldKind, IndexSpec};
use assurance_core::domain::time::Timestamp;

/// The last migration of the release before.
const BEFORE: i64 = 31;
const WORKSPACE: uuid::Uuid = uuid::Uuid::from_u128(7);
/// Documents of each of the collections `a.b`, `a.c` and `x.y`.
const DOCUMENTS: u32 = 2_000;

fn scope(name: &str) -> AccessibleCollection {
    AccessibleCollection {
        full_name: name.into(),
        fields: [("n".to_owned(), FieldKind::Integer)].into(),
        indexes: vec![IndexSpec { fields: vec!["n".into()], unique: true }],
        ..AccessibleCollection::default()
    }
}

fn place(collection: &str) -> CollectionKey<'_> {
    CollectionKey { workspace: WorkspaceId(WORKSPACE), collection }
}

async fn fill_sqlite(url: &str) {
    Sqlite::create_database(url).await.unwrap();
    let mut c = SqliteConnection::connect(url).await.unwrap();
    migrations::until(Backend::Sqlite, BEFORE).run(&mut c).await.unwrap();
    for collection in ["a.b", "a.c", "x.y"] {
        let fill = "WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n + 1 < $3) \
             INSERT INTO documents SELECT $1, $2, format('%05d', n), 1, 1, 1, json_object('n', n) FROM s";
        let query = sqlx::query(fill).bind(WORKSPACE).bind(collection).bind(DOCUMENTS);
        query.execute(&mut c).await.unwrap();
    }
    c.close().await.unwrap();
}

async fn fill_postgres(url: &str) {
    let mut c = PgConnection::connect(url).await.unwrap();
    migrations::until(Backend::Postgres, BEFORE).run(&mut c).await.unwrap();
    for collection in ["a.b", "a.c", "x.y"] {
        let fill = "INSERT INTO documents SELECT $1, $2, lpad(n::text, 5, '0'), 1, 1, 1, \
                    jsonb_build_object('n', n) FROM generate_series(0, $3 - 1) AS n";
        let query = sqlx::query(fill).bind(WORKSPACE).bind(collection).bind(i64::from(DOCUMENTS));
        query.execute(&mut c).await.unwrap();
    }
    c.close().await.unwrap();
}

async fn old(backend: Backend) -> Option<TestStore> {
    match backend {
        Backend::Sqlite => prepared(backend, fill_sqlite).await,
        Backend::Postgres => prepared(backend, fill_postgres).await,
    }
}

async fn counted(connection: &mut Connection, table: &str) -> i64 {
    rows::<(i64,)>(connection, &format!("SELECT count(*) FROM \"{table}\"")).await[0].0
}

#[tokio::test]
async fn sqlite_moves_all_documents_when_it_opens() {
    let old = old(Backend::Sqlite).await.unwrap();
    let mut reader = old.store.reader().await.unwrap();
    for collection in ["a.b", "a.c", "x.y"] {
        assert_eq!(counted(&mut reader, collection).await, i64::from(DOCUMENTS));
        let document = get(&mut reader, place(collection), "00017").await.unwrap().unwrap();
        assert_eq!((document.version, document.body.as_str()), (1, r#"{"n":17}"#));
    }
    let gone = "SELECT count(*) FROM sqlite_schema WHERE name = 'documents'";
    assert_eq!(rows::<(i64,)>(&mut reader, gone).await[0].0, 0);
    collections::ensure(&old.store, &[scope("a.b"), scope("new.one")]).await.unwrap();
}

#[tokio::test]
async fn sqlite_continues_after_the_last_complete_collection() {
    let interrupted = async |url: &str| {
        fill_sqlite(url).await;
        let mut c = SqliteConnection::connect(url).await.unwrap();
        migrations::of(Backend::Sqlite).run(&mut c).await.unwrap();
        sqlx::raw_sql(sqlite::GROUPS).execute(&mut c).await.unwrap();
        assert_eq!(sqlite::move_one(&mut c, "a.b").await.unwrap(), u64::from(DOCUMENTS));
        // The process ends while it moves the next one.
        sqlx::raw_sql("BEGIN; CREATE TABLE \"a.c\" (x)").execute(&mut c).await.unwrap();
        c.close().await.unwrap();
    };
    let old = prepared(Backend::Sqlite, interrupted).await.unwrap();
    let mut reader = old.store.reader().await.unwrap();
    for collection in ["a.b", "a.c", "x.y"] {
        assert_eq!(counted(&mut reader, collection).await, i64::from(DOCUMENTS));
    }
}

/// Expected documents: id and version, by collection.
type Model = Arc<Mutex<BTreeMap<(&'static str, String), u64>>>;

fn expected() -> Model {
    let all = ["a.b", "a.c", "x.y"].into_iter();
    let ids = |collection| (0..DOCUMENTS).map(move |n| ((collection, format!("{n:05}")), 1));
    Arc::new(Mutex::new(all.flat_map(ids).collect()))
}

/// Returns the effects that change a document from a version, if it exists, to
/// another, or delete it.
fn effects_of(collection: &str, id: &str, from: Option<u64>, to: Option<u64>) -> Effects {
    let mut effects = Effects::new(WorkspaceId(WORKSPACE), "a", Timestamp(2));
    let body = format!(r#"{{"n":{}}}"#, id.parse::<u32>().unwrap());
    let (collection, id, created_at) = (collection.to_owned(), id.to_owned(), Timestamp(1));
    match (from, to) {
        (Some(from), Some(to)) => {
            effects.updates.push(DocumentUpdate { collection, id, from, to, created_at, body });
        }
        (Some(from), None) => effects.deletes.push(DocumentDelete { collection, id, from }),
        (None, _) => effects.inserts.push(DocumentInsert { collection, id, version: 1, body }),
    }
    effects
}

/// Changes documents one after another, until `stop`: replaces, deletes and
/// creates some all over the collections.
async fn change(store: Store, model: Model, step: u32, stop: Arc<Mutex<bool>>) {
    for round in 0.. {
        for n in (step..DOCUMENTS).step_by(97) {
            if *stop.lock() {
                return;
            }
            let collection = ["a.b", "a.c", "x.y"][(n % 3) as usize];
            let id = format!("{n:05}");
            let version = model.lock().get(&(collection, id.clone())).copied();
            let after = match version {
                Some(_) if (round + n) % 3 == 0 => None,
                Some(from) => Some(from + 1),
                None => Some(1),
            };
            let effects = effects_of(collection, &id, version, after);
            let mut writer = store.writer().await.unwrap();
            match apply(&mut writer, effects, AutocommitOrTransaction::Autocommit).await {
                Ok(_) => {
                    let mut model = model.lock();
                    match after {
                        Some(version) => model.insert((collection, id), version),
                        None => model.remove(&(collection, id)),
                    };
                }
                // A deadlock with a batch, as for a request that runs again.
                Err(Error::RunAgain) => {}
                Err(error) => panic!("{error}"),
            }
            writer.release();
        }
    }
}

async fn is_as_expected(store: &Store, model: &Model) {
    let mut reader = store.reader().await.unwrap();
    let sql = "SELECT collection, id, version FROM documents";
    let found: BTreeMap<(String, String), u64> = rows::<(String, String, i64)>(&mut reader, sql)
        .await
        .into_iter()
        .map(|(collection, id, version)| ((collection, id), version.cast_unsigned()))
        .collect();
    let expected: BTreeMap<(String, String), u64> = model
        .lock()
        .iter()
        .map(|((collection, id), version)| (((*collection).to_owned(), id.clone()), *version))
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_moves_documents_while_they_change_and_after_every_interruption() {
    let Some(old) = old(Backend::Postgres).await else { return };
    let store = &old.store;
    collections::ensure(store, &[scope("a.b"), scope("a.c"), scope("new.one")]).await.unwrap();
    let (model, stop) = (expected(), Arc::new(Mutex::new(false)));
    let writers: Vec<_> = (0..4)
        .map(|step| tokio::spawn(change(store.clone(), model.clone(), step, stop.clone())))
        .collect();
    // Interrupts the move at many points, as a killed process does.
    for ms in 1..40 {
        let interrupted =
            tokio::time::timeout(Duration::from_millis(ms * 3), store.move_documents());
        let _ = interrupted.await;
    }
    let moves = [store.move_documents(), store.move_documents()];
    tokio::time::timeout(Duration::from_secs(60), futures::future::join_all(moves)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    *stop.lock() = true;
    for writer in writers {
        writer.await.unwrap();
    }
    let mut reader = store.reader().await.unwrap();
    assert_eq!(progress(&mut reader).await.unwrap(), None);
    is_as_expected(store, &model).await;
    collections::ensure(store, &[scope("a.b"), scope("later.one")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_the_old_table_if_a_copy_is_missing() {
    let Some(old) = old(Backend::Postgres).await else { return };
    let mut writer = old.store.writer().await.unwrap();
    let skip = "UPDATE documents_moved SET workspace_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
    execute(&mut writer, skip).await;
    let moving = tokio::time::timeout(Duration::from_secs(3), postgres::run(&old.store)).await;
    assert!(moving.unwrap().is_err());
    assert_eq!(counted(&mut writer, "documents").await, i64::from(3 * DOCUMENTS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_waits_for_transactions_that_read_the_old_table() {
    let Some(old) = old(Backend::Postgres).await else { return };
    let mut reads = old.store.begin(crate::TransactionAccess::Read).await.unwrap();
    // Takes the snapshot without a lock on documents.
    rows::<(i64,)>(&mut reads, "SELECT count(*) FROM collections").await;
    let moving = tokio::spawn({
        let store = old.store.clone();
        async move { store.move_documents().await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(counted(&mut reads, "documents").await, i64::from(3 * DOCUMENTS));
    reads.commit().await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), moving).await.unwrap().unwrap();
}
