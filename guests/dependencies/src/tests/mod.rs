//! Tests of the area through a fake host: audits, advisories and evidence as input, the inventory
//! as output.

mod advisories;
mod deployments;
mod doubts;
mod imports;
mod inventory;
mod many;
mod spdx;
mod subjects;
mod vex;
mod withdrawals;

use std::io::Write as _;

use area_sdk::prelude::*;
use area_sdk::testing::{FakeHost, Request, SuccessResponse};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

const REPOSITORY: Uuid = Uuid::from_u128(0x77);
const COMMIT: &str = "1111111111111111111111111111111111111111";

/// A fake host that runs the area, with helper methods for tests.
struct World {
    host: FakeHost,
    audits: std::cell::Cell<u128>,
    deliveries: std::cell::Cell<u128>,
}

/// An upload that becomes an input of an audit.
struct Upload<'a> {
    filename: &'a str,
    format: &'a str,
    content: Vec<u8>,
}

/// A running import job of an audit; tests run its steps one by one.
struct Steps<'a> {
    host: &'a FakeHost,
    payload: Option<Value>,
    attempt: u32,
}

impl Steps<'_> {
    /// Runs one step of the job. Returns whether further steps remain.
    fn step(&mut self) -> bool {
        let Some(payload) = self.payload.take() else { return false };
        let outcome = self.host.run("import_dependencies", payload, self.attempt).expect("a step");
        if let area_sdk::wit::Outcome::Continue(next) = outcome {
            self.payload = Some(serde_json::from_str(&next).expect("a checkpoint"));
        }
        self.payload.is_some()
    }
}

impl World {
    fn new() -> Self {
        let host = FakeHost::new(crate::area());
        let id = REPOSITORY.to_string();
        host.put_document("catalog.repositories", &id, json!({ "name": "shop" }));
        Self { host, audits: 0.into(), deliveries: 0.into() }
    }

    /// Delivers an event and runs all resulting jobs.
    fn deliver(&self, name: &str, data: Value) {
        self.deliveries.set(self.deliveries.get() + 1);
        let id = Uuid::from_u128(0x9000 + self.deliveries.get());
        self.host.deliver(id, name, data).expect("a delivery");
        self.work();
    }

    /// Runs waiting jobs, and jobs enqueued by them.
    fn work(&self) {
        while !self.host.jobs().is_empty() {
            self.host.run_jobs();
        }
    }

    /// Runs an audit with these uploads as inputs, newest first. Returns the id of the audit.
    fn audit(&self, branch: Option<&str>, uploads: &[Upload<'_>]) -> Uuid {
        let (id, mut steps) = self.begin_audit(branch, uploads);
        while steps.step() {}
        self.work();
        self.check_heads();
        id
    }

    /// Starts an audit with these uploads as inputs, newest first. Returns the id of the audit and
    /// the import job before its first step.
    fn begin_audit(&self, branch: Option<&str>, uploads: &[Upload<'_>]) -> (Uuid, Steps<'_>) {
        self.audits.set(self.audits.get() + 1);
        let id = Uuid::from_u128(0xa000 + self.audits.get());
        self.host.advance(60);
        let inputs: Vec<Value> = uploads.iter().map(|upload| self.input(upload)).collect();
        let started = json!({
            "audit_id": id, "repository_id": REPOSITORY, "branch_ref": branch,
            "commit_sha": COMMIT, "started_at": self.host.now(), "inputs": inputs, "records": [],
        });
        self.host.deliver(Uuid::from_u128(0x8000), "audit.started", started).expect("a delivery");
        let mut jobs = self.host.take_jobs();
        let import = jobs.iter().position(|job| job.kind == "import_dependencies");
        let payload = jobs.remove(import.expect("an import")).payload;
        for job in jobs {
            self.host.run_to_end(&job.kind, job.payload, 1);
        }
        (id, Steps { host: &self.host, payload: Some(payload), attempt: 1 })
    }

    /// Asserts that the branch heads count as many components as are marked as latest.
    fn check_heads(&self) {
        let components = self.host.documents("components");
        let latest = components.iter().filter(|component| component["latest"] == true).count();
        let heads = self.host.documents("heads");
        let said = heads.iter().filter_map(|head| head["components"].as_u64()).sum::<u64>();
        assert_eq!(said, latest as u64);
    }

    /// Stores an upload's content as the uploads area does. Returns the input for `audit.started`.
    fn input(&self, upload: &Upload<'_>) -> Value {
        let sha256 = sha256(&upload.content);
        self.host.put_shared_blob("uploads", &sha256, &upload.content);
        json!({
            "upload_id": Uuid::from_u128(0xb000), "blob": sha256, "format": upload.format,
            "filename": upload.filename, "content_sha256": sha256,
            "bytes": upload.content.len(), "ready_at": self.host.now(), "commit_sha": null,
            "evidence_ids": [],
        })
    }

    /// Returns the data of the last `audit.dependencies_imported` event.
    fn audit_report(&self) -> Value {
        self.events("audit.dependencies_imported").pop().expect("an answer to the audit")
    }

    fn events(&self, name: &str) -> Vec<Value> {
        self.host.events().into_iter().filter(|e| e.name == name).map(|e| e.data).collect()
    }

    fn list(&self, filters: &[(&str, Value)]) -> Value {
        self.host.call(listing(filters).with("limit", 100)).expect("a list").body
    }

    /// Returns the items of all pages of a list. Asserts that no page has more than `limit` items,
    /// and that `has_more`, where the list has it, is true exactly if another page follows.
    fn pages(&self, request: &Request, limit: u32) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let request = request.clone().with("limit", limit).with("cursor", cursor);
            let page = self.host.call(request).expect("a page").body;
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= limit as usize);
            all.extend(items.iter().cloned());
            cursor = page["next_cursor"].clone();
            assert!(page.get("has_more").is_none_or(|more| *more == json!(!cursor.is_null())));
            if cursor.is_null() {
                return all;
            }
        }
    }

    /// Imports advisories, and runs the resulting jobs.
    fn ingest(&self, records: &Value) {
        self.import(records).expect("imported");
        self.work();
    }

    fn import(&self, body: &Value) -> Result<SuccessResponse> {
        self.host.call(Request::to("import_advisories").json(body.clone()))
    }
}

fn sha256(content: &[u8]) -> String {
    use std::fmt::Write as _;
    let host = FakeHost::new(crate::area());
    let digest = area_sdk::Host::crypto_sha256(&host, content);
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn sbom(filename: &'static str, bom: &Value) -> Upload<'static> {
    Upload { filename, format: "cyclonedx", content: bom.to_string().into_bytes() }
}

/// Creates a CycloneDX SBOM of these purls; the first two are direct dependencies of the subject.
fn bom<P: AsRef<str>>(subject: &str, purls: &[P]) -> Value {
    let purls: Vec<&str> = purls.iter().map(AsRef::as_ref).collect();
    let components: Vec<Value> = purls
        .iter()
        .map(|purl| json!({ "type": "library", "name": "x", "purl": purl, "bom-ref": purl }))
        .collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": "2026-09-01T00:00:00Z",
            "tools": [{ "name": "syft", "version": "1.0.0" }],
            "component": { "type": "application", "name": subject, "bom-ref": "root" },
        },
        "components": components,
        "dependencies": [
            { "ref": "root", "dependsOn": purls.iter().take(2).collect::<Vec<_>>() },
            { "ref": purls.first(), "dependsOn": purls.iter().skip(1).collect::<Vec<_>>() },
        ],
    })
}

/// Creates an upload of this OSV record, or array of records.
fn osv(records: &Value) -> Upload<'static> {
    Upload { filename: "osv.json", format: "osv", content: records.to_string().into_bytes() }
}

/// Creates an OSV advisory for all versions of npm's `left-pad` before `fixed`.
fn advisory(id: &str, aliases: &[&str], fixed: &str) -> Value {
    json!({
        "id": id, "modified": "2026-01-01T00:00:00Z", "aliases": aliases,
        "summary": "Pads the wrong side",
        "severity": [{ "type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" }],
        "affected": [{
            "package": { "ecosystem": "npm", "name": "left-pad" },
            "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": fixed }] }],
        }],
    })
}

/// Creates a host with an advisory for older versions of `left-pad` than [`LEFT_PAD`].
fn with_advisory() -> World {
    let world = World::new();
    world.import(&advisory("GHSA-1", &[], "0.1.0")).expect("imported");
    world
}

/// Returns a request for the list of dependencies with these filters.
fn listing(filters: &[(&str, Value)]) -> Request {
    let all = Request::to("list_dependencies");
    filters.iter().fold(all, |request, (name, value)| request.with(name, value.clone()))
}

fn names(list: &Value) -> Vec<String> {
    texts(list["items"].as_array().expect("items"), "name")
}

/// Returns the text of this member of each item.
fn texts(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| item[member].as_str().expect("a text").to_owned()).collect()
}

/// Returns the texts in a JSON array.
fn strings(array: &Value) -> Vec<String> {
    serde_json::from_value(array.clone()).expect("texts")
}

/// Returns the ids of a dependency's advisories.
fn ids(dependency: &Value) -> Vec<String> {
    texts(dependency["advisories"].as_array().expect("advisories"), "advisory_id")
}

const LEFT_PAD: &str = "pkg:npm/left-pad@1.0.0";

/// Compresses bytes with gzip.
pub(crate) fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_ref()).expect("packed");
    encoder.finish().expect("packed")
}
