//! The catalog: repositories, services and groups, created by users and from evidence.

use assurance_tests::artifacts::path_at;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, envelope};
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) const REPOSITORIES: &str = "/v1/workspaces/{ws}/repositories";
pub(crate) const SERVICES: &str = "/v1/workspaces/{ws}/services";
pub(crate) const GROUPS: &str = "/v1/workspaces/{ws}/groups";

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["catalog", "evidence"]).start_with_owner().await
}

/// Waits until the service with this name meets the condition.
async fn service(client: &Client, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let is_wanted = |page: &Value| page["items"].get(0).is_some_and(&wanted);
    client.until(&format!("{SERVICES}?q={name}"), is_wanted).await["items"][0].clone()
}

both_backends! {
    async fn a_repository_is_registered_changed_and_archived(backend) {
        let (_host, ada) = host(backend).await;
        let new = json!({ "name": "acme/web", "provider": "github", "url": "https://example.com/w" });
        let answer = ada.post(REPOSITORIES, &new).await;
        let made = answer.expect(201);
        assert_eq!(answer.header("etag"), Some("\"1\""));
        assert_eq!((&made["default_branch"], &made["archived"]), (&json!("main"), &json!(false)));
        ada.post(REPOSITORIES, &json!({ "name": "acme/web" })).await.problem(409, "conflict");

        let path = path_at(REPOSITORIES, &made);
        let archived = json!({ "archived": true, "url": null, "external_id": "17" });
        let changed = ada.change(Method::PATCH, &path, 1, &archived).await;
        assert_eq!(changed.header("etag"), Some("\"2\""));
        let changed = changed.expect(200);
        assert_eq!((&changed["url"], &changed["external_id"]), (&Value::Null, &json!("17")));
        ada.change(Method::PATCH, &path, 1, &archived).await.problem(409, "version_conflict");
        assert_eq!(ada.get(&path).await.expect(200), changed);

        let twin = json!({ "name": "acme/twin", "provider": "github", "external_id": "17" });
        ada.post(REPOSITORIES, &twin).await.problem(409, "conflict");
        let list = format!("{REPOSITORIES}?q=WEB&archived=true&provider=github");
        assert_eq!(ada.get(&list).await.expect(200)["items"], json!([changed]));
        let list = format!("{REPOSITORIES}?archived=false");
        assert_eq!(ada.get(&list).await.expect(200)["items"], json!([]));
    }

    async fn bad_input_is_told_by_pointer(backend) {
        let (_host, ada) = host(backend).await;
        let bad = json!({ "name": " padded", "url": "nowhere", "extra": 1 });
        let bad = ada.post(REPOSITORIES, &bad).await;
        for pointer in ["/name", "/url", "/extra"] {
            bad.problem_about(422, "validation_failed", pointer);
        }
        let nobody = uuid::Uuid::now_v7();
        for (path, body, pointer) in [
            (SERVICES, json!({ "name": "s", "repository_ids": [nobody] }), "/repository_ids/0"),
            (SERVICES, json!({ "name": "s", "owner_id": nobody }), "/owner_id"),
            (SERVICES, json!({ "name": "s", "group_id": nobody }), "/group_id"),
            (GROUPS, json!({ "name": "g", "member_ids": [nobody] }), "/member_ids/0"),
            (GROUPS, json!({ "name": "g", "data_classification": "secret" }), "/data_classification"),
            (GROUPS, json!({ "name": "g", "trust_zone": "Not A Word" }), "/trust_zone"),
        ] {
            ada.post(path, &body).await.problem_about(422, "validation_failed", pointer);
        }
        ada.get(&format!("{SERVICES}/{nobody}")).await.problem(404, "not_found");
        ada.get(&format!("{GROUPS}/not-an-id")).await.problem(422, "validation_failed");
    }

    async fn members_register_services_and_admins_make_groups(backend) {
        let (mut host, ada) = host(backend).await;
        let viewer = host.member("vera", &ada.workspace, "viewer");
        let member = host.member("mia", &ada.workspace, "member");
        let admin = host.member("alan", &ada.workspace, "admin");
        let named = json!({ "name": "n" });
        for path in [REPOSITORIES, SERVICES] {
            viewer.post(path, &named).await.problem(403, "permission_denied");
            member.post(path, &named).await.expect(201);
        }
        member.post(GROUPS, &named).await.problem(403, "permission_denied");
        let group = admin.post(GROUPS, &named).await.expect(201);
        let path = path_at(GROUPS, &group);
        member.change(Method::PATCH, &path, 1, &named).await.problem(403, "permission_denied");
        admin.change(Method::PATCH, &path, 1, &json!({ "trust_zone": "dmz" })).await.expect(200);
        for path in [REPOSITORIES, SERVICES, GROUPS] {
            assert_eq!(viewer.get(path).await.expect(200)["items"].as_array().map(Vec::len), Some(1));
            host.nobody().in_workspace(&ada.workspace).get(path).await.problem(401, "unauthenticated");
        }
    }

    async fn evidence_registers_services_and_renews_them(backend) {
        let (host, ada) = host(backend).await;
        let repository = ada.post(REPOSITORIES, &json!({ "name": "acme/shop" })).await.expect(201);
        let group = ada.post(GROUPS, &json!({ "name": "Shop" })).await.expect(201);
        let said = json!({ "repositories": ["acme/shop"], "group": "Shop", "tier": "1" }).to_string();
        let mut unsigned = envelope::unsigned(&ada.workspace, "services-1");
        unsigned["records"] = json!([service_record("service:shop", &said)]);
        host.submit_evidence(&ada, &unsigned).await.expect(201);
        let shop = service(&ada, "shop", |_| true).await;
        assert_eq!(shop["repository_ids"], json!([repository["id"]]));
        assert_eq!((&shop["group_id"], &shop["tier"]), (&group["id"], &json!("1")));
        assert_eq!(shop["evidence_id"], unsigned["records"][0]["evidence_id"]);

        let mut unsigned = envelope::unsigned(&ada.workspace, "services-2");
        unsigned["records"] = json!([service_record("shop", "Sells things.")]);
        host.submit_evidence(&ada, &unsigned).await.expect(201);
        let renewed = service(&ada, "shop", |shop| shop["description"] == "Sells things.").await;
        assert_eq!((&renewed["id"], &renewed["tier"]), (&shop["id"], &json!("1")));
    }
}

fn service_record(subject: &str, said: &str) -> Value {
    let mut record = envelope::record(said);
    record["kind"] = json!("service");
    record["subject_key"] = json!(subject);
    record
}
