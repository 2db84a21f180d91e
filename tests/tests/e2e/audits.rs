//! Audits: their inputs over HTTP, how they end, and who may start them.

use std::time::Duration;

use assurance_tests::artifacts::{id_of, sample};
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, envelope};
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) const AUDITS: &str = "/v1/workspaces/{ws}/audits";
const QUEUE_JOBS: &str = "/v1/workspaces/{ws}/queue/jobs";

/// Areas that take part in audits, and areas with their inputs.
pub(crate) const AREAS: [&str; 7] =
    ["catalog", "control-room", "dependencies", "evidence", "ownership", "schedules", "uploads"];

/// A host that starts audits without areas that complete them.
async fn alone(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["catalog", "schedules"]).start_with_owner().await
}

/// A SARIF file with this many results, each with a fingerprint of its own.
fn many_results(number: u32) -> Vec<u8> {
    let result = |n| {
        json!({
            "ruleId": format!("rule-{}", n % 20),
            "message": { "text": format!("result {n}") },
            "partialFingerprints": { "primaryLocationLineHash": format!("{n:08x}:1") },
        })
    };
    let results: Vec<Value> = (0..number).map(result).collect();
    let tool = json!({ "driver": { "name": "many" } });
    let file = json!({ "version": "2.1.0", "runs": [{ "tool": tool, "results": results }] });
    file.to_string().into_bytes()
}

/// Returns a progress as its finished and all steps; `None` if there is none.
fn steps(progress: &Value) -> Option<(u64, u64)> {
    Some((progress["done"].as_u64()?, progress["total"].as_u64()?))
}

fn digest_of(upload: &Value, audit: &Value) -> String {
    let inputs = audit["inputs"].as_array().expect("inputs");
    let input = inputs.iter().find(|input| input["upload_id"] == upload["id"]).expect("the upload");
    input["content_sha256"].as_str().expect("a digest").to_owned()
}

both_backends! {
    async fn an_audit_takes_in_artifacts_and_evidence_and_completes(backend) {
        let (host, ada) = Builder::new(backend).areas(&AREAS).start_with_owner().await;
        let repository = ada.repository("shop").await;
        let scan = ada.upload(&repository, "shop.sarif", &sample("shop.sarif")).await;
        let first = ada.audit(&repository).await;
        assert_eq!(first["state"], "completed", "{first:#}");
        let mut evidence = envelope::unsigned(&ada.workspace, "audit-evidence-1");
        evidence["records"][0]["kind"] = json!("scan_report");
        evidence["records"][0]["subject_key"] = json!("shop");
        evidence["records"][0]["content_sha256"] = json!(digest_of(&scan, &first));
        host.submit_evidence(&ada, &evidence).await.expect(201);

        let audit = ada.audit(&repository).await;
        assert_eq!((&audit["state"], &audit["trigger"]), (&json!("completed"), &json!("manual")));
        assert_eq!((&audit["branch_ref"], &audit["input_count"]), (&json!("main"), &json!(1)));
        let record = &evidence["records"][0]["evidence_id"];
        assert_eq!(&audit["inputs"][0]["evidence_ids"][0], record);
        for part in ["findings", "dependencies", "ownership"] {
            assert_eq!(audit["parts"][part]["status"], "succeeded", "{audit:#}");
            assert!(audit["facts"][part].is_object(), "{audit:#}");
        }
        let facts = &audit["facts"];
        assert_eq!(facts["audit"]["id"], audit["id"]);
        assert!(facts["findings"]["open"].as_u64().is_some_and(|open| open > 0), "{facts:#}");
        assert_eq!(facts["findings"]["new"], 0, "the same file again");
        assert_eq!(facts["findings"]["open"], first["facts"]["findings"]["open"]);
    }

    async fn a_long_import_shows_its_progress(backend) {
        let areas: Vec<&str> = AREAS.into_iter().chain(["queue"]).collect();
        let (_host, ada) = Builder::new(backend).areas(&areas).start_with_owner().await;
        let repository = ada.repository("shop").await;
        ada.upload(&repository, "many.sarif", &many_results(1_500)).await;
        let body = json!({ "repository_id": repository });
        let audit = ada.post(AUDITS, &body).await.expect(201);
        assert_eq!(audit["progress"], json!({}));
        let path = format!("{AUDITS}/{}", id_of(&audit));
        let jobs = format!("{QUEUE_JOBS}?kind=import_findings&resource_id={}", id_of(&audit));
        let (mut of_audit, mut of_job) = (Vec::new(), Vec::new());
        let ended = loop {
            let audit = ada.get(&path).await.expect(200);
            if audit["state"] != "queued" && audit["state"] != "running" {
                break audit;
            }
            of_audit.extend(steps(&audit["progress"]["findings"]));
            let listed = ada.get(&jobs).await.expect(200);
            if let Some(id) = listed["items"][0]["id"].as_str() {
                let job = ada.get(&format!("{QUEUE_JOBS}/{id}")).await.expect(200);
                of_job.extend(steps(&job["progress"]));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!((&ended["state"], &ended["progress"]), (&json!("completed"), &json!({})));
        for seen in [of_audit, of_job] {
            assert!(seen.is_sorted() && seen.iter().all(|(done, total)| done <= total), "{seen:?}");
            assert!(seen.first() < seen.last(), "{seen:?}");
        }
    }

    async fn an_audit_is_started_read_and_listed(backend) {
        let (mut host, ada) = alone(backend).await;
        let vera = host.member("vera", &ada.workspace, "viewer");
        let mia = host.member("mia", &ada.workspace, "member");
        let repository = ada.repository("shop").await;
        let body = json!({ "repository_id": repository, "branch_ref": "next", "commit_sha": "0a1b2c3" });
        vera.post(AUDITS, &body).await.problem(403, "permission_denied");
        let started = mia.post(AUDITS, &body).await;
        assert_eq!(started.header("etag"), Some("\"1\""));
        let started = started.expect(201);
        assert_eq!((&started["branch_ref"], &started["commit_sha"]), (&json!("next"), &json!("0a1b2c3")));
        let path = format!("{AUDITS}/{}", id_of(&started));
        let running = vera.settled(&path, "state", &["running"]).await;
        assert!(running["started_at"].is_string());
        let list = vera.get(&format!("{AUDITS}?repository_id={repository}&state=running")).await;
        let list = list.expect(200);
        assert_eq!(list["items"][0]["id"], started["id"]);
        assert_eq!(list["items"][0].get("inputs"), None);
        let none = vera.get(&format!("{AUDITS}?state=failed")).await.expect(200);
        assert_eq!(none["items"], json!([]));
    }

    async fn what_cannot_be_audited_is_refused(backend) {
        let (mut host, ada) = alone(backend).await;
        let repository = ada.repository("shop").await;
        let start = async |body: Value| ada.post(AUDITS, &body).await;
        start(json!({})).await.problem(422, "validation_failed");
        let odd = json!({ "repository_id": repository, "commit_sha": "not hex" });
        start(odd).await.problem(422, "validation_failed");
        start(json!({ "repository_id": ada.workspace })).await.problem(404, "not_found");
        let path = format!("{}/{repository}", crate::catalog::REPOSITORIES);
        let archived = json!({ "archived": true });
        ada.change(Method::PATCH, &path, 1, &archived).await.expect(200);
        start(json!({ "repository_id": repository })).await.problem(409, "repository_archived");
        ada.get(&format!("{AUDITS}/{repository}")).await.problem(404, "not_found");
        ada.get(&format!("{AUDITS}?cursor=altered")).await.problem(422, "validation_failed");

        let eve = host.create_owner("eve", "eves-own");
        eve.post(AUDITS, &json!({ "repository_id": repository })).await.problem(404, "not_found");
        eve.in_workspace(&ada.workspace).get(AUDITS).await.problem(404, "not_found");
    }
}
