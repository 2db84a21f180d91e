//! Workspace context (operation 19).

use assurance_tests::artifacts::id_of;
use assurance_tests::contract::Contract;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, envelope};
use reqwest::Method;
use serde_json::{Value, json};

const CONTEXT: &str = "/v1/workspaces/{ws}/context";

/// Waits until the context meets the condition.
async fn context(client: &Client, wanted: impl Fn(&Value) -> bool) -> Value {
    let context = client.until(CONTEXT, wanted).await;
    Contract::read().check(19, &context);
    context
}

/// Waits until a context is stored.
async fn kept(client: &Client, context: &Value) -> Value {
    let path = format!("{CONTEXT}/snapshots/{}", id_of(context));
    client.until_status(&path, 200).await.json()
}

async fn host(backend: Backend, areas: &[&str]) -> (TestHost, Client) {
    Builder::new(backend).areas(areas).start_with_owner().await
}

both_backends! {
    async fn the_same_data_has_the_same_hash_and_id(backend) {
        let (_host, ada) = host(backend, &["catalog", "context"]).await;
        let empty = context(&ada, |_| true).await;
        assert_eq!(empty["schema_version"], "workspace-context-v1");
        assert_eq!(empty["coverage_gaps"][0]["code"], "no_repositories");
        let again = context(&ada, |_| true).await;
        assert_eq!((&again["id"], &again["content_hash"]), (&empty["id"], &empty["content_hash"]));

        let repository = ada.repository("acme/web").await;
        let one = context(&ada, |context| context["repository_count"] == 1).await;
        assert_ne!(one["content_hash"], empty["content_hash"]);
        assert_eq!(one["sources"][0]["repository_id"], repository.as_str());
        assert_eq!(one["sources"][0]["status"], "missing");
        kept(&ada, &one).await;
        let one = context(&ada, |_| true).await;
        assert_eq!(context(&ada, |_| true).await, one);

        // Archiving the repository restores the former content of the context.
        let path = format!("/v1/workspaces/{{ws}}/repositories/{repository}");
        ada.change(Method::PATCH, &path, 1, &json!({ "archived": true })).await.expect(200);
        let none = context(&ada, |context| context["repository_count"] == 0).await;
        assert_eq!((&none["id"], &none["content_hash"]), (&empty["id"], &empty["content_hash"]));
        assert_eq!(kept(&ada, &one).await, one);
        let list = ada.get(&format!("{CONTEXT}/snapshots?limit=1")).await.expect(200);
        assert_eq!(list["items"][0]["id"], none["id"]);
        assert!(list["next_cursor"].is_string(), "{list}");
    }

    async fn audits_services_and_evidence_are_known(backend) {
        let areas = [
            "catalog", "context", "control-room", "dependencies", "evidence", "groups", "ownership",
            "schedules", "uploads",
        ];
        let (host, ada) = host(backend, &areas).await;
        let repository = ada.repository("acme/web").await;
        let scan = json!({ "version": "2.1.0", "runs": [{
            "tool": { "driver": { "name": "scanner", "rules": [] } },
            "results": [{ "ruleId": "R", "message": { "text": "odd" }, "locations": [] }],
        }] });
        ada.upload(&repository, "scan.sarif", scan.to_string().as_bytes()).await;
        ada.upload(&repository, "CODEOWNERS", b"* @ada\n").await;
        let audit = ada.audit(&repository).await;
        let service = json!({ "name": "web", "repository_ids": [repository] });
        ada.post("/v1/workspaces/{ws}/services", &service).await.expect(201);
        let mut unsigned = envelope::unsigned(&ada.workspace, "collected-1");
        unsigned["collection_method"] = json!("mcp");
        unsigned["source"]["external_id"] = json!("acme/web");
        let receipt = host.submit_evidence(&ada, &unsigned).await.expect(201)["receipt"].clone();

        let known = context(&ada, |context| {
            context["source_count"] == 2 && context["sources"][0]["coverage"] == 0.6
        }).await;
        let source = &known["sources"][0];
        assert_eq!((&source["audit_id"], &source["kind"]), (&audit["id"], &json!("repository")));
        assert_eq!(source["signals"], json!(["findings", "ownership", "services"]));
        assert_eq!(source["missing_signals"], json!(["dependencies", "deployments"]));
        assert_eq!(source["observed_at"], audit["completed_at"]);
        assert_eq!((&known["finding_count"], &known["evidence_count"]), (&json!(1), &json!(1)));
        assert_eq!((&known["entity_count"], &known["relationship_count"]), (&json!(2), &json!(1)));
        let collected = &known["sources"][1];
        assert_eq!((&collected["kind"], &collected["status"]), (&json!("mcp"), &json!("complete")));
        assert_eq!(collected["mcp_ingestion_id"], receipt["mcp_ingestion_id"]);
        assert_eq!(collected["repository_id"], repository.as_str());
        assert_eq!(collected["commit_sha"], unsigned["source"]["revision"]);
        let codes: Vec<&Value> =
            known["coverage_gaps"].as_array().expect("gaps").iter().map(|gap| &gap["code"]).collect();
        assert_eq!(codes, ["missing_dependencies", "missing_deployments"]);
    }

    async fn every_member_reads_it_and_nobody_else(backend) {
        let (mut host, ada) = host(backend, &["context"]).await;
        let viewer = host.member("vera", &ada.workspace, "viewer");
        context(&viewer, |_| true).await;
        host.nobody().in_workspace(&ada.workspace).get(CONTEXT).await.problem(401, "unauthenticated");
        ada.in_workspace(&host.elsewhere()).get(CONTEXT).await.problem(404, "not_found");
        ada.in_workspace("not-an-id").get(CONTEXT).await.problem(422, "validation_failed");
        let unknown = format!("{CONTEXT}/snapshots/{}", uuid::Uuid::now_v7());
        ada.get(&unknown).await.problem(404, "not_found");
    }
}
