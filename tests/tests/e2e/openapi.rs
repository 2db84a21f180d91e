//! `/openapi.json` always describes the live areas, and is valid.

use std::collections::BTreeSet;

use assurance_tests::components::area;
use assurance_tests::contract::Contract;
use assurance_tests::{Backend, Builder, Client, TestHost};
use serde_json::{Value, json};

use crate::requests::AREAS;

async fn document(host: &TestHost) -> Value {
    host.nobody().get("/openapi.json").await.expect(200)
}

/// Returns every `METHOD path` of a document.
fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths");
    let of = |(path, item): (&String, &Value)| {
        let methods = item.as_object().expect("an item").keys();
        let methods = methods.filter(|key| *key != "parameters");
        methods.map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

#[tokio::test]
async fn it_lists_the_contracts_operations_of_the_live_areas() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support", "evidence", "webhooks"]);
    let host = builder.start().await;
    let document = document(&host).await;
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1.")));
    let listed = operations(&document);
    for operation in Contract::read().operations() {
        let number = operation["n"].as_u64().expect("a number");
        let method = operation["method"].as_str().expect("a method");
        let path = operation["path"].as_str().expect("a path");
        let served = [1, 2, 3, 4, 10, 11, 13].contains(&number);
        assert_eq!(listed.contains(&format!("{method} {path}")), served, "{method} {path}");
        if served {
            let entry = &document["paths"][path][method.to_lowercase()];
            let status = if method == "POST" { "201" } else { "200" };
            assert!(entry["responses"][status].is_object(), "{entry:#}");
            let refusals = ["400", "401", "403", "404", "409", "422", "429"];
            for status in refusals.into_iter().chain(["500", "502", "503", "504"]) {
                assert!(entry["responses"][status].is_object(), "{method} {path}: {status}");
            }
            let reads_body = entry["requestBody"].is_object() || method != "GET";
            for status in ["413", "415"] {
                assert_eq!(entry["responses"][status].is_object(), reads_body, "{method} {path}");
            }
            assert_ne!(entry["x-contract"], false, "{method} {path}");
        }
    }
    let login = &document["paths"]["/v1/auth/login"]["post"];
    assert_eq!(login["x-contract"], false);
    for event in ["webhook.disabled", "webhook.test"] {
        assert!(document["webhooks"][event].is_object(), "{event}");
    }
    // With few areas, no component of another one can hide that one is missing.
    every_reference_leads_somewhere_and_every_id_is_unique(&document);
    it_lists_the_headers_of_every_shared_response(&document);
}

/// These cases look at the document of one host.
#[tokio::test]
async fn it_describes_all_areas_in_the_same_way() {
    let (host, ada) = Builder::new(Backend::Sqlite).areas(AREAS).start_with_owner().await;
    let document = document(&host).await;
    it_lists_the_headers_of_every_shared_response(&document);
    every_reference_leads_somewhere_and_every_id_is_unique(&document);
    each_type_is_one_component_with_the_contracts_name(&document);
    it_says_what_takes_an_access_token_and_what_has_a_version(&document);
    it_says_what_checks_the_version_of_a_change(&document);
    it_says_the_least_role_of_each_operation(&document);
    it_says_which_responses_set_cookies(&document, &ada).await;
}

fn it_lists_the_headers_of_every_shared_response(document: &Value) {
    let responses = document["components"]["responses"].as_object().expect("responses");
    assert!(responses.contains_key("NotModified"));
    for (name, response) in responses {
        for header in ["X-Request-Id", "RateLimit", "RateLimit-Policy"] {
            assert!(response["headers"][header].is_object(), "{name}: {header}");
        }
        let challenge = &response["headers"]["WWW-Authenticate"];
        assert_eq!(challenge.is_object(), name == "Unauthenticated", "{name}");
    }
}

async fn it_says_which_responses_set_cookies(document: &Value, ada: &Client) {
    let described = |path: &str, status: &str| {
        document["paths"][path]["post"]["responses"][status]["headers"]["Set-Cookie"].is_object()
    };
    assert!(described("/v1/auth/login", "200") && described("/v1/auth/register", "201"));
    assert!(described("/v1/auth/mfa/confirm", "200"));
    let logout = ada.post("/v1/auth/logout", &json!({})).await;
    assert_eq!(logout.headers.contains_key("set-cookie"), described("/v1/auth/logout", "204"));
}

fn every_reference_leads_somewhere_and_every_id_is_unique(document: &Value) {
    let mut references = Vec::new();
    gather(document, "$ref", &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("a local reference");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let mut ids = Vec::new();
    gather(&document["paths"], "operationId", &mut ids);
    assert_eq!(ids.len(), operations(document).len());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

#[tokio::test]
async fn it_follows_a_swap() {
    let host = Builder::new(Backend::Sqlite).start().await;
    let path = "GET /v1/workspaces/{workspace_id}/support/cases";
    assert!(!operations(&document(&host).await).contains(path));
    assert_eq!(host.put_area("support", &area("support")).await.status, 200);
    assert!(operations(&document(&host).await).contains(path));
}

fn each_type_is_one_component_with_the_contracts_name(document: &Value) {
    let components = document["components"]["schemas"].as_object().expect("schemas");
    for (name, schema) in components {
        assert_eq!(schema["title"], name.as_str(), "{schema:#}");
    }
    let mut inline = Vec::new();
    inline_objects(&document["paths"], "", &mut inline);
    inline_objects(&document["webhooks"], "", &mut inline);
    for (name, schema) in components {
        for (member, schema) in schema["properties"].as_object().into_iter().flatten() {
            inline_objects(schema, &format!("{name}/{member}"), &mut inline);
        }
    }
    assert!(inline.is_empty(), "without a name: {inline:#?}");
    let contract = Contract::read();
    let mut wrong = Vec::new();
    for operation in contract.operations() {
        let path = operation["path"].as_str().expect("a path");
        let method = operation["method"].as_str().expect("a method").to_lowercase();
        let described = &document["paths"][path][method];
        let status = if described["responses"]["201"].is_object() { "201" } else { "200" };
        let response = &described["responses"][status]["content"]["application/json"]["schema"];
        let returns = operation["returns"].as_str().expect("a type");
        contract.misnamed(document, returns, response, &mut wrong);
        let body = &described["requestBody"]["content"]["application/json"]["schema"];
        if let Some(kind) = operation["body"].as_str() {
            contract.misnamed(document, kind, body, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Adds the locations of object schemas with members that are not components.
fn inline_objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if value["type"] == "object" && value["properties"].is_object() {
                found.push(at.to_owned());
            }
            for (name, member) in members.iter().filter(|(name, _)| *name != "example") {
                inline_objects(member, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| inline_objects(item, at, found));
        }
        _ => {}
    }
}

/// Collects every text under a member of this name, at any depth.
fn gather(value: &Value, member: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match value.as_str() {
                    Some(text) if name == member => found.push(text.to_owned()),
                    _ => gather(value, member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, member, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_api_has_a_document_of_its_own() {
    let host = Builder::new(Backend::Sqlite).start().await;
    let nobody = Client::nobody(&host.operators);
    let document = nobody.get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let name = method.to_uppercase().parse().expect("a method");
            let request = nobody.request(name, &path.replace("{name}", "support"));
            let answer = assurance_tests::client::send(request).await;
            let expected = if operation["security"].is_null() { 200 } else { 401 };
            assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text());
        }
    }
}

fn it_says_what_takes_an_access_token_and_what_has_a_version(document: &Value) {
    assert_eq!(document["components"]["securitySchemes"]["access_token"]["scheme"], "bearer");
    let mut versioned = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let choices = operation["security"].as_array().into_iter().flatten();
            let by_token = choices.filter(|choice| choice.get("access_token").is_some()).count();
            let id = operation["operationId"].as_str().expect("an id");
            let for_people = id.ends_with("access_token") || id.ends_with("access_tokens");
            let expected = path.contains("{workspace_id}") && !for_people && id != "remove_member";
            assert_eq!(by_token == 1, expected, "{method} {path}");
            if operation["responses"]["304"].is_object() {
                let tag = &operation["responses"]["200"]["headers"]["ETag"];
                assert!(tag.is_object() && method == "get", "{method} {path}");
                versioned.push(id);
            }
        }
    }
    for id in ["get_workspace_context", "get_repository"] {
        assert!(versioned.contains(&id), "{versioned:?}");
    }
    assert!(!versioned.contains(&"list_repositories"), "{versioned:?}");
    let text = document.to_string();
    assert!(!text.contains("x-versioned"), "{text}");
}

fn it_says_the_least_role_of_each_operation(document: &Value) {
    let mut found = BTreeSet::new();
    for (_, item) in document["paths"].as_object().expect("paths") {
        for (_, operation) in item.as_object().expect("an item") {
            let id = operation["operationId"].as_str().expect("an id");
            if let Some(role) = operation["x-least-role"].as_str() {
                found.insert(format!("{id}: {role}"));
            }
        }
    }
    let expected: BTreeSet<String> =
        include_str!("least_roles.txt").lines().map(str::to_owned).collect();
    let changed: Vec<_> = found.symmetric_difference(&expected).collect();
    assert!(changed.is_empty(), "not as in least_roles.txt: {changed:#?}");
}

fn it_says_what_checks_the_version_of_a_change(document: &Value) {
    assert!(!document.to_string().contains("x-if-match"));
    let reference = json!({ "$ref": "#/components/parameters/IfMatch" });
    let mut checked = BTreeSet::new();
    for (_, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let listed = operation["parameters"].as_array().is_some_and(|p| p.contains(&reference));
            if method == "post" && listed {
                checked.insert(operation["operationId"].as_str().expect("an id"));
            }
            assert!(method != "put" || !listed, "{operation}");
        }
    }
    let expected = BTreeSet::from([
        "apply_ownership_preview",
        "approve_answer",
        "close_support_case",
        "decide_match_suggestion",
        "disable_identity_provider",
        "enable_identity_provider",
        "pause_audit_schedule",
        "resend_invitation",
        "resume_audit_schedule",
        "revoke_evidence_producer",
        "revoke_invitation",
        "rotate_identity_provider",
        "rotate_webhook_secret",
        "transition_finding",
        "transition_remediation_program",
        "withdraw_approval",
    ]);
    assert_eq!(checked, expected);
}
