//! Tests of dependencies through a fake host.

use area_sdk::testing::{FakeHost, Request, START, SuccessResponse};
use area_sdk::wit::assurance::area::types::ProblemKind;
use area_sdk::{Problem, Uuid};
use serde_json::{Value, json};

const WEB: Uuid = Uuid::from_u128(1);
const PAY: Uuid = Uuid::from_u128(2);
const OPS: Uuid = Uuid::from_u128(3);

fn group(host: &FakeHost, id: Uuid, name: &str, zone: &str, class: &str) {
    let body = json!({ "name": name, "trust_zone": zone, "data_classification": class });
    host.put_document("catalog.groups", &id.to_string(), body);
}

fn host() -> FakeHost {
    let host = FakeHost::new(crate::area());
    group(&host, WEB, "Web", "dmz", "public");
    group(&host, PAY, "Payments", "pci", "restricted");
    group(&host, OPS, "Operations", "dmz", "internal");
    host
}

fn declare(host: &FakeHost, source: Uuid, target: Uuid) -> Result<SuccessResponse, Problem> {
    let body = json!({
        "relationship_kind": "depends_on", "source_group_id": source, "target_group_id": target,
    });
    host.call(Request::to("create_group_dependency").json(body))
}

fn record(host: &FakeHost, number: u128, subject: &str, target: &str) -> Uuid {
    let id = Uuid::from_u128(number);
    let summary = json!({ "target": target, "relationship_kind": "depends_on" }).to_string();
    let body = json!({
        "kind": "relationship", "envelope_id": Uuid::from_u128(77), "subject_key": subject,
        "content_sha256": format!("{number:064x}"),
        "summary": summary, "observed_at": START.plus_seconds(i64::try_from(id.as_u128()).unwrap_or(0)),
    });
    host.put_document("evidence.records", &id.to_string(), body);
    id
}

fn accept(host: &FakeHost) {
    let data = json!({ "envelope_id": Uuid::from_u128(77), "kinds": ["relationship"] });
    host.deliver(Uuid::from_u128(7), "evidence_envelope.accepted", data).expect("heard");
    host.run_jobs();
}

#[test]
fn a_dependency_has_the_contract_s_fields_and_its_groups_judgement() {
    let host = host();
    let made = declare(&host, WEB, PAY).expect("made");
    assert_eq!(made.status, 201);
    let expected = json!({
        "crosses_trust_boundary": true, "data_classification": "restricted", "evidence_ids": [],
        "id": made.body["id"], "relationship_kind": "depends_on", "source_group_id": WEB,
        "state": "declared", "target_group_id": PAY,
    });
    assert_eq!(made.body, expected);
    let within = declare(&host, WEB, OPS).expect("made").body;
    assert_eq!(within["crosses_trust_boundary"], false);
    assert_eq!(within["data_classification"], "internal");
    assert_eq!(host.events()[0].name, "group_dependency.created");
}

#[test]
fn itself_an_unknown_group_and_a_second_time_are_refused() {
    let host = host();
    let itself = declare(&host, WEB, WEB).expect_err("itself");
    assert_eq!(itself.violations[0].pointer, "/target_group_id");
    let unknown = declare(&host, WEB, Uuid::from_u128(9)).expect_err("unknown");
    assert_eq!(unknown.kind, ProblemKind::NotFound);
    assert!(unknown.detail.contains("target_group_id"), "{}", unknown.detail);
    declare(&host, WEB, PAY).expect("made");
    assert_eq!(declare(&host, WEB, PAY).expect_err("again").kind, ProblemKind::Conflict);
    declare(&host, PAY, WEB).expect("the other way");
}

#[test]
fn a_changed_group_changes_the_judgement_at_both_ends() {
    let host = host();
    declare(&host, WEB, PAY).expect("made");
    declare(&host, OPS, WEB).expect("made");
    group(&host, WEB, "Web", "pci", "confidential");
    host.deliver(Uuid::from_u128(8), "group.updated", json!({ "group_id": WEB })).expect("heard");
    host.run_jobs();
    let judged = |source: Uuid| {
        let all = host.documents("dependencies").into_iter();
        let one = all.into_iter().find(|one| one["source_group_id"] == json!(source));
        let one = one.expect("a dependency");
        (one["crosses_trust_boundary"].clone(), one["data_classification"].clone())
    };
    assert_eq!(judged(WEB), (json!(false), json!("restricted")));
    assert_eq!(judged(OPS), (json!(true), json!("confidential")));
}

#[test]
fn evidence_makes_a_dependency_and_supports_it() {
    let host = host();
    let first = record(&host, 100, "group:Web", "Payments");
    record(&host, 101, "Web", "Nobody");
    record(&host, 102, "Web", "Web");
    accept(&host);
    let second = record(&host, 103, &WEB.to_string(), &PAY.to_string());
    accept(&host);
    let all = host.documents("dependencies");
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["state"], "evidenced");
    assert_eq!(all[0]["evidence_ids"], json!([second, first]));
    accept(&host);
    assert_eq!(host.documents("dependencies"), all);
    assert_eq!(host.events().len(), 1);
}

#[test]
fn a_late_record_is_listed_by_its_time_and_evicts_no_newer_one() {
    let host = host();
    let mut listed: Vec<Uuid> =
        (201..300).rev().map(|number| record(&host, number, "Web", "Payments")).collect();
    accept(&host);
    listed.push(record(&host, 102, "Web", "Payments"));
    accept(&host);
    record(&host, 101, "Web", "Payments");
    accept(&host);
    assert_eq!(host.documents("dependencies")[0]["evidence_ids"], json!(listed));
}

#[test]
fn content_uploaded_many_times_hides_no_other_content() {
    let host = host();
    let said = json!({ "target": "Operations", "relationship_kind": "shares_data" }).to_string();
    let [first, second] = [100, 101].map(|number| record(&host, number, "Web", "Nobody"));
    host.put_shared_blob("uploads", "content", said.as_bytes());
    for upload in 0..=1_000 {
        let number = if upload == 0 { 100 } else { 101 };
        let body = json!({
            "validation_stage": "ready", "content_sha256": format!("{number:064x}"),
            "blob": "content",
        });
        host.put_document("uploads.uploads", &format!("{upload:04}"), body);
    }
    accept(&host);
    assert_eq!(host.documents("dependencies")[0]["evidence_ids"], json!([second, first]));
}

#[test]
fn evidence_names_groups_by_id_in_any_spelling() {
    let [web, pay, late] = [0xaa, 0xbb, 0xcc].map(Uuid::from_u128);
    let host = host();
    group(&host, web, "A", "dmz", "public");
    group(&host, pay, "B", "pci", "public");
    let upper = |id: Uuid| id.to_string().to_uppercase();
    record(&host, 100, &format!("group:{}", upper(web)), &upper(pay));
    accept(&host);
    let all = host.documents("dependencies");
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["source_group_id"], &all[0]["target_group_id"]),
        (&json!(web), &json!(pay))
    );

    let early = record(&host, 101, &upper(late), &upper(pay));
    group(&host, late, "C", "dmz", "public");
    assert_eq!(declare(&host, late, pay).expect("made").body["evidence_ids"], json!([early]));
}

#[test]
fn evidence_from_before_the_groups_counts_when_they_are_joined() {
    let host = host();
    let late = Uuid::from_u128(4);
    let first = record(&host, 100, "Late", "Payments");
    accept(&host);
    assert!(host.documents("dependencies").is_empty());
    group(&host, late, "Late", "dmz", "public");
    let made = declare(&host, late, PAY).expect("made").body;
    assert_eq!((&made["state"], &made["evidence_ids"]), (&json!("evidenced"), &json!([first])));
}

#[test]
fn the_content_of_an_upload_goes_before_the_summary() {
    let host = host();
    let id = record(&host, 100, "Web", "Nobody");
    accept(&host);
    let said = json!({ "target": "Operations", "relationship_kind": "shares_data" }).to_string();
    host.put_shared_blob("uploads", "content-100", said.as_bytes());
    let digest = format!("{:064x}", 100);
    let upload =
        json!({ "validation_stage": "ready", "content_sha256": digest, "blob": "content-100" });
    host.put_document("uploads.uploads", "1", upload);
    let data = json!({ "content_sha256": digest });
    host.deliver(Uuid::from_u128(9), "upload.ready", data).expect("heard");
    host.run_jobs();
    let all = host.documents("dependencies");
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["relationship_kind"], &all[0]["target_group_id"]),
        (&json!("shares_data"), &json!(OPS))
    );
    assert_eq!(all[0]["evidence_ids"], json!([id]));
}

#[test]
fn content_up_to_1_mib_is_read_and_no_summary_replaces_larger_content() {
    let host = host();
    let said = json!({ "target": "Operations", "relationship_kind": "shares_data" }).to_string();
    for (number, bytes) in [(100, 1 << 20), (101, (1_usize << 20) + 1)] {
        record(&host, number, "Web", "Payments");
        let content = said.clone() + &" ".repeat(bytes - said.len());
        host.put_shared_blob("uploads", &number.to_string(), content.as_bytes());
        let upload = json!({
            "validation_stage": "ready", "content_sha256": format!("{number:064x}"),
            "blob": number.to_string(), "content_bytes": bytes,
        });
        host.put_document("uploads.uploads", &number.to_string(), upload);
    }
    accept(&host);
    let all = host.documents("dependencies");
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["target_group_id"], json!(OPS));
    assert_eq!(all[0]["evidence_ids"], json!([Uuid::from_u128(100)]));
}

#[test]
fn summaries_of_odd_form_are_passed_over() {
    let host = host();
    let ids: Vec<Uuid> = (0..4).map(|n| record(&host, 200 + n, "Web", "Payments")).collect();
    for (id, summary) in ids.iter().zip([
        "",
        "[]",
        "{\"target\": 5}",
        "{\"target\":\"Payments\",\"relationship_kind\":\"Über\"}",
    ]) {
        let body = json!({
            "kind": "relationship", "envelope_id": Uuid::from_u128(77), "subject_key": "Web",
            "content_sha256": "",
            "summary": summary, "observed_at": START,
        });
        host.put_document("evidence.records", &id.to_string(), body);
    }
    accept(&host);
    assert!(host.documents("dependencies").is_empty());
}

#[test]
fn dependencies_are_listed_by_their_ends_and_deleted() {
    let host = host();
    let first = declare(&host, WEB, PAY).expect("made").body;
    host.advance(1);
    let second = declare(&host, WEB, OPS).expect("made").body;
    let list = |name: &str, value: Value| {
        let request = Request::to("list_group_dependencies").with(name, value);
        host.call(request).expect("a page").body["items"].clone()
    };
    assert_eq!(list("source_group_id", json!(WEB)), json!([second, first]));
    assert_eq!(list("target_group_id", json!(OPS)), json!([second]));
    assert_eq!(list("crosses_trust_boundary", json!(true)), json!([first]));
    let named = |operation: &str| {
        let request = Request::to(operation).with("dependency_id", first["id"].clone());
        host.call(request)
    };
    assert_eq!(named("get_group_dependency").expect("there").body, first);
    assert_eq!(named("delete_group_dependency").expect("deleted").status, 204);
    assert_eq!(named("get_group_dependency").expect_err("gone").kind, ProblemKind::NotFound);
    assert_eq!(host.events()[2].name, "group_dependency.deleted");
}
