//! Tests with a failing database: a full disk, a table locked by another
//! client. Calls end in time with a clear error, and work again afterwards.

use std::time::{Duration, Instant};

use super::*;
use assurance_store::testing::{self, fresh};
use assurance_store::{Backend, PostgresSessionTimeouts, Settings, TransactionAccess};

const LOCK_MS: u32 = 200;

/// Limits the size of SQLite's file like a full disk, for both connections.
async fn limit_pages(store: &Store, pages: u32) {
    for mut connection in [store.writer().await.unwrap(), store.reader().await.unwrap()] {
        let pragma = format!("PRAGMA max_page_count = {pages}");
        testing::execute(&mut connection, &pragma).await;
        connection.release();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_writes_for_as_long_as_it_is_full() {
    let fresh = fresh(Backend::Sqlite).await.unwrap();
    let settings = Settings { max_connections: 2, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    let area = Area::installed(&store).await;
    let large = format!(r#"{{"note":"{}"}}"#, "x".repeat(200_000));
    area.put(vec![create("before", "{}")]).await.unwrap();
    limit_pages(&store, 1).await;
    for n in 0..20 {
        // One kind of call begins with a read, the other with the write lock.
        let mut unit = area.unit();
        if n % 2 == 0 {
            unit.count("items", &[], None).await.unwrap();
        }
        unit.write("items", vec![create(&format!("large-{n}"), &large)]).await.unwrap();
        let refused = unit.commit(CommitAdditions::default()).await;
        assert!(matches!(refused, Err(Error::Full(_))), "{n}: {refused:?}");
        assert!(area.get("before").await.is_some());
    }
    limit_pages(&store, 1_000_000).await;
    area.put(vec![create("after", &large)]).await.unwrap();
    assert!(area.get("after").await.is_some());
    assert!(area.get("large-0").await.is_none());
}

/// Returns a store with short lock timeouts; `None` if no PostgreSQL is
/// available.
async fn impatient() -> Option<(assurance_store::testing::TestStore, Store)> {
    let fresh = fresh(Backend::Postgres).await?;
    let timeouts =
        PostgresSessionTimeouts { lock_ms: LOCK_MS, ..PostgresSessionTimeouts::default() };
    let settings = Settings { timeouts, acquire_timeout_ms: 3_000, ..fresh.settings.clone() };
    let store = Store::open(&settings).await.unwrap();
    Some((fresh, store))
}

/// Runs calls of every kind concurrently in one workspace.
async fn write_at_once(area: &Area, round: u32) -> Vec<Result<(), Error>> {
    let calls = (0..24).map(async |n| {
        let mut unit = area.with(|spec| spec.locked = n % 3 == 0);
        if n % 2 == 0 {
            aborted(unit.count("items", &[], None).await)?;
        }
        let made = vec![create(&format!("{round}-{n}"), "{}")];
        aborted(unit.write("items", made).await)?;
        unit.commit(CommitAdditions::default()).await
    });
    futures::future::join_all(calls).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_while_a_table_is_locked_and_work_when_it_is_not() {
    let Some((_fresh, store)) = impatient().await else { return };
    let area = Area::installed(&store).await;
    for (round, table) in (0_u32..).zip(["documents", "jobs", "search_texts"]) {
        let mut locks = store.begin(TransactionAccess::WriteLocked).await.unwrap();
        let lock = format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
        testing::execute(&mut locks, &lock).await;
        let begun = Instant::now();
        for ended in write_at_once(&area, round).await {
            let expected = matches!(&ended, Ok(()) | Err(Error::Unavailable(_)))
                || ended.as_ref().is_err_and(Error::is_write_conflict);
            assert!(expected, "{table}: {ended:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{table}: {:?}", begun.elapsed());
        locks.commit().await.unwrap();
        put_in_the_end(&area, create(&format!("{round}-after"), "{}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_call_that_holds_its_workspaces_gate_leaves_other_workspaces_alone() {
    let Some((_fresh, store)) = impatient().await else { return };
    let area = Area::installed(&store).await;
    let mut long = area.with(|spec| spec.locked = true);
    long.count("items", &[], None).await.unwrap();
    long.write("items", vec![create("long", "{}")]).await.unwrap();
    let waiting = tokio::spawn({
        let area = area.clone();
        async move { write_at_once(&area, 0).await }
    });
    let elsewhere = area.elsewhere();
    let begun = Instant::now();
    for n in 0..20 {
        put_in_the_end(&elsewhere, create(&n.to_string(), "{}")).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    // PostgreSQL may report a false conflict with a row on the same page.
    let ended = long.commit(CommitAdditions::default()).await;
    assert!(matches!(ended, Ok(()) | Err(Error::RunAgain)), "{ended:?}");
    waiting.await.unwrap();
    put_in_the_end(&area, create("after", "{}")).await;
}
