//! The list of the dependency inventory reports what was skipped or could not be compared. Files
//! are packed and large.

use std::io::Write as _;
use std::time::Duration;

use assurance_tests::artifacts::path_of;
use assurance_tests::{Client, both_backends};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::dependencies::{list, start_with_repository as start};

/// An SBOM of these purls.
fn bom(purls: &[&str]) -> Value {
    let component = |purl: &&str| json!({ "type": "library", "name": "x", "purl": purl });
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6",
        "metadata": { "component": { "type": "application", "name": "shop" } },
        "components": purls.iter().map(component).collect::<Vec<_>>(),
    })
}

fn advisory(id: &str, ecosystem: &str, name: &str, events: &Value) -> Value {
    json!({
        "id": id, "modified": "2026-01-01T00:00:00Z",
        "affected": [{
            "package": { "ecosystem": ecosystem, "name": name },
            "ranges": [{ "type": "ECOSYSTEM", "events": events }],
        }],
    })
}

async fn import(client: &Client, advisory: &Value) {
    client.post("/v1/workspaces/{ws}/advisories", advisory).await.expect(201);
}

/// Returns advisories and limitations of a dependency, by its purl.
fn row(list: &Value, purl: &str) -> (Vec<String>, String) {
    let mut items = list["items"].as_array().expect("items").iter();
    let item = items.find(|item| item["purl"] == purl);
    let item = item.unwrap_or_else(|| panic!("no {purl}: {list:#}"));
    let advisories = item["advisories"].as_array().expect("advisories").iter();
    let ids = advisories.map(|found| found["advisory_id"].as_str().expect("an id").to_owned());
    let limitations = item["limitations"].as_array().expect("limitations").iter();
    // These SBOMs have neither a graph nor a commit.
    let always = ["direct dependency", "deployments are not joined"];
    let kept = limitations.filter_map(Value::as_str);
    let kept = kept.filter(|text| !always.iter().any(|of_all| text.contains(of_all)));
    let kept: Vec<&str> = kept.collect();
    (ids.collect(), kept.join("\n"))
}

/// Returns a Zstandard frame with uncompressed content of at most 255 bytes.
fn zstd(content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("at most 255 bytes");
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, length], &block[..3], content].concat()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("packed");
    encoder.finish().expect("packed")
}

async fn others_write(client: Client, repository: String) {
    loop {
        client.begin_upload(&repository, "small.json", b"{}").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

both_backends! {
    async fn a_dependency_is_clean_only_if_it_was_compared(backend) {
        let (_host, ada, repository) = start(backend).await;
        let all = json!([{ "introduced": "0" }]);
        let below_two = json!([{ "introduced": "0" }, { "fixed": "2" }]);
        for (id, ecosystem, name, events) in [
            ("MAL-1", "npm", "evil", &all),
            ("GHSA-1", "npm", "left-pad", &below_two),
            ("UBUNTU-1", "Ubuntu:25.04", "curl", &all),
            ("GO-1", "Go", "stdlib", &below_two),
            ("GO-2", "Go", "github.com/a/B", &below_two),
        ] {
            import(&ada, &advisory(id, ecosystem, name, events)).await;
        }
        let purls = [
            "pkg:npm/evil",
            "pkg:npm/left-pad",
            "pkg:deb/ubuntu/curl@8.0?distro=plucky",
            "pkg:deb/ubuntu/curl@8.0?distro=zany",
            "pkg:golang/stdlib@go1.19.1",
            "pkg:golang/github.com/a/B@v1.0.0",
            "pkg:golang/github.com/A/b@v1.0.1",
        ];
        let content = bom(&purls).to_string();
        let upload = ada.upload(&repository, "bom.json", content.as_bytes()).await;
        assert_eq!(upload["validation_stage"], "ready", "{upload:#}");
        assert_eq!(ada.audit(&repository).await["state"], "completed");
        let list = list(&ada, "").await;
        for (purl, advisory) in [
            ("pkg:npm/evil", "MAL-1"),
            ("pkg:deb/ubuntu/curl@8.0?distro=plucky", "UBUNTU-1"),
            ("pkg:golang/stdlib@go1.19.1", "GO-1"),
            ("pkg:golang/github.com/a/b@v1.0.0", "GO-2"),
        ] {
            assert_eq!(row(&list, purl), (vec![advisory.to_owned()], String::new()), "{purl}");
        }
        for (purl, limitation) in [
            ("pkg:npm/left-pad", "because the component has no version: GHSA-1"),
            ("pkg:deb/ubuntu/curl@8.0?distro=zany", "\"zany\""),
            ("pkg:golang/github.com/a/b@v1.0.1", "differ in upper and lower case: GO-2"),
        ] {
            let (advisories, limitations) = row(&list, purl);
            assert!(advisories.is_empty(), "{purl}: {advisories:?}");
            assert!(limitations.contains(limitation), "{purl}: {limitations}");
        }
    }

    async fn a_vers_range_is_evaluated(backend) {
        let (_host, ada, repository) = start(backend).await;
        let purls = ["pkg:npm/a@0.9.0", "pkg:npm/a@1.0.0", "pkg:npm/b@1.0.0"];
        let mut content = bom(&purls);
        let affects = |purl: &str, range: &str| {
            json!({ "ref": purl, "versions": [{ "range": range, "status": "affected" }] })
        };
        content["vulnerabilities"] = json!([{
            "id": "CVE-2026-1",
            "affects": [
                affects(purls[0], "vers:npm/<1.0.0"), affects(purls[1], "vers:npm/<1.0.0"),
                affects(purls[2], "vers:openssl/<1.1.1a"),
            ],
        }]);
        ada.upload(&repository, "bom.json", content.to_string().as_bytes()).await;
        ada.audit(&repository).await;
        let list = list(&ada, "").await;
        let found = vec!["CVE-2026-1".to_owned()];
        assert_eq!(row(&list, purls[0]), (found.clone(), String::new()));
        assert_eq!(row(&list, purls[1]), (vec![], String::new()));
        let (advisories, limitations) = row(&list, purls[2]);
        assert_eq!(advisories, found);
        assert!(limitations.contains("vers:openssl"), "{limitations}");
    }

    async fn an_sbom_that_is_refused_is_an_error_of_the_audit_and_a_limitation(backend) {
        let (_host, ada, repository) = start(backend).await;
        let refused = br#"{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{}]}"#;
        ada.upload(&repository, "a/bom.json", refused).await;
        let audit = ada.audit(&repository).await;
        assert_eq!(audit["parts"]["dependencies"]["status"], "failed", "{audit:#}");
        let [error] = &audit["errors"].as_array().expect("errors")[..] else {
            panic!("one error: {audit:#}")
        };
        assert_eq!((&error["code"], &error["filename"]), (&json!("invalid_sbom"), &json!("a/bom.json")));
        let limitations = list(&ada, "").await["limitations"].to_string();
        assert!(limitations.contains("a/bom.json: /components/0"), "{limitations}");
        let content = bom(&["pkg:npm/a@1.0.0"]).to_string();
        ada.upload(&repository, "a/bom.json", content.as_bytes()).await;
        assert_eq!(ada.audit(&repository).await["errors"], json!([]));
        let limitations = list(&ada, "").await["limitations"].to_string();
        assert!(!limitations.contains("refused"), "{limitations}");
    }

    async fn audits_leave_uploads_for_evidence_aside_and_say_so(backend) {
        let (_host, ada, repository) = start(backend).await;
        let content = bom(&["pkg:npm/a@1.0.0"]).to_string();
        let mut wish = json!({
            "filename": "evidence.cdx.json", "content_type": "application/json",
            "compressed_bytes": content.len(), "repository_id": repository,
        });
        for purpose in ["nonsense", ""] {
            wish["purpose"] = json!(purpose);
            let refused = ada.post("/v1/workspaces/{ws}/uploads", &wish).await;
            refused.problem(422, "validation_failed");
        }
        wish["purpose"] = json!("evidence");
        let upload = ada.post("/v1/workspaces/{ws}/uploads", &wish).await.expect(201);
        ada.put_content(&upload, content.as_bytes()).await.expect(200);
        ada.complete_upload(&upload).await.expect(200);
        ada.settled(&path_of(&upload), "validation_stage", &["ready"]).await;
        let audit = ada.audit(&repository).await;
        assert_eq!(audit["inputs"], json!([]));
        assert!(audit["warnings"].to_string().contains("evidence.cdx.json"), "{audit:#}");
        assert_eq!(list(&ada, "").await["items"], json!([]));
    }

    async fn zstd_and_large_files_are_read_and_deep_ones_refused_at_once(backend) {
        let (host, ada, repository) = start(backend).await;
        let small = r#"{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"type":"library","name":"z","purl":"pkg:npm/z@1"}]}"#;
        let (head, tail) = small.as_bytes().split_at(50);
        let frames = [zstd(head), zstd(tail)].concat();
        let upload = ada.upload(&repository, "z.json.zst", &frames).await;
        assert_eq!(upload["validation_stage"], "ready", "{upload:#}");

        let mut large = bom(&["pkg:npm/large@1.0.0"]);
        large["metadata"]["component"]["name"] = json!("image");
        // At the maximum depth, to check that the stack is large enough.
        let mut nested = json!({ "type": "library", "name": "inner" });
        for _ in 0..18 {
            nested = json!({ "type": "library", "name": "a", "components": [nested] });
        }
        large["components"].as_array_mut().expect("components").push(nested);
        // 26.5 MB unpacked; random numbers keep the compression ratio low.
        let padding: Vec<u64> = (0..1_300_000).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        large["x"] = json!(padding);
        let content = large.to_string();
        assert!(content.len() > 26_214_400, "{}", content.len());
        // Others write as long as it is checked, which takes seconds.
        let writing = tokio::spawn(others_write(ada.clone(), repository.clone()));
        let upload = ada.upload(&repository, "image.json.gz", &gzip(content.as_bytes())).await;
        assert_eq!(upload["validation_stage"], "ready", "{upload:#}");
        assert!(!writing.is_finished(), "the others wrote as long as it was checked");
        writing.abort();
        assert!(!host.log().contains("job failed"), "the first run is the last");

        let deep = format!(
            r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{}{}]}}"#,
            r#"{"type":"library","name":"a","components":["#.repeat(25),
            "]}".repeat(25),
        );
        let upload = ada.upload(&repository, "deep.json", deep.as_bytes()).await;
        assert_eq!(upload["validation_error_code"], "nested_too_deeply", "{upload:#}");

        let audit = ada.audit(&repository).await;
        assert_eq!(audit["errors"], json!([]), "{audit:#}");
        let list = list(&ada, "").await;
        row(&list, "pkg:npm/z@1");
        row(&list, "pkg:npm/large@1.0.0");
    }
}
