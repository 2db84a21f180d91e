//! Structural remediation programs (operation 7): from a finding to verification.

use assurance_tests::artifacts::{id_of, sample};
use assurance_tests::contract::Contract;
use assurance_tests::operators::items;
use assurance_tests::{Answer, Client, TestHost, both_backends, envelope};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::audits::AREAS;

const PROGRAMS: &str = "/v1/workspaces/{ws}/structural/remediation-programs";
const FINDINGS: &str = "/v1/workspaces/{ws}/findings";

async fn host(backend: assurance_tests::Backend) -> (TestHost, Client) {
    let areas: Vec<&str> = AREAS.into_iter().chain(["remediation"]).collect();
    assurance_tests::Builder::new(backend).areas(&areas).start_with_owner().await
}

/// Creates a repository with findings. Returns its id and the id of the first finding of a rule.
async fn with_finding(ada: &Client, rule: &str) -> (String, String) {
    let repository = ada.repository("shop").await;
    ada.upload(&repository, "shop.sarif", &sample("shop.sarif")).await;
    let audit = ada.audit(&repository).await;
    assert_eq!(audit["state"], "completed", "{audit:#}");
    let findings = ada.get(&format!("{FINDINGS}?limit=100")).await.expect(200);
    let findings = findings["items"].as_array().expect("items");
    let finding = findings.iter().find(|finding| finding["rule_id"] == rule).expect("a finding");
    (repository, id_of(finding))
}

/// Uploads a sample and evidence that references it. Returns the record's id.
async fn upload_with_evidence(
    host: &TestHost,
    ada: &Client,
    repository: &str,
    name: &str,
) -> Value {
    ada.upload(repository, name, &sample(name)).await;
    let mut evidence = envelope::unsigned(&ada.workspace, "remediation-evidence");
    let record = &mut evidence["records"][0];
    record["kind"] = json!("scan_report");
    record["subject_key"] = json!(repository);
    record["content_sha256"] = json!(hex::encode(Sha256::digest(sample(name))));
    let id = record["evidence_id"].clone();
    host.submit_evidence(ada, &evidence).await.expect(201);
    id
}

fn step(predicate: &str) -> Value {
    json!({
        "invariant_id": "sql-is-parameterised", "invariant_version": "1",
        "owner_scope": "shop/web", "repository_ids": [], "title": "Use bound parameters",
        "verification_predicate": predicate,
    })
}

fn program(finding: &str, predicates: &[&str]) -> Value {
    let steps: Vec<Value> = predicates.iter().map(|predicate| step(predicate)).collect();
    json!({
        "finding_id": finding, "title": "No query is built from user input",
        "rationale": "One injection is enough.", "steps": steps,
    })
}

async fn transition(client: &Client, program: &str, seen: u64, to: &str) -> Answer {
    let path = format!("{PROGRAMS}/{program}/transitions");
    let body = json!({ "to_state": to, "notes": format!("Now {to}.") });
    client.change(Method::POST, &path, seen, &body).await
}

/// Waits until an audit has evaluated a program's steps.
async fn evaluated(client: &Client, program: &str, audit: &Value) -> Value {
    let path = format!("{PROGRAMS}/{program}/evaluations");
    let evaluated =
        |list: &Value| items(&list["items"]).iter().any(|one| one["audit_id"] == audit["id"]);
    client.until(&path, evaluated).await;
    client.get(&format!("{PROGRAMS}/{program}")).await.expect(200)
}

both_backends! {
    async fn a_program_is_reviewed_carried_out_and_verified_by_an_audit(backend) {
        let (mut host, ada) = host(backend).await;
        let contract = Contract::read();
        let mia = host.member("mia", &ada.workspace, "member");
        let (repository, finding) = with_finding(&ada, "js/sql-injection").await;
        let body = program(
            &finding,
            &["findings.total > 0", "!('js/sql-injection' in findings.by_rule)"],
        );
        let made = ada.post(PROGRAMS, &body).await.expect(201);
        contract.check(7, &made);
        assert_eq!((&made["state"], &made["current_step"]), (&json!("draft"), &json!(1)));
        assert!(made["target_state_ref"].as_str().is_some_and(|name| name.starts_with("sha256:")));
        let id = id_of(&made);
        ada.post(PROGRAMS, &body).await.problem(409, "program_open");

        transition(&ada, &id, 1, "active").await.problem(409, "invalid_transition");
        transition(&ada, &id, 1, "in_review").await.expect(200);
        transition(&ada, &id, 2, "approved").await.problem(403, "reviewer_is_author");
        let approved = transition(&mia, &id, 2, "approved").await.expect(200);
        assert_eq!(approved["review_notes"], "Now approved.");
        assert!(approved["reviewed_by"].is_string());
        transition(&ada, &id, 2, "active").await.problem(409, "version_conflict");
        let active = transition(&ada, &id, 3, "active").await.expect(200);
        assert!(active["activated_at"].is_string());

        let audit = ada.audit(&repository).await;
        evaluated(&ada, &id, &audit).await;
        // Each run of the job evaluates one step.
        let is_unsatisfied =
            |program: &Value| program["steps"][1]["evaluation_status"] == "unsatisfied";
        let begun = ada.until(&format!("{PROGRAMS}/{id}"), is_unsatisfied).await;
        assert_eq!(begun["current_step"], 2);
        assert_eq!(begun["steps"][0]["state"], "verified");
        let evidence = upload_with_evidence(&host, &ada, &repository, "shop-fixed.sarif").await;
        let audit = ada.audit(&repository).await;
        let done = evaluated(&ada, &id, &audit).await;
        contract.check(7, &done);
        assert_eq!(done["state"], "completed", "{done:#}");
        assert!(done["completed_at"].is_string());
        let last = &done["steps"][1];
        assert_eq!((&last["state"], &last["verification_audit_id"]), (&json!("verified"), &audit["id"]));
        assert!(last["verified_at"].is_string());
        assert_eq!(last["evidence_ids"], json!([evidence]));
        let list = mia.get(&format!("{PROGRAMS}?state=completed&finding_id={finding}")).await;
        assert_eq!(list.expect(200)["items"], json!([done]));
        transition(&ada, &id, done["version"].as_u64().expect("a version"), "cancelled")
            .await
            .problem(409, "invalid_transition");
    }

    async fn what_is_no_program_is_refused(backend) {
        let (_host, ada) = host(backend).await;
        let (_, finding) = with_finding(&ada, "js/sql-injection").await;
        ada.post(PROGRAMS, &program(&ada.workspace, &["true"])).await.problem(404, "not_found");
        let none = ada.post(PROGRAMS, &program(&finding, &[])).await;
        none.problem(422, "validation_failed");
        let many = ada.post(PROGRAMS, &program(&finding, &["true"; 21])).await;
        many.problem(422, "validation_failed");
        let wrong = program(&finding, &["true", "findings.opne == 0"]);
        let wrong = ada.post(PROGRAMS, &wrong).await;
        wrong.problem_about(422, "validation_failed", "/steps/1/verification_predicate");
        let named = "There is no `findings.opne`";
        let problem = wrong.problem_about(422, "validation_failed", named);
        assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("CEL")), "{problem}");
        // At the maximum depth of a predicate, and deeper: neither harms the area.
        for depth in [15, 400] {
            let deep = format!("{}1{} == [1]", "[".repeat(depth), "]".repeat(depth));
            let answer = ada.post(PROGRAMS, &program(&finding, &[&deep])).await;
            assert_eq!(answer.status, if depth == 15 { 201 } else { 422 }, "{}", answer.text());
        }
    }

    async fn a_finding_has_one_open_program_however_many_ask_at_once(backend) {
        let (_host, ada) = host(backend).await;
        let (_, finding) = with_finding(&ada, "js/sql-injection").await;
        let body = program(&finding, &["findings.open == 0"]);
        let answers = join_all((0..16).map(|_| ada.post(PROGRAMS, &body))).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!((statuses[0], &statuses[1..]), (201, &[409; 15][..]));
    }
}
