//! A fake host with a finding and its repository, and methods that complete audits.

use area_sdk::testing::{FakeHost, Request, USER};
use area_sdk::{Problem, Uuid};
use serde_json::{Value, json};

pub(super) const REPOSITORY: Uuid = Uuid::from_u128(0x10);
pub(super) const OTHER_REPOSITORY: Uuid = Uuid::from_u128(0x11);
pub(super) const FINDING: Uuid = Uuid::from_u128(0x20);
pub(super) const GROUP: Uuid = Uuid::from_u128(0x30);
pub(super) const REVIEWER: Uuid = Uuid::from_u128(0x40);
pub(super) const RECORD: Uuid = Uuid::from_u128(0x50);

pub(super) struct World(pub(super) FakeHost);

impl World {
    pub(super) fn new() -> Self {
        let host = FakeHost::new(crate::area());
        for repository in [REPOSITORY, OTHER_REPOSITORY] {
            let id = repository.to_string();
            host.put_document("catalog.repositories", &id, json!({ "name": "shop" }));
        }
        let finding = json!({ "repository_id": REPOSITORY, "match_group_id": GROUP });
        host.put_document("control_room.findings", &FINDING.to_string(), finding);
        Self(host)
    }

    /// Requests a program with one step for each predicate.
    pub(super) fn ask(&self, predicates: &[&str]) -> Result<Value, Problem> {
        let steps: Vec<Value> = predicates.iter().map(|predicate| step(predicate)).collect();
        self.ask_for(&json!(steps))
    }

    pub(super) fn ask_for(&self, steps: &Value) -> Result<Value, Problem> {
        let body = json!({
            "finding_id": FINDING, "title": "Parse, do not concatenate",
            "rationale": "Queries are built from text.", "steps": steps,
        });
        let request = Request::to("create_remediation_program").json(body);
        self.0.call(request).map(|answer| answer.body)
    }

    pub(super) fn transition(&self, program: &Value, by: Uuid, to: &str) -> Result<Value, Problem> {
        let request = self.request("transition_remediation_program", program).by(by);
        self.0.call(request.json(json!({ "to_state": to }))).map(|answer| answer.body)
    }

    pub(super) fn request(&self, operation: &str, program: &Value) -> Request {
        Request::to(operation).with("program_id", program["id"].clone())
    }

    pub(super) fn show(&self, program: &Value) -> Value {
        self.0.call(self.request("get_remediation_program", program)).expect("a program").body
    }

    /// Creates a program in the state `active`.
    pub(super) fn active(&self, steps: &Value) -> Value {
        let program = self.ask_for(steps).expect("a program");
        for (by, to) in [(USER, "in_review"), (REVIEWER, "approved"), (USER, "active")] {
            self.transition(&program, by, to).expect("allowed");
        }
        self.show(&program)
    }

    /// Completes an audit of a repository with this number of open findings.
    pub(super) fn audit(&self, number: u128, repository: Uuid, open: u32) -> Uuid {
        let id = Uuid::from_u128(0x1000 + number);
        let audit = json!({
            "repository_id": repository, "completed_at": self.0.now(),
            "facts": { "findings": { "open": open, "by_rule": {} } },
            "inputs": [{ "evidence_ids": [RECORD] }],
            "records": [RECORD],
        });
        self.0.put_document("schedules.audits", &id.to_string(), audit);
        self.complete(id, repository);
        id
    }

    /// Delivers the event of a completed audit.
    pub(super) fn complete(&self, id: Uuid, repository: Uuid) {
        let data = json!({ "audit_id": id, "repository_id": repository, "facts": {} });
        self.0.deliver(id, "audit.completed", data).expect("taken in");
        self.work();
    }

    /// Runs the queued jobs, and jobs enqueued by them.
    pub(super) fn work(&self) {
        while !self.0.jobs().is_empty() {
            self.0.run_jobs();
        }
    }

    pub(super) fn evaluations(&self, program: &Value) -> Vec<Value> {
        let request = self.request("list_remediation_evaluations", program).with("limit", 50);
        let mut list = self.0.call(request).expect("a list").body;
        list["items"].as_array_mut().map(std::mem::take).expect("items")
    }

    pub(super) fn published(&self, name: &str) -> Vec<Value> {
        let told = self.0.events().into_iter().filter(|event| event.name == name);
        told.map(|event| event.data).collect()
    }
}

pub(super) fn step(predicate: &str) -> Value {
    json!({
        "invariant_id": "sql-is-parameterised", "invariant_version": "1.2",
        "owner_scope": "team/shop", "title": "Use parameters",
        "verification_predicate": predicate,
    })
}
