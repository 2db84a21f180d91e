//! From uploads by an audit to findings, dependencies, owners and a verified remediation.

use assurance_tests::Client;
use assurance_tests::artifacts::{headers_of, sample};
use assurance_tests::client::send;
use assurance_tests::examples::Recorder;
use serde_json::{Value, json};

/// Sends the artifacts and audits them, once and by a schedule.
pub(super) async fn artifacts(recorder: &mut Recorder) {
    for file in ["shop.cdx.json", "lodash.osv.json", "CODEOWNERS", "paths.txt", "shop.sarif"] {
        upload(recorder, file, file).await;
    }
    recorder.act("list_uploads").await;
    audit(recorder).await;
    recorder.act("list_audits").await;
    let schedule = json!({
        "repository_id": recorder.id("repository_id"), "name": "Nightly", "cadence": "daily",
        "local_hour": 3, "local_minute": 30, "timezone": "Europe/Berlin",
    });
    recorder.create("create_audit_schedule", "schedule_id", schedule).await;
    recorder.send("update_audit_schedule", json!({ "local_hour": 4 })).await;
    for operation in [
        "pause_audit_schedule",
        "resume_audit_schedule",
        "get_audit_schedule",
        "list_audit_schedules",
        "delete_audit_schedule",
    ] {
        recorder.act(operation).await;
    }
}

/// Uploads a sample under a filename.
async fn upload(recorder: &mut Recorder, sampled: &str, filename: &str) {
    let content = sample(sampled);
    let new = json!({
        "filename": filename, "content_type": "application/octet-stream", "purpose": "audit",
        "compressed_bytes": content.len(), "repository_id": recorder.id("repository_id"),
    });
    let upload = recorder.create("create_upload", "upload_id", new).await;
    let put = recorder.client.http.put(upload["upload_url"].as_str().expect("a URL"));
    let headers = headers_of(&upload).into_iter();
    let put = headers.fold(put, |put, (name, value)| put.header(name, value));
    let stored = send(put.body(content)).await;
    recorder.keep("put_upload_content", &Value::Null, &stored);
    recorder.act("complete_upload").await;
    recorder.until("get_upload", |upload| upload["validation_stage"] == "ready").await;
}

/// Audits the repository and waits for the end.
async fn audit(recorder: &mut Recorder) {
    let new = json!({ "repository_id": recorder.id("repository_id"), "branch_ref": "main" });
    recorder.create("start_audit", "audit_id", new).await;
    recorder.until("get_audit", |audit| audit["state"] == "completed").await;
}

/// Reads what the audit has found, and decides.
pub(super) async fn results(recorder: &mut Recorder) {
    let found = recorder.call("list_findings", "?severity=critical", &Value::Null).await.json();
    recorder.set("finding_id", &found["items"][0]);
    let inventory = "?advisory=CVE-2021-23337";
    let used = recorder.call("list_dependencies", inventory, &Value::Null).await.json();
    recorder.set("component_id", &used["items"][0]);
    let advisory: Value = serde_json::from_slice(&sample("lodash.osv.json")).expect("OSV");
    recorder.send("import_advisories", advisory.clone()).await;
    recorder.set("advisory_id", &advisory);
    for operation in [
        "list_component_advisories",
        "list_advisories",
        "get_advisory",
        "list_vex_statements",
        "list_deployments",
        "get_workspace_context",
        "list_ownership_sources",
    ] {
        recorder.act(operation).await;
    }
    let snapshots = |list: &Value| list["items"][0].is_object();
    let snapshots = recorder.until("list_context_snapshots", snapshots).await;
    recorder.set("snapshot_id", &snapshots["items"][0]);
    recorder.act("get_context_snapshot").await;

    let preview = json!({ "repository_id": recorder.id("repository_id") });
    recorder.create("create_ownership_preview", "preview_id", preview).await;
    for operation in [
        "list_ownership_previews",
        "list_ownership_preview_items",
        "apply_ownership_preview",
        "get_ownership_preview",
    ] {
        recorder.act(operation).await;
    }

    let triaged = json!({ "to_state": "triaged", "reason": "A user can send any text." });
    recorder.send("transition_finding", triaged).await;
    let suggestions = recorder.act("list_match_suggestions").await;
    recorder.set("suggestion_id", &suggestions["items"][0]);
    recorder.act("get_match_suggestion").await;
    let decision = json!({ "decision": "accepted", "reason": "The same line." });
    recorder.send("decide_match_suggestion", decision).await;
    for operation in
        ["get_finding", "list_finding_transitions", "rebuild_control_room", "get_control_room"]
    {
        recorder.act(operation).await;
    }
}

/// Carries out a program that another audit verifies.
pub(super) async fn remediation(recorder: &mut Recorder, reviewer: &Client) {
    let program = json!({
        "finding_id": recorder.id("finding_id"), "title": "No query from user input",
        "rationale": "One injection is enough.",
        "steps": [{
            "invariant_id": "no-sql-injection", "invariant_version": "1",
            "owner_scope": "shop/web", "repository_ids": [recorder.id("repository_id")],
            "title": "Bind parameters",
            "verification_predicate": "!('js/sql-injection' in findings.by_rule)",
        }],
    });
    recorder.create("create_remediation_program", "program_id", program).await;
    let author = recorder.client.clone();
    for (who, state) in [(&author, "in_review"), (reviewer, "approved"), (&author, "active")] {
        recorder.client = who.clone();
        let change = json!({ "to_state": state, "notes": "As discussed." });
        recorder.send("transition_remediation_program", change).await;
    }
    upload(recorder, "shop-fixed.sarif", "shop.sarif").await;
    audit(recorder).await;
    recorder.until("get_remediation_program", |program| program["state"] == "completed").await;
    recorder.act("list_remediation_programs").await;
    recorder.act("list_remediation_evaluations").await;
}
