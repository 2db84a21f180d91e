//! Log lines of an area's guests and failed calls, as operators read them from a running host.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use assurance_tests::components::{fixture, replaced};
use assurance_tests::operators::items;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost};
use reqwest::Method;
use serde_json::{Value, json};

async fn host_with(fixtures: &[&str]) -> (TestHost, Client) {
    Builder::new(Backend::Sqlite).fixtures(fixtures).start_with_owner().await
}

async fn call(client: &Client, fixture: &str) -> Answer {
    client.post(&format!("/v1/workspaces/{{ws}}/fixtures/{fixture}"), &json!({})).await
}

/// Returns a page of an area's log.
async fn logs(host: &TestHost, area: &str, query: &str) -> Value {
    host.operate(Method::GET, &format!("/areas/{area}/logs{query}")).await.expect(200)
}

fn messages(page: &Value) -> Vec<&str> {
    items(&page["lines"]).iter().filter_map(|line| line["message"].as_str()).collect()
}

/// Returns the output of a command in its text form.
pub(crate) fn printed(host: &TestHost, arguments: &[&str]) -> String {
    let output = host.command(arguments).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_lines_of_an_area_are_kept_and_the_rest_is_not() {
    let (host, ada) = host_with(&["log-flood", "echo"]).await;
    assert_eq!(logs(&host, "echo", "").await["lines"], json!([]));
    host.operate(Method::GET, "/areas/nothing/logs").await.problem(404, "not_found");

    let answer = call(&ada, "log-flood").await;
    let id = answer.header("x-request-id").expect("an id").to_owned();
    let page = logs(&host, "log_flood", "?limit=3").await;
    let dropped = "4802 log lines beyond the limit of a call were dropped (runtime.max_log_lines)";
    assert_eq!(messages(&page), ["line 196", "line 197", dropped]);
    let line = &page["lines"][0];
    assert_eq!((&line["level"], &line["request_id"]), (&json!("info"), &json!(id)));
    assert_eq!(line["digest"].as_str(), host.live_digest("log_flood").await.as_deref());
    assert_eq!(page["missed"], false);

    for _ in 0..9 {
        call(&ada, "log-flood").await.expect(200);
    }
    let (mut cursor, mut lines) = ("0".to_owned(), 0);
    for number in 0.. {
        let page = logs(&host, "log_flood", &format!("?limit=200&cursor={cursor}")).await;
        cursor = page["cursor"].as_str().expect("a cursor").to_owned();
        assert_eq!(page["missed"], number == 0, "{cursor}");
        match items(&page["lines"]).len() {
            0 => break,
            some => lines += some,
        }
    }
    assert!((900..=1_000).contains(&lines), "{lines} lines are kept of 2,010");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_is_told_with_the_guests_frames_and_last_words() {
    let (host, ada) = host_with(&["trap", "giant-reply"]).await;
    let problem = call(&ada, "trap").await.problem(502, "area_fault");
    let page = logs(&host, "trap", "").await;
    let fault = &page["faults"][0];
    assert_eq!((&fault["kind"], &fault["request_id"]), (&json!("trap"), &problem["request_id"]));
    assert!(fault["frames"].to_string().contains("fall_over"), "{fault}");
    assert_eq!(fault["last_lines"], json!(["about to fall over"]));
    assert_eq!(messages(&page), ["about to fall over"]);

    call(&ada, "giant-reply").await.problem(502, "area_fault");
    let page = logs(&host, "giant_reply", "").await;
    assert_eq!(page["faults"][0]["kind"], "limit", "{page}");

    let text = printed(&host, &["area", "logs", "trap"]);
    let (first, second) = text.split_once('\n').expect("two lines");
    assert!(first.ends_with("INFO  about to fall over"), "{text}");
    assert!(second.contains(problem["request_id"].as_str().expect("an id")), "{text}");
    assert!(second.contains(" FAULT the guest trapped") && second.contains("fall_over"), "{text}");
    assert_eq!(host.cli(&["area", "logs", "trap"]), logs(&host, "trap", "").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_the_headline_of_its_fault() {
    let (host, ada) = host_with(&["panics-as-marked"]).await;
    let thing = json!({"text": "a thing"});
    ada.post("/v1/workspaces/{ws}/things", &thing).await.problem(502, "area_fault");
    let page = logs(&host, "panics_as_marked", "").await;
    let message = page["faults"][0]["message"].as_str().expect("a text");
    let place = "panicked at guests/fixtures/panics-as-marked/src/lib.rs:";
    assert!(message.starts_with(place), "{message}");
    assert!(message.ends_with(": a thing has no number"), "{message}");
    let text = printed(&host, &["area", "logs", "panics_as_marked"]);
    assert!(text.contains(&format!(" FAULT {message}\n")), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_by_a_limit_names_its_value_and_setting() {
    let cases = [
        ("host-call-flood", "more than 20000 host calls (runtime.max_host_calls;"),
        ("memory-hog", "more than 67108864 bytes of memory (runtime.max_memory_bytes;"),
        ("giant-reply", "at most 16777216 (runtime.max_reply_bytes)"),
        ("infinite-loop", "its deadline of 3s (`deadline_ms` of its route"),
    ];
    let builder = Builder::new(Backend::Sqlite).fixtures(&cases.map(|(fixture, _)| fixture));
    let (host, ada) = builder.set("limits.deadline_ms", 3_000).start_with_owner().await;
    for (fixture, expected) in cases {
        assert!(call(&ada, fixture).await.status >= 502, "{fixture}");
        let page = logs(&host, &fixture.replace('-', "_"), "").await;
        let message = page["faults"][0]["message"].as_str().expect("a text");
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_deployment_begins_with_the_panic() {
    let (host, _) = host_with(&["echo"]).await;
    let deploy = async |mark: &str| {
        let component = fixture("panics-as-marked");
        let component = replaced(&component, "panics:write...", &format!("panics:{mark}"));
        let refused = host.put_area("panics_as_marked", &component).await;
        refused.problem(422, "validation_failed")["detail"].as_str().expect("a text").to_owned()
    };
    let described = deploy("describe").await;
    assert!(described.starts_with("`describe` failed: panicked at "), "{described}");
    assert!(described.contains("things: documents have no member number"), "{described}");
    let read = deploy("read....").await;
    let place = "`list_things`, before anybody depended on it: panicked at \
                 guests/fixtures/panics-as-marked/src/lib.rs:";
    assert!(read.contains(place), "{read}");
    assert!(read.contains(": documents misused: "), "{read}");
    let text = printed(&host, &["area", "logs", "panics_as_marked"]);
    assert!(text.contains(" FAULT panicked at guests/fixtures"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_can_be_followed() {
    let (host, ada) = host_with(&["trap"]).await;
    call(&ada, "trap").await.problem(502, "area_fault");
    let mut command = host.command(&["area", "logs", "trap", "--follow", "--limit", "1"]);
    let mut following = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let out = BufReader::new(following.stdout.take().expect("a pipe"));
    let mut heads =
        out.lines().map(|line| line.expect("text")).filter(|line| line.contains(" FAULT "));
    let told = |line: Option<String>, problem: &Value| {
        let (line, id) = (line.expect("a line"), problem["request_id"].as_str().expect("an id"));
        assert!(line.contains(id), "{id} is not in {line}");
    };
    heads.next().expect("what was there before");
    for _ in 0..2 {
        let problem = call(&ada, "trap").await.problem(502, "area_fault");
        told(heads.next(), &problem);
    }
    following.kill().expect("it still runs");
    following.wait().expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_may_not_read_reads_no_logs() {
    let (host, _) = host_with(&["trap"]).await;
    let made = host.cli(&["token", "create", "--name", "ci", "--scope", "deploy"]);
    let token = made["token"].as_str().expect("a token");
    let client = Client::nobody(&host.operators);
    let request = client.request(Method::GET, "/areas/trap/logs").bearer_auth(token);
    assurance_tests::client::send(request).await.problem(403, "permission_denied");
}
