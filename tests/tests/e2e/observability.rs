//! Metrics, the alerts over them, and the access log.

use std::process::Command;

use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, place, until};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

use crate::canary::{marked, scene};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

/// Waits until a number of the metrics meets the condition. Jobs are counted every 15 s.
async fn until_metric(host: &TestHost, line: &str, wanted: impl Fn(f64) -> bool) {
    until(format!("{line} has the awaited value"), async || {
        let found = host.metric(line).await;
        if found.is_some_and(&wanted) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_name_faults_live_versions_refusals_and_the_process() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["trap"]).set("rates.enabled", true);
    let builder = builder.set("rates.session_burst", 60).set("rates.session_per_minute", 1);
    let (host, ada) = builder.start_with_owner().await;
    host.put_area("behaves_as_marked", &marked("not\"json")).await.expect(200);
    let tells = "/v1/workspaces/{ws}/fixtures/behaves-as-marked";
    ada.post(tells, &json!({"do": "tell"})).await.problem(502, "area_fault");
    let trap = "/v1/workspaces/{ws}/fixtures/trap";
    ada.post(trap, &json!({})).await.problem(502, "area_fault");
    let mut admitted = 1;
    while ada.post(trap, &json!({})).await.status != 429 {
        admitted += 1;
        assert!(admitted <= 120, "nothing is refused");
    }
    let page = host.operate(Method::GET, "/metrics").await.text();
    for series in [
        "assurance_area_faults_total{area=\"trap\",kind=\"trap\"}",
        "assurance_area_faults_total{area=\"behaves_as_marked\",kind=\"contract\"}",
        "assurance_area_live_info{area=\"trap\",version=",
        "assurance_rate_limit_refusals_total{policy=\"session\"}",
        "assurance_build_info{version=",
        "process_start_time_seconds",
        "process_resident_memory_bytes",
    ] {
        let value = page.lines().find_map(|line| line.strip_prefix(series));
        let value = value.and_then(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{series} is {value:?} in\n{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_operations_of_the_host_are_counted_by_operation_and_status() {
    let (host, ada) = Builder::new(Backend::Sqlite).start_with_owner().await;
    for path in ["/v1/auth/session", "/v1/auth/security", "/v1/auth/security"] {
        ada.get(path).await.expect(200);
    }
    host.nobody().get("/v1/auth/session").await.problem(401, "unauthenticated");
    let nowhere = "/v1/workspaces/00000000-0000-7000-8000-000000000000/members";
    for (path, status) in [("/v1/workspaces/{ws}/members", 200), (nowhere, 404), ("/v1/x", 404)] {
        ada.get(path).await.expect(status);
    }
    let page = host.operate(Method::GET, "/metrics").await.text();
    let prefix = "http_request_duration_seconds_count{area=\"host\",operation=";
    let mut series: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    series.sort_unstable();
    assert_eq!(
        series,
        [
            "\"get_security\",status=\"2xx\"} 2",
            "\"get_session\",status=\"2xx\"} 1",
            "\"get_session\",status=\"4xx\"} 1",
            "\"list_members\",status=\"2xx\"} 1",
            "\"list_members\",status=\"4xx\"} 1",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_show_a_trial_until_it_ends() {
    let (host, ..) = scene(Builder::new(Backend::Sqlite)).await;
    for (query, mode) in [("canary=5", "canary"), ("shadow=10", "shadow")] {
        let name = format!("behaves_as_marked?{query}");
        host.put_area(&name, &marked("another.")).await.expect(200);
        let page = host.operate(Method::GET, "/metrics").await.text();
        let trial = page.lines().find(|line| {
            line.starts_with("assurance_area_trial_info{area=\"behaves_as_marked\"")
                && line.contains(&format!("mode=\"{mode}\""))
        });
        let (series, value) = trial.and_then(|line| line.rsplit_once(' ')).expect("the trial");
        assert_eq!(value, "1", "{series}");
        let stop = json!({"reason": "seen enough"});
        host.operate_with("/areas/behaves_as_marked/stop", &stop).await.expect(200);
        assert_eq!(host.metric(series).await, Some(0.0), "{series}");
    }
}

/// Starts an audit of a new repository.
async fn audit(client: &Client, repository: &str) {
    let repository = client.repository(repository).await;
    let audit = json!({ "repository_id": repository });
    client.post("/v1/workspaces/{ws}/audits", &audit).await.expect(201);
}

/// Renames the table of support cases, so that statements fail.
async fn hide_cases(host: &TestHost) {
    if let Some(url) = host.database_url() {
        let mut server = PgConnection::connect(&url).await.expect("a connection");
        server.execute("ALTER TABLE documents RENAME TO hidden").await.expect("renamed");
    } else {
        let file = host.folder().join("data/assurance.sqlite");
        let url = format!("sqlite:{}", file.display());
        let mut file = SqliteConnection::connect(&url).await.expect("a connection");
        let sql = "ALTER TABLE \"support.cases\" RENAME TO hidden";
        file.execute(sql).await.expect("renamed");
    }
}

both_backends! {
    async fn metrics_show_how_long_due_jobs_wait_and_how_many_failed(backend) {
        let builder = Builder::new(backend).areas(&["catalog", "queue", "schedules"]);
        let builder = builder.set("jobs.lanes.scanner.capacity", 0);
        let (host, ada) = builder.start_with_owner().await;
        audit(&ada, "one").await;
        audit(&ada, "two").await;
        let jobs = ada.get("/v1/workspaces/{ws}/queue/jobs?kind=audit").await.expect(200);
        let last = jobs["items"][0]["id"].as_str().expect("an id");
        let cancel = format!("/v1/workspaces/{{ws}}/queue/jobs/{last}/cancel");
        ada.post(&cancel, &json!({})).await.expect(200);
        until_metric(&host, "assurance_failed_jobs{status=\"failed\"}", |count| count == 1.0).await;
        let age = "assurance_jobs_oldest_due_age_seconds{lane=\"scanner\"}";
        until_metric(&host, age, |age| age > 1.0).await;
        let idle = "assurance_jobs_oldest_due_age_seconds{lane=\"assistant\"}";
        assert_eq!(host.metric(idle).await, Some(0.0));
    }

    async fn metrics_count_errors_of_the_database(backend) {
        let (host, ada) = Builder::new(backend).areas(&["support"]).start_with_owner().await;
        for kind in ["unavailable", "full", "other"] {
            let line = format!("assurance_database_errors_total{{kind=\"{kind}\"}}");
            assert_eq!(host.metric(&line).await, Some(0.0), "{kind}");
        }
        hide_cases(&host).await;
        ada.get(CASES).await.problem(500, "internal_error");
        let line = "assurance_database_errors_total{kind=\"other\"}";
        until_metric(&host, line, |count| count >= 1.0).await;
    }
}

#[test]
fn prometheus_accepts_the_alert_rules() {
    let rules = place::repository().join("host/deploy/alerts.yml");
    let checked = Command::new(place::promtool()).args(["check", "rules"]).arg(rules).output();
    let checked = checked.expect("promtool, of Debian's package prometheus");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// Returns the lines of the access log.
fn access_log(host: &TestHost) -> Vec<Value> {
    let log = host.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "access").collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_access_log_has_one_line_for_each_request_without_its_query() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]);
    let (mut host, ada) = builder.start_with_owner().await;
    host.keep_secret("query-of-the-test");
    host.keep_secret(ada.session.as_deref().expect("a session"));
    let before = access_log(&host).len();
    let case = ada.get("/v1/workspaces/{ws}/support/case-history?cursor=query-of-the-test").await;
    case.problem(422, "validation_failed");
    ada.get("/v1/workspaces/{ws}/members?limit=1").await.expect(200);
    host.nobody().get("/nowhere").await.problem(404, "not_found");
    let lines = access_log(&host).split_off(before);
    let fields = |line: &Value| {
        assert_eq!((&line["level"], &line["message"]), (&json!("INFO"), &json!("request")));
        assert!(line["duration_ms"].as_f64().is_some_and(|took| took > 0.0), "{line}");
        let span = &line["spans"][0];
        assert!(span["request.id"].is_string() && span["method"] == "GET", "{line}");
        json!([span["path"], span["route"], line["status"], span["workspace.id"]])
    };
    let (workspace, at) = (&ada.workspace, format!("/v1/workspaces/{}", ada.workspace));
    let templates = "/v1/workspaces/{workspace_id}";
    let expected = json!([
        [
            format!("{at}/support/case-history"),
            format!("{templates}/support/case-history"),
            422,
            workspace
        ],
        [format!("{at}/members"), format!("{templates}/members"), 200, workspace],
        ["/nowhere", null, 404, null],
    ]);
    assert_eq!(lines.iter().map(fields).collect::<Value>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_access_log_can_be_turned_off() {
    let host = Builder::new(Backend::Sqlite).set("log.access", false).start().await;
    host.nobody().get("/v1/workspaces").await.problem(401, "unauthenticated");
    assert_eq!(access_log(&host), Vec::<Value>::new());
}
