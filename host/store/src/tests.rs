//! Tests of opening the store and of abandoned connections.

use super::testing::{fresh, on_both};
use super::*;
use assurance_core::domain::id::WorkspaceId;

async fn tables(store: &Store) -> Result<(), Error> {
    let mut connection = store.writer().await?;
    on!(connection, c => {
        sqlx::query("DELETE FROM idempotency").execute(&mut *c).await?;
    });
    connection.release();
    Ok(())
}

async fn several_open_at_once(backend: Backend) {
    let Some(fresh) = fresh(backend).await else { return };
    let mut settings = fresh.settings.clone();
    if backend == Backend::Sqlite {
        settings.url = settings.url.replace("test.sqlite", "another.sqlite");
    }
    let all = (0..6).map(|_| Store::open(&settings));
    for store in futures::future::join_all(all).await {
        tables(&store.unwrap()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_open_at_once_sqlite() {
    several_open_at_once(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_open_at_once_postgres() {
    several_open_at_once(Backend::Postgres).await;
}

#[tokio::test]
async fn a_url_of_no_known_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        url: "mysql://x".into(),
        max_connections: 1,
        acquire_timeout_ms: 10,
        timeouts: Timeouts::default(),
        blobs: blobs::BlobLocation::Folder(folder.path().to_owned()),
    };
    assert!(matches!(Store::open(&settings).await, Err(Error::Url(url)) if url == "mysql://x"));
}

fn holder(workspace: WorkspaceId) -> ShareOwner {
    ShareOwner { area: "notes".into(), workspace, in_job: false }
}

on_both! {
    async fn an_abandoned_transaction_is_rolled_back(store: &Store) {
        for access in [Access::WriteLocked, Access::Write, Access::Read] {
            for _ in 0..40 {
                let tx = store.begin(access).await.unwrap();
                drop(tx);
            }
        }
        for _ in 0..40 {
            let gated = store.begin_locked(holder(WorkspaceId::new())).await.unwrap();
            drop(gated);
        }
        tables(store).await.unwrap();
    }

    async fn a_cancelled_begin_leaves_nothing_open(store: &Store) {
        let workspace = WorkspaceId::new();
        let first = store.begin_locked(holder(workspace)).await.unwrap();
        for _ in 0..10 {
            let waits = Box::pin(store.begin_locked(holder(workspace)));
            let waited = tokio::time::timeout(Duration::from_millis(5), waits).await;
            assert!(waited.is_err(), "two hold one workspace");
        }
        drop(first);
        store.begin_locked(holder(workspace)).await.unwrap().commit().await.unwrap();
        tables(store).await.unwrap();
    }

    async fn reads_go_on_while_one_writes(store: &Store) {
        let mut writes = store.begin(Access::WriteLocked).await.unwrap();
        on!(writes, c => { sqlx::query("DELETE FROM idempotency").execute(&mut *c).await.unwrap(); });
        store.ping().await.unwrap();
        let read = store.begin(Access::Read).await.unwrap();
        read.commit().await.unwrap();
        writes.commit().await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_too_long_is_told_that_the_database_is_away() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let settings =
        Settings { max_connections: 2, acquire_timeout_ms: 20, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    let (reader, writer) = (store.reader().await.unwrap(), store.writer().await.unwrap());
    assert!(matches!(store.reader().await, Err(Error::Unavailable(_))));
    assert!(matches!(store.writer().await, Err(Error::Unavailable(_))));
    reader.release();
    drop(writer);
    store.reader().await.unwrap().release();
    tables(&store).await.unwrap();
    store.close().await;
    assert!(matches!(store.reader().await, Err(Error::Unavailable(_))));
}
