//! Tests of the purls and versions of packages in SPDX documents.

use super::*;

/// Imports an SPDX document whose subject depends on one package, which has these members. Returns
/// that dependency.
fn dependency(members: &Value) -> Value {
    let mut package = json!({ "SPDXID": "SPDXRef-a", "name": "a" });
    for (member, value) in members.as_object().expect("members") {
        package[member] = value.clone();
    }
    let relationship = |from: &str, kind: &str, to: &str| json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to });
    let document = json!({
        "spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "name": "shop",
        "creationInfo": { "created": "2026-01-01T00:00:00Z", "creators": ["Tool: syft-1.0"] },
        "packages": [{ "SPDXID": "SPDXRef-root", "name": "shop" }, package],
        "relationships": [
            relationship("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-root"),
            relationship("SPDXRef-root", "DEPENDS_ON", "SPDXRef-a"),
        ],
    });
    let content = document.to_string().into_bytes();
    let world = with_advisory();
    world.audit(None, &[Upload { filename: "a.spdx.json", format: "spdx", content }]);
    world.list(&[])["items"][0].clone()
}

/// Creates the member `externalRefs` with these purls.
fn purls(purls: &[&str]) -> Value {
    let reference = |purl: &&str| {
        json!({
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": purl,
        })
    };
    json!({ "externalRefs": purls.iter().map(reference).collect::<Vec<_>>() })
}

#[test]
fn further_purls_of_a_package_are_not_silently_clean() {
    let same = ["pkg:npm/a@1.0.0", "pkg:npm/a@1.0.0?arch=x"];
    assert_eq!(dependency(&purls(&same))["limitations"], json!([]));
    let found = dependency(&purls(&["pkg:npm/a@1.0.0", "pkg:npm/left-pad@0.0.1", "no purl"]));
    assert_eq!((&found["name"], &found["advisories"]), (&json!("a"), &json!([])));
    let limitation = "The SBOM gives further purls of this package, which are not compared with \
                      advisories: pkg:npm/left-pad@0.0.1, no purl.";
    assert_eq!(found["limitations"], json!([limitation]));
    let many: Vec<String> = (0..5).map(|at| format!("pkg:npm/p{at}@1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let limitations = dependency(&purls(&many))["limitations"].to_string();
    assert!(limitations.contains("p1@1, pkg:npm/p2@1, pkg:npm/p3@1, and 1 more."), "{limitations}");
}

#[test]
fn a_version_that_is_not_asserted_is_none() {
    for (given, version) in
        [("NOASSERTION", Value::Null), ("NONE", Value::Null), ("0.2.0", json!("0.2.0"))]
    {
        let mut members = purls(&["pkg:npm/left-pad"]);
        members["versionInfo"] = json!(given);
        let found = dependency(&members);
        assert_eq!(found["version"], version, "{given}");
        let is_limited = found["limitations"].to_string().contains("has no version: GHSA-1");
        assert_eq!(is_limited, version.is_null(), "{given}");
    }
}
