//! Test that the sample facts for checking predicates are those of real audits: runs an audit
//! through all areas that take part in it.

use area_sdk::testing::{FakeHost, PublishedEvent, Request};
use area_sdk::{Area, Uuid};
use serde_json::{Value, json};

use super::world::REPOSITORY;
use crate::{create, predicate};

/// Format and content of the files that the audit imports: one for each part, without findings, and
/// an advisory, because nothing is compared without any.
const FILES: [(&str, &str); 4] = [
    ("sarif", r#"{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[]}]}"#),
    (
        "cyclonedx",
        r#"{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"components":[
            {"type":"library","name":"left-pad","purl":"pkg:npm/left-pad@1.0.0"}]}"#,
    ),
    ("osv", r#"{"id":"OSV-1","modified":"2026-01-01T00:00:00Z","affected":[]}"#),
    ("path_list", "src/a.rs\n"),
];

/// Returns the name of the blob with the content of a file.
fn blob(at: usize) -> String {
    format!("{at:064x}")
}

fn host(area: Area) -> FakeHost {
    let host = FakeHost::new(area);
    let repository = json!({ "name": "shop", "default_branch": "main", "archived": false, "provider": "github" });
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), repository);
    for (at, (_, content)) in FILES.iter().enumerate() {
        host.put_shared_blob("uploads", &blob(at), content.as_bytes());
    }
    host
}

/// Delivers events, runs the enqueued jobs, and returns the published import events.
fn hear(host: &FakeHost, events: &[PublishedEvent]) -> Vec<PublishedEvent> {
    for (number, event) in (1..).zip(events) {
        host.deliver(Uuid::from_u128(number), &event.name, event.data.clone()).expect("heard");
    }
    host.run_jobs();
    let mut told = host.events();
    told.retain(|event| event.name.ends_with("_imported"));
    told
}

/// Returns the audit's inputs.
fn inputs(ready_at: &Value) -> Value {
    let input = |(at, (format, content)): (usize, &(&str, &str))| {
        json!({
            "upload_id": Uuid::from_u128(0xb000), "blob": blob(at), "format": format,
            "filename": format, "content_sha256": blob(at), "bytes": content.len(),
            "ready_at": ready_at, "commit_sha": null, "evidence_ids": [],
        })
    };
    FILES.iter().enumerate().map(input).collect()
}

/// Returns the facts of an audit of a repository without findings.
fn facts() -> Value {
    let audits = host(area_schedules::area());
    let start = Request::to("start_audit").json(json!({ "repository_id": REPOSITORY }));
    let audit = audits.call(start).expect("an audit").body;
    let run = audits.take_jobs().remove(0);
    audits.run(&run.kind, run.payload, 1).expect("running");
    let mut started = audits.events();
    for event in &mut started {
        event.data["inputs"] = inputs(&event.data["started_at"]);
    }
    let findings = hear(&host(area_control_room::area()), &started);
    let dependencies = hear(&host(area_dependencies::area()), &started);
    let heard = [started, findings.clone()].concat();
    let ownership = hear(&host(area_ownership::area()), &heard);
    hear(&audits, &[findings, dependencies, ownership].concat());
    let show = Request::to("get_audit").with("audit_id", audit["id"].clone());
    audits.call(show).expect("an audit").body["facts"].clone()
}

/// Returns the members of each fact.
fn names(facts: &Value) -> Vec<String> {
    let members = facts.as_object().into_iter().flatten();
    let mut names: Vec<String> = members
        .flat_map(|(name, value)| {
            let inner = names(value).into_iter().map(move |inner| format!("{name}.{inner}"));
            std::iter::once(name.clone()).chain(inner)
        })
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn predicates_are_checked_by_the_facts_that_audits_have() {
    let sample = Value::Object(predicate::sample());
    assert_eq!(names(&sample), names(&facts()));
    for name in names(&sample) {
        let name = name.rsplit('.').next().unwrap_or_default();
        for text in [predicate::HINT, create::DESCRIPTION] {
            assert!(text.contains(name), "{name} is not told of in: {text}");
        }
    }
}
