//! The HTML reference describes every operation of the OpenAPI document.

use assurance_tests::artifacts::form;
use assurance_tests::client::send;
use assurance_tests::{Backend, Builder, Client};
use reqwest::Method;
use serde_json::{Value, json};

/// These cases look at the pages of one host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_describes_operations_events_and_guides() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support", "uploads", "webhooks"]);
    let host = builder.start().await;
    let nobody = host.nobody();
    every_operation_has_a_page_that_says_how_to_call_it(&nobody).await;
    events_and_guides_have_pages_and_all_are_listed_for_programs(&nobody).await;
    a_page_has_navigation_anchors_and_defaults_but_no_script(&nobody).await;
    a_page_shows_the_recorded_request_and_response(&nobody).await;
    a_client_that_has_the_document_is_not_sent_it_again(&nobody).await;
}

async fn every_operation_has_a_page_that_says_how_to_call_it(nobody: &Client) {
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
    for path in ["/reference/%FF", "/guides/%FF", "/problems/%FF"] {
        nobody.get(path).await.problem(400, "malformed_request");
    }
    for (id, callers) in [
        ("create_access_token", "administrators and owners. Needs a session; access"),
        ("list_members", "For every member of the workspace. Needs a session or an"),
        ("list_workspaces", "For everybody who is signed in."),
    ] {
        let page = nobody.get(&format!("/reference/{id}")).await.text();
        assert!(page.contains(callers), "{id}: {page}");
        assert!(page.contains("/guides/authentication#send-requests"), "{id}: {page}");
    }
}

async fn events_and_guides_have_pages_and_all_are_listed_for_programs(nobody: &Client) {
    let document = nobody.get("/openapi.json").await.expect(200);
    let list = nobody.get("/llms.txt").await.text();
    for name in document["webhooks"].as_object().expect("events").keys() {
        let page = nobody.get(&format!("/reference/{name}")).await;
        assert_eq!(page.status, 200, "{name}");
        assert!(page.text().contains(r#"id="body.data""#), "{name}: {}", page.text());
        assert!(list.contains(&format!("/reference/{name})")), "{name} is not in {list}");
    }
    for name in ["authentication", "errors", "idempotency", "paging", "tour", "uploads", "webhooks"]
    {
        let page = nobody.get(&format!("/guides/{name}")).await;
        assert_eq!(page.status, 200, "{name}");
        assert!(page.text().contains("<main id=\"main\">"), "{name}");
        let source = nobody.get(&format!("/guides/{name}.md")).await;
        assert!(source.text().starts_with("# "), "{name}");
        assert!(list.contains(&format!("/guides/{name}.md)")), "{name} is not in {list}");
    }
    nobody.get("/guides/none").await.problem(404, "not_found");
}

async fn a_page_has_navigation_anchors_and_defaults_but_no_script(nobody: &Client) {
    let page = nobody.get("/reference/page_support_cases").await;
    let policy = page.headers["content-security-policy"].to_str().expect("text");
    assert!(!policy.contains("unsafe") && !policy.contains("script"), "{policy}");
    let page = page.text();
    for part in [
        r#"<a href="/reference/page_support_cases" aria-current="page">"#,
        r##"<a href="#parameters.limit">"##,
        "default <code>50</code>",
        r#"id="response.items.subject""#,
        "prefers-color-scheme:dark",
        r#"<link rel="icon""#,
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("<script"), "{page}");
}

async fn a_page_shows_the_recorded_request_and_response(nobody: &Client) {
    let document = nobody.get("/openapi.json").await.expect(200);
    let operation = &document["paths"]["/v1/workspaces/{workspace_id}/support/cases"]["post"];
    let page = nobody.get("/reference/create_support_case").await.text();
    for body in [&operation["requestBody"], &operation["responses"]["201"]] {
        let example = &body["content"]["application/json"]["example"];
        for (name, value) in example.as_object().expect("an example") {
            let member = format!("\"{name}\": {value}").replace('"', "&quot;");
            assert!(value.is_array() || page.contains(&member), "{member} is not in {page}");
        }
    }
}

async fn a_client_that_has_the_document_is_not_sent_it_again(nobody: &Client) {
    let first = nobody.get("/openapi.json").await;
    let tag = first.headers["etag"].clone();
    let ask = |tag| nobody.request(Method::GET, "/openapi.json").header("If-None-Match", tag);
    let again = send(ask(tag.clone())).await;
    assert_eq!((again.status, again.text().as_str()), (304, ""));
    assert_eq!(again.headers["etag"], tag);
    assert_eq!(send(ask("\"other\"".parse().expect("a tag"))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_leads_to_the_page_of_its_operation_and_to_the_name_that_was_meant() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support", "questionnaires"]);
    let (host, ada) = builder.start_with_owner().await;
    let told = |problem: Value, page: &str, meant: &str| {
        let text = |member: &str| problem[member].as_str().expect("text").to_owned();
        assert!(text("hint").contains(page), "{problem:#}");
        let meant = format!("(did you mean `{meant}`?)");
        assert!(text("detail").contains(&meant), "{problem:#}");
    };
    let body = json!({ "subject": "Login fails", "descripton": "Since this morning." });
    let case = ada.post_once("/v1/workspaces/{ws}/support/cases", "hints-1", &body).await;
    let case = case.problem(422, "validation_failed");
    told(case, "/reference/create_support_case ", "description");
    let login = json!({ "emial": "a", "password": "b" });
    let login = host.nobody().post("/v1/auth/login", &login).await;
    told(login.problem(422, "validation_failed"), "/reference/login ", "email");
    let list = ada.get("/v1/workspaces/{ws}/support/case-history?limt=1").await;
    told(list.problem(422, "validation_failed"), "/reference/page_support_cases ", "limit");
    let wrong = ada
        .request(Method::POST, "/v1/workspaces/{ws}/questionnaires/import")
        .header("content-type", "multipart/form-data; boundary=boundary")
        .body(form(&[("titel", None, b"Suppliers")]));
    let wrong = send(wrong).await.problem(422, "validation_failed");
    told(wrong, "/reference/import_questionnaire ", "title");
}
