//! Limits of calls, areas and workspaces: refusals, warnings before, reports to operators, and
//! changes at runtime.

use assurance_tests::operators::items;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const PATIENCE: Duration = Duration::from_secs(20);

/// Repeats a request until it is refused. Usage is counted by minute, and a new minute may begin
/// meanwhile.
async fn until_refused(client: &Client) -> Answer {
    for _ in 0..50 {
        let answer = client.get(CASES).await;
        if answer.status != 200 {
            return answer;
        }
    }
    panic!("50 requests were let in");
}

async fn read_again(host: &TestHost, keys: &[(&str, toml::Value)]) {
    host.configure(keys);
    host.signal(Signal::HUP);
    host.wait_for_log("reload applied", PATIENCE).await;
}

fn loops(client: &Client) -> impl Future<Output = Answer> + Send + 'static {
    let client = client.clone();
    async move { client.post("/v1/workspaces/{ws}/fixtures/infinite-loop", &json!({})).await }
}

both_backends! {
    async fn a_workspace_that_has_used_its_minute_waits_and_others_go_on(backend) {
        let builder = Builder::new(backend)
            .areas(&["support"])
            .set("budgets.each_workspace.host_calls_per_minute", 3);
        let (mut host, ada) = builder.start_with_owner().await;
        let eve = host.create_owner("eve", "second");

        let refused = until_refused(&ada).await;
        refused.problem_about(429, "rate_limited", "host calls in a minute");
        let seconds = refused.header("retry-after").and_then(|text| text.parse::<u64>().ok());
        assert!(seconds.is_some_and(|seconds| (1..=60).contains(&seconds)), "{seconds:?}");
        eve.get(CASES).await.expect(200);
        assert!(host.log().contains("budget nearly exhausted"), "{}", host.log());
        assert!(host.log().contains("budget exhausted"), "{}", host.log());

        let more = toml::Value::from(1_000_000);
        read_again(&host, &[("budgets.each_workspace.host_calls_per_minute", more)]).await;
        ada.get(CASES).await.expect(200);
        assert!(!host.log().contains("restart is required"), "{}", host.log());
    }

    async fn a_workspace_that_keeps_what_it_may_takes_no_more_and_others_do(backend) {
        let builder = Builder::new(backend)
            .areas(&["support", "groups"])
            .set("limits.max_stored_bytes_per_area", 50_000);
        let (mut host, ada) = builder.start_with_owner().await;
        let eve = host.create_owner("eve", "second");
        let case = json!({"subject": "Much", "description": "x".repeat(5_000)});
        let mut written = Vec::new();
        let refused = loop {
            let key = format!("another-case-{}", written.len());
            let answer = ada.post_once(CASES, &key, &case).await;
            if answer.status != 201 {
                break answer.problem(507, "insufficient_storage");
            }
            written.push(answer.json()["id"].as_str().expect("an id").to_owned());
            assert!(written.len() < 200, "a megabyte is kept");
        };
        assert!(refused["hint"].to_string().contains("Delete"), "{refused}");
        host.wait_for_log("limits.max_stored_bytes_per_area", PATIENCE).await;

        // Acknowledged writes are stored, and others continue to write.
        for id in written {
            ada.get(&format!("{CASES}/{id}")).await.expect(200);
        }
        eve.post_once(CASES, "somebody-elses-case", &case).await.expect(201);
        host.operate(Method::GET, "/health/ready").await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_who_uses_how_much() {
    let (host, ada) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    for _ in 0..3 {
        ada.get(CASES).await.expect(200);
    }
    let usage = host.operate(Method::GET, "/usage").await.expect(200);
    let used = |list: &str, name: &str, what: &str| {
        let found = items(&usage[list]).iter().find(|one| one["name"] == name).cloned();
        let found = found.unwrap_or_else(|| panic!("no {name} in {usage:#}"));
        let minutes = ["this_minute", "last_minute"].map(|minute| found[minute][what].as_u64());
        minutes.into_iter().flatten().sum::<u64>()
    };
    assert_eq!(used("workspaces", &ada.workspace, "calls"), 3);
    assert!(used("areas", "support", "calls") >= 3);
    assert!(used("areas", "support", "host_calls") >= 3);
    let areas = items(&usage["areas"]).iter();
    let peaks: Vec<_> = areas.map(|area| area["call_memory_peak_bytes"].as_u64()).collect();
    assert!(peaks.iter().all(|peak| peak.is_some_and(|bytes| bytes > 65_536)), "{peaks:?}");
    let metric = "assurance_area_calls_total{area=\"support\"}";
    assert!(host.metric(metric).await.is_some_and(|calls| calls >= 3.0));
    let metric = format!("assurance_workspace_calls_total{{workspace=\"{}\"}}", ada.workspace);
    assert_eq!(host.metric(&metric).await, None, "only workspaces that are named in the file");
    assert!(items(&usage["areas"]).iter().all(|area| area["running"] == 0), "{usage:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_computes_too_long_ends_before_its_deadline() {
    let builder = Builder::new(Backend::Sqlite)
        .fixtures(&["infinite-loop"])
        .set("areas.limits.infinite_loop.max_cpu_ms", 40);
    let (host, ada) = builder.start_with_owner().await;
    loops(&ada).await.problem(504, "area_timeout");
    host.wait_for_log("used more than 40ms", PATIENCE).await;

    read_again(&host, &[("areas.limits.infinite_loop.max_cpu_ms", toml::Value::from(60))]).await;
    loops(&ada).await.problem(504, "area_timeout");
    host.wait_for_log("used more than 60ms", PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_area_with_all_the_calls_it_may_have_lets_in_no_more() {
    let builder = Builder::new(Backend::Sqlite)
        .fixtures(&["infinite-loop"])
        .set("limits.deadline_ms", 2_000)
        .set("budgets.areas.infinite_loop.max_concurrent", 1);
    let (_host, ada) = builder.start_with_owner().await;
    let calls = [1, 2, 3].map(|_| tokio::spawn(loops(&ada)));
    let mut problems: Vec<Value> = Vec::new();
    for call in calls {
        let answer = call.await.expect("no panic");
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
        problems.push(answer.json()["code"].clone());
    }
    assert!(problems.contains(&json!("area_overloaded")), "{problems:?}");
    assert!(problems.contains(&json!("area_timeout")), "{problems:?}");
}
