//! Tests of the context area through a fake host.

use area_sdk::testing::{FakeHost, Request, START, USER};
use area_sdk::wit::assurance::area::types::ProblemKind;
use area_sdk::{MERGED_EVENTS, Timestamp, Uuid};
use serde_json::{Value, json};

const WEB: Uuid = Uuid::from_u128(0x11);
const API: Uuid = Uuid::from_u128(0x12);
const AUDIT: Uuid = Uuid::from_u128(0x21);
const RUN: Uuid = Uuid::from_u128(0x31);
const MCP: Uuid = Uuid::from_u128(0x32);

fn host() -> FakeHost {
    FakeHost::new(crate::area())
}

fn context(host: &FakeHost) -> Value {
    host.call(Request::to("get_workspace_context")).expect("the context").body
}

/// Publishes an event and runs the renewal.
fn tell(host: &FakeHost, name: &str, data: Value) {
    host.deliver(Uuid::from_u128(1), name, data).expect("heard");
    host.advance(2);
    assert!(host.jobs().iter().all(|job| job.available_at.is_some_and(|at| at <= host.now())));
    host.run_jobs();
}

fn repository(host: &FakeHost, id: Uuid, name: &str) {
    let body = json!({ "name": name, "archived": false });
    host.put_document("catalog.repositories", &id.to_string(), body);
}

fn audit(host: &FakeHost, id: Uuid, formats: &[&str], completed_at: Timestamp) {
    let inputs: Vec<Value> = formats.iter().map(|format| json!({ "format": format })).collect();
    let part = json!({ "status": "succeeded" });
    let body = json!({
        "repository_id": WEB, "commit_sha": "0f1e2d3c", "completed_at": completed_at,
        "state": "completed", "inputs": inputs, "records": [],
        "parts": { "findings": part, "dependencies": part, "ownership": { "status": "failed" } },
    });
    host.put_document("schedules.audits", &id.to_string(), body);
}

fn ingestion(host: &FakeHost, id: Uuid, mcp: Option<Uuid>, observed_at: Timestamp, kind: &str) {
    let envelope = Uuid::from_u128(id.as_u128() + 0x100);
    let run = json!({
        "envelope_id": envelope, "mcp_ingestion_id": mcp, "source_external_id": "acme/web",
        "source_provider": "ci", "source_revision": "abcdef01", "observed_at": observed_at,
        "accepted_count": 3, "rejected_count": 1,
    });
    host.put_document("evidence.ingestion_runs", &id.to_string(), run);
    let record = json!({ "envelope_id": envelope, "kind": kind });
    host.put_document("evidence.records", &envelope.to_string(), record);
}

#[test]
fn an_empty_workspace_has_a_context_that_stays_the_same() {
    let host = host();
    let first = context(&host);
    let members: Vec<&str> =
        first.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "content_hash",
        "coverage_gaps",
        "entity_count",
        "evidence_count",
        "finding_count",
        "generated_at",
        "id",
        "relationship_count",
        "repository_count",
        "schema_version",
        "source_count",
        "sources",
    ];
    assert_eq!(members, expected);
    assert_eq!(first["coverage_gaps"][0]["code"], "no_repositories");
    host.advance(60);
    let later = context(&host);
    assert_eq!((&later["id"], &later["content_hash"]), (&first["id"], &first["content_hash"]));
    tell(&host, "note.created", json!({}));
    assert_eq!(context(&host)["id"], first["id"]);
    let stored = context(&host)["generated_at"].clone();
    host.advance(60);
    tell(&host, "note.created", json!({}));
    assert_eq!(context(&host)["generated_at"], stored);
    assert_eq!(host.documents("snapshots").len(), 1);
}

#[test]
fn counts_are_those_of_the_areas() {
    let host = host();
    repository(&host, WEB, "acme/web");
    repository(&host, API, "acme/api");
    let archived = json!({ "name": "old", "archived": true });
    host.put_document("catalog.repositories", "00000000-0000-0000-0000-000000000099", archived);
    let service = json!({ "repository_ids": [WEB, API], "group_id": WEB, "owner_id": USER });
    host.put_document("catalog.services", &WEB.to_string(), service);
    for n in 0..3 {
        let id = Uuid::from_u128(n).to_string();
        host.put_document("control_room.findings", &id, json!({ "open": n < 2 }));
        host.put_document("dependencies.heads", &id, json!({ "components": n }));
        host.put_document("dependencies.deployments", &id, json!({ "current": n < 1 }));
        host.put_document("catalog.groups", &id, json!({}));
        host.put_document("groups.dependencies", &id, json!({}));
        host.put_document("evidence.records", &id, json!({}));
    }
    let context = context(&host);
    assert_eq!(context["repository_count"], 2);
    assert_eq!(context["finding_count"], 2);
    assert_eq!(context["evidence_count"], 3);
    assert_eq!(context["entity_count"], 2 + 1 + 3 + (1 + 2) + 1);
    assert_eq!(context["relationship_count"], 4 + 3);
    assert_eq!(context["source_count"], 2);
}

#[test]
fn services_beyond_the_limit_of_documents_are_counted_without_their_links() {
    let host = host();
    let service = json!({ "repository_ids": [], "group_id": null, "owner_id": USER });
    for (services, links) in [(2_500_u64, 2_500_u64), (10_500, 5_000)] {
        for n in 0..services {
            let id = Uuid::from_u128(n.into()).to_string();
            host.put_document("catalog.services", &id, service.clone());
        }
        let context = context(&host);
        assert_eq!(context["entity_count"], services);
        assert_eq!(context["relationship_count"], links);
    }
}

#[test]
fn sources_beyond_a_page_are_counted() {
    let host = host();
    for n in 0..1_005_u128 {
        let ingestion = json!({
            "key": format!("evidence:ci/{n:04}"), "name": "ci", "external_id": "", "revision": "",
            "mcp_ingestion_id": null, "observed_at": START, "accepted": 1, "rejected": 0,
            "signals": [],
        });
        host.put_document("ingestions", &Uuid::from_u128(n).to_string(), ingestion);
    }
    let context = context(&host);
    assert_eq!(context["source_count"], 1_005);
    assert_eq!(context["sources"].as_array().map(Vec::len), Some(200));
}

#[test]
fn a_repository_s_signals_come_from_its_audit_and_the_catalog() {
    let host = host();
    repository(&host, WEB, "acme/web");
    audit(&host, AUDIT, &["sarif", "code_owners"], START);
    let service = json!({ "repository_ids": [WEB], "group_id": null, "owner_id": null });
    host.put_document("catalog.services", &WEB.to_string(), service);
    let deployment = json!({ "current": true, "repository_id": WEB });
    host.put_document("dependencies.deployments", &WEB.to_string(), deployment);
    tell(&host, "audit.completed", json!({ "audit_id": AUDIT }));
    let context = context(&host);
    let source = json!({
        "audit_id": AUDIT, "commit_sha": "0f1e2d3c", "coverage": 0.6,
        "key": format!("repository:{WEB}"), "kind": "repository", "mcp_ingestion_id": null,
        "missing_signals": ["dependencies", "ownership"], "name": "acme/web", "observed_at": START,
        "repository_id": WEB, "signals": ["deployments", "findings", "services"],
        "status": "partial",
    });
    assert_eq!(context["sources"], json!([source]));
    let gaps = context["coverage_gaps"].as_array().expect("gaps");
    assert_eq!(gaps.len(), 2);
    assert_eq!(
        (&gaps[0]["code"], &gaps[0]["repository_ids"]),
        (&json!("missing_dependencies"), &json!([WEB]))
    );

    // The event of an audit that was completed earlier arrives later.
    audit(&host, API, &["sarif", "spdx"], START.plus_seconds(-60));
    tell(&host, "audit.completed", json!({ "audit_id": API }));
    assert_eq!(first_source(&host)["audit_id"], json!(AUDIT));
    audit(&host, API, &["sarif", "spdx"], START.plus_seconds(60));
    tell(&host, "audit.completed", json!({ "audit_id": API }));
    assert_eq!(
        (&first_source(&host)["audit_id"], &first_source(&host)["coverage"]),
        (&json!(API), &json!(0.8))
    );
}

fn first_source(host: &FakeHost) -> Value {
    context(host)["sources"][0].clone()
}

#[test]
fn a_code_owners_file_without_rules_is_no_signal() {
    for (rules, signals) in [(0, json!([])), (2, json!(["ownership"]))] {
        let host = host();
        repository(&host, WEB, "acme/web");
        let part = json!({ "status": "succeeded" });
        let ownership = json!({ "status": "succeeded", "counts": { "rules": rules } });
        let body = json!({
            "repository_id": WEB, "commit_sha": null, "completed_at": START, "state": "completed",
            "inputs": [{ "format": "code_owners" }], "records": [],
            "parts": { "findings": part, "dependencies": part, "ownership": ownership },
        });
        host.put_document("schedules.audits", &AUDIT.to_string(), body);
        tell(&host, "audit.completed", json!({ "audit_id": AUDIT }));
        assert_eq!(first_source(&host)["signals"], signals);
    }
}

#[test]
fn evidence_is_a_source_with_its_latest_ingestion() {
    let host = host();
    repository(&host, WEB, "acme/web");
    ingestion(&host, RUN, Some(MCP), START, "deployment");
    tell(&host, "evidence_envelope.accepted", json!({ "connector_run_id": RUN }));
    let context_before = context(&host);
    let source = json!({
        "audit_id": null, "commit_sha": "abcdef01", "coverage": 0.75, "key": "mcp:ci/acme/web",
        "kind": "mcp", "mcp_ingestion_id": MCP, "missing_signals": [], "name": "ci",
        "observed_at": START, "repository_id": WEB, "signals": ["deployment"], "status": "partial",
    });
    assert_eq!(context_before["sources"][1], source);
    assert_eq!(context_before["source_count"], 2);

    ingestion(&host, API, Some(API), START.plus_seconds(5), "service");
    tell(&host, "evidence_envelope.accepted", json!({ "connector_run_id": API }));
    let renewed = context(&host);
    assert_eq!(renewed["sources"][1]["mcp_ingestion_id"], json!(API));
    assert_eq!(renewed["sources"][1]["signals"], json!(["deployment", "service"]));
    assert_ne!(renewed["content_hash"], context_before["content_hash"]);
    ingestion(&host, MCP, None, START, "build");
    tell(&host, "evidence_envelope.accepted", json!({ "connector_run_id": MCP }));
    assert_eq!(context(&host)["sources"][1]["kind"], "evidence");
}

#[test]
fn what_was_there_before_this_area_is_caught_up_with() {
    let host = host();
    for n in 0..150 {
        repository(&host, Uuid::from_u128(0x1000 + n), &format!("r{n}"));
    }
    repository(&host, WEB, "acme/web");
    audit(&host, AUDIT, &["cyclonedx"], START);
    ingestion(&host, RUN, None, START, "sbom");
    tell(&host, "note.created", json!({}));
    let context = context(&host);
    let sources = context["sources"].as_array().expect("sources");
    assert_eq!(sources.len(), 152);
    let web = sources.iter().find(|source| source["name"] == "acme/web").expect("the repository");
    assert_eq!((&web["audit_id"], &web["signals"]), (&json!(AUDIT), &json!(["dependencies"])));
    assert_eq!(sources[151]["key"], "evidence:ci/acme/web");
    assert_eq!(context["coverage_gaps"][1]["repository_count"], 151);
    assert_eq!(context["coverage_gaps"][1]["repository_ids"].as_array().map(Vec::len), Some(20));
}

#[test]
fn an_envelope_as_the_first_event_leaves_out_no_earlier_source() {
    let host = host();
    ingestion(&host, RUN, Some(MCP), START, "sbom");
    ingestion(&host, API, None, START, "build");
    tell(&host, "evidence_envelope.accepted", json!({ "connector_run_id": API }));
    assert_eq!(context(&host)["source_count"], 2);
}

#[test]
fn many_records_of_earlier_envelopes_do_not_stop_the_renewal() {
    let host = host();
    for n in 1..=11_u128 {
        let id = Uuid::from_u128(n << 32);
        ingestion(&host, id, None, START, "build");
        let envelope = Uuid::from_u128(id.as_u128() + 0x100);
        let record = json!({ "envelope_id": envelope, "kind": "sbom" });
        for record_id in 1..1_000 {
            let record_id = Uuid::from_u128(id.as_u128() + 0x1000 + record_id).to_string();
            host.put_document("evidence.records", &record_id, record.clone());
        }
    }
    tell(&host, "note.created", json!({}));
    assert_eq!(first_source(&host)["signals"], json!(["build", "sbom"]));
}

#[test]
fn an_envelope_without_an_accepted_record_is_the_latest_ingestion() {
    let host = host();
    ingestion(&host, RUN, None, START, "sbom");
    tell(&host, "evidence_envelope.accepted", json!({ "connector_run_id": RUN }));
    let run = json!({
        "envelope_id": API, "mcp_ingestion_id": null, "source_external_id": "acme/web",
        "source_provider": "ci", "source_revision": "", "observed_at": START.plus_seconds(5),
        "accepted_count": 0, "rejected_count": 2,
    });
    host.put_document("evidence.ingestion_runs", &API.to_string(), run);
    tell(&host, "evidence_envelope.rejected", json!({ "connector_run_id": API }));
    let source = first_source(&host);
    assert_eq!((&source["coverage"], &source["status"]), (&json!(0.0), &json!("partial")));
    assert_eq!(source["signals"], json!(["sbom"]));
}

#[test]
fn what_is_so_again_has_the_same_id_again() {
    let host = host();
    tell(&host, "note.created", json!({}));
    let first = context(&host);
    repository(&host, WEB, "acme/web");
    tell(&host, "repository.created", json!({}));
    let second = context(&host);
    let archived = json!({ "name": "acme/web", "archived": true });
    host.put_document("catalog.repositories", &WEB.to_string(), archived);
    tell(&host, "repository.updated", json!({}));
    let third = context(&host);
    assert_eq!((&third["id"], &third["content_hash"]), (&first["id"], &first["content_hash"]));
    for id in [&first["id"], &second["id"]] {
        let id: Uuid = id.as_str().and_then(|id| id.parse().ok()).expect("a UUID");
        assert_eq!(id.get_version_num(), 7);
    }
    assert!(third["generated_at"].as_str() > second["generated_at"].as_str());

    let list = host.call(Request::to("list_context_snapshots")).expect("a list").body;
    let ids: Vec<Value> =
        list["items"].as_array().expect("items").iter().map(|s| s["id"].clone()).collect();
    assert_eq!(ids, [first["id"].clone(), second["id"].clone()]);
    let show = |id: Value| host.call(Request::to("get_context_snapshot").with("snapshot_id", id));
    assert_eq!(show(second["id"].clone()).expect("kept").body, second);
    assert_eq!(show(json!(WEB)).expect_err("none").kind, ProblemKind::NotFound);
}

#[test]
fn every_named_event_asks_for_a_renewal_that_the_host_merges_with_others() {
    let host = host();
    for name in ["audit.completed", "audit.completed", "evidence_envelope.rejected"] {
        let data = json!({ "audit_id": AUDIT, "connector_run_id": RUN });
        host.deliver(Uuid::from_u128(1), name, data).expect("heard");
    }
    let jobs = host.jobs();
    // None of them is suppressed by a renewal that runs and may have read before their commit.
    assert_eq!(jobs.len(), 3);
    for job in jobs {
        assert_eq!((job.kind.as_str(), job.resource, job.dedupe_key), (MERGED_EVENTS, None, None));
        assert_eq!(job.available_at, Some(START.plus_seconds(1)));
    }
}

#[test]
fn old_snapshots_go() {
    let host = host();
    for n in 0..230 {
        host.put_document("control_room.findings", &format!("f{n}"), json!({ "open": true }));
        tell(&host, "finding.created", json!({}));
    }
    assert_eq!(host.documents("snapshots").len(), 200);
    assert_eq!(context(&host)["finding_count"], 230);
}
