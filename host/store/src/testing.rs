//! Fresh databases of both kinds for tests.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow};
use test_database::TestDatabase;
use uuid::Uuid;

use super::blobs::BlobStoreLocation;
use super::connection::{Connection, on};
#[cfg(test)]
use super::{
    AccessibleCollection,
    apply::{AutocommitOrTransaction::Autocommit, DocumentInsert, Effects, apply},
};
use super::{Backend, PostgresSessionTimeouts, Settings, Store};
use assurance_core::domain::deployment::{StoredVersion, VersionStage};
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::job::{Lane, NewJob};
#[cfg(test)]
use assurance_core::domain::manifest::{FieldKind, IndexSpec};
use assurance_core::domain::time::Timestamp;

/// A store for one test. Dropping it deletes its database and files.
#[derive(Debug)]
pub struct TestStore {
    /// An empty store with all migrations.
    pub store: Store,
    /// Settings that open the same database again.
    pub settings: Settings,
    _folder: tempfile::TempDir,
    _database: Option<TestDatabase>,
}

/// Returns an empty store; `None` if the test environment has no such database.
pub async fn fresh(backend: Backend) -> Option<TestStore> {
    prepared(backend, async |_| {}).await
}

/// Returns a store on a database that `prepare` has filled before it is opened;
/// `None` if the test environment has no such database.
pub async fn prepared(backend: Backend, prepare: impl AsyncFnOnce(&str)) -> Option<TestStore> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (url, database) = match backend {
        Backend::Sqlite => {
            (format!("sqlite:{}", folder.path().join("test.sqlite").display()), None)
        }
        Backend::Postgres => {
            let database = TestDatabase::create().await?;
            (database.url(), Some(database))
        }
    };
    prepare(&url).await;
    let settings = Settings {
        url,
        max_connections: 16,
        acquire_timeout_ms: 30_000,
        timeouts: PostgresSessionTimeouts::default(),
        blobs: BlobStoreLocation::Folder(folder.path().join("blobs")),
    };
    let store = Store::open(&settings).await.expect("a fresh store opens");
    Some(TestStore { store, settings, _folder: folder, _database: database })
}

/// Runs an arbitrary statement, for example to damage, lock or change data
/// without the store.
///
/// # Panics
/// The database refuses the statement.
pub async fn execute(connection: &mut Connection, sql: &str) {
    let done = on!(connection, c => {
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *c).await.map(drop)
    });
    done.expect("the statement runs");
}

/// Returns the rows of an arbitrary query.
///
/// # Panics
/// The database refuses it, or it has other columns.
pub async fn rows<T>(connection: &mut Connection, sql: &str) -> Vec<T>
where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    let rows = on!(connection, c => {
        sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut *c).await
    });
    rows.expect("the query runs")
}

/// Returns a job of the area `notes` that is due, in a workspace of all jobs that
/// this function returns.
#[must_use]
pub fn job(n: u128) -> NewJob {
    NewJob {
        id: JobId(Uuid::from_u128(n)),
        workspace: WorkspaceId(Uuid::from_u128(7)),
        area: "notes".into(),
        kind: "tidy".into(),
        lane: Lane::Delivery,
        payload: "{}".into(),
        resource: None,
        available_at: Timestamp(0),
        max_attempts: 3,
        timeout_ms: 10_000,
        dedupe_key: None,
    }
}

/// Returns a staged version of the area `notes`.
#[must_use]
pub fn deployment(digest: &str) -> StoredVersion {
    StoredVersion {
        number: 0,
        area: "notes".into(),
        digest: digest.into(),
        version: "1.0.0".into(),
        size: 3,
        object: format!("components/{digest}"),
        publisher: None,
        signature: None,
        stage: VersionStage::Staged,
        received_at: Timestamp(1),
        received_by: "ada".into(),
        approved_at: None,
        approved_by: None,
        live_at: None,
    }
}

/// Returns a collection with an index of its only field `name`.
#[cfg(test)]
pub(crate) fn collection(full_name: &str, unique: bool) -> AccessibleCollection {
    AccessibleCollection {
        full_name: full_name.into(),
        fields: [("name".to_owned(), FieldKind::Text)].into(),
        indexes: vec![IndexSpec { fields: vec!["name".into()], unique }],
        ..AccessibleCollection::default()
    }
}

/// Creates a document of the collection `a.b` in the workspace with the nil id.
#[cfg(test)]
pub(crate) async fn put(store: &Store, id: &str, body: &str) {
    let mut effects = Effects::new(WorkspaceId(Uuid::nil()), "a", Timestamp(0));
    let (collection, id, body) = ("a.b".to_owned(), id.to_owned(), body.to_owned());
    effects.inserts.push(DocumentInsert { collection, id, version: 1, body });
    let written = store.write(async |c| apply(c, effects, Autocommit).await).await;
    written.expect("the document is written");
}

/// Creates documents of the collection `a.b` in the workspace with the nil id, on PostgreSQL. Their
/// ids are the numbers from 1, and their names `n` with the number.
#[cfg(test)]
pub(crate) async fn put_numbered(connection: &mut Connection, documents: u32) {
    let fill = format!(
        "INSERT INTO documents SELECT '{}', 'a.b', n::text, 1, 0, 0, \
         jsonb_build_object('name', 'n' || n) FROM generate_series(1, {documents}) AS n",
        Uuid::nil()
    );
    execute(connection, &fill).await;
}

/// Returns the texts in the first column of a statement's rows.
#[cfg(test)]
pub(crate) async fn texts(connection: &mut Connection, sql: crate::sql::Sql) -> Vec<String> {
    let mut texts = Vec::new();
    let take = |row: crate::sql::Row| row.text(0).map(|text| texts.push(text));
    crate::sql::each_row(connection, sql, take).await.expect("the query runs");
    texts
}

/// Returns the lines of a statement's plan with the actual row counts.
#[cfg(test)]
pub(crate) async fn explained(
    connection: &mut Connection,
    mut sql: crate::sql::Sql,
) -> Vec<String> {
    sql.text.insert_str(0, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ");
    texts(connection, sql).await
}

/// Defines a test for each database from one body: `on_both! { async fn
/// sentence_as_a_name(store: &Store) { … } }`.
#[macro_export]
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($store:ident: &Store) $body:block)*) => {
        $($(#[$meta])* mod $name {
            #[allow(unused_imports, reason = "not every body needs its module's imports")]
            use super::*;

            async fn body($store: &$crate::Store) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let fresh = $crate::testing::fresh($crate::Backend::Sqlite).await;
                body(&fresh.expect("SQLite is always available").store).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(fresh) =
                    $crate::testing::fresh($crate::Backend::Postgres).await
                {
                    body(&fresh.store).await;
                }
            }
        })*
    };
}
pub use crate::on_both;
