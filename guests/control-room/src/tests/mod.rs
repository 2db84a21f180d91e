//! Tests of the area through a fake host: audits are delivered, jobs run and operations called.

mod contract;
mod equal_results;
mod identity_at_work;
mod lifecycle;
mod markdown;
mod matching;
mod order;
mod packages;
mod refusals;
mod scale;
mod streams;

use area_sdk::testing::{EnqueuedJob, FakeHost, Request};
use area_sdk::wit::Outcome;
use area_sdk::{Timestamp, Uuid};
use serde_json::{Value, json};

const REPOSITORY: Uuid = Uuid::from_u128(0xabc);

/// A fake host with one repository, which numbers its audits.
struct Workspace {
    host: FakeHost,
    audits: std::cell::Cell<u128>,
}

impl Workspace {
    fn new() -> Self {
        let host = FakeHost::new(crate::area());
        let repository = json!({ "name": "ggshield", "default_branch": "main" });
        host.put_document("catalog.repositories", &REPOSITORY.to_string(), repository);
        Self { host, audits: std::cell::Cell::new(0) }
    }

    /// Stores an upload's content. Returns the input for `audit.started`.
    fn upload(&self, content: &[u8]) -> Value {
        self.host.advance(1);
        let name = format!("content/{}", self.host.now().0);
        self.host.put_shared_blob("uploads", &name, content);
        json!({
            "upload_id": Uuid::from_u128(self.host.now().0.unsigned_abs().into()),
            "blob": name, "format": "sarif", "filename": "scan.sarif", "content_sha256": "",
            "bytes": content.len(), "ready_at": self.host.now(), "commit_sha": null,
            "evidence_ids": [],
        })
    }

    /// Stores an upload's content. Returns the input for `audit.started`, with this filename.
    fn upload_as(&self, filename: &str, content: &[u8]) -> Value {
        let mut upload = self.upload(content);
        upload["filename"] = json!(filename);
        upload
    }

    /// Runs an audit with these inputs, newest first. Returns the data of
    /// `audit.findings_imported`.
    fn audit(&self, inputs: &[Value]) -> Value {
        self.audit_of(json!({ "inputs": inputs }))
    }

    /// Runs an audit whose `audit.started` event has these additional members. Returns the data of
    /// `audit.findings_imported`.
    fn audit_of(&self, said: Value) -> Value {
        self.host.advance(60);
        let number = self.audits.get() + 1;
        self.audits.set(number);
        let mut audit = json!({
            "audit_id": Uuid::from_u128(0xa0d1 << 64 | number), "repository_id": REPOSITORY,
            "branch_ref": null, "commit_sha": null, "started_at": self.host.now(),
            "inputs": [], "records": [],
        });
        for (name, value) in said.as_object().expect("an object") {
            audit[name] = value.clone();
        }
        let event = Uuid::from_u128(number);
        self.host.deliver(event, "audit.started", audit).expect("taken");
        self.run_jobs();
        let told = self.host.events().into_iter();
        let mut imported = told.filter(|event| event.name == "audit.findings_imported");
        imported.next_back().expect("told").data
    }

    /// Runs all due jobs to their end.
    fn run_jobs(&self) {
        for EnqueuedJob { kind, available_at, .. } in self.host.jobs() {
            assert!(available_at.is_none_or(|at| at <= self.host.now()), "{kind} is not due");
        }
        for outcome in self.host.run_jobs() {
            assert_eq!(outcome, Outcome::Done);
        }
    }

    fn scan(&self, content: &[u8]) -> Value {
        self.audit(&[self.upload(content)])
    }

    fn findings(&self) -> Vec<Value> {
        self.list(Request::to("list_findings").with("limit", 100))
    }

    fn list(&self, request: Request) -> Vec<Value> {
        let page = self.host.call(request).expect("a page").body;
        page["items"].as_array().cloned().expect("items")
    }

    fn finding(&self, rule: &str) -> Value {
        let some = Request::to("list_findings").with("limit", 50).with("rule", rule);
        let found = self.list(some);
        assert_eq!(found.len(), 1, "one finding of {rule}");
        found[0].clone()
    }

    fn transitions(&self) -> usize {
        self.host.documents("transitions").len()
    }

    /// Returns the first stored transition to this state.
    fn transition_to(&self, state: &str) -> Value {
        let mut all = self.host.documents("transitions").into_iter();
        all.find(|one| one["to_state"] == state).expect("a transition")
    }

    /// Returns the transitions of a finding, newest first.
    fn transitions_of(&self, finding: &Value) -> Vec<Value> {
        let id = finding["id"].clone();
        let all = Request::to("list_finding_transitions").with("finding_id", id);
        self.list(all.with("limit", 100))
    }

    fn transition(&self, finding: &Value, body: Value) -> Request {
        Request::to("transition_finding").with("finding_id", finding["id"].clone()).json(body)
    }

    fn rebuild(&self) -> Value {
        self.host.call(Request::to("rebuild_control_room")).expect("rebuilt").body
    }

    fn now(&self) -> Timestamp {
        self.host.now()
    }
}

/// Builds a SARIF log of one run of this tool, with one result for each (rule, path, message).
fn sarif(tool: &str, results: &[(&str, &str, &str)]) -> Vec<u8> {
    sarif_with(tool, results, json!({}))
}

/// Builds the same SARIF log as [`sarif`], with additional members of the run.
fn sarif_with(tool: &str, results: &[(&str, &str, &str)], said: Value) -> Vec<u8> {
    sarif_log(tool, results, said).to_string().into_bytes()
}

/// Builds the same SARIF log as [`sarif_with`], as a JSON value.
fn sarif_log(tool: &str, results: &[(&str, &str, &str)], said: Value) -> Value {
    let result = |&(rule, path, message): &(&str, &str, &str)| {
        json!({
            "ruleId": rule, "message": { "text": message },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": path }, "region": { "startLine": 3 },
            } }],
        })
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    let mut run = json!({ "tool": { "driver": { "name": tool } }, "results": results });
    for (name, value) in said.as_object().expect("an object") {
        run[name] = value.clone();
    }
    json!({ "version": "2.1.0", "runs": [run] })
}
