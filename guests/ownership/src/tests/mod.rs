//! Tests of the area through a fake host.

mod previews;
mod sources;

use area_sdk::testing::{FakeHost, START, USER};
use area_sdk::wit::Outcome;
use area_sdk::{Role, Uuid};
use serde_json::{Value, json};

const REPOSITORY: Uuid = Uuid::from_u128(0x10);
const AUDIT: Uuid = Uuid::from_u128(0x20);
const BEA: Uuid = Uuid::from_u128(0x30);

/// Creates a host with a repository on GitHub and the users Ada and Bea.
fn host() -> FakeHost {
    let host = FakeHost::new(crate::area());
    host.put_member(USER, "Ada@example.org", Role::Owner);
    host.put_member(BEA, "bea@example.org", Role::Member);
    let repository = json!({ "name": "acme/web", "provider": "github" });
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), repository);
    host
}

/// Stores an upload's content and returns the audit's input for it.
fn input(host: &FakeHost, format: &str, filename: &str, content: &str) -> Value {
    let blob = format!("{format}-{filename}");
    host.put_shared_blob("uploads", &blob, content.as_bytes());
    json!({
        "upload_id": Uuid::from_u128(content.len() as u128), "blob": blob, "format": format,
        "filename": filename, "content_sha256": format!("{:064x}", content.len()),
        "bytes": content.len(), "ready_at": START, "commit_sha": null, "evidence_ids": [],
    })
}

fn start_audit(host: &FakeHost, inputs: &[Value]) {
    start_audit_as(host, AUDIT, inputs);
}

fn start_audit_as(host: &FakeHost, audit_id: Uuid, inputs: &[Value]) {
    let data = json!({
        "audit_id": audit_id, "repository_id": REPOSITORY, "branch_ref": "main",
        "commit_sha": "0f1e", "started_at": START, "inputs": inputs, "records": [],
    });
    host.deliver(Uuid::from_u128(1), "audit.started", data).expect("heard");
}

fn findings_imported(host: &FakeHost) -> Outcome {
    let data = json!({ "audit_id": AUDIT });
    host.deliver(Uuid::from_u128(2), "audit.findings_imported", data).expect("heard")
}

/// Runs all waiting jobs, whenever they are due. Returns the number of steps.
fn run_jobs(host: &FakeHost) -> usize {
    let mut steps = 0;
    for job in host.take_jobs() {
        let mut payload = job.payload;
        loop {
            steps += 1;
            match host.run(&job.kind, payload, 1).expect("run") {
                Outcome::Continue(next) => {
                    payload = serde_json::from_str(&next).expect("a payload");
                }
                _ => break,
            }
        }
    }
    steps
}

/// Imports a CODEOWNERS file without a path list.
fn import(host: &FakeHost, text: &str) {
    start_audit(host, &[input(host, "code_owners", ".github/CODEOWNERS", text)]);
    findings_imported(host);
    run_jobs(host);
}

fn finding(host: &FakeHost, id: u128, paths: &[&str], owner: Option<Uuid>) -> Uuid {
    let rank = 1_000_000 - i64::try_from(id).unwrap_or(0);
    let id = Uuid::from_u128(id);
    let body = json!({
        "repository_id": REPOSITORY, "open": true, "version": 3, "risk_severity": "high",
        "risk_rank": rank, "title": format!("F{id}"), "paths": paths, "owner_id": owner,
        "sla_due_at": START.plus_seconds(86_400),
    });
    host.put_document("control_room.findings", &id.to_string(), body);
    id
}

fn group(host: &FakeHost, id: u128, identities: &[&str], members: &[Uuid]) -> Uuid {
    let id = Uuid::from_u128(id);
    let name = format!("G{}", id.as_u128());
    let body = json!({ "name": name, "identities": identities, "member_ids": members });
    host.put_document("catalog.groups", &id.to_string(), body);
    id
}
