//! Databases for tests: a fresh one each time, of both kinds.

use test_database::TestDatabase;

use super::blobs::Place;
use super::{Backend, Settings, Store, Timeouts};

/// A store of a test's own. Its database and what it keeps in files go with it.
pub(crate) struct Fresh {
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    _folder: tempfile::TempDir,
    _database: Option<TestDatabase>,
}

/// An empty store; nothing, where the test environment has no such database.
pub(crate) async fn fresh(backend: Backend) -> Option<Fresh> {
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
    let settings = Settings {
        url,
        max_connections: 16,
        acquire_timeout_ms: 30_000,
        timeouts: Timeouts::default(),
        blobs: Place::Folder(folder.path().join("blobs")),
    };
    let store = Store::open(&settings).await.expect("a fresh store opens");
    Some(Fresh { store, settings, _folder: folder, _database: database })
}

/// Makes a test of each database from one body:
/// `on_both! { async fn sentence_as_a_name(store: &Store) { … } }`.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($store:ident: &Store) $body:block)*) => {
        $($(#[$meta])* mod $name {
            #[allow(unused_imports, reason = "not every body needs its module's imports")]
            use super::*;

            async fn body($store: &$crate::store::Store) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let fresh = $crate::store::testing::fresh($crate::store::Backend::Sqlite).await;
                body(&fresh.expect("SQLite is always there").store).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(fresh) =
                    $crate::store::testing::fresh($crate::store::Backend::Postgres).await
                {
                    body(&fresh.store).await;
                }
            }
        })*
    };
}
pub(crate) use on_both;
