//! A repository of several packages, whose scans and SBOMs carry no identity
//! but the names of their files: nothing is lost, and only what was looked at
//! is verified.

use assurance_tests::{Backend, Builder, Client, TestHost, both_backends};
use serde_json::{Value, json};

use crate::audits::AREAS;

const FINDINGS: &str = "/v1/workspaces/{ws}/findings";

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

/// A run of `ESLint` without a category, as its SARIF formatter writes it.
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

    /// The findings of the repository, as pairs of rule and state.
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
        let audit = repo.audit(first).await;
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
