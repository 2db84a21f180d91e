//! A repository with several packages whose scans and SBOMs differ only in their filenames: no data
//! is lost, and only scanned packages are verified.

use std::collections::BTreeMap;

use assurance_tests::{Backend, Builder, Client, TestHost, both_backends};
use serde_json::{Value, json};

use crate::audits::AREAS;

const FINDINGS: &str = "/v1/workspaces/{ws}/findings";
const DEPENDENCIES: &str = "/v1/workspaces/{ws}/dependencies";
const ADVISORIES: &str = "/v1/workspaces/{ws}/advisories";
const STATEMENTS: &str = "/v1/workspaces/{ws}/vex-statements";

/// Commits, one for each audit.
const COMMITS: [&str; 3] = [
    "1111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222",
    "3333333333333333333333333333333333333333",
];

struct Monorepo {
    _host: TestHost,
    ada: Client,
    repository: String,
}

/// Returns the SARIF output of an `ESLint` run without a category.
fn eslint(results: &[(&str, &str, &str)]) -> Vec<u8> {
    let result = |&(rule, path, message): &(&str, &str, &str)| {
        json!({
            "ruleId": rule, "message": { "text": message }, "level": "error",
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": path }, "region": { "startLine": 7 },
            } }],
        })
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    let run = json!({ "tool": { "driver": { "name": "ESLint" } }, "results": results });
    json!({ "version": "2.1.0", "runs": [run] }).to_string().into_bytes()
}

const SQLI: (&str, &str, &str) =
    ("security/detect-sql-injection", "front/src/login.js", "A query depends on input.");
const XSS: (&str, &str, &str) = ("no-unsanitized/property", "back/src/page.js", "Unsafe HTML.");

impl Monorepo {
    async fn new(backend: Backend) -> Self {
        let (host, ada) = Builder::new(backend).areas(&AREAS).start_with_owner().await;
        let repository = ada.repository("acme/monorepo").await;
        Self { _host: host, ada, repository }
    }

    async fn upload(&self, commit: &str, filename: &str, content: &[u8]) {
        let upload = self.ada.upload_at(&self.repository, commit, filename, content).await;
        assert_eq!(upload["validation_stage"], "ready", "{upload:#}");
    }

    async fn audit(&self, commit: &str) -> Value {
        let body = json!({ "repository_id": self.repository, "commit_sha": commit });
        let audit = self.ada.audit_of(&body).await;
        assert_eq!(audit["state"], "completed", "{audit:#}");
        audit
    }

    /// Returns the findings of the repository as pairs of rule and state, and the limitations.
    async fn findings(&self) -> (Vec<(String, String)>, Vec<String>) {
        let list = format!("{FINDINGS}?repository_id={}", self.repository);
        let page = self.ada.get(&list).await.expect(200);
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let items = page["items"].as_array().expect("items").iter();
        let mut states: Vec<_> =
            items.map(|one| (text(&one["rule_id"]), text(&one["state"]))).collect();
        states.sort();
        let limitations = page["limitations"].as_array().expect("limitations");
        (states, limitations.iter().map(text).collect())
    }
}

const LODASH: &str = "pkg:npm/lodash@4.17.20";
const OPENSSL: &str = "pkg:deb/ubuntu/openssl@3.0.2-0ubuntu1.1?distro=jammy";
const CURL: &str = "pkg:deb/ubuntu/curl@7.81.0-1ubuntu1?distro=zany-zebra";

/// An SBOM of a folder, as syft writes it: its subject is `.`.
fn syft(purls: &[&str]) -> Vec<u8> {
    let component = |purl: &&str| {
        let name = purl.rsplit('/').next().and_then(|rest| rest.split(['@', '?']).next());
        json!({ "type": "library", "name": name, "bom-ref": purl, "purl": purl })
    };
    let components: Vec<Value> = purls.iter().map(component).collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "syft" }] },
            "component": { "type": "file", "name": ".", "bom-ref": "af63bd4c8601b7f1" },
        },
        "components": components,
    })
    .to_string()
    .into_bytes()
}

/// A VEX document of the product, with statements about components by purl.
fn vex(statements: &[(&str, &str, &str)]) -> Vec<u8> {
    let statement = |&(advisory, state, purl): &(&str, &str, &str)| json!({ "id": advisory, "analysis": { "state": state }, "affects": [{ "ref": purl }] });
    let vulnerabilities: Vec<Value> = statements.iter().map(statement).collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": {
            "type": "application", "name": "acme/monorepo", "bom-ref": "product",
        } },
        "vulnerabilities": vulnerabilities,
    })
    .to_string()
    .into_bytes()
}

/// An advisory of one package. Without a fix it affects every version.
fn advisory(id: &str, upstream: &str, package: (&str, &str), fixed: Option<&str>) -> Value {
    let mut events = vec![json!({ "introduced": "0" })];
    events.extend(fixed.map(|fixed| json!({ "fixed": fixed })));
    let (ecosystem, name) = package;
    json!({
        "id": id, "upstream": [upstream], "modified": "2026-01-01T00:00:00Z",
        "affected": [{
            "package": { "ecosystem": ecosystem, "name": name },
            "ranges": [{ "type": "ECOSYSTEM", "events": events }],
        }],
    })
}

fn texts(values: &Value) -> Vec<String> {
    let values = values.as_array().expect("an array").iter();
    values.map(|value| value.as_str().expect("text").to_owned()).collect()
}

impl Monorepo {
    async fn import_advisories(&self) {
        let ubuntu = |name| ("Ubuntu:22.04:LTS", name);
        for advisory in [
            advisory("GHSA-lodash", "CVE-2026-1", ("npm", "lodash"), Some("4.17.21")),
            advisory(
                "UBUNTU-CVE-2026-2",
                "CVE-2026-2",
                ubuntu("openssl"),
                Some("3.0.2-0ubuntu1.9"),
            ),
            advisory("UBUNTU-CVE-2026-3", "CVE-2026-3", ubuntu("curl"), None),
            advisory("MAL-2026-4", "CVE-2026-4", ("npm", "evilpkg"), None),
            advisory("GHSA-pad", "CVE-2026-5", ("npm", "left-pad"), Some("1.3.0")),
        ] {
            self.ada.post(ADVISORIES, &advisory).await.expect(201);
        }
    }

    /// Returns the names of components with this advisory.
    async fn affected(&self, advisory: &str) -> Vec<String> {
        let list = self.ada.get(&format!("{DEPENDENCIES}?advisory={advisory}")).await.expect(200);
        let items = list["items"].as_array().expect("items").iter();
        items.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Returns advisories and limitations of each component, by name.
    async fn inventory(&self) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
        let list = self.ada.get(&format!("{DEPENDENCIES}?limit=100")).await.expect(200);
        let items = list["items"].as_array().expect("items").iter();
        items
            .map(|item| {
                let advisories = item["advisories"].as_array().expect("advisories").iter();
                let ids = advisories.map(|one| one["advisory_id"].clone()).collect();
                let name = item["name"].as_str().expect("a name").to_owned();
                let mut limitations = texts(&item["limitations"]);
                // These SBOMs have no graph.
                limitations.retain(|text| !text.contains("direct dependency"));
                (name, (texts(&Value::Array(ids)), limitations))
            })
            .collect()
    }

    /// Asserts each component, match, statement and limitation.
    async fn shows_its_inventory(&self, audit: &Value) {
        let found = self.inventory().await;
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["curl", "evilpkg", "left-pad", "lodash", "openssl"], "{audit:#}");
        let none = [""; 0];
        assert_eq!(found["evilpkg"], (vec!["MAL-2026-4".to_owned()], vec![]));
        assert_eq!(found["openssl"], (vec!["UBUNTU-CVE-2026-2".to_owned()], vec![]));
        assert_eq!(found["left-pad"].0, none);
        assert!(found["left-pad"].1.concat().contains("has no version: GHSA-pad"), "{found:#?}");
        assert_eq!(found["curl"].0, none);
        assert!(found["curl"].1.concat().contains("zany-zebra"), "{found:#?}");
        assert_eq!(found["lodash"].0, none, "the product is not affected");
        let said = found["lodash"].1.concat();
        assert!(said.contains("not_affected") && said.contains("GHSA-lodash"), "{found:#?}");
        for (id, name) in [("UBUNTU-CVE-2026-2", "openssl"), ("MAL-2026-4", "evilpkg")] {
            assert_eq!(self.affected(id).await, [name]);
        }
        for clean in ["GHSA-lodash", "UBUNTU-CVE-2026-3", "GHSA-pad"] {
            assert_eq!(self.affected(clean).await, none, "{clean}");
        }

        let statements = self.ada.get(STATEMENTS).await.expect(200);
        let statements = statements["items"].as_array().expect("items");
        let of = |advisory: &str| statements.iter().find(|one| one["advisory_id"] == advisory);
        let lodash = of("GHSA-lodash").expect("a statement");
        assert_eq!(
            (&lodash["state"], &lodash["reference"]),
            (&json!("not_affected"), &json!(LODASH))
        );
        assert_eq!(statements.len(), 2, "{statements:#?}");
        let warnings = audit["parts"]["dependencies"]["warnings"].to_string();
        assert!(warnings.contains("CVE-2026-9"), "it matches no component: {warnings}");
    }
}

fn states(sqli: &str, xss: &str) -> Vec<(String, String)> {
    let state = |rule: &str, state: &str| (rule.to_owned(), state.to_owned());
    vec![state(XSS.0, xss), state(SQLI.0, sqli)]
}

both_backends! {
    async fn a_monorepo_s_scans_without_identity_are_told_apart(backend) {
        let repo = Monorepo::new(backend).await;
        let [first, second, third] = COMMITS;

        repo.upload(first, "front/eslint.sarif", &eslint(&[SQLI])).await;
        repo.upload(first, "back/eslint.sarif", &eslint(&[XSS])).await;
        repo.import_advisories().await;
        let front = syft(&[LODASH, "pkg:npm/evilpkg", "pkg:npm/left-pad"]);
        repo.upload(first, "front/syft.cdx.json", &front).await;
        repo.upload(first, "image/syft.cdx.json", &syft(&[OPENSSL, CURL])).await;
        let statements = [
            ("GHSA-lodash", "not_affected", LODASH),
            ("CVE-2026-9", "not_affected", "pkg:npm/elsewhere@1.0.0"),
        ];
        repo.upload(first, "product.vex.json", &vex(&statements)).await;
        let audit = repo.audit(first).await;
        repo.shows_its_inventory(&audit).await;
        let counts = &audit["parts"]["findings"]["counts"];
        assert_eq!((&counts["new"], &counts["superseded"]), (&json!(2), &json!(0)), "{audit:#}");
        assert_eq!(audit["parts"]["findings"]["warnings"], json!([]));
        assert_eq!(repo.findings().await, (states("new", "new"), vec![]));

        repo.upload(second, "back/eslint.sarif", &eslint(&[XSS])).await;
        let audit = repo.audit(second).await;
        assert_eq!(audit["parts"]["findings"]["counts"]["gone"], 0, "{audit:#}");
        let warnings = audit["parts"]["findings"]["warnings"].to_string();
        assert!(warnings.contains("file:front/eslint.sarif"), "{warnings}");
        let (found, limitations) = repo.findings().await;
        assert_eq!(found, states("new", "new"), "nothing looked at front/");
        assert!(limitations.concat().contains("file:front/eslint.sarif"), "{limitations:?}");

        repo.upload(third, "front/eslint.sarif", &eslint(&[])).await;
        repo.upload(third, "back/eslint.sarif", &eslint(&[XSS])).await;
        let audit = repo.audit(third).await;
        assert_eq!(audit["parts"]["findings"]["counts"]["gone"], 1, "{audit:#}");
        assert_eq!(repo.findings().await, (states("verified", "new"), vec![]));
    }

    async fn a_scan_that_another_of_its_name_sets_aside_is_reported(backend) {
        let repo = Monorepo::new(backend).await;
        let commit = COMMITS[0];
        repo.upload(commit, "eslint.sarif", &eslint(&[SQLI])).await;
        repo.upload(commit, "eslint.sarif", &eslint(&[XSS])).await;
        let audit = repo.audit(commit).await;
        let part = &audit["parts"]["findings"];
        assert_eq!((&part["counts"]["new"], &part["counts"]["superseded"]), (&json!(1), &json!(1)));
        let [old, new] = [1, 0].map(|at| audit["inputs"][at]["upload_id"].as_str().expect("an id"));
        let list = repo.ada.get("/v1/workspaces/{ws}/audits").await.expect(200);
        let listed = &list["items"][0]["parts"]["findings"]["warnings"];
        let (_, limitations) = repo.findings().await;
        for told in [part["warnings"].to_string(), listed.to_string(), limitations.concat()] {
            assert!(told.contains("Set aside") && told.contains(old) && told.contains(new), "{told}");
        }
    }
}
