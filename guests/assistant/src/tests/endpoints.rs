//! Model endpoints and their validation.

use area_sdk::Role;
use area_sdk::testing::{EgressError, FakeHost, Request, member_names};
use area_sdk::wit::Outcome;
use area_sdk::wit::assurance::area::types::ProblemKind;
use serde_json::{Value, json};

use super::{answer, endpoint, header, host, work};

fn show(host: &FakeHost, endpoint: &Value) -> Value {
    let request = Request::to("get_model_endpoint");
    host.call(request.with("model_endpoint_id", endpoint["id"].clone())).expect("shown").body
}

fn update(host: &FakeHost, endpoint: &Value, changes: Value) -> Value {
    let request = Request::to("update_model_endpoint").json(changes);
    host.call(request.with("model_endpoint_id", endpoint["id"].clone())).expect("changed").body
}

fn models(ids: &[&str]) -> Value {
    json!({ "data": ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() })
}

#[test]
fn an_endpoint_has_exactly_the_fields_of_the_contract_and_no_key() {
    let host = host();
    let made = endpoint(&host);
    let expected = "active base_url created_at has_credential id last_error_code last_validated_at \
        model_ids name updated_at workspace_id";
    assert_eq!(member_names(&made), expected);
    assert_eq!((&made["active"], &made["has_credential"]), (&json!(true), &json!(true)));
    assert_eq!(made["last_validated_at"], Value::Null);
    let everything =
        format!("{made}{:?}{:?}{:?}", host.documents("endpoints"), host.events(), host.jobs());
    assert!(!everything.contains("sk-test-key"));
}

#[test]
fn a_validation_lists_the_models_with_the_key() {
    let host = host();
    let made = endpoint(&host);
    host.network(|_| answer(200, &models(&["large", "small", "other"])));
    assert_eq!(work(&host, 1), Outcome::Done);
    let sent = host.sent().pop().expect("sent");
    assert_eq!(sent.method.as_str(), "GET");
    assert_eq!(sent.url.as_str(), "https://models.example/v1/models");
    let id = made["id"].as_str().expect("an id");
    assert_eq!(sent.bearer, Some(format!("model-endpoint/{id}")));
    assert_eq!(header(&sent, "accept"), Some("application/json"));
    assert_eq!(header(&sent, "authorization"), None);
    let valid = show(&host, &made);
    assert_eq!(valid["last_validated_at"], json!(host.now()));
    assert_eq!(valid["last_error_code"], Value::Null);
    assert_eq!(
        host.events().pop().map(|event| event.name).as_deref(),
        Some("model_endpoint.validated")
    );
}

#[test]
fn what_a_validation_finds_wrong_has_a_code() {
    for (status, body, code) in [
        (200, models(&["small"]), "model_not_found"),
        (200, json!({}), "invalid_answer"),
        (401, json!({}), "credential_rejected"),
        (404, json!({}), "not_found"),
    ] {
        let host = host();
        let made = endpoint(&host);
        host.network(move |_| answer(status, &body));
        assert_eq!(work(&host, 1), Outcome::Done);
        let shown = show(&host, &made);
        assert_eq!(shown["last_error_code"], json!(code));
        assert_eq!(shown["last_validated_at"], Value::Null);
        assert_eq!(host.events()[1].data["error_code"], code);
    }
}

#[test]
fn a_server_that_is_away_is_asked_three_times() {
    let host = host();
    let made = endpoint(&host);
    host.network(|_| Err(EgressError::Timeout));
    let job = host.take_jobs().remove(0);
    for attempt in 1..=2 {
        let end = host.run_to_end(&job.kind, job.payload.clone(), attempt);
        assert!(matches!(end, Outcome::Retry((_, why)) if why == "timeout"));
        assert_eq!(show(&host, &made)["last_error_code"], "timeout");
    }
    assert_eq!(host.run_to_end(&job.kind, job.payload, 3), Outcome::Done);
    assert_eq!(host.events()[1].name, "model_endpoint.failed");
}

#[test]
fn a_change_is_validated_anew_and_the_validation_before_does_not_count() {
    let host = host();
    let made = endpoint(&host);
    let before = host.take_jobs().remove(0);
    let changed =
        update(&host, &made, json!({ "base_url": "https://other.example", "api_key": null }));
    assert_eq!(changed["has_credential"], false);
    host.network(|_| answer(200, &models(&["small", "large"])));
    assert_eq!(host.run_to_end(&before.kind, before.payload, 1), Outcome::Done);
    assert_eq!(show(&host, &made)["last_validated_at"], Value::Null);
    assert!(host.sent().is_empty());
    assert_eq!(work(&host, 1), Outcome::Done);
    let sent = host.sent().pop().expect("sent");
    assert_eq!((sent.url.as_str(), sent.bearer), ("https://other.example/models", None));
    assert!(show(&host, &made)["last_validated_at"].is_string());

    let renamed = update(&host, &made, json!({ "name": " Other ", "active": false }));
    assert_eq!((&renamed["name"], &renamed["active"]), (&json!("Other"), &json!(false)));
    assert!(renamed["last_validated_at"].is_string() && host.jobs().is_empty());
    let validate = Request::to("validate_model_endpoint");
    host.call(validate.with("model_endpoint_id", made["id"].clone())).expect("asked");
    assert_eq!(host.take_jobs().len(), 1);
}

#[test]
fn what_cannot_be_an_endpoint_is_refused_where_it_is_wrong() {
    let host = host();
    endpoint(&host);
    let refused = |member: &str, value: Value| {
        let mut body = json!({ "name": "x", "base_url": "https://a.example", "model_ids": ["m"] });
        body[member] = value;
        host.call(Request::to("create_model_endpoint").json(body)).expect_err(member)
    };
    for (member, value) in [
        ("base_url", json!("http://localhost:8080")),
        ("base_url", json!("https://a.example/v1?key=x")),
        ("api_key", json!("two words")),
        ("api_key", json!("schlüssel")),
        ("name", json!("  ")),
    ] {
        let pointer = format!("/{member}");
        assert_eq!(refused(member, value).violations[0].pointer, pointer);
    }
    assert_eq!(refused("name", json!("Main")).code.as_deref(), Some("name_taken"));
}

#[test]
fn a_deleted_endpoint_takes_its_key_along() {
    let host = host();
    let made = endpoint(&host);
    let delete = |version| {
        let request = Request::to("delete_model_endpoint").if_match(version);
        host.call(request.with("model_endpoint_id", made["id"].clone()))
    };
    assert_eq!(delete(9).expect_err("another").kind, ProblemKind::VersionConflict);
    assert_eq!(delete(1).expect("deleted").status, 204);
    assert_eq!(work(&host, 1), Outcome::Done);
    assert!(host.sent().is_empty() && host.documents("endpoints").is_empty());
}

#[test]
fn the_manifest_says_who_may_do_what_and_what_a_body_is() {
    let manifest = crate::area().manifest();
    let route = |operation: &str| {
        manifest.routes.iter().find(|route| route.operation_id == operation).expect("a route")
    };
    assert_eq!(route("create_model_endpoint").least_role, Role::Admin);
    assert_eq!(route("list_model_endpoints").least_role, Role::Viewer);
    assert_eq!(route("create_assistant_conversation").least_role, Role::Member);
    assert_eq!(manifest.routes.iter().filter(|route| route.in_contract).count(), 2);
    let area_sdk::wit::assurance::area::manifest::BodyKind::Json(schema) =
        &route("create_model_endpoint").body
    else {
        panic!("takes JSON")
    };
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let ids = &schema["properties"]["model_ids"];
    assert_eq!((&ids["minItems"], &ids["maxItems"]), (&json!(1), &json!(50)));
    let id = ids["items"]["$ref"].as_str().and_then(|target| schema.pointer(&target[1..]));
    let longest = id.map(|id| &id["maxLength"]);
    assert_eq!((&ids["uniqueItems"], longest), (&json!(true), Some(&json!(200))));
    assert_eq!(schema["required"], json!(["base_url", "model_ids", "name"]));
}
