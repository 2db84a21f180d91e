//! Tests of the pool with databases of both kinds.

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Executor as _, SqliteConnection};

use crate::connection::{Connection, on};
use crate::testing::{execute, fresh};
use crate::{Backend, Store};

use super::*;

async fn server_of(connection: &mut Connection) -> i32 {
    on!(connection, c => {
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *c).await.unwrap()
    })
}

/// Begins a statement on a connection and drops it before the end.
async fn abandon(store: &Store, statement: &'static str) {
    let mut connection = store.reader().await.unwrap();
    let running = async {
        on!(connection, c => { c.execute(statement).await.unwrap(); });
    };
    let left = tokio::time::timeout(Duration::from_millis(50), running).await;
    assert!(left.is_err(), "it runs on");
}

#[tokio::test]
async fn an_abandoned_statement_costs_its_own_connection_only() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let store = &fresh.store;
    let mut kept = store.reader().await.unwrap();
    let server = server_of(&mut kept).await;
    abandon(store, "SELECT pg_sleep(30)").await;
    kept.release();
    tokio::time::sleep(PATIENCE * 3 / 2).await;
    let mut again = store.reader().await.unwrap();
    assert_eq!(server_of(&mut again).await, server);
}

/// Changes a setting of the test's database, for sessions from then on.
async fn alter_database(operator: &mut Connection, change: &str) {
    let alter = format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I {change}', current_database()); END $$"
    );
    execute(operator, &alter).await;
}

async fn write(connection: &mut Connection) -> Result<(), sqlx::Error> {
    on!(connection, c => c.execute("DELETE FROM idempotency").await.map(drop))
}

#[tokio::test]
async fn sessions_of_a_read_only_phase_are_not_reused_after_it() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let store = &fresh.store;
    let mut operator = store.reader().await.unwrap();
    alter_database(&mut operator, "SET default_transaction_read_only = on").await;
    let (idle, borrowed) = (store.reader().await.unwrap(), store.reader().await.unwrap());
    let mut failing = store.reader().await.unwrap();
    idle.release();
    write(&mut failing).await.expect_err("the session is read-only");
    alter_database(&mut operator, "RESET default_transaction_read_only").await;
    drop(failing);
    tokio::time::sleep(PATIENCE).await;
    borrowed.release();
    let mut renewed = Vec::new();
    for _ in 0..3 {
        let mut connection = store.reader().await.unwrap();
        write(&mut connection).await.expect("a session that was opened after the phase");
        renewed.push(connection);
    }
}

#[tokio::test]
async fn a_connection_outlives_the_runtime_it_was_first_asked_for_in() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let store = fresh.store.clone();
    let opened = std::thread::spawn(move || {
        let low = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        low.block_on(async {
            let mut connection = store.reader().await.unwrap();
            let server = server_of(&mut connection).await;
            connection.release();
            server
        })
    });
    let server = tokio::task::spawn_blocking(|| opened.join().unwrap()).await.unwrap();
    let mut connection = fresh.store.reader().await.unwrap();
    assert_eq!(server_of(&mut connection).await, server);
}

/// Values of the metric [`WAIT_SECONDS`].
#[derive(Default)]
struct RecordedWaits(Mutex<Vec<f64>>);

impl HistogramFn for RecordedWaits {
    fn record(&self, seconds: f64) {
        self.0.lock().push(seconds);
    }
}

/// Records the metric [`WAIT_SECONDS`] and no other.
struct WaitRecorder(Arc<RecordedWaits>);

impl Recorder for WaitRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() == WAIT_SECONDS {
            return Histogram::from_arc(Arc::clone(&self.0));
        }
        Histogram::noop()
    }
}

#[tokio::test]
async fn a_caller_that_gets_no_connection_in_time_counts_with_its_wait() {
    let waits = Arc::new(RecordedWaits::default());
    let recorder = WaitRecorder(Arc::clone(&waits));
    let _recording = metrics::set_default_local_recorder(&recorder);
    let timeout = Duration::from_secs(1);
    let limits = PoolLimits { connections: 1, timeout, lifetime: None, statement: None };
    let options = SqliteConnectOptions::new().in_memory(true);
    let pool: Pool<SqliteConnection> = Pool::new(options, limits);
    let _lent = pool.acquire().await.unwrap();
    assert!(waits.0.lock().is_empty(), "a free connection is no wait");
    let refused = pool.acquire().await.unwrap_err();
    assert!(matches!(refused, sqlx::Error::PoolTimedOut), "{refused}");
    let waits = waits.0.lock().clone();
    assert!(matches!(waits[..], [seconds] if seconds >= 1.0), "{waits:?}");
}
