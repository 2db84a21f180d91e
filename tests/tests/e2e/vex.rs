//! VEX documents and SBOMs with weak subjects, over HTTP: uploads decide the inventory, and
//! everything skipped is reported.

use assurance_tests::{Backend, Client, TestHost, both_backends};
use serde_json::{Value, json};

use crate::dependencies::{list, start_with_repository};

const SERIAL: &str = "3e671687-395b-41f5-a30f-a58921a69b79";
const LODASH: &str = "pkg:npm/lodash@4.17.20";
const MINIMIST: &str = "pkg:npm/minimist@1.2.5";

async fn start(backend: Backend) -> (TestHost, Client, String) {
    let (host, ada, repository) = start_with_repository(backend).await;
    for (id, alias, package) in
        [("GHSA-35jh", "CVE-2021-23337", "lodash"), ("GHSA-xvch", "CVE-2021-44906", "minimist")]
    {
        let advisory = json!({
            "id": id, "aliases": [alias], "modified": "2026-01-01T00:00:00Z",
            "affected": [{
                "package": { "ecosystem": "npm", "name": package },
                "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }] }],
            }],
        });
        ada.post("/v1/workspaces/{ws}/advisories", &advisory).await.expect(201);
    }
    (host, ada, repository)
}

/// Returns a CycloneDX document about a subject.
fn document(subject: Value, members: Value) -> Value {
    let mut document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": subject },
    });
    let members = members.as_object().expect("members").clone();
    document.as_object_mut().expect("an object").extend(members);
    document
}

fn shop() -> Value {
    json!({ "type": "application", "name": "shop", "version": "1.0", "bom-ref": "shop" })
}

fn components(purls: &[&str]) -> Value {
    let one =
        |purl: &&str| json!({ "type": "library", "name": "x", "bom-ref": purl, "purl": purl });
    purls.iter().map(one).collect()
}

fn statement(advisory: &str, state: &str, reference: &str) -> Value {
    let analysis = json!({ "state": state, "justification": "code_not_reachable" });
    json!({ "id": advisory, "analysis": analysis, "affects": [{ "ref": reference }] })
}

/// Uploads and audits a document.
async fn bring(client: &Client, repository: &str, name: &str, document: &Value) -> Value {
    client.upload(repository, name, document.to_string().as_bytes()).await;
    let body = json!({ "repository_id": repository, "branch_ref": "main" });
    let audit = client.audit_of(&body).await;
    assert_eq!(audit["parts"]["dependencies"]["status"], "succeeded", "{audit:#}");
    audit
}

/// Returns the dependencies with the ids of their advisories.
async fn inventory(client: &Client) -> Vec<(String, Vec<String>)> {
    let list = list(client, "").await;
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let ids = |item: &Value| {
        let found = item["advisories"].as_array().expect("advisories").iter();
        found.map(|found| text(&found["advisory_id"])).collect()
    };
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| (text(&item["name"]), ids(item))).collect()
}

fn expected(inventory: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    inventory.iter().map(|(name, ids)| ((*name).to_owned(), owned(ids))).collect()
}

async fn statements(client: &Client, query: &str) -> Vec<Value> {
    let path = format!("/v1/workspaces/{{ws}}/vex-statements{query}");
    let page = client.get(&path).await.expect(200);
    page["items"].as_array().expect("items").clone()
}

fn warnings(audit: &Value) -> String {
    audit["parts"]["dependencies"]["warnings"].to_string()
}

both_backends! {
    async fn a_vex_document_is_applied_to_the_sbom_of_its_product(backend) {
        let (_host, ada, repository) = start(backend).await;
        let sbom = document(shop(), json!({
            "serialNumber": format!("urn:uuid:{SERIAL}"),
            "components": components(&[LODASH, MINIMIST]),
        }));
        bring(&ada, &repository, "shop.cdx.json", &sbom).await;
        let vulnerable = [("lodash", &["GHSA-35jh"][..]), ("minimist", &["GHSA-xvch"])];
        assert_eq!(inventory(&ada).await, expected(&vulnerable));

        let link = format!("urn:cdx:{SERIAL}/1#{MINIMIST}");
        let vex = document(shop(), json!({ "vulnerabilities": [
            statement("CVE-2021-23337", "not_affected", "shop"),
            statement("CVE-2099-1", "exploitable", &link),
            statement("CVE-2021-44906", "in_triage", MINIMIST),
            statement("CVE-2099-2", "resolved", "pkg:npm/gone@1"),
        ] }));
        let audit = bring(&ada, &repository, "shop.vex.json", &vex).await;
        let applied = [("lodash", &[][..]), ("minimist", &["CVE-2099-1", "GHSA-xvch"])];
        assert_eq!(inventory(&ada).await, expected(&applied));
        assert_eq!(audit["facts"]["dependencies"]["vulnerable"], 1, "{audit:#}");
        let warnings = warnings(&audit);
        assert!(warnings.contains("1 of 4 statements match no component: CVE-2099-2 of pkg:npm/gone@1"), "{warnings}");
        let lodash = list(&ada, "?q=lodash").await;
        let said = "Not listed, since shop.vex.json states not_affected: code_not_reachable: \
                    GHSA-35jh (CVE-2021-23337).";
        assert!(lodash["items"][0]["limitations"].to_string().contains(said), "{lodash:#}");
        let found = list(&ada, "?advisory=CVE-2099-1").await;
        assert_eq!(found["items"][0]["advisories"][0]["match_basis"], "scanner_reported");

        assert_eq!(statements(&ada, "").await.len(), 4);
        let linked = statements(&ada, "?component=minimist&advisory=cve-2099-1").await;
        assert_eq!(linked.len(), 1);
        assert_eq!(linked[0]["matches"]["components"][0]["purl"], MINIMIST);
        assert_eq!(linked[0]["document"]["filename"], "shop.vex.json");
        let page = ada.get("/v1/workspaces/{ws}/vex-statements?limit=3").await.expect(200);
        let next = page["next_cursor"].as_str().expect("a cursor");
        assert_eq!(statements(&ada, &format!("?limit=3&cursor={next}")).await.len(), 1);

        // The VEX document applies to the next SBOM, until a later document replaces it.
        let sbom = document(shop(), json!({ "components": components(&[LODASH]) }));
        bring(&ada, &repository, "shop.cdx.json", &sbom).await;
        assert_eq!(inventory(&ada).await, expected(&[("lodash", &[])]));
        let vex = document(shop(), json!({ "vulnerabilities": [
            statement("CVE-2021-23337", "exploitable", LODASH),
        ] }));
        bring(&ada, &repository, "shop-2.vex.json", &vex).await;
        assert_eq!(inventory(&ada).await, expected(&[("lodash", &["GHSA-35jh"])]));
        assert_eq!(statements(&ada, "").await.len(), 1);
    }

    async fn an_analysis_inside_an_sbom_ends_the_match(backend) {
        let (_host, ada, repository) = start(backend).await;
        let sbom = document(shop(), json!({
            "components": components(&[LODASH, MINIMIST]),
            "vulnerabilities": [statement("CVE-2021-23337", "false_positive", LODASH)],
        }));
        let audit = bring(&ada, &repository, "shop.cdx.json", &sbom).await;
        let found = [("lodash", &[][..]), ("minimist", &["GHSA-xvch"])];
        assert_eq!(inventory(&ada).await, expected(&found));
        assert_eq!(audit["facts"]["dependencies"]["vulnerable"], 1);
        let listed = statements(&ada, &format!("?repository_id={repository}")).await;
        assert_eq!((listed.len(), &listed[0]["state"]), (1, &json!("false_positive")));
        assert_eq!(listed[0]["matches"]["component_count"], 1);
    }

    async fn sboms_of_folders_stay_side_by_side(backend) {
        let (_host, ada, repository) = start(backend).await;
        let folder = || json!({ "type": "file", "name": ".", "bom-ref": "root" });
        let front = document(folder(), json!({ "components": components(&[LODASH]) }));
        let back = document(folder(), json!({ "components": components(&[MINIMIST]) }));
        bring(&ada, &repository, "front/syft.json", &front).await;
        let audit = bring(&ada, &repository, "back/syft.json", &back).await;
        let both = [("lodash", &["GHSA-35jh"][..]), ("minimist", &["GHSA-xvch"])];
        assert_eq!(inventory(&ada).await, expected(&both));
        assert_eq!(audit["parts"]["dependencies"]["counts"]["sboms"], 2);
        assert!(!warnings(&audit).contains("replaces"), "{audit:#}");

        let newer = document(folder(), json!({ "components": components(&["pkg:npm/a@1"]) }));
        let audit = bring(&ada, &repository, "front/syft.json", &newer).await;
        assert_eq!(inventory(&ada).await, expected(&[("a", &[]), both[1]]));
        assert!(warnings(&audit).contains("front/syft.json"), "{audit:#}");
        let limitations = list(&ada, "?q=npm/a@1").await["limitations"].to_string();
        assert!(limitations.contains("neither names a subject"), "{limitations}");
    }

    async fn other_forms_of_vex_are_refused(backend) {
        let (_host, ada, repository) = start(backend).await;
        for (name, document) in [
            ("a.openvex.json", json!({ "@context": "https://openvex.dev/ns/v0.2.0", "statements": [] })),
            ("a.csaf.json", json!({ "document": { "category": "csaf_vex", "csaf_version": "2.0" } })),
        ] {
            let refused = ada.upload(&repository, name, document.to_string().as_bytes()).await;
            assert_eq!(refused["validation_error_code"], "unsupported_format", "{refused:#}");
            let detail = refused["validation_error_detail"].as_str().expect("a text");
            assert!(detail.contains("only CycloneDX"), "{detail}");
        }
    }
}
