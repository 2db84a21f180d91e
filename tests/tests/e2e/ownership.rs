//! Ownership previews (operation 17), from uploaded files to assigned findings.

use assurance_tests::artifacts::id_of;
use assurance_tests::contract::Contract;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

const PREVIEWS: &str = "/v1/workspaces/{ws}/ownership/previews";
const SOURCES: &str = "/v1/workspaces/{ws}/ownership/sources";
const AREAS: [&str; 7] =
    ["catalog", "control-room", "dependencies", "evidence", "ownership", "schedules", "uploads"];

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&AREAS).start_with_owner().await
}

/// A scan with one finding in each of these files.
fn scan(paths: &[&str]) -> Vec<u8> {
    let result = |path: &&str| {
        json!({
            "ruleId": "R1", "level": "error", "message": { "text": format!("something in {path}") },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": path }, "region": { "startLine": 3 },
            } }],
        })
    };
    let results: Vec<Value> = paths.iter().map(result).collect();
    let tool =
        json!({ "driver": { "name": "scanner", "version": "1.0", "rules": [{ "id": "R1" }] } });
    let sarif = json!({ "version": "2.1.0", "runs": [{ "tool": tool, "results": results }] });
    sarif.to_string().into_bytes()
}

/// Creates an audited repository with scanned files and this CODEOWNERS file. Returns the
/// repository and the audit.
async fn audited(client: &Client, name: &str, file: &str) -> (String, Value) {
    let repository = client.repository(name).await;
    let paths = ["src/a.rs", "docs/b.md", "other/c.txt"];
    let list = paths.join("\n");
    for (filename, content) in [
        ("scan.sarif", scan(&paths)),
        (".github/CODEOWNERS", file.as_bytes().to_vec()),
        ("paths.txt", list.into_bytes()),
    ] {
        let upload = client.upload(&repository, filename, &content).await;
        assert_eq!(upload["validation_stage"], "ready", "{upload}");
    }
    let audit = client.audit(&repository).await;
    assert_eq!(audit["state"], "completed", "{audit}");
    (repository, audit)
}

async fn preview(client: &Client, repository: &str) -> Value {
    let body = json!({ "repository_id": repository });
    let made = client.post(PREVIEWS, &body).await.expect(201);
    Contract::read().check(17, &json!([made]));
    made
}

async fn apply(client: &Client, preview: &Value) -> Answer {
    let path = format!("{PREVIEWS}/{}/apply", id_of(preview));
    assurance_tests::client::send(client.request(Method::POST, &path)).await
}

fn item<'a>(preview: &'a Value, path: &str) -> &'a Value {
    let items = preview["snapshot"]["items"].as_array().expect("items");
    items.iter().find(|item| item["paths"][0] == path).expect("an item")
}

fn finding(item: &Value) -> String {
    let id = item["finding_id"].as_str().expect("a finding");
    format!("/v1/workspaces/{{ws}}/findings/{id}")
}

async fn user(client: &Client) -> Value {
    client.get("/v1/auth/session").await.expect(200)["user"]["id"].clone()
}

both_backends! {
    async fn findings_are_previewed_and_assigned_once(backend) {
        let (mut host, ada) = host(backend).await;
        let mia = host.member("mia", &ada.workspace, "member");
        let team = json!({ "name": "Docs", "identities": ["@acme/docs"], "member_ids": [user(&mia).await] });
        ada.post("/v1/workspaces/{ws}/groups", &team).await.expect(201);
        let file = "# whose\n/src/ @ada\n/docs/ @acme/docs\n/gone/ @ada\n";
        let (repository, audit) = audited(&ada, "acme/web", file).await;
        assert_eq!(audit["facts"]["ownership"], json!({ "rules": 3, "paths": 3, "unowned": 1 }));
        let service = json!({ "name": "web", "repository_ids": [repository] });
        let service = ada.post("/v1/workspaces/{ws}/services", &service).await.expect(201);

        let made = preview(&mia, &repository).await;
        let snapshot = &made["snapshot"];
        assert_eq!((&snapshot["audit_id"], &snapshot["branch_ref"]), (&audit["id"], &audit["branch_ref"]));
        assert_eq!(snapshot["source_path"], ".github/CODEOWNERS");
        assert_eq!(snapshot["source_status"], "available");
        assert_eq!(snapshot["warnings"], json!(["Line 4: `/gone/` matches no path"]));
        let source = item(&made, "src/a.rs");
        assert_eq!((&source["status"], &source["assignee_id"]), (&json!("ready"), &user(&ada).await));
        assert_eq!((&source["rule_lines"], &source["identities"]), (&json!([2]), &json!(["@ada"])));
        assert_eq!((&source["severity"], &source["collaboration_version"]), (&json!("high"), &json!(1)));
        assert_eq!(source["service_ids"], json!([service["id"]]));
        assert!(source["due_at"].is_string() && source["title"].is_string(), "{source}");
        assert_eq!(item(&made, "docs/b.md")["assignee_id"], user(&mia).await);
        assert_eq!(item(&made, "other/c.txt")["reason"], "no rule matches");

        let applied = apply(&mia, &made).await.expect(200);
        Contract::read().check(17, &json!([applied]));
        assert_eq!(applied["result"]["applied"], 2);
        assert_eq!(applied["result"]["needs_review"], 1);
        assert_eq!(applied["applied_at"], applied["result"]["applied_at"]);
        assert_eq!(item(&applied, "src/a.rs")["status"], "applied");
        assert_eq!(applied["preview_sha256"], made["preview_sha256"]);
        apply(&mia, &made).await.problem(409, "preview_applied");
        for (path, owner) in [("src/a.rs", user(&ada).await), ("docs/b.md", user(&mia).await)] {
            let owner = owner.as_str().expect("a user");
            ada.settled(&finding(item(&made, path)), "owner_id", &[owner]).await;
        }
        let again = preview(&ada, &repository).await;
        assert_eq!(item(&again, "src/a.rs")["status"], "unchanged");
        assert_eq!(item(&again, "src/a.rs")["current_assignee_id"], user(&ada).await);
        assert_ne!(again["preview_sha256"], made["preview_sha256"]);
        assert_eq!(ada.get(PREVIEWS).await.expect(200), json!([again, applied]));
    }

    async fn findings_that_changed_are_not_assigned(backend) {
        let (_host, ada) = host(backend).await;
        let (repository, _) = audited(&ada, "acme/web", "* @ada\n").await;
        let made = preview(&ada, &repository).await;
        let path = format!("{}/transitions", finding(item(&made, "src/a.rs")));
        ada.post(&path, &json!({ "to_state": "triaged" })).await.expect(201);
        let refused = apply(&ada, &made).await.problem(409, "findings_changed");
        assert!(refused["hint"].is_string(), "{refused}");
        let renewed = preview(&ada, &repository).await;
        assert_eq!(item(&renewed, "src/a.rs")["collaboration_version"], 2);
        assert_eq!(apply(&ada, &renewed).await.expect(200)["result"]["applied"], 3);
    }

    async fn previews_are_paged_and_filtered(backend) {
        let (_host, ada) = host(backend).await;
        let repository = ada.repository("acme/bare").await;
        let bare = preview(&ada, &repository).await;
        assert_eq!(bare["snapshot"]["source_status"], "missing");
        assert_eq!(bare["snapshot"]["audit_id"], Value::Null);
        let (repository, audit) = audited(&ada, "acme/web", "* @ada\n").await;
        let mut made = Vec::new();
        for _ in 0..3 {
            made.insert(0, preview(&ada, &repository).await);
        }
        let list = async |query: &str| ada.get(&format!("{PREVIEWS}?{query}")).await;
        assert_eq!(list("limit=2").await.expect(200), json!(made[..2]));
        let before = format!("before_id={}", id_of(&made[1]));
        assert_eq!(list(&before).await.expect(200), json!([made[2], bare]));
        let filter = format!("{before}&audit_id={}", id_of(&audit));
        assert_eq!(list(&filter).await.expect(200), json!(made[2..]));
        assert_eq!(list("audit_id=null&before_id=").await.expect(200).as_array().map(Vec::len), Some(4));

        let nobody = uuid::Uuid::now_v7();
        let problem = list(&format!("before_id={nobody}")).await.problem(422, "validation_failed");
        assert!(problem["hint"].is_string(), "{problem}");
        for wrong in ["limit=0", "limit=51", "limit=x", "audit_id=1", "before_id=1"] {
            list(wrong).await.problem(422, "validation_failed");
        }
        let items = format!("{PREVIEWS}/{}/items", id_of(&made[0]));
        let page = ada.get(&format!("{items}?limit=2")).await.expect(200);
        let cursor = page["next_cursor"].as_str().expect("a cursor");
        let rest = ada.get(&format!("{items}?limit=2&cursor={cursor}")).await.expect(200);
        let all = [&page["items"], &rest["items"]].map(|items| items.as_array().expect("items").clone());
        assert_eq!(json!(all.concat()), made[0]["snapshot"]["items"]);
        ada.get(&format!("{items}?after_id={nobody}")).await.problem(422, "validation_failed");
    }

    async fn members_make_and_apply_previews_and_viewers_read_them(backend) {
        let (mut host, ada) = host(backend).await;
        let repository = ada.repository("acme/web").await;
        let made = preview(&ada, &repository).await;
        let body = json!({ "repository_id": repository });
        let viewer = host.member("vera", &ada.workspace, "viewer");
        viewer.post(PREVIEWS, &body).await.problem(403, "permission_denied");
        apply(&viewer, &made).await.problem(403, "permission_denied");
        assert_eq!(viewer.get(PREVIEWS).await.expect(200), json!([made]));
        assert_eq!(viewer.get(SOURCES).await.expect(200)["items"], json!([]));
        ada.without_csrf().post(PREVIEWS, &body).await.problem(403, "csrf_failed");
        host.nobody().in_workspace(&ada.workspace).get(PREVIEWS).await.problem(401, "unauthenticated");
        let outside = ada.in_workspace(&host.elsewhere());
        outside.get(PREVIEWS).await.problem(404, "not_found");
        let unknown = json!({ "id": uuid::Uuid::now_v7() });
        apply(&ada, &unknown).await.problem(404, "not_found");
        for wrong in [json!({}), json!({ "repository_id": unknown["id"] }), json!({ "repository_id": repository, "audit_id": unknown["id"] })] {
            ada.post(PREVIEWS, &wrong).await.problem_about(422, "validation_failed", "_id");
        }
    }

    async fn another_dialect_is_told(backend) {
        let (_host, ada) = host(backend).await;
        let repository = ada.repository("acme/kubernetes").await;
        let owners = b"approvers:\n- ada\n";
        ada.upload(&repository, "CODEOWNERS", owners).await;
        ada.audit(&repository).await;
        let source = ada.get(&format!("{SOURCES}?repository_id={repository}")).await.expect(200);
        assert_eq!(source["items"][0]["source_status"], "unsupported");
        let made = preview(&ada, &repository).await;
        assert_eq!(made["snapshot"]["source_status"], "unsupported");
        assert_eq!(made["snapshot"]["warnings"].as_array().map(Vec::len), Some(1));
    }
}
