//! The dependency inventory (operation 16), advisories and deployments, through uploads, audits and
//! signed evidence.

use assurance_tests::contract::Contract;
use assurance_tests::operators::items;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, envelope, place, until};
use serde_json::{Value, json};

use crate::audits::AREAS;

pub(crate) const DEPENDENCIES: &str = "/v1/workspaces/{ws}/dependencies";
const ADVISORIES: &str = "/v1/workspaces/{ws}/advisories";
const DEPLOYMENTS: &str = "/v1/workspaces/{ws}/deployments";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Starts a host with the areas that take part in audits.
pub(crate) async fn start(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&AREAS).start_with_owner().await
}

/// Starts a host like [`start`], with a repository. Returns the repository's id.
pub(crate) async fn start_with_repository(backend: Backend) -> (TestHost, Client, String) {
    let (host, ada) = start(backend).await;
    let repository = ada.repository("shop").await;
    (host, ada, repository)
}

/// An SBOM of npm packages; the first is a direct dependency.
fn bom(packages: &[&str]) -> Vec<u8> {
    let purl = |package: &&str| format!("pkg:npm/{package}");
    let components: Vec<Value> = packages
        .iter()
        .map(|package| {
            json!({ "type": "library", "name": "x", "bom-ref": purl(package), "purl": purl(package) })
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "syft", "version": "1.0" }] },
            "component": { "type": "application", "name": "shop", "bom-ref": "root" },
        },
        "components": components,
        "dependencies": [
            { "ref": "root", "dependsOn": packages.iter().take(1).map(purl).collect::<Vec<_>>() },
        ],
    })
    .to_string()
    .into_bytes()
}

fn advisory(id: &str, alias: &str, fixed: &str) -> Value {
    json!({
        "id": id, "aliases": [alias], "modified": "2026-01-01T00:00:00Z", "summary": "Pads badly",
        "affected": [{
            "package": { "ecosystem": "npm", "name": "left-pad" },
            "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": fixed }] }],
        }],
    })
}

async fn audit(client: &Client, repository: &str, branch: &str) -> Value {
    let body = json!({ "repository_id": repository, "branch_ref": branch, "commit_sha": COMMIT });
    client.audit_of(&body).await
}

/// Calls operation 16 and checks the contract's shape.
pub(crate) async fn list(client: &Client, query: &str) -> Value {
    let list = client.get(&format!("{DEPENDENCIES}{query}")).await.expect(200);
    Contract::read().check(16, &list);
    list
}

/// Lists until there are `count` items, which jobs create.
async fn listed(client: &Client, query: &str, count: usize) -> Value {
    until(format!("{query} lists {count}"), async || {
        let found = list(client, query).await;
        let complete = items(&found["items"]).len() == count;
        if complete { Ok(found) } else { Err(found) }
    })
    .await
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["name"].as_str().expect("a name")).collect()
}

both_backends! {
    async fn a_vulnerable_dependency_is_found_with_its_deployment(backend) {
        let (host, ada) = start(backend).await;
        let repository = ada.repository("shop").await;
        let body = json!({ "name": "checkout", "repository_ids": [repository] });
        let service = ada.post("/v1/workspaces/{ws}/services", &body).await.expect(201);
        ada.upload(&repository, "shop.cdx.json", &bom(&["left-pad@1.0.0", "%40a/b@2.0.0"])).await;
        let audit = audit(&ada, &repository, "main").await;
        assert_eq!(audit["state"], "completed", "{audit:#}");
        let facts = json!({ "total": 2, "direct": 1 });
        assert_eq!(audit["facts"]["dependencies"], facts, "there is no advisory yet");

        let imported = ada.post(ADVISORIES, &advisory("GHSA-aaaa", "CVE-2026-1", "1.2.0")).await;
        assert_eq!(imported.expect(201)["created"], 1);
        listed(&ada, "?advisory=GHSA-aaaa", 1).await;
        submit_deployment(&host, &ada).await;
        let found = deployed(&ada, "?advisory=cve-2026-1").await;
        let item = &found["items"][0];
        assert_eq!((&item["name"], &item["direct"]), (&json!("left-pad"), &json!(true)));
        assert_eq!((&item["audit_id"], &item["commit_sha"]), (&audit["id"], &json!(COMMIT)));
        assert_eq!(item["advisories"][0]["match_basis"], "version_range");
        let entry = &item["deployments"][0];
        assert_eq!((&entry["service_id"], &entry["service_name"]), (&service["id"], &json!("checkout")));
        assert_eq!((&entry["owner_id"], &entry["runtime_reachability"]), (&service["owner_id"], &json!("reachable")));
        assert_eq!(entry["deployment"]["environment"], "production");
        let deployments = ada.get(DEPLOYMENTS).await.expect(200);
        assert_eq!(deployments["items"][0], entry["deployment"]);
        let shown = ada.get(&format!("{ADVISORIES}/CVE-2026-1")).await.expect(200);
        assert_eq!(shown["id"], "GHSA-aaaa");
    }

    async fn filters_and_pages_hold_together(backend) {
        let (_host, ada) = start(backend).await;
        let repository = ada.repository("shop").await;
        let packages: Vec<String> = (0..25).map(|n| format!("p{n:02}@1.0.0")).collect();
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        ada.upload(&repository, "shop.cdx.json", &bom(&packages)).await;
        let first = audit(&ada, &repository, "main").await;
        audit(&ada, &repository, "main").await;
        audit(&ada, &repository, "next").await;

        let branch = format!("?repository_id={repository}&branch_ref=main");
        let (mut all, mut cursor) = (Vec::new(), String::new());
        for size in [10, 10, 5] {
            let page = list(&ada, &format!("{branch}&limit=10{cursor}")).await;
            assert_eq!(page["items"].as_array().map(Vec::len), Some(size));
            all.extend(names(&page).into_iter().map(ToOwned::to_owned));
            cursor = format!("&cursor={}", page["next_cursor"].as_str().unwrap_or_default());
        }
        assert_eq!(all, packages.iter().map(|p| p[..3].to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&ada, "").await["items"].as_array().map(Vec::len), Some(50));
        assert_eq!(list(&ada, "?history=true&limit=100").await["items"].as_array().map(Vec::len), Some(75));
        let audit = first["id"].as_str().expect("an id");
        assert_eq!(names(&list(&ada, &format!("?audit_id={audit}")).await), [""; 0]);
        let before = list(&ada, &format!("?audit_id={audit}&history=true")).await;
        assert_eq!((before["items"].as_array().map(Vec::len), &before["historical"]), (Some(25), &json!(true)));
        assert_eq!(names(&list(&ada, "?q=NPM%2FP07&branch_ref=next&advisory=&audit_id=null").await), ["p07"]);
    }

    async fn what_is_not_a_filter_is_refused(backend) {
        let (_host, ada) = start(backend).await;
        let repository = ada.repository("shop").await;
        ada.upload(&repository, "shop.cdx.json", &bom(&["a@1", "b@1", "c@1"])).await;
        audit(&ada, &repository, "main").await;
        let page = list(&ada, "?limit=1").await;
        let cursor = page["next_cursor"].as_str().expect("a cursor");
        let long = "x".repeat(201);
        for wrong in [
            "?limit=0", "?limit=101", "?limit=x", "?repository_id=shop", "?audit_id=1",
            "?history=perhaps", "?cursor=AAAA", &format!("?q={long}"),
            &format!("?cursor={cursor}&q=a"), &format!("?cursor={cursor}&history=true"),
            &format!("?cursor={cursor}&advisory=CVE-1"), &format!("?cursor=x{cursor}"),
        ] {
            let problem = ada.get(&format!("{DEPENDENCIES}{wrong}")).await;
            problem.problem(422, "validation_failed");
        }
        list(&ada, &format!("?limit=2&cursor={cursor}")).await;
    }

    async fn a_wrong_record_is_refused_by_pointer(backend) {
        let (_host, ada) = start(backend).await;
        let mut wrong = advisory("GHSA-1", "CVE-1", "2");
        wrong["affected"][0]["ranges"][0]["events"] = json!([{ "fixed": "2" }]);
        let wrong = ada.post(ADVISORIES, &wrong).await;
        wrong.problem_about(422, "validation_failed", "/affected/0/ranges/0/events");
        ada.post(ADVISORIES, &json!([])).await.problem(422, "validation_failed");
        ada.post(ADVISORIES, &json!({ "id": "x" })).await.problem(422, "validation_failed");
        ada.get(&format!("{ADVISORIES}/GHSA-1")).await.problem(404, "not_found");
        let good = json!([advisory("GHSA-1", "CVE-1", "2"), advisory("GHSA-2", "CVE-2", "2")]);
        ada.post(ADVISORIES, &good).await.expect(201);
        let page = ada.get(&format!("{ADVISORIES}?limit=1")).await.expect(200);
        let next = page["next_cursor"].as_str().expect("a cursor");
        let page = ada.get(&format!("{ADVISORIES}?limit=1&cursor={next}")).await.expect(200);
        assert_eq!(page["next_cursor"], Value::Null);
    }

    async fn a_wrong_bill_is_told_of_in_the_audit(backend) {
        let (_host, ada) = start(backend).await;
        let repository = ada.repository("shop").await;
        let wrong = String::from_utf8(bom(&["a@1"])).expect("text").replace("library", "thing");
        ada.upload(&repository, "wrong.cdx.json", wrong.as_bytes()).await;
        let audit = audit(&ada, &repository, "main").await;
        let part = &audit["parts"]["dependencies"];
        assert_eq!(part["errors"][0]["code"], "invalid_sbom", "{audit:#}");
        let detail = part["errors"][0]["detail"].as_str().expect("a text");
        assert!(detail.starts_with("/components/0/type"), "{detail}");
    }

    async fn log4shell_is_found_in_a_real_bill(backend) {
        let corpus = place::corpus();
        if !corpus.is_dir() {
            eprintln!("skipped: {} is not there", corpus.display());
            return;
        }
        let read = |path: &str| std::fs::read(corpus.join(path)).expect("a file");
        let (_host, ada) = start(backend).await;
        let repository = ada.repository("legacy").await;
        ada.upload(&repository, "log4j.cdx.json", &read("cyclonedx/log4j-defectdojo.cdx.json")).await;
        let osv = read("osv/github-advisory/GHSA-jfh8-c2jp-5v3q.json");
        ada.upload(&repository, "GHSA-jfh8-c2jp-5v3q.json", &osv).await;
        let audit = audit(&ada, &repository, "main").await;
        assert_eq!(audit["facts"]["dependencies"]["vulnerable"], 1, "{audit:#}");
        for name in ["GHSA-jfh8-c2jp-5v3q", "CVE-2021-44228"] {
            let found = list(&ada, &format!("?advisory={name}")).await;
            assert_eq!(names(&found), ["org.apache.logging.log4j:log4j-core"], "{name}");
        }
    }
}

/// Submits signed evidence that the commit runs in production.
async fn submit_deployment(host: &TestHost, client: &Client) {
    let mut unsigned = envelope::unsigned(&client.workspace, "deployment-1");
    let said = json!({
        "service": "checkout", "environment": "production", "commit_sha": COMMIT,
        "packages": [{ "purl": "pkg:npm/left-pad@1.0.0", "reachability": "reachable" }],
    });
    let mut record = envelope::record(&said.to_string());
    record["kind"] = json!("deployment");
    record["subject_key"] = json!("shop");
    unsigned["records"] = json!([record]);
    host.submit_evidence(client, &unsigned).await.expect(201);
}

/// Lists until the first item has a deployment.
async fn deployed(client: &Client, query: &str) -> Value {
    until("the deployment is shown", async || {
        let found = list(client, query).await;
        let shown = found["items"][0]["deployments"][0].is_object();
        if shown { Ok(found) } else { Err(found) }
    })
    .await
}
