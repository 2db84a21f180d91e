//! Tests of audits: inputs, waits and ends.

use area_sdk::Uuid;
use area_sdk::testing::{FakeHost, Request};
use serde_json::{Value, json};

const REPOSITORY: Uuid = Uuid::from_u128(0x10);

fn host() -> FakeHost {
    let host = FakeHost::new(crate::area());
    let repository = json!({ "name": "shop", "default_branch": "main", "archived": false });
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), repository);
    host
}

fn put_upload(host: &FakeHost, number: u128, change: Value) -> Uuid {
    let id = Uuid::from_u128(0x1000 + number);
    let mut upload = json!({
        "filename": format!("{number}.sarif"),
        "format": "sarif",
        "repository_id": REPOSITORY,
        "branch_ref": null,
        "commit_sha": null,
        "content_sha256": format!("{number:064x}"),
        "content_bytes": 10,
        "blob": format!("content/{number}"),
        "validation_stage": "ready",
        "ready_at": host.now(),
    });
    for (name, value) in change.as_object().expect("an object") {
        upload[name] = value.clone();
    }
    host.put_document("uploads.uploads", &id.to_string(), upload);
    id
}

fn put_record(host: &FakeHost, number: u128, kind: &str, subject: &str, content: u128) -> Uuid {
    let id = Uuid::from_u128(0x2000 + number);
    let record = json!({
        "kind": kind,
        "subject_key": subject,
        "content_sha256": format!("{content:064x}"),
        "provider": "ci", "source_ref": format!("lint {number}"),
        "observed_at": host.now(),
    });
    host.put_document("evidence.records", &id.to_string(), record);
    id
}

fn start(host: &FakeHost, body: Value) -> Value {
    host.call(Request::to("start_audit").json(body)).expect("an audit").body
}

/// Starts an audit and runs its job.
fn run(host: &FakeHost, body: Value) -> Value {
    let started = start(host, body);
    assert_eq!((&started["state"], &started["trigger"]), (&json!("queued"), &json!("manual")));
    let [job, _] = &host.take_jobs()[..] else { panic!("two jobs") };
    assert_eq!((job.kind.as_str(), json!(job.resource)), ("audit", started["id"].clone()));
    host.run("audit", job.payload.clone(), 1).expect("done");
    show(host, &started["id"])
}

fn run_plain(host: &FakeHost) -> Value {
    run(host, json!({ "repository_id": REPOSITORY }))
}

fn show(host: &FakeHost, id: &Value) -> Value {
    host.call(Request::to("get_audit").with("audit_id", id.clone())).expect("an audit").body
}

fn answer(host: &FakeHost, audit: &Value, part: &str, status: &str) {
    let data = json!({
        "audit_id": audit["id"], "status": status, "counts": { "seen": 3 },
        "facts": { "total": 3 }, "warnings": ["w"], "errors": [],
    });
    let event = format!("audit.{part}_imported");
    host.deliver(Uuid::from_u128(5), &event, data).expect("taken in");
}

fn event(host: &FakeHost, name: &str) -> Value {
    let told: Vec<_> = host.events().into_iter().filter(|event| event.name == name).collect();
    assert_eq!(told.len(), 1, "{name}");
    told[0].data.clone()
}

fn input_ids(audit: &Value) -> Vec<Uuid> {
    let inputs = audit["inputs"].as_array().expect("inputs").iter();
    inputs.map(|input| serde_json::from_value(input["upload_id"].clone()).expect("id")).collect()
}

#[test]
fn an_audit_takes_in_what_is_ready_and_of_its_branch_newest_first() {
    let host = host();
    let old = put_upload(&host, 1, json!({}));
    host.advance(60);
    let new = put_upload(&host, 2, json!({ "branch_ref": "refs/heads/main", "format": "osv" }));
    put_upload(&host, 3, json!({ "branch_ref": "develop" }));
    put_upload(&host, 4, json!({ "repository_id": Uuid::from_u128(1) }));
    put_upload(&host, 5, json!({ "validation_stage": "rejected" }));
    put_upload(&host, 6, json!({ "format": "unknown" }));
    let audit = run_plain(&host);
    assert_eq!(audit["branch_ref"], "main", "the default branch");
    assert_eq!(audit["state"], "running");
    assert_eq!(input_ids(&audit), [new, old]);
    let told = event(&host, "audit.started");
    assert_eq!((&told["audit_id"], &told["inputs"]), (&audit["id"], &audit["inputs"]));
    assert_eq!(told["started_at"], audit["started_at"]);
}

#[test]
fn an_audit_of_a_commit_takes_in_what_is_of_it_or_of_none() {
    let host = host();
    let same = put_upload(&host, 1, json!({ "commit_sha": "ABCDEF0123456789" }));
    put_upload(&host, 2, json!({ "commit_sha": "1234567" }));
    let none = put_upload(&host, 3, json!({}));
    let body = json!({ "repository_id": REPOSITORY, "commit_sha": "abcdef0" });
    assert_eq!(input_ids(&run(&host, body)), [none, same]);
}

#[test]
fn a_branch_has_at_most_255_bytes() {
    let host = host();
    let body = |count| json!({ "repository_id": REPOSITORY, "branch_ref": "€".repeat(count) });
    start(&host, body(85));
    let refused = host.call(Request::to("start_audit").json(body(86))).expect_err("258 bytes");
    let [violation] = &refused.violations[..] else { panic!("one violation") };
    assert_eq!(violation.pointer, "/branch_ref");
    assert!(violation.message.contains("258 bytes"), "{}", violation.message);
}

#[test]
fn evidence_brings_its_content_and_its_findings() {
    let host = host();
    let foreign = json!({ "repository_id": null });
    let carried = put_upload(&host, 1, foreign);
    let by_name = put_record(&host, 1, "scan_report", "shop", 1);
    let finding = put_record(&host, 2, "finding", &REPOSITORY.to_string(), 99);
    put_record(&host, 3, "finding", "other", 98);
    let audit = run_plain(&host);
    assert_eq!(input_ids(&audit), [carried]);
    assert_eq!(audit["inputs"][0]["evidence_ids"], json!([by_name]));
    assert_eq!(event(&host, "audit.started")["records"], json!([finding]));
}

#[test]
fn an_input_names_the_streams_that_it_belongs_to() {
    let host = host();
    put_upload(&host, 1, json!({ "filename": "front/eslint.sarif" }));
    put_record(&host, 1, "scan_report", "shop", 1);
    host.advance(60);
    put_upload(&host, 2, json!({ "repository_id": null }));
    for number in [2, 3] {
        put_record(&host, number, "scan_report", "shop", 2);
    }
    let audit = run_plain(&host);
    let streams = [&audit["inputs"][0]["streams"], &audit["inputs"][1]["streams"]];
    let carried = json!(["evidence:ci:lint 2", "evidence:ci:lint 3"]);
    assert_eq!(streams, [&carried, &json!(["file:front/eslint.sarif"])]);
}

#[test]
fn uploads_for_evidence_are_read_only_if_evidence_names_them() {
    let host = host();
    let evidence = |number| put_upload(&host, number, json!({ "purpose": "evidence" }));
    let named = evidence(1);
    evidence(2);
    put_record(&host, 1, "sbom", "shop", 1);
    let ours = put_upload(&host, 3, json!({ "purpose": "audit" }));
    let earlier = put_upload(&host, 4, json!({ "purpose": "nightly_scan" }));
    let audit = run_plain(&host);
    let mut ids = input_ids(&audit);
    ids.sort();
    assert_eq!(ids, [named, ours, earlier]);
    let [warning] = &audit["warnings"].as_array().expect("warnings")[..] else {
        panic!("one warning: {}", audit["warnings"])
    };
    assert!(warning.as_str().is_some_and(|text| text.contains("2.sarif")), "{warning}");
    for part in ["findings", "dependencies", "ownership"] {
        answer(&host, &audit, part, "succeeded");
    }
    assert_eq!(show(&host, &audit["id"])["warnings"], json!([warning]), "it stays");
}

#[test]
fn records_whose_content_is_in_no_upload_are_warned_of() {
    let host = host();
    put_upload(&host, 1, json!({ "purpose": "evidence", "format": "unknown" }));
    put_upload(&host, 2, json!({ "branch_ref": "develop" }));
    for (number, kind) in (0..).zip(["scan_report", "sbom", "finding", "advisory"]) {
        put_record(&host, number, kind, "shop", number + 1);
    }
    let warnings = run_plain(&host)["warnings"].to_string();
    assert_eq!(warnings.matches("2 evidence records (lint 0, lint 3)").count(), 1, "{warnings}");
}

#[test]
fn of_more_uploads_than_are_taken_the_audit_says_so() {
    let host = host();
    for number in 1..=201 {
        put_upload(&host, number, json!({}));
    }
    let audit = run_plain(&host);
    assert_eq!(input_ids(&audit).len(), 200);
    let warning = "Of the sarif uploads only the latest 200 were read.";
    assert_eq!(audit["warnings"], json!([warning]));
}

#[test]
fn of_more_records_than_are_taken_the_audit_says_so() {
    for (kind, most, warnings) in [
        ("finding", 3_000, json!([])),
        ("finding", 3_001, json!(["Of the finding records only the latest 3000 were read."])),
        ("sbom", 501, json!(["Of the sbom records only the latest 500 were read."])),
    ] {
        let host = host();
        for number in (1..most).filter(|_| kind == "sbom") {
            put_upload(&host, number, json!({ "repository_id": null }));
        }
        put_record(&host, 0, kind, "shop", 0);
        host.advance(1);
        let new: Vec<Uuid> =
            (1..most).map(|number| put_record(&host, number, kind, "shop", number)).collect();
        assert_eq!(run_plain(&host)["warnings"], warnings, "{most} of {kind}");
        let records = event(&host, "audit.started")["records"].clone();
        let records: Vec<Uuid> = serde_json::from_value(records).expect("ids");
        if kind == "finding" {
            assert!(new.iter().all(|id| records.contains(id)), "the newest of {most}");
            assert_eq!(records.len(), 3_000);
        }
    }
}

#[test]
fn many_uploads_of_other_branches_leave_room_for_findings_and_for_other_formats() {
    let host = host();
    let formats = ["sarif", "cyclonedx", "spdx", "osv"];
    for (number, format) in (0..4 * 2_200).zip(formats.iter().cycle()) {
        put_upload(&host, number, json!({ "branch_ref": "develop", "format": format }));
    }
    let ours = put_upload(&host, 9_000, json!({ "format": "path_list" }));
    for number in 0..1_201 {
        put_record(&host, number, "finding", "shop", 100_000 + number);
    }
    let audit = run_plain(&host);
    assert_eq!(input_ids(&audit), [ours]);
    assert_eq!(event(&host, "audit.started")["records"].as_array().map(Vec::len), Some(1_201));
    let warnings = audit["warnings"].as_array().expect("warnings");
    assert_eq!(warnings[0], "Of the sarif uploads only the latest 2000 were read.");
    assert_eq!(warnings.len(), 4, "{warnings:?}");
}

#[test]
fn records_of_a_sarif_file_are_not_findings_besides() {
    let host = host();
    put_upload(&host, 1, json!({ "repository_id": null }));
    put_upload(&host, 2, json!({ "repository_id": null, "format": "osv" }));
    let alone = put_record(&host, 0, "finding", "shop", 2);
    for number in 1..=501 {
        put_record(&host, number, "finding", "shop", 1);
    }
    let report = put_record(&host, 502, "scan_report", "shop", 1);
    let audit = run_plain(&host);
    assert_eq!(event(&host, "audit.started")["records"], json!([alone]));
    let file = &audit["inputs"].as_array().expect("inputs").last().expect("the SARIF file");
    assert_eq!((&file["format"], &file["evidence_ids"][0]), (&json!("sarif"), &json!(report)));
    assert_eq!(file["evidence_ids"].as_array().map(Vec::len), Some(500));
    let streams = file["streams"].as_array().expect("streams");
    assert_eq!((streams.len(), &streams[0]), (8, &json!("evidence:ci:lint 502")));
}

#[test]
fn the_newest_files_that_fit_into_the_event_are_taken() {
    let host = host();
    let old = put_upload(&host, 0, json!({}));
    host.advance(1);
    for number in 1..1_400 {
        let filename = format!("{number}{}", "x".repeat(300));
        put_upload(&host, number, json!({ "repository_id": null, "filename": filename }));
        put_record(&host, number, "finding", "shop", number);
    }
    let audit = run_plain(&host);
    let taken = input_ids(&audit);
    assert!((1_000..1_399).contains(&taken.len()) && !taken.contains(&old), "{}", taken.len());
    let warning = format!("Of 1400 files only the latest {} were read.", taken.len());
    assert_eq!(audit["warnings"], json!([warning]));
    let started = event(&host, "audit.started");
    assert!(started.to_string().len() < 1 << 20);
    assert_eq!(started["records"], json!([]), "their files have the findings");
}

#[test]
fn of_more_referenced_uploads_than_are_taken_the_audit_says_so() {
    let host = host();
    for number in 1..=1_700 {
        put_upload(&host, number, json!({ "repository_id": null }));
        put_record(&host, number, "finding", "shop", number);
    }
    let audit = run_plain(&host);
    let warnings = audit["warnings"].to_string();
    assert!(warnings.contains("that evidence records name not all were read"), "{warnings}");
}

#[test]
fn errors_beyond_those_stored_are_counted() {
    let host = host();
    let audit = run_plain(&host);
    let error = json!({ "upload_id": null, "code": "invalid_sbom", "detail": "Is empty." });
    let data = json!({
        "audit_id": audit["id"], "status": "succeeded",
        "warnings": vec!["w"; 203], "errors": vec![error; 202],
    });
    host.deliver(Uuid::from_u128(5), "audit.dependencies_imported", data).expect("taken in");
    let part = &show(&host, &audit["id"])["parts"]["dependencies"];
    let warnings = part["warnings"].as_array().expect("warnings");
    assert_eq!(
        warnings[200..],
        [json!("3 more warnings are not stored."), json!("2 more errors are not stored.")]
    );
    assert_eq!(part["errors"].as_array().map(Vec::len), Some(200));
}

#[test]
fn files_that_were_refused_are_errors_of_the_audit() {
    let host = host();
    let upload = put_upload(&host, 1, json!({ "format": "cyclonedx", "filename": "a/bom.json" }));
    let audit = run_plain(&host);
    answer(&host, &audit, "findings", "succeeded");
    answer(&host, &audit, "ownership", "succeeded");
    let refused = json!({ "upload_id": upload, "code": "invalid_sbom", "detail": "Is empty." });
    let data = json!({ "audit_id": audit["id"], "status": "failed", "errors": [refused] });
    host.deliver(Uuid::from_u128(5), "audit.dependencies_imported", data).expect("taken in");
    let done = show(&host, &audit["id"]);
    assert_eq!(
        done["errors"],
        json!([{
            "part": "dependencies", "upload_id": upload, "filename": "a/bom.json",
            "code": "invalid_sbom", "detail": "Is empty.",
        }])
    );
    let list = host.call(Request::to("list_audits").with("limit", 50)).expect("a list").body;
    assert_eq!(list["items"][0]["errors"], done["errors"]);
}

#[test]
fn an_audit_is_complete_when_all_parts_are_in_whatever_their_order() {
    let host = host();
    let audit = run_plain(&host);
    answer(&host, &audit, "ownership", "succeeded");
    answer(&host, &audit, "ownership", "failed");
    answer(&host, &audit, "findings", "succeeded");
    assert_eq!(show(&host, &audit["id"])["state"], "running");
    host.advance(1);
    answer(&host, &audit, "dependencies", "succeeded");
    let done = show(&host, &audit["id"]);
    assert_eq!((&done["state"], &done["error_code"]), (&json!("completed"), &Value::Null));
    assert_eq!(done["completed_at"], json!(host.now()));
    assert_eq!(done["parts"]["ownership"]["counts"], json!({ "seen": 3 }));
    assert_eq!(done["facts"]["findings"], json!({ "total": 3 }));
    assert_eq!(done["facts"]["audit"]["id"], audit["id"]);
    assert_eq!(event(&host, "audit.completed")["facts"], done["facts"]);
}

#[test]
fn a_failed_part_is_warned_of_and_failed_findings_fail_the_audit() {
    let outcome = |statuses: [&str; 3]| {
        let host = host();
        let audit = run_plain(&host);
        for (part, status) in ["findings", "dependencies", "ownership"].iter().zip(statuses) {
            answer(&host, &audit, part, status);
        }
        let done = show(&host, &audit["id"]);
        (done["state"].clone(), done["error_code"].clone(), done["warnings"].clone())
    };
    let warning = json!(["The ownership could not be imported."]);
    let completed = (json!("completed"), Value::Null, warning);
    assert_eq!(outcome(["succeeded", "succeeded", "failed"]), completed);
    let (state, code, _) = outcome(["failed", "succeeded", "succeeded"]);
    assert_eq!((state, code), (json!("failed"), json!("findings_failed")));
    let (state, code, warnings) = outcome(["failed", "failed", "failed"]);
    assert_eq!((state, code), (json!("failed"), json!("nothing_imported")));
    assert_eq!(warnings.as_array().map(Vec::len), Some(3));
}

#[test]
fn parts_that_do_not_answer_in_time_are_missing() {
    let host = host();
    let audit = run_plain(&host);
    let [deadline] = &host.take_jobs()[..] else { panic!("one job") };
    assert_eq!(deadline.available_at, Some(host.now().plus_seconds(300)));
    answer(&host, &audit, "findings", "succeeded");
    host.advance(300);
    host.run("audit_deadline", deadline.payload.clone(), 1).expect("ended");
    let done = show(&host, &audit["id"]);
    assert_eq!(done["state"], "completed");
    assert_eq!(done["parts"]["dependencies"]["status"], "missing");
    let why = &done["parts"]["dependencies"]["errors"][0];
    assert_eq!((&why["code"], &why["upload_id"]), (&json!("not_imported_in_time"), &Value::Null));
    let id = audit["id"].as_str().expect("an id");
    assert!(why["detail"].as_str().is_some_and(|text| text.contains(id)), "{why}");
    assert_eq!(done["parts"]["findings"]["errors"], json!([]));
    assert_eq!(done["facts"].get("dependencies"), None);
    answer(&host, &audit, "dependencies", "succeeded");
    assert_eq!(show(&host, &audit["id"]), done, "too late");
    host.run("audit_deadline", deadline.payload.clone(), 1).expect("nothing");
    assert_eq!(event(&host, "audit.completed")["audit_id"], audit["id"]);
}

#[test]
fn an_audit_that_nobody_answers_fails() {
    let host = host();
    let audit = run_plain(&host);
    let deadline = host.take_jobs().remove(0);
    host.advance(300);
    host.run("audit_deadline", deadline.payload, 1).expect("ended");
    assert_eq!(event(&host, "audit.failed")["error_code"], "nothing_imported");
    assert_eq!(show(&host, &audit["id"])["state"], "failed");
}

#[test]
fn an_audit_that_has_not_started_within_a_day_fails() {
    let host = host();
    let audit = start(&host, json!({ "repository_id": REPOSITORY }));
    let [job, deadline] = &host.take_jobs()[..] else { panic!("two jobs") };
    assert_eq!(deadline.available_at, Some(host.now().plus_seconds(86_400)));
    host.advance(86_400);
    host.run("audit_deadline", deadline.payload.clone(), 1).expect("ended");
    let done = show(&host, &audit["id"]);
    assert_eq!((&done["state"], &done["started_at"]), (&json!("failed"), &Value::Null));
    assert_eq!(done["errors"][0]["code"], "not_started_in_time");
    assert_eq!(event(&host, "audit.failed")["error_code"], "nothing_imported");
    host.run("audit", job.payload.clone(), 1).expect("nothing to do");
    assert_eq!(show(&host, &audit["id"]), done, "too late");
}

#[test]
fn an_audit_that_starts_late_has_all_the_time_for_its_parts() {
    let host = host();
    let audit = start(&host, json!({ "repository_id": REPOSITORY }));
    let [job, deadline] = &host.take_jobs()[..] else { panic!("two jobs") };
    host.advance(86_399);
    host.run("audit", job.payload.clone(), 1).expect("started");
    assert_eq!(host.take_jobs().len(), 1, "the deadline of the parts");
    host.advance(1);
    host.run("audit_deadline", deadline.payload.clone(), 1).expect("not overdue");
    assert_eq!(show(&host, &audit["id"])["state"], "running");
    let [again] = &host.take_jobs()[..] else { panic!("one job") };
    assert_eq!(again.available_at, Some(host.now().plus_seconds(299)));
}

#[test]
fn an_audit_runs_once() {
    let host = host();
    run_plain(&host);
    let audit = host.documents("audits").remove(0);
    let before = host.events().len();
    let id = host.call(Request::to("list_audits").with("limit", 50)).expect("a list").body;
    let payload = json!({ "audit_id": id["items"][0]["id"] });
    host.run("audit", payload, 1).expect("nothing to do");
    assert_eq!(host.events().len(), before);
    assert_eq!(host.documents("audits").remove(0), audit);
}

#[test]
fn a_repository_must_be_there_and_not_archived() {
    let host = host();
    let refused = |id: Uuid| {
        let body = json!({ "repository_id": id });
        host.call(Request::to("start_audit").json(body)).expect_err("refused")
    };
    let unknown = refused(Uuid::from_u128(404));
    assert_eq!(format!("{:?}", unknown.kind), "ProblemKind::NotFound");
    let archived = Uuid::from_u128(0x11);
    let repository = json!({ "name": "old", "default_branch": "main", "archived": true });
    host.put_document("catalog.repositories", &archived.to_string(), repository);
    assert_eq!(refused(archived).code.as_deref(), Some("repository_archived"));
}

#[test]
fn the_deadline_of_an_audit_is_neither_cancelled_nor_given_up() {
    let host = host();
    let audit = run_plain(&host);
    let deadline = host.take_jobs().remove(0);
    let cancelled = json!({
        "job_id": deadline.id, "area": "schedules", "kind": "audit_deadline",
        "resource_id": audit["id"], "actor_id": Uuid::nil(),
    });
    let cancel = || {
        host.deliver(Uuid::nil(), "job.cancelled", cancelled.clone()).expect("handled");
        host.take_jobs()
    };
    assert_eq!(cancel()[0].available_at, deadline.available_at);
    host.advance(300);
    host.run("audit_deadline", deadline.payload.clone(), 8).expect("put off");
    let again = host.take_jobs().remove(0);
    assert_eq!(again.available_at, Some(host.now().plus_seconds(86_400)));
    host.run("audit_deadline", again.payload, 1).expect("ended");
    assert_eq!(show(&host, &audit["id"])["state"], "failed");
    assert!(cancel().is_empty(), "the audit has ended");
}
