//! Components written in other languages than Rust, deployed like any other.

use assurance_tests::client::send;
use assurance_tests::languages::{Language, example};
use assurance_tests::{Backend, Builder, Client, TestHost};
use reqwest::Method;
use serde_json::{Value, json};

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
    let python = example(Language::Python, host.folder()).expect("the tool from PyPI");
    deploy(&host, &python).await;
    assert_eq!(ada.get(ANNOUNCEMENT).await.expect(200)["text"], "Rust");
    holds(&ada, "Python").await;
    let javascript = match example(Language::JavaScript, host.folder()) {
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
