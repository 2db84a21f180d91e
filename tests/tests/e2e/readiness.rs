//! A node that cannot serve reports it check by check, and responds 503 and not 404 for areas that
//! it knows but cannot load.

use assurance_tests::components::{area, version};
use assurance_tests::operators::digest;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, until};
use reqwest::Method;
use serde_json::Value;
use sqlx::{Connection as _, Executor as _, PgConnection};
use test_database::TestDatabase;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

async fn ready(host: &TestHost) -> Answer {
    host.operate(Method::GET, "/health/ready").await
}

/// Waits until the readiness has this status and a check contains this text.
async fn until_ready(host: &TestHost, status: u16, word: &str) -> Value {
    let answer = until(format!("the readiness is {status}"), async || {
        let answer = ready(host).await;
        if answer.status == status { Ok(answer) } else { Err(answer.text()) }
    })
    .await;
    assert_eq!(answer.header("retry-after").is_some(), status == 503);
    let report = answer.json();
    assert_eq!(report["status"], word, "{report}");
    report["checks"].clone()
}

/// Asserts that every other check is `ok`.
#[track_caller]
fn only(checks: &Value, failed: &[&str]) {
    for (check, line) in checks.as_object().expect("an object") {
        assert_eq!(line != "ok", failed.contains(&check.as_str()), "{check}: {checks:#}");
    }
    assert_eq!(checks.as_object().map(serde_json::Map::len), Some(8), "{checks:#}");
}

/// A host with its own machine code folder.
fn lonely(backend: Backend) -> Builder {
    Builder::new(backend).set("runtime.cache_dir", "compiled")
}

/// Deletes machine code, as on a new machine.
fn forget_code(host: &TestHost) {
    let _ = std::fs::remove_dir_all(host.folder().join("compiled"));
    let _ = std::fs::remove_dir_all(host.folder().join("data/blobs/compiled"));
}

async fn is_away(client: &Client, path: &str) {
    let answer = client.get(path).await;
    answer.problem(503, "unavailable");
    assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
}

both_backends! {
    async fn a_live_version_that_does_not_load_answers_503_and_its_node_is_not_ready(backend) {
        let (mut host, mut ada) = lonely(backend).start_with_owner().await;
        let version = version(7);
        host.put_area("support", &version).await.expect(200);
        ada.get(CASES).await.expect(200);
        let object = format!("data/blobs/components/{}.wasm", digest(&version));
        let object = host.folder().join(object);

        let truncate = || std::fs::write(&object, &version[..version.len() / 2]).expect("written");
        let lose = || std::fs::remove_file(&object).expect("removed");
        let cases: [(&str, &dyn Fn()); 2] = [("has the digest", &truncate), ("has no", &lose)];
        for (why, damage) in cases {
            host.terminate().await;
            damage();
            forget_code(&host);
            host.start().await;
            ada = ada.at(&host);
            let checks = until_ready(&host, 503, "unready").await;
            only(&checks, &["areas"]);
            let line = checks["areas"].as_str().expect("a line");
            assert!(line.contains("support") && line.contains(why), "{line}");
            is_away(&ada, CASES).await;
            ada.get("/v1/nothing/here").await.problem(404, "not_found");
            let document = ada.get("/openapi.json").await.expect(200);
            let path = "/v1/workspaces/{workspace_id}/support/cases";
            assert!(document["paths"][path].is_object(), "its clients read about it as before");
            let area = host.operate(Method::GET, "/areas/support").await.expect(200);
            assert_eq!((&area["digest"], &area["nodes"][0]["state"]), (&Value::Null, &"failed".into()));

            std::fs::write(&object, &version).expect("written");
            only(&until_ready(&host, 200, "ready").await, &[]);
            ada.get(CASES).await.expect(200);
        }
    }

    async fn a_live_version_without_its_grants_answers_503(backend) {
        let (mut host, ada) = lonely(backend).start_with_owner().await;
        host.put_area("support", &area("support")).await.expect(200);
        host.restart(&[("areas.grants.support", toml::Value::Array(vec![]))]).await;
        let ada = ada.at(&host);
        only(&until_ready(&host, 503, "unready").await, &["areas"]);
        is_away(&ada, CASES).await;
        // After the area is removed, the path belongs to no area, so the node misses nothing.
        host.operate(Method::DELETE, "/areas/support?reason=enough").await.expect(200);
        ada.get(CASES).await.problem(404, "not_found");
        only(&until_ready(&host, 200, "ready").await, &[]);
    }

    async fn a_folder_with_a_component_that_is_refused_makes_its_node_unready(backend) {
        let builder = Builder::new(backend).areas(&["support"]).set("areas.watch", true);
        let (host, ada) = builder.start_with_owner().await;
        only(&until_ready(&host, 200, "ready").await, &[]);
        let file = host.areas().join("notes.wasm");
        std::fs::write(&file, "no component").expect("written");
        let checks = until_ready(&host, 503, "unready").await;
        only(&checks, &["areas"]);
        assert!(checks["areas"].to_string().contains("notes.wasm"), "{checks}");
        ada.get(CASES).await.expect(200);
        is_away(&ada, "/v1/workspaces/{ws}/notes").await;
        std::fs::remove_file(&file).expect("removed");
        until_ready(&host, 200, "ready").await;
        ada.get("/v1/workspaces/{ws}/notes").await.problem(404, "not_found");
    }

    async fn a_refused_file_that_is_gone_or_older_than_the_live_version_is_no_problem(backend) {
        let mut host = Builder::new(backend).start().await;
        host.put_area("support", &version(1)).await.expect(200);
        let file = host.areas().join("support.wasm");
        let write = || std::fs::write(&file, "no component").expect("written");
        host.terminate().await;
        write();
        host.start().await;
        only(&until_ready(&host, 503, "unready").await, &["areas"]);
        std::fs::remove_file(&file).expect("removed");
        until_ready(&host, 200, "ready").await;

        write();
        host.restart(&[]).await;
        until_ready(&host, 503, "unready").await;
        host.put_area("support", &version(2)).await.expect(200);
        until_ready(&host, 200, "ready").await;
        host.restart(&[]).await;
        only(&until_ready(&host, 200, "ready").await, &[]);
    }
}

/// Runs a statement as an administrator of the database.
async fn administrate(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    connection.execute(statement).await.expect("done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_names_what_is_wrong_with_the_database() {
    let Some(database) = TestDatabase::create().await else { return };
    let url = database.url();
    let builder = Builder::new(Backend::Postgres).set("database.url", url.clone());
    let mut host = builder.areas(&["support"]).start().await;
    only(&until_ready(&host, 200, "ready").await, &[]);

    let name = url.rsplit_once('/').expect("a URL with a database").1.to_owned();
    let read_only = format!("ALTER DATABASE {name} SET default_transaction_read_only");
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE application_name = 'assurance' AND datname = current_database()";
    administrate(&url, &format!("{read_only} = on")).await;
    administrate(&url, end_all).await;
    let checks = until_ready(&host, 503, "unready").await;
    assert_ne!(checks["writes"], "ok", "{checks:#}");
    let off = format!("BEGIN READ WRITE; {read_only} = off; COMMIT");
    administrate(&url, &off).await;
    administrate(&url, end_all).await;
    only(&until_ready(&host, 200, "ready").await, &[]);

    let newer = "INSERT INTO _sqlx_migrations \
                 (version, description, success, checksum, execution_time) \
                 VALUES (99990101, 'newer', true, '', 0)";
    administrate(&url, newer).await;
    let checks = until_ready(&host, 503, "unready").await;
    only(&checks, &["schema"]);
    assert!(checks["schema"].to_string().contains("99990101"), "{checks}");
    administrate(&url, "DELETE FROM _sqlx_migrations WHERE version = 99990101").await;
    until_ready(&host, 200, "ready").await;

    let before = "UPDATE installation SET key_check = sha256(key_check)";
    administrate(&url, before).await;
    only(&until_ready(&host, 503, "unready").await, &["master_key"]);
    host.terminate().await;
    let text = host.refused(&["serve"]);
    assert!(text.contains("keys.master_key") && text.contains(&name), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_tells_that_calls_writes_fail_while_others_do_not() {
    let Some(database) = TestDatabase::create().await else { return };
    let builder = Builder::new(Backend::Postgres)
        .set("database.url", database.url())
        .set("database.lock_timeout_ms", 200)
        .areas(&["support"]);
    let (host, ada) = builder.start_with_owner().await;
    only(&until_ready(&host, 200, "ready").await, &[]);
    let mut locks = PgConnection::connect(&database.url()).await.expect("a connection");
    locks.execute("BEGIN; LOCK TABLE documents").await.expect("the lock");
    for number in 0..5 {
        ada.open_case(&format!("locked-{number}")).await.problem(503, "unavailable");
    }
    let checks = until_ready(&host, 503, "unready").await;
    only(&checks, &["writes"]);
    assert!(checks["writes"].to_string().contains("writes of calls failed"), "{checks}");
    locks.execute("ROLLBACK").await.expect("the end of the lock");
    ada.open_case("unlocked").await.expect(201);
    only(&until_ready(&host, 200, "ready").await, &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_another_clock_than_the_database_is_unready_and_uses_the_databases_time() {
    let Some(database) = TestDatabase::create().await else { return };
    let url = database.url();
    // For the service, the database's clock is a day ahead, so the service is a day behind.
    let name = url.rsplit_once('/').expect("a URL with a database").1.to_owned();
    let ahead = format!(
        "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE \
         AS 'SELECT pg_catalog.clock_timestamp() + interval ''25 hours'''; \
         ALTER DATABASE {name} SET search_path = public, pg_catalog"
    );
    administrate(&url, &ahead).await;
    let builder = Builder::new(Backend::Postgres).set("database.url", url.clone());
    let (host, ada) = builder.areas(&["support"]).start_with_owner().await;
    let checks = until_ready(&host, 503, "unready").await;
    only(&checks, &["clock"]);
    assert!(checks["clock"].to_string().contains("behind"), "{checks}");

    let case = ada.open_case("key-00000001").await.expect(201);
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    let text = case["created_at"].as_str().expect("a time").to_owned();
    let apart: f64 = sqlx::query_scalar(
        "SELECT abs(extract(epoch FROM public.clock_timestamp() - $1::text::timestamptz))::float8",
    )
    .bind(text)
    .fetch_one(&mut connection)
    .await
    .expect("a number");
    assert!(apart < 60.0, "the case is {apart} s from the database's time: {case}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_decides_what_only_degrades() {
    let Some(database) = TestDatabase::create().await else { return };
    let url = database.url();
    let builder = Builder::new(Backend::Postgres).set("database.url", url.clone());
    let host = builder.set("readiness.degraded_by", vec!["schema"]).start().await;
    until_ready(&host, 200, "ready").await;
    let newer = "INSERT INTO _sqlx_migrations \
                 (version, description, success, checksum, execution_time) \
                 VALUES (99990101, 'newer', true, '', 0)";
    administrate(&url, newer).await;
    until("the host is degraded", async || ready(&host).await.expect(200)["status"] == "degraded")
        .await;
}
