//! Dependencies between groups (operation 12).

use assurance_tests::artifacts::path_at;
use assurance_tests::contract::Contract;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, envelope};
use reqwest::Method;
use serde_json::{Value, json};

use super::catalog::GROUPS;

const DEPENDENCIES: &str = "/v1/workspaces/{ws}/group-dependencies";

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["catalog", "groups", "evidence"]).start_with_owner().await
}

async fn group(client: &Client, name: &str, zone: &str, class: &str) -> Value {
    let body = json!({ "name": name, "trust_zone": zone, "data_classification": class });
    client.post(GROUPS, &body).await.expect(201)
}

async fn declare(client: &Client, source: &Value, target: &Value) -> Answer {
    let body = json!({
        "relationship_kind": "depends_on", "source_group_id": source["id"],
        "target_group_id": target["id"],
    });
    client.post(DEPENDENCIES, &body).await
}

/// Waits until the list meets the condition.
async fn listed(client: &Client, wanted: impl Fn(&Value) -> bool) -> Value {
    client.until(DEPENDENCIES, |list| wanted(&list["items"])).await["items"].clone()
}

fn relationship(subject: &str, target: &str) -> Value {
    let said = json!({ "target": target, "relationship_kind": "depends_on" });
    let mut record = envelope::record(&said.to_string());
    record["kind"] = json!("relationship");
    record["subject_key"] = json!(subject);
    record
}

both_backends! {
    async fn dependencies_are_declared_evidenced_and_refused(backend) {
        let (host, ada) = host(backend).await;
        let new = async |name: &str| ada.new_workspace(name).await;
        a_dependency_is_declared_judged_listed_and_deleted(&new("declared").await).await;
        itself_unknown_groups_and_bad_words_are_refused(&new("refused").await).await;
        a_changed_group_is_judged_anew(&new("changed").await).await;
        evidence_makes_dependencies_and_supports_declared_ones(&host, &new("proven").await).await;
    }

    async fn only_admins_of_this_workspace_declare(backend) {
        let (mut host, ada) = host(backend).await;
        let web = group(&ada, "Web", "dmz", "public").await;
        let operations = group(&ada, "Operations", "dmz", "internal").await;
        for role in ["viewer", "member"] {
            let client = host.member(role, &ada.workspace, role);
            declare(&client, &web, &operations).await.problem(403, "permission_denied");
            assert_eq!(client.get(DEPENDENCIES).await.expect(200)["items"], json!([]));
        }
        declare(&ada.without_csrf(), &web, &operations).await.problem(403, "csrf_failed");
        let nobody = host.nobody().in_workspace(&ada.workspace);
        declare(&nobody, &web, &operations).await.problem(401, "unauthenticated");
        let bea = host.create_owner("bea", "second");
        declare(&bea, &web, &operations).await.problem(404, "not_found");
        let outside = bea.in_workspace(&ada.workspace);
        declare(&outside, &web, &operations).await.problem(404, "not_found");
        let admin = host.member("alan", &ada.workspace, "admin");
        let made = declare(&admin, &web, &operations).await.expect(201);
        assert_eq!(made["crosses_trust_boundary"], false);
        assert_eq!(made["data_classification"], "internal");
    }
}

async fn a_dependency_is_declared_judged_listed_and_deleted(ada: &Client) {
    let web = group(ada, "Web", "dmz", "public").await;
    let payments = group(ada, "Payments", "pci", "restricted").await;
    let made = declare(ada, &web, &payments).await.expect(201);
    Contract::read().check(12, &made);
    assert_eq!(made["crosses_trust_boundary"], true);
    assert_eq!(made["data_classification"], "restricted");
    assert_eq!((&made["state"], &made["evidence_ids"]), (&json!("declared"), &json!([])));
    declare(ada, &web, &payments).await.problem(409, "conflict");
    declare(ada, &payments, &web).await.expect(201);

    let filter = format!("{DEPENDENCIES}?source_group_id={}", web["id"].as_str().expect("an id"));
    assert_eq!(ada.get(&filter).await.expect(200)["items"], json!([made]));
    let path = path_at(DEPENDENCIES, &made);
    assert_eq!(ada.get(&path).await.expect(200), made);
    assert_eq!(ada.delete(&path).await.status, 204);
    ada.get(&path).await.problem(404, "not_found");
    declare(ada, &web, &payments).await.expect(201);
}

async fn itself_unknown_groups_and_bad_words_are_refused(ada: &Client) {
    let web = group(ada, "Web", "dmz", "public").await;
    let itself = declare(ada, &web, &web).await;
    let itself = itself.problem_about(422, "validation_failed", "/target_group_id");
    assert!(itself["hint"].is_string(), "{itself}");
    let nobody = json!({ "id": uuid::Uuid::now_v7() });
    let unknown = declare(ada, &nobody, &web).await;
    unknown.problem_about(404, "not_found", "source_group_id");
    let body = json!({
        "relationship_kind": "Depends on", "source_group_id": "x", "extra": true,
    });
    let refused = ada.post(DEPENDENCIES, &body).await;
    for pointer in ["/relationship_kind", "/source_group_id", "/target_group_id", "/extra"] {
        refused.problem_about(422, "validation_failed", pointer);
    }
}

async fn a_changed_group_is_judged_anew(ada: &Client) {
    let web = group(ada, "Web", "dmz", "public").await;
    let operations = group(ada, "Operations", "dmz", "internal").await;
    declare(ada, &web, &operations).await.expect(201);
    let path = path_at(GROUPS, &operations);
    let changes = json!({ "trust_zone": "core", "data_classification": "confidential" });
    ada.change(Method::PATCH, &path, 1, &changes).await.expect(200);
    let items = listed(ada, |items| items[0]["crosses_trust_boundary"] == true).await;
    assert_eq!(items[0]["data_classification"], "confidential");
}

async fn evidence_makes_dependencies_and_supports_declared_ones(host: &TestHost, ada: &Client) {
    group(ada, "Web", "dmz", "public").await;
    group(ada, "Payments", "pci", "restricted").await;
    let mut unsigned = envelope::unsigned(&ada.workspace, "relations-1");
    let early = relationship("group:Late", "Payments");
    unsigned["records"] = json!([relationship("Web", "Payments"), early]);
    host.submit_evidence(ada, &unsigned).await.expect(201);
    let items = listed(ada, |items| items[0].is_object()).await;
    assert_eq!(items.as_array().map(Vec::len), Some(1));
    assert_eq!(items[0]["state"], "evidenced");
    assert_eq!(items[0]["evidence_ids"], json!([unsigned["records"][0]["evidence_id"]]));

    // A group created later is declared with the existing evidence.
    let late = group(ada, "Late", "dmz", "public").await;
    let payments = ada.get(&format!("{GROUPS}?q=Payments")).await.expect(200)["items"][0].clone();
    let made = declare(ada, &late, &payments).await.expect(201);
    Contract::read().check(12, &made);
    assert_eq!(made["state"], "evidenced");
    assert_eq!(made["evidence_ids"], json!([early["evidence_id"]]));
}
