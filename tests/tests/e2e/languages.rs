//! Components written in other languages than Rust, deployed like any other.

use assurance_tests::client::send;
use assurance_tests::languages::{NonRustLanguage, edited_example, example};
use assurance_tests::{Backend, Builder, Client, TestHost};
use reqwest::Method;
use serde_json::{Value, json};

use crate::logs::printed;

const ANNOUNCEMENT: &str = "/v1/workspaces/{ws}/announcement";

async fn publish(client: &Client, text: &str) -> Value {
    let body = json!({ "text": text });
    send(client.request(Method::PUT, ANNOUNCEMENT).json(&body)).await.expect(200)
}

async fn deploy(host: &TestHost, component: &[u8]) {
    let deployed = host.put_area("announcements", component).await.expect(200);
    assert_eq!(deployed["result"], "live", "{deployed}");
}

/// Asserts behavior that does not depend on the language that serves or that wrote before.
async fn holds(client: &Client, language: &str) {
    let published = publish(client, language).await;
    assert_eq!(published["text"], language);
    assert_eq!(client.get(ANNOUNCEMENT).await.expect(200), published);
    let wrong = send(client.request(Method::PUT, ANNOUNCEMENT).json(&json!({ "text": "" })));
    wrong.await.problem(422, "validation_failed");
    assert_eq!(client.get(ANNOUNCEMENT).await.expect(200), published);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_and_python_answer_like_any_other_area() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["announcements"]);
    let (host, ada) = builder.start_with_owner().await;
    ada.get(ANNOUNCEMENT).await.problem(404, "not_found");
    holds(&ada, "Rust").await;
    let python = example(NonRustLanguage::Python, host.folder()).expect("the tool from PyPI");
    deploy(&host, &python).await;
    assert_eq!(ada.get(ANNOUNCEMENT).await.expect(200)["text"], "Rust");
    holds(&ada, "Python").await;
    let javascript = match example(NonRustLanguage::JavaScript, host.folder()) {
        Ok(javascript) => javascript,
        Err(why) => {
            eprintln!("not tested in JavaScript: {why}");
            return;
        }
    };
    deploy(&host, &javascript).await;
    assert_eq!(ada.get(ANNOUNCEMENT).await.expect(200)["text"], "Python");
    holds(&ada, "JavaScript").await;
}

/// Deploys the example with lines at the start of its read that print and fail. Returns the reason
/// for which the deployment is refused.
async fn refusal(
    host: &TestHost,
    language: NonRustLanguage,
    (read, lines): (&str, &str),
) -> String {
    let edit = |source: String| source.replace(read, &format!("{read}{lines}"));
    let component = match edited_example(language, host.folder(), edit) {
        Ok(component) => component,
        Err(why) => panic!("{language}: {why}"),
    };
    let refused = host.put_area("announcements", &component).await;
    refused.problem(422, "validation_failed")["detail"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_python_prints_is_logged_and_an_exception_is_the_cause_of_a_fault() {
    let (host, _) = Builder::new(Backend::Sqlite).start_with_owner().await;
    let lines = "    print(\"reading\")\n    raise ValueError(\"nothing announced\")\n";
    let refused = refusal(&host, NonRustLanguage::Python, ("def read() -> Reply:\n", lines)).await;
    let cause = "ValueError: nothing announced (File \"/0/announcements.py\", line ";
    assert!(refused.contains(cause), "{refused}");
    let log = printed(&host, &["area", "logs", "announcements"]);
    assert!(log.contains(" INFO  reading\n"), "{log}");
    assert!(log.contains(" ERROR Traceback (most recent call last):\n"), "{log}");
    assert!(log.contains(&format!(" FAULT {cause}")), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_javascript_prints_is_logged_and_an_exception_is_the_cause_of_a_fault() {
    let (host, _) = Builder::new(Backend::Sqlite).start_with_owner().await;
    let lines = "  console.log(\"reading\", 1);\n  throw new Error(\"nothing announced\");\n";
    let refused = refusal(&host, NonRustLanguage::JavaScript, ("function read() {\n", lines)).await;
    assert!(refused.contains("nothing announced"), "{refused}");
    assert!(refused.contains("at read (/announcements.js:"), "{refused}");
    let log = printed(&host, &["area", "logs", "announcements"]);
    assert!(log.contains(" INFO  reading 1\n"), "{log}");
    assert!(log.contains(" FAULT ") && log.contains("nothing announced"), "{log}");
}
