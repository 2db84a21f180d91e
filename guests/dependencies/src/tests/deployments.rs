//! Tests of deployments from evidence, and of their components.

use super::*;

const SERVICE: Uuid = Uuid::from_u128(0x51);
const OWNER: Uuid = Uuid::from_u128(0x52);
const ENVELOPE: Uuid = Uuid::from_u128(0xe0);

fn record(id: u128, summary: &str, content_sha256: &str, at: Timestamp) -> Value {
    json!({
        "evidence_id": Uuid::from_u128(id), "kind": "deployment", "provider": "argo",
        "subject_key": "shop", "source_ref": "cluster-1", "summary": summary,
        "content_sha256": content_sha256, "confidence": 0.9, "observed_at": at,
        "producer_id": Uuid::from_u128(1), "source_kind": "code", "source_external_id": "run-1",
        "source_revision": COMMIT, "envelope_id": ENVELOPE,
    })
}

fn world() -> World {
    let world = World::new();
    let service = json!({ "name": "checkout", "repository_ids": [REPOSITORY], "owner_id": OWNER });
    world.host.put_document("catalog.services", &SERVICE.to_string(), service);
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    world
}

fn submit(world: &World, records: &[Value]) {
    for record in records {
        let id = record["evidence_id"].as_str().expect("an id");
        world.host.put_document("evidence.records", id, record.clone());
    }
    world.deliver(
        "evidence_envelope.accepted",
        json!({ "envelope_id": ENVELOPE, "kinds": ["deployment"] }),
    );
}

fn deployments(world: &World, history: bool) -> Vec<Value> {
    let request = Request::to("list_deployments").with("history", history).with("limit", 50);
    let list = world.host.call(request).expect("a list").body;
    list["items"].as_array().expect("items").clone()
}

const SAID: &str = r#"{"service": "checkout", "environment": "production", "branch_ref": "main",
    "resource_keys": ["eu/web"], "configuration_sha256":
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "event_id": "deploy-7",
    "packages": [{"purl": "pkg:npm/left-pad@1.0.0", "reachability": "reachable"}]}"#;

#[test]
fn a_component_shows_where_its_commit_is_deployed() {
    let world = world();
    submit(&world, &[record(0xd1, SAID, "0", world.host.now())]);
    let item = world.list(&[])["items"][0].clone();
    let entry = &item["deployments"][0];
    assert_eq!(entry.as_object().map(serde_json::Map::len), Some(6));
    assert_eq!((&entry["service_id"], &entry["owner_id"]), (&json!(SERVICE), &json!(OWNER)));
    assert_eq!(entry["service_name"], "checkout");
    assert_eq!(entry["package_relationship"], "evidenced");
    assert_eq!(entry["runtime_reachability"], "reachable");
    let deployment = &entry["deployment"];
    assert_eq!(deployment.as_object().map(serde_json::Map::len), Some(20));
    assert_eq!(deployment["environment"], "production");
    assert_eq!(deployment["stale"], false);
    assert_eq!(deployment["commit_sha"], COMMIT);
    assert_eq!(deployment["audit_id"], item["audit_id"]);
    assert_eq!(deployment["confidence_basis"], "summary");
    assert_eq!(deployment["source_event_id"], "deploy-7");
    assert_eq!(deployment["evidence_snapshot"][0]["provider"], "argo");
    assert_eq!(deployment["evidence_ids"], json!([Uuid::from_u128(0xd1)]));
    assert_eq!(deployments(&world, false)[0], *deployment);
    assert_eq!(world.events("deployment.recorded").len(), 1);

    world.host.advance(7 * 86_400 + 1);
    assert_eq!(world.list(&[])["items"][0]["deployments"][0]["deployment"]["stale"], true);
}

#[test]
fn newer_evidence_renews_or_replaces() {
    let world = world();
    submit(&world, &[record(0xd1, SAID, "0", world.host.now())]);
    submit(&world, &[record(0xd1, SAID, "0", world.host.now())]);
    assert_eq!(deployments(&world, true).len(), 1, "the same evidence changes nothing");
    world.host.advance(60);
    submit(&world, &[record(0xd2, SAID, "0", world.host.now())]);
    let renewed = deployments(&world, true);
    assert_eq!(renewed.len(), 1);
    assert_eq!(renewed[0]["evidence_ids"], json!([Uuid::from_u128(0xd2), Uuid::from_u128(0xd1)]));

    let mut other = record(0xd3, SAID, "0", world.host.now());
    other["source_revision"] = json!("2".repeat(40));
    submit(&world, &[other.clone()]);
    assert_eq!((deployments(&world, false).len(), deployments(&world, true).len()), (1, 2));
    assert_eq!(world.list(&[])["items"][0]["deployments"], json!([]));
    other["evidence_id"] = json!(Uuid::from_u128(0xd4));
    other["source_revision"] = json!("3".repeat(40));
    other["observed_at"] = json!(area_sdk::testing::START);
    submit(&world, &[other]);
    let current = deployments(&world, false).remove(0);
    assert_eq!(current["commit_sha"], "2".repeat(40), "older evidence is history");
}

#[test]
fn the_newest_evidence_of_a_deployment_is_kept_whenever_it_arrives() {
    let world = world();
    let (old, late) = (world.host.now(), 0xd00_u128);
    world.host.advance(600);
    submit(&world, &[record(late + 100, SAID, "0", world.host.now())]);
    // Received in the order of their age, the oldest first, and all older than the first above.
    for n in 0..25_u8 {
        let at = old.plus_seconds(n.into());
        submit(&world, &[record(late + u128::from(n), SAID, "0", at)]);
    }
    let kept: Vec<_> = (5..25).rev().map(|n| json!(Uuid::from_u128(late + n))).collect();
    let newest = json!(Uuid::from_u128(late + 100));
    let expected: Vec<_> = std::iter::once(newest).chain(kept).take(20).collect();
    assert_eq!(deployments(&world, false)[0]["evidence_ids"], json!(expected));
}

#[test]
fn late_evidence_of_a_former_deployment_updates_it() {
    let world = world();
    let start = world.host.now();
    let send = |id: u128, commit: &str, seconds: i64| {
        let mut record = record(id, SAID, "0", start.plus_seconds(seconds));
        record["source_revision"] = json!(commit.repeat(40));
        submit(&world, &[record]);
    };
    send(0xd1, "2", 0);
    send(0xd2, "3", 100);
    for (id, seconds) in [(0xd3, 10), (0xd4, 50), (0xd5, 20)] {
        send(id, "2", seconds);
    }
    let all = deployments(&world, true);
    assert_eq!((all.len(), deployments(&world, false).len()), (2, 1));
    let evidence = [0xd4, 0xd5, 0xd3, 0xd1].map(Uuid::from_u128);
    assert_eq!(all[1]["evidence_ids"], json!(evidence));
    assert_eq!(all[1]["observed_at"], json!(start.plus_seconds(50)));
    assert_eq!(world.events("deployment.recorded").len(), 2);
    // The same commit again, after another one, is another deployment.
    send(0xd6, "4", 200);
    send(0xd7, "2", 150);
    let commits = texts(&deployments(&world, true), "commit_sha");
    assert_eq!(commits, ["4", "2", "3", "2"].map(|commit| commit.repeat(40)));
}

#[test]
fn content_says_more_whenever_it_comes() {
    let world = world();
    let content = SAID.replace("production", "staging");
    let sha256 = sha256(content.as_bytes());
    submit(&world, &[record(0xd1, "deployed by hand", &sha256, world.host.now())]);
    assert_eq!(deployments(&world, false)[0]["confidence_basis"], "record");
    assert_eq!(deployments(&world, false)[0]["service_id"], json!(SERVICE), "its only service");

    world.host.put_shared_blob("uploads", "blob", content.as_bytes());
    let upload = json!({ "blob": "blob", "content_sha256": sha256, "validation_stage": "ready" });
    world.host.put_document("uploads.uploads", "u", upload);
    let ready = json!({ "upload_id": Uuid::nil(), "format": "unknown", "content_sha256": sha256 });
    world.deliver("upload.ready", ready);
    let now = deployments(&world, true);
    assert_eq!(now.len(), 1);
    assert_eq!(now[0]["confidence_basis"], "content");
    assert_eq!(now[0]["environment"], "staging");
}

#[test]
fn content_that_moves_a_deployment_makes_the_former_one_current_again() {
    let world = world();
    submit(&world, &[record(0xd1, SAID, "0", world.host.now())]);
    world.host.advance(60);
    let content = SAID.replace("production", "staging");
    let sha256 = sha256(content.as_bytes());
    let mut moved = record(0xd2, SAID, &sha256, world.host.now());
    moved["source_revision"] = json!("2".repeat(40));
    submit(&world, &[moved]);
    assert_eq!(texts(&deployments(&world, false), "commit_sha"), ["2".repeat(40)]);

    world.host.put_shared_blob("uploads", "blob", content.as_bytes());
    let upload = json!({ "blob": "blob", "content_sha256": sha256, "validation_stage": "ready" });
    world.host.put_document("uploads.uploads", "u", upload);
    let ready = json!({ "upload_id": Uuid::nil(), "format": "unknown", "content_sha256": sha256 });
    world.deliver("upload.ready", ready);
    let current = deployments(&world, false);
    assert_eq!(texts(&current, "environment"), ["staging", "production"]);
    assert_eq!(texts(&current, "commit_sha"), ["2".repeat(40), COMMIT.to_owned()]);
}

#[test]
fn a_bill_of_an_image_is_joined_by_the_digest() {
    let world = World::new();
    let digest = format!("sha256:{}", "ab".repeat(32));
    let mut bom = bom("image", &[LEFT_PAD]);
    bom["metadata"]["component"] = json!({
        "type": "container", "name": "shop", "bom-ref": "root", "version": digest,
    });
    bom["components"][0]["scope"] = json!("optional");
    world.audit(None, &[sbom("a.json", &bom)]);
    let mut by_image = record(0xd1, "", "0", world.host.now());
    by_image["subject_key"] = json!(format!("registry/shop@{digest}"));
    by_image["source_revision"] = json!("");
    submit(&world, &[by_image]);
    let entry = world.list(&[])["items"][0]["deployments"][0].clone();
    assert_eq!(entry["deployment"]["image_digest"], json!(digest));
    assert_eq!(entry["package_relationship"], "evidenced");
    assert_eq!(entry["runtime_reachability"], "unknown");
    // If the deployment record names only a commit, an optional package is `possible`.
    submit(&world, &[record(0xd2, SAID, "0", world.host.now())]);
    let entries = world.list(&[])["items"][0]["deployments"].clone();
    let possible = entries.as_array().expect("entries").iter().map(|e| &e["package_relationship"]);
    assert_eq!(possible.filter(|relationship| **relationship == "possible").count(), 1);
}

#[test]
fn advisories_come_as_evidence_too() {
    let world = world();
    let content = advisory("GHSA-9", &[], "2").to_string();
    let sha256 = sha256(content.as_bytes());
    world.host.put_shared_blob("uploads", "blob", content.as_bytes());
    let upload = json!({ "blob": "blob", "content_sha256": sha256, "validation_stage": "ready" });
    world.host.put_document("uploads.uploads", "u", upload);
    let mut record = record(0xd1, "", &sha256, world.host.now());
    record["kind"] = json!("advisory");
    world.host.put_document("evidence.records", "r", record);
    let accepted = json!({ "envelope_id": ENVELOPE, "kinds": ["advisory"] });
    world.deliver("evidence_envelope.accepted", accepted);
    assert_eq!(world.list(&[])["items"][0]["advisories"][0]["advisory_id"], "GHSA-9");
}
