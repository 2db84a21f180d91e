//! Tests of units of work that share statements on PostgreSQL.

use std::collections::HashSet;

use super::*;
use crate::connection_shares::ConnectionHolder;

async fn with_collection() -> Option<TestStore> {
    let fresh = fresh(Backend::Postgres).await?;
    let collections = ["notes.note", "notes.hook"].map(|name| testing::collection(name, false));
    collections::ensure(&fresh.store, &collections).await.unwrap();
    Some(fresh)
}

/// Returns a unit as a request makes it, with events that documents of another collection request.
fn request(workspace: WorkspaceId, n: u128) -> Effects {
    let mut effects = super::request(workspace, n);
    for delivery in &mut effects.deliveries {
        delivery.requests.collection = "notes.hook".to_owned();
    }
    effects
}

/// Commits units while no statement can write. The first of each workspace is in a statement that
/// waits; all others of the workspace have to share the next one.
async fn together(store: &Store, units: Vec<Effects>) -> Vec<Result<u64, Error>> {
    let mut lock = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    execute(&mut lock, "LOCK TABLE documents, jobs IN ACCESS EXCLUSIVE MODE").await;
    let waiting = || {
        let queues = store.0.group_commit.shared_statements.lock();
        (queues.len(), queues.values().map(VecDeque::len).sum::<usize>())
    };
    let number = units.len();
    let (mut workspaces, mut commits) = (HashSet::new(), Vec::with_capacity(number));
    for effects in units {
        let is_first = workspaces.insert(effects.workspace);
        let store = store.clone();
        commits.push(tokio::spawn(async move { store.commit_in_group(effects).await }));
        while is_first && waiting() != (workspaces.len(), 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while waiting().1 < number - workspaces.len() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    lock.commit().await.unwrap();
    let ends = futures::future::join_all(commits).await;
    ends.into_iter().map(Result::unwrap).collect()
}

async fn found<T>(store: &Store, sql: &str) -> Vec<T>
where
    T: Send + Unpin,
    for<'r> T: sqlx::FromRow<'r, sqlx::postgres::PgRow>,
    for<'r> T: sqlx::FromRow<'r, sqlx::sqlite::SqliteRow>,
{
    let mut reader = store.reader().await.unwrap();
    let found = rows::<T>(&mut reader, sql).await;
    reader.release();
    found
}

/// Returns the documents, responses and jobs.
async fn stored(store: &Store) -> StoredRows {
    let documents = "SELECT id || body::text || version || created_at FROM documents ORDER BY 1";
    let replies = "SELECT key, status FROM idempotency ORDER BY key";
    let jobs = "SELECT kind || payload, created_at FROM jobs WHERE kind = 'tidy' ORDER BY id";
    (found(store, documents).await, found(store, replies).await, found(store, jobs).await)
}

/// Returns the number of statements that have written the documents.
async fn statements(store: &Store) -> i64 {
    found::<(i64,)>(store, "SELECT count(DISTINCT xmin::text) FROM documents").await[0].0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_that_share_statements_store_what_each_stores_by_itself() {
    let Some((shared, alone)) = Option::zip(with_collection().await, with_collection().await)
    else {
        return;
    };
    let workspace = WorkspaceId::new();
    let units = || (0..50_u128).map(|n| request(workspace, n));
    let ends = together(&shared.store, units().collect()).await;
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    for unit in units() {
        alone.store.commit_in_group(unit).await.unwrap();
    }
    assert_eq!(stored(&shared.store).await, stored(&alone.store).await);
    assert_eq!(statements(&shared.store).await, 2);
    assert_eq!(statements(&alone.store).await, 50);
    assert!(shared.store.0.group_commit.shared_statements.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_units_that_share_statements_only_those_with_a_fault_fail() {
    let Some(fresh) = with_collection().await else { return };
    let workspace = WorkspaceId::new();
    let mut units: Vec<Effects> = (0..40).map(|n| request(workspace, n)).collect();
    // A key and a document that another unit has, too.
    units[27].reply = units[33].reply.clone();
    units[30].inserts[0].id = "31".to_owned();
    let ends = together(&fresh.store, units).await;
    let failed: Vec<usize> = (0..40).filter(|&n| ends[n].is_err()).collect();
    assert_eq!(failed.len(), 2, "{ends:?}");
    assert!(failed.iter().all(|n| [27, 33, 30, 31].contains(n)), "{ends:?}");
    let taken = ends.iter().filter(|end| matches!(end, Err(Error::KeyTaken)));
    assert_eq!(taken.count(), 1, "{ends:?}");
    let (documents, replies, jobs) = stored(&fresh.store).await;
    assert_eq!((documents.len(), replies.len(), jobs.len()), (38, 38, 38));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_waits_delays_no_other() {
    let Some(fresh) = with_collection().await else { return };
    let (store, slow) = (&fresh.store, WorkspaceId::new());
    let mut other = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    // The insertion of the same document waits for this transaction.
    apply::apply(
        &mut other,
        unit(slow, "a"),
        apply::AutocommitOrTransaction::Transaction { gated: false },
    )
    .await
    .unwrap();
    let waits = (0..40).map(|n| {
        let (store, unit) = (store.clone(), unit(slow, if n < 2 { "a" } else { "b" }));
        tokio::spawn(async move { store.commit_in_group(unit).await })
    });
    let waits: Vec<_> = waits.collect();
    let quick = store.commit_in_group(unit(WorkspaceId::new(), "a"));
    tokio::time::timeout(Duration::from_secs(10), quick).await.expect("it does not wait").unwrap();
    other.commit().await.unwrap();
    let ends = futures::future::join_all(waits).await;
    let ends: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1, "one creates `b`: {ends:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_all_units_is_each_units() {
    let Some(fresh) = with_collection().await else { return };
    let workspace = WorkspaceId::new();
    let holder = ConnectionHolder { area: "notes".into(), workspace, in_job: false };
    let gated = fresh.store.begin_locked(holder).await.unwrap();
    let busy = (0..40).map(|n| fresh.store.commit_in_group(unit(workspace, &n.to_string())));
    let busy = futures::future::join_all(busy).await;
    assert!(busy.iter().all(|end| matches!(end, Err(Error::GateBusy))), "{busy:?}");
    drop(gated);
    fresh.store.close().await;
    let closed = (0..40).map(|n| fresh.store.commit_in_group(unit(workspace, &n.to_string())));
    let closed = futures::future::join_all(closed).await;
    assert!(closed.iter().all(|end| matches!(end, Err(Error::Unavailable(_)))), "{closed:?}");
}
