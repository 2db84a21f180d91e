//! Requests while the database does not respond: each ends within its budget, and a retry returns
//! the true outcome.

use std::time::{Duration, Instant};

use assurance_tests::postgres::Postgres;
use assurance_tests::{Backend, Builder, Client, TestHost};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// Budget of a request: deadline of the route plus grace time. [`MARGIN`] is added for busy
/// machines.
const BUDGET: Duration = Duration::from_millis(500 + 1_500);
const MARGIN: Duration = Duration::from_secs(3);

/// A host whose requests are limited only by their budget: the database would wait for a minute.
async fn host(cluster: &Postgres) -> (TestHost, Client) {
    Builder::new(Backend::Postgres)
        .set("database.url", cluster.url())
        .set("database.lock_timeout_ms", 60_000)
        .set("limits.deadline_ms", 500)
        .set("limits.request_grace_ms", 1_500)
        .areas(&["support"])
        .start_with_owner()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_ends_while_tables_are_locked_and_a_retry_is_carried_out_once() {
    let Some(cluster) = Postgres::start().await else { return };
    let (_host, ada) = host(&cluster).await;
    for table in ["documents", "idempotency", "sessions"] {
        let mut connection = PgConnection::connect(&cluster.url()).await.expect("a connection");
        let mut locks = connection.begin().await.expect("a transaction");
        let lock = AssertSqlSafe(format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"));
        sqlx::query(lock).execute(&mut *locks).await.expect("the lock");
        let key = format!("while-{table}-is-locked");
        let other_key = format!("{key}-2");
        let begun = Instant::now();
        let answers = futures::future::join_all([ada.open_case(&key), ada.open_case(&other_key)]);
        for answer in answers.await {
            if answer.status != 201 {
                answer.problem(503, "unavailable");
                assert!(answer.header("retry-after").is_some(), "{table}: no Retry-After");
            }
        }
        assert!(begun.elapsed() < BUDGET + MARGIN, "{table}: {:?}", begun.elapsed());
        locks.rollback().await.expect("the end of the lock");
        let once = ada.open_case(&key).await.expect(201);
        let again = ada.open_case(&key).await.expect(201);
        assert_eq!(once, again, "{table}");
    }
    let history = "/v1/workspaces/{ws}/support/case-history?limit=100";
    let cases = ada.get(history).await.expect(200)["items"].as_array().expect("items").len();
    assert!(cases <= 6, "{cases} cases of 6 keys");
}
