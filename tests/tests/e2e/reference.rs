//! The pages for people tell every operation, as the document does.

use assurance_tests::client::send;
use assurance_tests::{Backend, Builder};
use reqwest::Method;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_has_a_page_that_says_how_to_call_it() {
    let host =
        Builder::new(Backend::Sqlite).areas(&["support", "uploads", "webhooks"]).start().await;
    let nobody = host.nobody();
    let document = nobody.get("/openapi.json").await.expect(200);
    let list = nobody.get("/reference").await;
    assert_eq!(list.status, 200);
    let list = list.text();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("operations") {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(list.contains(&format!("href=\"/reference/{id}\"")), "{id} is not listed");
            let page = nobody.get(&format!("/reference/{id}")).await;
            assert_eq!(page.status, 200, "{id}");
            let policy = page.headers["content-security-policy"].to_str().expect("text");
            assert!(policy.starts_with("default-src 'none'"), "{policy}");
            let page = page.text();
            assert!(page.contains(&format!("{} {path}", method.to_uppercase())), "{id}: {page}");
            assert!(page.contains("curl -sS"), "{id}: {page}");
            for parameter in operation["parameters"].as_array().expect("parameters") {
                let name = parameter["name"].as_str().unwrap_or_default();
                assert!(page.contains(name), "{id} does not tell of {name}");
            }
        }
    }
    nobody.get("/reference/no_such_operation").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_the_document_is_not_sent_it_again() {
    let host = Builder::new(Backend::Sqlite).areas(&["support"]).start().await;
    let nobody = host.nobody();
    let first = nobody.get("/openapi.json").await;
    let tag = first.headers["etag"].clone();
    let ask = |tag| nobody.request(Method::GET, "/openapi.json").header("If-None-Match", tag);
    let again = send(ask(tag.clone())).await;
    assert_eq!((again.status, again.text().as_str()), (304, ""));
    assert_eq!(again.headers["etag"], tag);
    assert_eq!(send(ask("\"other\"".parse().expect("a tag"))).await.status, 200);
}
