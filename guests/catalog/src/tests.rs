//! Tests of the catalog through a fake host.

use area_sdk::testing::{FakeHost, Request, START, USER};
use area_sdk::wit::Outcome;
use area_sdk::wit::assurance::area::types::ProblemKind;
use area_sdk::{Problem, Role, Uuid};
use serde_json::{Value, json};

const OTHER: Uuid = Uuid::from_u128(99);

fn host() -> FakeHost {
    let host = FakeHost::new(crate::area());
    host.put_member(USER, "ada@example.org", Role::Owner);
    host
}

fn make(host: &FakeHost, kind: &str, body: Value) -> Result<Value, Problem> {
    host.call(Request::to(&format!("create_{kind}")).json(body)).map(|answer| answer.body)
}

fn made(host: &FakeHost, kind: &str, body: Value) -> Value {
    make(host, kind, body).expect("made")
}

fn pointer(refused: Result<impl std::fmt::Debug, Problem>) -> String {
    let problem = refused.expect_err("a refusal");
    assert_eq!(problem.kind, ProblemKind::ValidationFailed);
    problem.violations[0].pointer.clone()
}

#[test]
fn a_repository_is_registered_changed_and_archived() {
    let host = host();
    let new = json!({ "name": "acme/web", "provider": "github", "url": "https://x.test/acme/web" });
    let made = made(&host, "repository", new);
    assert_eq!(made["default_branch"], "main");
    assert_eq!(made["external_id"], Value::Null);
    assert_eq!(made["archived"], false);
    assert_eq!(host.events()[0].name, "repository.created");

    let change = |body: Value, version| {
        let request = Request::to("update_repository").with("repository_id", made["id"].clone());
        host.call(request.json(body).if_match(version))
    };
    let changed = change(json!({ "archived": true, "url": null, "external_id": "77" }), 1);
    let changed = changed.expect("changed");
    assert_eq!(changed.version, Some(2));
    assert_eq!((&changed.body["url"], &changed.body["external_id"]), (&Value::Null, &json!("77")));
    assert_eq!(changed.body["name"], "acme/web");
    assert_eq!(change(json!({}), 1).expect_err("stale").kind, ProblemKind::VersionConflict);
    assert_eq!(host.events()[1].data["archived"], true);
}

#[test]
fn names_are_unique_and_external_ids_are_for_each_provider() {
    let host = host();
    let body = |name: &str, provider: &str| json!({ "name": name, "provider": provider, "external_id": "1" });
    made(&host, "repository", body("a", "github"));
    made(&host, "repository", body("b", "gitlab"));
    let refused = |body| make(&host, "repository", body).expect_err("taken").kind;
    assert_eq!(refused(body("a", "other")), ProblemKind::Conflict);
    assert_eq!(refused(body("c", "github")), ProblemKind::Conflict);
    // Null values do not conflict with each other.
    made(&host, "repository", json!({ "name": "d" }));
    made(&host, "repository", json!({ "name": "e" }));
}

#[test]
fn a_value_too_long_for_its_index_is_refused() {
    for (member, most) in [("external_id", 1_500), ("default_branch", 255)] {
        let host = host();
        let body = |count| json!({ "name": "a", member: "😀".repeat(count) });
        let pointer_of_member = format!("/{member}");
        let refused = make(&host, "repository", body(most / 4 + 1));
        assert_eq!(pointer(refused), pointer_of_member);
        let made = made(&host, "repository", body(most / 4));
        let change = Request::to("update_repository").with("repository_id", made["id"].clone());
        let refused = host.call(change.json(body(most / 4 + 1)));
        assert_eq!(pointer(refused), pointer_of_member);
    }
}

#[test]
fn lists_are_filtered_and_paged() {
    let host = host();
    for name in ["acme/web", "acme/api", "other/web"] {
        host.advance(1);
        made(&host, "repository", json!({ "name": name }));
    }
    let names = |request: Request| {
        let page = host.call(request).expect("a page").body;
        let items = page["items"].as_array().expect("items").clone();
        let names: Vec<String> =
            items.iter().filter_map(|item| item["name"].as_str()).map(str::to_owned).collect();
        (names, page["next_cursor"].clone())
    };
    let list = |q: &str| Request::to("list_repositories").with("q", q).with("limit", 1);
    let (first, cursor) = names(list("WEB"));
    assert_eq!(first, ["other/web"]);
    assert_eq!(
        names(list("WEB").with("cursor", cursor)),
        (vec!["acme/web".to_owned()], Value::Null)
    );
}

#[test]
fn a_group_has_members_of_the_workspace_only() {
    let host = host();
    let group = json!({
        "name": "Payments", "member_ids": [USER, USER], "identities": ["@acme/payments"],
        "trust_zone": "pci", "data_classification": "restricted",
    });
    let made = made(&host, "group", group);
    assert_eq!(made["member_ids"], json!([USER]));
    let strange = json!({ "name": "Strange", "member_ids": [USER, OTHER] });
    assert_eq!(pointer(make(&host, "group", strange)), "/member_ids/1");

    let change = Request::to("update_group").with("group_id", made["id"].clone());
    let changed = host.call(change.json(json!({ "trust_zone": "internal" }))).expect("changed");
    assert_eq!(changed.body["data_classification"], "restricted");
    let event = host.events().pop().expect("an event");
    assert_eq!(
        (event.name.as_str(), &event.data["trust_zone"]),
        ("group.updated", &json!("internal"))
    );
}

#[test]
fn a_service_refers_to_what_there_is() {
    let host = host();
    let repository = made(&host, "repository", json!({ "name": "acme/web" }));
    let group = made(&host, "group", json!({ "name": "Web" }));
    let id = repository["id"].clone();
    let service = made(
        &host,
        "service",
        json!({ "name": "web", "repository_ids": [id, id], "owner_id": USER, "group_id": group["id"] }),
    );
    assert_eq!(service["repository_ids"], json!([id]));
    let refused = |body| pointer(make(&host, "service", body));
    assert_eq!(refused(json!({ "name": "x", "repository_ids": [id, OTHER] })), "/repository_ids/1");
    assert_eq!(refused(json!({ "name": "x", "owner_id": OTHER })), "/owner_id");
    assert_eq!(refused(json!({ "name": "x", "group_id": OTHER })), "/group_id");

    let change = Request::to("update_service").with("service_id", service["id"].clone());
    let changed =
        host.call(change.json(json!({ "owner_id": null, "tier": "1" }))).expect("changed");
    assert_eq!((&changed.body["owner_id"], &changed.body["tier"]), (&Value::Null, &json!("1")));
    assert_eq!(changed.body["group_id"], group["id"]);
}

/// Stores a record of kind `service`.
fn put_record(
    host: &FakeHost,
    envelope_id: Uuid,
    id: u128,
    subject: &str,
    (summary, seconds): (&str, i64),
) {
    let evidence_id = Uuid::from_u128(id);
    let record = json!({
        "evidence_id": evidence_id, "kind": "service", "envelope_id": envelope_id,
        "subject_key": subject, "summary": summary, "observed_at": START.plus_seconds(seconds),
        "content_sha256": format!("{id:064x}"),
    });
    host.put_document("evidence.records", &evidence_id.to_string(), record);
}

/// Delivers an envelope with records of kind `service`.
fn accept(host: &FakeHost, envelope_id: Uuid) {
    let data = json!({ "envelope_id": envelope_id, "kinds": ["service"] });
    host.deliver(Uuid::from_u128(7), "evidence_envelope.accepted", data).expect("heard");
    assert!(host.run_jobs().iter().all(|outcome| matches!(outcome, Outcome::Done)));
}

/// Stores a record of kind `service` and delivers its envelope.
fn evidence(host: &FakeHost, id: u128, subject: &str, summary: &str, seconds: i64) {
    let envelope_id = Uuid::from_u128(id << 8);
    put_record(host, envelope_id, id, subject, (summary, seconds));
    accept(host, envelope_id);
}

#[test]
fn evidence_registers_and_renews_services() {
    let host = host();
    let repository = made(&host, "repository", json!({ "name": "acme/web" }));
    let group = made(&host, "group", json!({ "name": "Web" }));
    let said = json!({
        "repositories": ["acme/web", "unknown"], "group": "Web", "owner": "Ada@Example.org",
        "environment": "production", "tier": "1",
    });
    evidence(&host, 1, "service:web", &said.to_string(), 10);
    let service = host.documents("services").pop().expect("a service");
    assert_eq!(service["name"], "web");
    assert_eq!(service["repository_ids"], json!([repository["id"]]));
    assert_eq!((&service["group_id"], &service["owner_id"]), (&group["id"], &json!(USER)));
    assert_eq!(service["evidence_id"], json!(Uuid::from_u128(1)));

    evidence(&host, 2, "web", "Serves the pages.", 20);
    evidence(&host, 3, "web", "{\"tier\": \"9\"}", 5);
    let services = host.documents("services");
    assert_eq!(services.len(), 1);
    assert_eq!(services[0]["description"], "Serves the pages.");
    assert_eq!(
        (&services[0]["tier"], &services[0]["environment"]),
        (&json!("1"), &json!("production"))
    );
    let names: Vec<String> = host.events().into_iter().skip(2).map(|event| event.name).collect();
    assert_eq!(names, ["service.created", "service.updated"]);
}

#[test]
fn evidence_names_documents_by_id_in_any_spelling() {
    let host = host();
    let repository = made(&host, "repository", json!({ "name": "acme/web" }));
    let group = made(&host, "group", json!({ "name": "Web" }));
    let upper = |made: &Value| made["id"].as_str().expect("an id").to_uppercase();
    let said = json!({ "repositories": [upper(&repository)], "group": upper(&group) });
    evidence(&host, 1, "web", &said.to_string(), 10);
    let service = host.documents("services").pop().expect("a service");
    assert_eq!(service["repository_ids"], json!([repository["id"]]));
    assert_eq!(service["group_id"], group["id"]);
}

#[test]
fn the_content_of_an_upload_says_more_than_the_summary() {
    let host = host();
    evidence(&host, 1, "web", "Serves the pages.", 10);
    let content = r#"{"tier": "1", "description": null}"#;
    put_content(&host, 1, content, content.len());
    for _ in 0..2 {
        let data = json!({ "content_sha256": format!("{:064x}", 1) });
        host.deliver(Uuid::from_u128(8), "upload.ready", data).expect("heard");
        host.run_jobs();
    }
    let service = &host.documents("services")[0];
    assert_eq!(
        (&service["tier"], &service["description"]),
        (&json!("1"), &json!("Serves the pages."))
    );
    let names: Vec<String> = host.events().into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["service.created", "service.updated"]);
}

#[test]
fn content_that_is_uploaded_again_reverts_no_change_of_a_user() {
    let host = host();
    evidence(&host, 1, "web", "Serves the pages.", 10);
    host.put_shared_blob("uploads", "content", br#"{"tier": "1"}"#);
    let upload = |id: u128| {
        let (id, digest) = (Uuid::from_u128(id), format!("{:064x}", 1));
        let body = json!({
            "validation_stage": "ready", "content_sha256": digest, "blob": "content",
            "ready_at": host.now(),
        });
        host.put_document("uploads.uploads", &id.to_string(), body);
        let data = json!({ "upload_id": id, "content_sha256": digest });
        host.deliver(Uuid::from_u128(8), "upload.ready", data).expect("heard");
        host.run_jobs();
        host.documents("services")[0].clone()
    };
    let service = upload(0x41);
    assert_eq!(service["tier"], "1");
    host.advance(1);
    let services = host.call(Request::to("list_services")).expect("services").body;
    let id = services["items"][0]["id"].clone();
    let change = Request::to("update_service").with("service_id", id);
    host.call(change.json(json!({ "tier": "2" }))).expect("changed");
    assert_eq!(upload(0x42)["tier"], "2");
}

/// Stores an upload with the content of the record with this id.
fn put_content(host: &FakeHost, id: u128, content: &str, content_bytes: usize) {
    let (blob, number) = (format!("content-{id}"), id.to_string());
    host.put_shared_blob("uploads", &blob, content.as_bytes());
    let upload = json!({
        "validation_stage": "ready", "content_sha256": format!("{id:064x}"), "blob": blob,
        "content_bytes": content_bytes,
    });
    host.put_document("uploads.uploads", &number, upload);
}

#[test]
fn content_up_to_1_mib_is_read_and_no_summary_replaces_larger_content() {
    let host = host();
    let described = |bytes: usize| {
        let content = "{\"tier\": \"1\"}";
        content.to_owned() + &" ".repeat(bytes - content.len())
    };
    let most = 1 << 20;
    put_content(&host, 1, &described(most), most);
    put_content(&host, 2, &described(most + 1), most + 1);
    // Stored packed.
    put_content(&host, 3, "packed", 26_214_401);
    for id in 1..=3 {
        evidence(&host, id, &format!("service:{id}"), "For people.", 10);
    }
    let services = host.documents("services");
    assert_eq!(services.len(), 1);
    assert_eq!((&services[0]["name"], &services[0]["tier"]), (&json!("1"), &json!("1")));
    assert_eq!(services[0]["description"], Value::Null);
}

#[test]
fn evidence_of_odd_form_is_passed_over() {
    let host = host();
    evidence(&host, 1, "service: ", "", 10);
    evidence(&host, 2, "service:x", "{\"tier\": 5}", 10);
    evidence(&host, 3, &"y".repeat(201), "{\"name\": \"y\"}", 10);
    let names: Vec<Value> =
        host.documents("services").iter().map(|service| service["name"].clone()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&json!("x")) && names.contains(&json!("y")));
}

#[test]
fn evidence_with_long_names_and_nul_stops_no_other_record() {
    let host = host();
    let group = made(&host, "group", json!({ "name": "Web" }));
    let envelope_id = Uuid::from_u128(77);
    let said = |group: &str| json!({ "description": "The\0 pages.\0", "group": group }).to_string();
    for (id, group) in [(1, "x".repeat(600_000)), (2, "y".repeat(600_000)), (3, "Web".into())] {
        let content = said(&group);
        put_content(&host, id, &content, content.len());
        put_record(&host, envelope_id, id, &format!("service:{id}"), ("", 0));
    }
    accept(&host, envelope_id);
    let services = host.documents("services");
    let of = |member: &str| -> Vec<Value> {
        services.iter().map(|service| service[member].clone()).collect()
    };
    assert_eq!(of("description"), vec![json!("The pages."); 3]);
    assert_eq!(of("group_id"), [Value::Null, Value::Null, group["id"].clone()]);
}
