//! Canaries: a version serves some workspaces until an operator activates it or ends the trial, or
//! a node finds it worse.

use std::time::{Duration, Instant};

use assurance_tests::components::{fixture, replaced};
use assurance_tests::operators::{digest, items};
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, until};
use reqwest::Method;
use serde_json::{Value, json};

const AREA: &str = "/areas/behaves_as_marked";
const PATH: &str = "/v1/workspaces/{ws}/fixtures/behaves-as-marked";
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a version of the fixture with this behavior.
pub(crate) fn marked(mark: &str) -> Vec<u8> {
    let component = fixture("behaves-as-marked");
    replaced(&component, "behaves:soundly.", &format!("behaves:{mark}"))
}

/// Starts a host with the version `soundly.` live, and returns its owner as a client in two
/// workspaces.
pub(crate) async fn scene(builder: Builder) -> (TestHost, Client, Client) {
    let mut host = builder.prepare().await;
    let ada = host.create_person("ada");
    let (first, second) =
        (host.create_workspace("first", &ada), host.create_workspace("second", &ada));
    host.start().await;
    host.put_area("behaves_as_marked", &marked("soundly.")).await.expect(200);
    let ada = host.sign_in(&ada, &first);
    let elsewhere = ada.in_workspace(&second);
    (host, ada, elsewhere)
}

async fn put(host: &TestHost, query: &str, component: Vec<u8>) -> assurance_tests::Answer {
    host.put_area(&format!("behaves_as_marked?{query}"), &component).await
}

async fn told(host: &TestHost) -> Value {
    host.operate(Method::GET, AREA).await.expect(200)
}

async fn mark_in(client: &Client) -> String {
    let told = client.post(PATH, &json!({"do": "tell"})).await.expect(200);
    told["mark"].as_str().expect("a mark").to_owned()
}

/// Calls until the trial has ended with this state. Returns the area as operators see it.
async fn until_state(host: &TestHost, state: &str, callers: &[&Client]) -> Value {
    let begun = Instant::now();
    loop {
        let told = told(host).await;
        if told["trial"]["state"] == state {
            return told;
        }
        assert!(begun.elapsed() < PATIENCE, "the trial never is {state}: {told}");
        for caller in callers {
            caller.post(PATH, &json!({"do": "tell"})).await;
        }
    }
}

both_backends! {
    async fn a_canary_answers_for_its_workspaces_requests_and_jobs_alike(backend) {
        let (host, first, second) = scene(Builder::new(backend)).await;
        let canary = marked("another.");
        let begun = put(&host, &format!("workspaces={}", second.workspace), canary.clone()).await;
        assert_eq!(begun.expect(200)["result"], "canary");
        for _ in 0..5 {
            assert_eq!(mark_in(&first).await, "soundly.");
            assert_eq!(mark_in(&second).await, "another.");
        }
        for (client, expected) in [(&first, "soundly."), (&second, "another.")] {
            client.post(PATH, &json!({"do": "run"})).await.expect(200);
            let by = until("the job has run", async || {
                let ran = client.post(PATH, &json!({"do": "ran"})).await.expect(200);
                Some(ran["by"].clone()).filter(|by| !by.is_null())
            });
            assert_eq!(by.await, expected);
        }
        let area = told(&host).await;
        assert_eq!(area["digest"], digest(&marked("soundly.")));
        let trial = &area["trial"];
        assert_eq!((&trial["state"], &trial["digest"]), (&json!("running"), &json!(digest(&canary))));
        assert!(trial["figures"]["candidate"]["calls"].as_u64() >= Some(7), "{trial}");
        assert_eq!(trial["figures"]["candidate"]["faults"], 0);

        host.operate_with(&format!("{AREA}/activate"), &json!({})).await.expect(200);
        assert_eq!(mark_in(&first).await, "another.");
        let area = told(&host).await;
        assert_eq!((&area["trial"]["state"], &area["digest"]), (&json!("promoted"), &json!(digest(&canary))));
    }

    async fn a_faulty_canary_is_rolled_back_by_itself_and_the_log_says_why(backend) {
        let (host, first, _) = scene(Builder::new(backend)).await;
        let faulty = marked("trapping");
        put(&host, "canary=100", faulty.clone()).await.expect(200);
        let area = until_state(&host, "rolled_back", &[&first]).await;
        assert_eq!(mark_in(&first).await, "soundly.");
        let why = area["trial"]["why"].as_str().expect("a reason");
        assert!(why.contains("calls failed"), "{why}");

        let log = host.operate(Method::GET, "/audit-log?limit=1").await.expect(200);
        let line = &log["items"][0];
        assert_eq!((&line["step"], &line["who"]), (&json!("canary_rolled_back"), &json!("assurance")));
        assert_eq!((&line["why"], &line["digest"]), (&json!(why), &json!(digest(&faulty))));
        assert!(line["changed"]["candidate"]["faults"].as_u64() >= Some(1), "{line}");
        host.wait_for_log("area.canary_rolled_back", PATIENCE).await;
        let history = host.operate(Method::GET, &format!("{AREA}/history")).await.expect(200);
        assert_eq!(history["items"][0]["stage"], "withdrawn");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_canary_is_rolled_back_by_itself() {
    let builder = Builder::new(Backend::Sqlite)
        .set("areas.canary.min_calls", 10)
        .set("areas.canary.min_p99_ms", 1);
    let (host, first, second) = scene(builder).await;
    let query = format!("workspaces={}", second.workspace);
    put(&host, &query, marked("slowly..")).await.expect(200);
    let area = until_state(&host, "rolled_back", &[&first, &second]).await;
    let why = area["trial"]["why"].as_str().expect("a reason");
    assert!(why.contains("the p99 of its behaves_as_marked is"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_begin_change_and_end_a_canary() {
    let (host, first, _) = scene(Builder::new(Backend::Sqlite)).await;
    let file = host.write("behaves-as-marked.wasm", &marked("another."));
    let begun = host.cli(&["area", "deploy", file, "--canary", "0.01"]);
    assert_eq!((&begun["result"], &begun["nodes"]), (&json!("canary"), &json!(1)));
    let candidate = digest(&marked("another."));
    let wider = ["area", "canary", "behaves_as_marked", "--digest", &candidate, "--share", "100"];
    assert_eq!(host.cli(&wider)["trial"]["share"], 100.0);
    assert_eq!(mark_in(&first).await, "another.");
    let stopped = host.cli(&["area", "stop", "behaves_as_marked", "--reason", "seen enough"]);
    assert_eq!(stopped["result"], "stopped");
    assert_eq!(mark_in(&first).await, "soundly.");

    // A rollback ends the trial before it changes the live version.
    host.cli(&wider);
    let back = host.cli(&["area", "rollback", "behaves_as_marked", "--reason", "x"]);
    assert_eq!((&back["result"], &back["trial"]["digest"]), (&json!("stopped"), &json!(candidate)));
    let log = host.operate(Method::GET, "/audit-log?limit=4").await.expect(200);
    let steps: Vec<&Value> = items(&log["items"]).iter().map(|line| &line["step"]).collect();
    assert_eq!(steps, ["trial_stopped", "canary_begun", "trial_stopped", "canary_begun"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_tried_is_refused() {
    let (host, first, _) = scene(Builder::new(Backend::Sqlite)).await;
    let canary = format!("{AREA}/canary");
    let live = digest(&marked("soundly."));
    for (body, status, code) in [
        (json!({"digest": live, "share": 5}), 409, "conflict"),
        (json!({"digest": live, "share": 101}), 422, "validation_failed"),
        (json!({"digest": live, "share": 0.001}), 422, "validation_failed"),
        (json!({"digest": live}), 422, "validation_failed"),
        (json!({"digest": live, "workspaces": ["x"]}), 422, "validation_failed"),
        (json!({"digest": "none", "share": 5}), 404, "not_found"),
    ] {
        host.operate_with(&canary, &body).await.problem(status, code);
    }
    put(&host, "canary=lots", marked("another.")).await.problem(422, "validation_failed");
    let stop = format!("{AREA}/stop");
    host.operate_with(&stop, &json!({"reason": "x"})).await.problem(404, "not_found");
    put(&host, "canary=5", marked("another.")).await.expect(200);
    let other = put(&host, "canary=5", marked("slowly..")).await;
    other.problem_about(409, "conflict", "assurance area stop");
    first.post(PATH, &json!({"do": "tell"})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_of_a_fleet_tries_what_an_operator_decides_and_one_may_end_it() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let (one, first, _) = scene(Builder::new(Backend::Postgres)).await;
    let two = Builder::new(Backend::Postgres).beside(&one).start().await;
    until("two nodes report", async || items(&told(&one).await["nodes"]).len() >= 2).await;
    let file = one.write("behaves-as-marked.wasm", &marked("another."));
    let deployed = one.cli(&["area", "deploy", file, "--canary", "100"]);
    assert_eq!(deployed["nodes"], 2);
    let there = first.at(&two);
    assert_eq!(
        (mark_in(&first).await, mark_in(&there).await),
        ("another.".into(), "another.".into())
    );

    two.operate_with(&format!("{AREA}/stop"), &json!({"reason": "x"})).await.expect(200);
    put(&two, "canary=100", marked("trapping")).await.expect(200);
    // Only the second node observes its failures.
    let area = until_state(&two, "rolled_back", &[&there]).await;
    assert_eq!(area["digest"], digest(&marked("soundly.")));
    until("the first node ends the canary", async || {
        first.post(PATH, &json!({"do": "tell"})).await.status == 200
    })
    .await;
}
