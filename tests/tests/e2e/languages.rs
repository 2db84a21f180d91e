//! Components written in other languages than Rust, deployed like any other.

use assurance_tests::client::send;
use assurance_tests::languages::{NonRustLanguage, example};
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

/// Returns the example in Python, whose read prints and raises if "Python raises" is announced. One
/// component for everything, because its compilation takes a minute.
fn python(host: &TestHost) -> Vec<u8> {
    let reply = "    return Reply(body=known.body,";
    let lines = "    if \"Python raises\" in known.body:\n        print(\"reading\")\n        \
                 raise ValueError(\"nothing announced\")\n";
    let edit = |source: String| source.replace(reply, &format!("{lines}{reply}"));
    example(NonRustLanguage::Python, host.folder(), edit).expect("the tool from PyPI")
}

/// Asserts that what Python prints and raises is in the area's log.
async fn python_exceptions_are_logged(host: &TestHost, client: &Client) {
    publish(client, "Python raises").await;
    client.get(ANNOUNCEMENT).await.problem(502, "area_fault");
    let log = printed(host, &["area", "logs", "announcements"]);
    assert!(log.contains(" INFO  reading\n"), "{log}");
    assert!(log.contains(" ERROR Traceback (most recent call last):\n"), "{log}");
    let fault = " FAULT ValueError: nothing announced (File \"/0/announcements.py\", line ";
    assert!(log.contains(fault), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_and_python_answer_like_any_other_area() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["announcements"]);
    let (host, ada) = builder.start_with_owner().await;
    ada.get(ANNOUNCEMENT).await.problem(404, "not_found");
    holds(&ada, "Rust").await;
    deploy(&host, &python(&host)).await;
    assert_eq!(ada.get(ANNOUNCEMENT).await.expect(200)["text"], "Rust");
    holds(&ada, "Python").await;
    python_exceptions_are_logged(&host, &ada).await;
    let javascript = match example(NonRustLanguage::JavaScript, host.folder(), |source| source) {
        Ok(javascript) => javascript,
        Err(why) => {
            eprintln!("not tested in JavaScript: {why}");
            return;
        }
    };
    deploy(&host, &javascript).await;
    assert_eq!(ada.get(ANNOUNCEMENT).await.expect(200)["text"], "Python raises");
    holds(&ada, "JavaScript").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_javascript_prints_is_logged_and_an_exception_is_the_cause_of_a_fault() {
    let (host, _) = Builder::new(Backend::Sqlite).start_with_owner().await;
    let read = "function read() {\n";
    let lines = "  console.log(\"reading\", 1);\n  throw new Error(\"nothing announced\");\n";
    let edit = |source: String| source.replace(read, &format!("{read}{lines}"));
    let component = example(NonRustLanguage::JavaScript, host.folder(), edit);
    let component = component.unwrap_or_else(|why| panic!("JavaScript: {why}"));
    let refused = host.put_area("announcements", &component).await;
    let refused = refused.problem(422, "validation_failed");
    let cause = refused["detail"].as_str().expect("a text");
    assert!(cause.contains("nothing announced"), "{cause}");
    assert!(cause.contains("at read (/announcements.js:"), "{cause}");
    let log = printed(&host, &["area", "logs", "announcements"]);
    assert!(log.contains(" INFO  reading 1\n"), "{log}");
    assert!(log.contains(" FAULT ") && log.contains("nothing announced"), "{log}");
}
