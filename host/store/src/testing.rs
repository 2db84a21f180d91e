//! Fresh databases of both kinds for tests.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow};
use test_database::TestDatabase;

use super::blobs::BlobLocation;
use super::connection::{Connection, on};
use super::{Backend, Settings, Store, Timeouts};

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
        timeouts: Timeouts::default(),
        blobs: BlobLocation::Folder(folder.path().join("blobs")),
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
