//! One story through the API: from an empty workspace to findings, their owners, a remediation
//! verified by an audit, a customer's questionnaire, and webhooks.

use std::time::Duration;

use assurance_tests::artifacts::{id_of, sample};
use assurance_tests::client::send;
use assurance_tests::contract::Contract;
use assurance_tests::receiver::Receiver;
use assurance_tests::{Builder, Client, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

use crate::questionnaires;
use crate::requests::AREAS;

const PATIENCE: Duration = Duration::from_secs(30);

/// Events that the receiver subscribes to.
const EVENTS: [&str; 6] = [
    "audit.completed",
    "finding.created",
    "ownership.applied",
    "questionnaire.imported",
    "remediation.program_completed",
    "assistant.run_completed",
];

const PROGRAMS: &str = "/v1/workspaces/{ws}/structural/remediation-programs";

/// State of the story.
struct Story {
    contract: Contract,
    ada: Client,
    grace: Client,
    repository: String,
}

impl Story {
    /// Reads an operation of the contract and checks its shape.
    async fn read(&self, operation: u64, path: &str) -> Value {
        let answer = self.ada.get(&format!("/v1/workspaces/{{ws}}/{path}")).await.expect(200);
        self.contract.check(operation, &answer);
        answer
    }

    /// Writes with an operation of the contract and checks its shape.
    async fn write(&self, operation: u64, path: &str, body: &Value) -> Value {
        let answer = self.ada.post(&format!("/v1/workspaces/{{ws}}/{path}"), body).await;
        let answer = answer.expect(201);
        self.contract.check(operation, &answer);
        answer
    }

    async fn brings_artifacts_in(&self) {
        let files = ["shop.sarif", "shop.cdx.json", "lodash.osv.json", "CODEOWNERS", "paths.txt"];
        for file in files {
            let upload = self.ada.upload(&self.repository, file, &sample(file)).await;
            assert_eq!(upload["validation_stage"], "ready", "{upload:#}");
            self.contract.check(20, &upload);
        }
    }

    /// Creates the groups named in CODEOWNERS, with Ada in both.
    async fn brings_groups_in(&self) {
        let session = self.ada.get("/v1/auth/session").await.expect(200);
        for (name, identity) in [("web", "@shop/web"), ("login", "demo@example.com")] {
            let body = json!({
                "name": name, "identities": [identity], "member_ids": [session["user"]["id"]],
                "trust_zone": name, "data_classification": "internal",
            });
            self.ada.post("/v1/workspaces/{ws}/groups", &body).await.expect(201);
        }
    }

    async fn audits(&self) -> Value {
        let audit = self.ada.audit(&self.repository).await;
        assert_eq!(audit["state"], "completed", "{audit:#}");
        self.read(22, "queue").await;
        audit
    }

    async fn sees_findings(&self) -> String {
        let rebuild = self.ada.request(Method::POST, "/v1/workspaces/{ws}/control-room/rebuild");
        let room = send(rebuild).await.expect(200);
        self.contract.check(15, &room);
        assert_eq!(room["match_suggestions"].as_array().map(Vec::len), Some(1));
        assert_eq!(room["recent_transitions"].as_array().map(Vec::len), Some(4));
        let findings = self.ada.get("/v1/workspaces/{ws}/findings?severity=critical").await;
        let findings = findings.expect(200);
        assert_eq!(findings["items"].as_array().map(Vec::len), Some(1));
        id_of(&findings["items"][0])
    }

    async fn sees_the_vulnerable_dependency(&self) {
        for advisory in ["GHSA-35jh-r3h4-6jhm", "CVE-2021-23337"] {
            let found = self.read(16, &format!("dependencies?advisory={advisory}")).await;
            assert_eq!(found["items"][0]["purl"], "pkg:npm/lodash@4.17.20", "{advisory}");
            assert_eq!(found["items"][0]["direct"], true);
            assert_eq!(found["items"][0]["advisories"][0]["match_basis"], "version_range");
        }
        let all = self.read(16, "dependencies").await;
        let names = all["items"].as_array().expect("items").iter();
        let names: Vec<&str> = names.filter_map(|item| item["name"].as_str()).collect();
        assert_eq!(names, ["express", "jest", "lodash", "qs"]);
    }

    async fn assigns_owners(&self, finding: &str) {
        let body = json!({ "repository_id": self.repository });
        let path = "/v1/workspaces/{ws}/ownership/previews";
        let preview = self.ada.post(path, &body).await.expect(201);
        let listed = self.read(17, "ownership/previews?limit=5").await;
        assert_eq!(listed[0]["id"], preview["id"]);
        let apply = format!("{path}/{}/apply", id_of(&preview));
        let applied = send(self.ada.request(Method::POST, &apply)).await.expect(200);
        assert_eq!(applied["result"]["applied"], 4, "{applied:#}");
        let path = format!("/v1/workspaces/{{ws}}/findings/{finding}");
        let session = self.ada.get("/v1/auth/session").await.expect(200);
        let owner = session["user"]["id"].as_str().expect("an id").to_owned();
        self.ada.settled(&path, "owner_id", &[&owner]).await;
    }

    async fn opens_a_program(&self, finding: &str) -> String {
        let step = json!({
            "invariant_id": "no-sql-injection", "invariant_version": "1",
            "owner_scope": "shop/web", "repository_ids": [self.repository],
            "title": "Bind parameters",
            "verification_predicate": "!('js/sql-injection' in findings.by_rule)",
        });
        let body = json!({
            "finding_id": finding, "title": "No query from user input",
            "rationale": "One injection is enough.", "steps": [step],
        });
        let program = self.write(7, "structural/remediation-programs", &body).await;
        let path = format!("{PROGRAMS}/{}/transitions", id_of(&program));
        for (who, state) in
            [(&self.ada, "in_review"), (&self.grace, "approved"), (&self.ada, "active")]
        {
            let moved = who.post(&path, &json!({ "to_state": state })).await;
            assert!(moved.status < 300, "{state}: {}", moved.text());
        }
        id_of(&program)
    }

    async fn verifies_by_a_second_audit(&self, program: &str, finding: &str) {
        let fixed = sample("shop-fixed.sarif");
        self.ada.upload(&self.repository, "shop.sarif", &fixed).await;
        let audit = self.audits().await;
        let path = format!("{PROGRAMS}/{program}");
        let program = self.ada.settled(&path, "state", &["completed"]).await;
        self.contract.check(7, &program);
        assert_eq!(program["steps"][0]["verification_audit_id"], audit["id"]);
        let path = format!("/v1/workspaces/{{ws}}/findings/{finding}");
        self.ada.settled(&path, "state", &["verified"]).await;
    }

    async fn answers_a_questionnaire(&self) {
        let file = sample("questionnaire.csv");
        let imported = questionnaires::import(&self.ada, "Suppliers", &file).await.expect(201);
        self.contract.check(18, &imported);
        let audits = self.ada.get("/v1/workspaces/{ws}/audits").await.expect(200);
        let question = format!(
            "/v1/workspaces/{{ws}}/questionnaires/{}/questions/{}",
            id_of(&imported["questionnaire"]),
            id_of(&imported["questions"][0])
        );
        let answer = json!({
            "answer": "Yes, at every audit.",
            "citations": [{ "report_id": audits["items"][0]["id"] }],
        });
        let answered = send(self.ada.request(Method::PATCH, &question).json(&answer)).await;
        let answered = answered.expect(200);
        assert_eq!(answered["answer_basis"], "supported", "{answered:#}");
        let approve = self.ada.request(Method::POST, &format!("{question}/approve"));
        assert_eq!(send(approve).await.expect(200)["status"], "approved");
    }

    async fn asks_the_assistant(&self) {
        let body = json!({ "message": "Which findings are open?" });
        let conversation = self.write(8, "assistant/conversations", &body).await;
        let path =
            format!("/v1/workspaces/{{ws}}/assistant/conversations/{}", id_of(&conversation));
        self.ada.until(&path, |found| found["runs"][0]["status"] == "succeeded").await;
    }

    async fn schedules_a_daily_audit(&self) {
        let body = json!({
            "repository_id": self.repository, "name": "Nightly", "cadence": "daily",
            "local_hour": 3, "local_minute": 30, "timezone": "Europe/Berlin",
        });
        let schedule = self.write(9, "audit-schedules", &body).await;
        assert_eq!(schedule["state"], "active");
    }
}

both_backends! {
    async fn from_an_empty_workspace_to_a_verified_remediation(backend) {
        let builder = Builder::new(backend).areas(AREAS).set("egress.allow_loopback", true);
        let (mut host, ada) = builder.start_with_owner().await;
        let receiver = Receiver::content().await;
        let hook = json!({ "events": EVENTS, "url": receiver.base });
        ada.post("/v1/workspaces/{ws}/webhooks", &hook).await.expect(201);
        let grace = host.member("grace", &ada.workspace, "admin");
        let repository = ada.repository("shop").await;
        let story = Story { contract: Contract::read(), ada, grace, repository };

        story.brings_groups_in().await;
        story.brings_artifacts_in().await;
        story.audits().await;
        let finding = story.sees_findings().await;
        story.sees_the_vulnerable_dependency().await;
        story.assigns_owners(&finding).await;
        let program = story.opens_a_program(&finding).await;
        story.verifies_by_a_second_audit(&program, &finding).await;
        story.answers_a_questionnaire().await;
        story.asks_the_assistant().await;
        story.schedules_a_daily_audit().await;
        story.read(19, "context").await;
        story.read(6, "identity/providers").await;
        story.read(21, "invitations").await;

        for event in EVENTS {
            receiver.wait_for_event(event, PATIENCE).await;
        }
    }
}
