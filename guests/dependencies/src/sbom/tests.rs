//! Tests of the SBOM parser with real SBOMs, conformance files and constructed documents.

use area_shared::testing::{corpus, files_with, read_text};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::vex::Target;

/// Parses a JSON value as an SBOM. Leaks the text, so that the SBOM can borrow from it.
fn read(value: &Value) -> Result<Sbom<'static>, ImportFailure> {
    Sbom::read(value.to_string().leak().as_bytes())
}

/// Parses a CycloneDX 1.5 document with these members.
fn cyclonedx(mut members: Value) -> Result<Sbom<'static>, ImportFailure> {
    members["bomFormat"] = json!("CycloneDX");
    members["specVersion"] = json!("1.5");
    read(&members)
}

/// Creates a package of an SPDX document.
fn spdx_package(id: &str) -> Value {
    json!({ "SPDXID": format!("SPDXRef-{id}"), "name": id })
}

/// Parses an SPDX document about the package `root`, with these packages and relationships.
fn spdx(packages: Value, relationships: &[[&str; 3]]) -> Sbom<'static> {
    let about = ["SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-root"];
    let relationships = std::iter::once(&about).chain(relationships).map(|[from, kind, to]| {
        json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
    });
    let document = read(&json!({
        "spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "name": "shop",
        "creationInfo": { "created": "2024-01-01T00:00:00Z", "creators": ["Tool: syft-1.0"] },
        "packages": packages, "relationships": relationships.collect::<Value>(),
    }));
    document.expect("a bill")
}

fn file(path: &str) -> Option<Sbom<'static>> {
    let path = corpus("")?.join(path);
    let read = Sbom::read(std::fs::read(&path).expect("a file").leak());
    Some(read.unwrap_or_else(|mistake| panic!("{}: {mistake}", path.display())))
}

/// Counts components, components with a purl, direct dependencies, dependency edges and reported
/// vulnerabilities.
fn counts(sbom: &Sbom<'_>) -> [usize; 5] {
    let components = sbom.components(0..sbom.len());
    let count = |of: fn(&Component) -> usize| components.iter().map(of).sum();
    [
        components.len(),
        count(|c| usize::from(c.purl.is_some())),
        count(|c| usize::from(c.direct)),
        count(|c| c.dependencies.len()),
        count(|c| c.reported.len()),
    ]
}

#[test]
fn real_files_have_their_counts() {
    use GraphCompleteness::{Absent, Rooted, Rootless};
    for (path, graph, expected) in [
        ("cyclonedx/cern-vdm-1.2.cdx.json", Absent, [43, 43, 0, 0, 0]),
        ("cyclonedx/dropwizard-1.2.cdx.json", Rootless, [167, 167, 0, 170, 0]),
        ("cyclonedx/laravel-1.4.cdx.json", Rooted, [62, 62, 1, 112, 0]),
        ("cyclonedx/log4j-defectdojo.cdx.json", Absent, [1, 1, 0, 0, 8]),
        ("cyclonedx/proton-bridge-go-1.2.cdx.json", Rooted, [201, 201, 56, 176, 0]),
        ("cyclonedx/proton-bridge-go-1.6.3.cdx.json", Rooted, [201, 201, 56, 176, 0]),
        ("cyclonedx/saasbom-services.cdx.json", Rooted, [0, 0, 0, 0, 0]),
        ("cyclonedx/vex.cdx.json", Absent, [0, 0, 0, 0, 0]),
        ("cyclonedx/dependency-track/bom-empty.json", Absent, [0, 0, 0, 0, 0]),
        ("cyclonedx/dependency-track/bom-no-purl.json", Absent, [1, 0, 0, 0, 0]),
        ("cyclonedx/dependency-track/bom-issue1905.json", Rooted, [2, 2, 1, 0, 0]),
        ("cyclonedx/dependency-track/bom-issue3309.json", Absent, [0, 0, 0, 0, 0]),
        ("cyclonedx/dependency-track/bom-issue4455.json", Rooted, [22, 21, 2, 49, 0]),
        ("cyclonedx/dependency-track/bom-license-expression.json", Absent, [1, 0, 0, 0, 0]),
        ("cyclonedx/dependency-track/bom-invalid-license-expression.json", Absent, [1, 0, 0, 0, 0]),
        ("cyclonedx/dependency-track/bom-metadata-components.json", Rooted, [185, 185, 34, 680, 0]),
        ("cyclonedx/dependency-track/valid-bom-1.6.json", Rootless, [2, 1, 0, 1, 0]),
        ("cyclonedx/dependency-track/valid-bom-1.7.json", Rootless, [3, 3, 0, 1, 0]),
        ("spdx/alpine-2.3.spdx.json", Absent, [14, 14, 0, 0, 0]),
        ("spdx/curl.spdx.json", Absent, [13, 13, 0, 0, 0]),
        ("spdx/trivy-mageia.spdx.json", Absent, [182, 181, 0, 0, 0]),
    ] {
        let Some(sbom) = file(path) else { return };
        assert_eq!((sbom.graph, counts(&sbom)), (graph, expected), "{path}");
    }
}

#[test]
fn every_file_gets_the_verdict_its_name_promises() {
    let Some(folder) = corpus("cyclonedx/spec-1.6") else { return };
    let (mut good, mut bad) = (0, 0);
    for path in files_with(&folder, "json") {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let read = Sbom::read(read_text(&path).leak().as_bytes());
        if name.starts_with("valid-") {
            assert!(read.is_ok(), "{name}: {}", read.expect_err("a mistake"));
            good += 1;
        } else {
            let mistake = read.err().unwrap_or_else(|| panic!("{name} was taken"));
            assert!(!mistake.pointer.is_empty() && mistake.message.len() > 10, "{name}: {mistake}");
            bad += 1;
        }
    }
    assert_eq!((good, bad), (45, 25));
}

#[test]
fn files_that_break_a_standard_are_refused_with_what_to_mend() {
    let Some(folder) = corpus("") else { return };
    for (path, pointer) in [
        ("cyclonedx/dependency-track/bom-invalid.json", ""),
        ("spdx/invalid.spdx.json", "/spdxVersion"),
        ("spdx/invalid-identifier.spdx.json", "/creationInfo/creators/0"),
    ] {
        let read = Sbom::read(std::fs::read(folder.join(path)).expect("a file").leak());
        assert_eq!(read.expect_err("a mistake").pointer, pointer, "{path}");
    }
}

#[test]
fn spdx_dependencies_go_either_way() {
    let package = |id: &str, purl: &str| {
        let mut package = spdx_package(id);
        package["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": purl,
        }]);
        package
    };
    let packages = json!([
        package("root", "pkg:generic/shop@1"),
        package("a", "pkg:npm/a@1"),
        package("b", "pkg:npm/b@1"),
        package("c", "pkg:npm/c@1"),
    ]);
    let relationships = [
        ["SPDXRef-root", "DEPENDS_ON", "SPDXRef-a"],
        ["SPDXRef-b", "DEV_DEPENDENCY_OF", "SPDXRef-root"],
        ["SPDXRef-a", "DEPENDS_ON", "SPDXRef-c"],
        ["SPDXRef-a", "CONTAINS", "SPDXRef-b"],
    ];
    let sbom = spdx(packages, &relationships);
    assert_eq!(sbom.subject.as_ref().expect("a subject").key, "pkg:generic/shop");
    assert_eq!((sbom.graph, sbom.tool.as_deref()), (GraphCompleteness::Rooted, Some("syft-1.0")));
    let components = sbom.components(0..9);
    let found: Vec<(&str, bool, Option<Scope>, usize)> = components
        .iter()
        .map(|c| (c.name.as_str(), c.direct, c.scope, c.dependencies.len()))
        .collect();
    let expected = [
        ("a", true, Some(Scope::Required), 1),
        ("b", true, Some(Scope::Excluded), 0),
        ("c", false, Some(Scope::Required), 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn several_packages_that_an_spdx_document_describes_are_components() {
    let packages = json!([spdx_package("root"), spdx_package("a"), spdx_package("b")]);
    let about_a = ["SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-a"];
    let sbom = spdx(packages, &[about_a, ["SPDXRef-a", "DEPENDS_ON", "SPDXRef-b"]]);
    let names: Vec<String> = sbom.components(0..9).into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["root", "a", "b"]);
    assert_eq!(sbom.subject.expect("a subject").key, "shop");
}

#[test]
fn tag_and_digest_of_an_image_without_purl_are_not_part_of_the_subject() {
    for (name, key) in [
        ("registry:5000/shop/app:1f2e", "registry:5000/shop/app"),
        ("app:1@sha256:47fe", "app"),
        ("shop/app", "shop/app"),
        ("sha256:47fe", "sha256:47fe"),
    ] {
        let subject = |kind: &str| {
            let component = json!({ "type": kind, "name": name });
            let sbom = cyclonedx(json!({ "metadata": { "component": component } }));
            sbom.expect("a bill").subject.expect("a subject").key
        };
        assert_eq!((subject("container").as_str(), subject("application").as_str()), (key, name));
        let mut image = spdx_package("root");
        image["name"] = json!(name);
        image["primaryPackagePurpose"] = json!("CONTAINER");
        let sbom = spdx(json!([image, spdx_package("a")]), &[]);
        assert_eq!(sbom.subject.expect("a subject").key, key);
    }
}

#[test]
fn the_type_of_an_spdx_reference_may_be_a_uri() {
    let mut package = spdx_package("a");
    package["externalRefs"] = json!([{
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "http://spdx.org/rdf/references/purl",
        "referenceLocator": "pkg:npm/a@1",
    }]);
    let sbom = spdx(json!([spdx_package("root"), package]), &[]);
    let purl = sbom.components(0..1).remove(0).purl.map(|purl| purl.to_string());
    assert_eq!(purl.as_deref(), Some("pkg:npm/a@1"));
}

#[test]
fn spdx_tells_nothing_from_not_known() {
    let bill = |kind: &str, to: &str| {
        let packages = json!([spdx_package("root"), spdx_package("a")]);
        let relationships = [["SPDXRef-a", "DEPENDS_ON", "NONE"], ["SPDXRef-root", kind, to]];
        let sbom = spdx(packages, &relationships);
        let components = sbom.components(0..9);
        assert!(components.iter().all(|component| component.dependencies.is_empty()));
        sbom.graph
    };
    assert_eq!(bill("DEPENDS_ON", "SPDXRef-a"), GraphCompleteness::Rooted);
    assert_eq!(bill("DEPENDS_ON", "NONE"), GraphCompleteness::Rooted);
    assert_ne!(bill("DEPENDS_ON", "NOASSERTION"), GraphCompleteness::Rooted);
}

#[test]
fn an_spdx_version_that_is_not_asserted_is_none() {
    for (given, expected) in [("NOASSERTION", None), ("NONE", None), ("1.0", Some("1.0"))] {
        let package = |id: &str| {
            let mut package = spdx_package(id);
            package["versionInfo"] = json!(given);
            package
        };
        let sbom = spdx(json!([package("root"), package("a")]), &[]);
        assert_eq!(sbom.components(0..1)[0].version.as_deref(), expected, "{given}");
        assert_eq!(sbom.subject.expect("a subject").version.as_deref(), expected, "{given}");
    }
}

#[test]
fn a_vex_document_has_vulnerabilities_and_no_components() {
    let some = json!([{ "id": "CVE-2026-1", "affects": [{ "ref": "a" }] }]);
    for (members, is_vex) in [
        (json!({ "vulnerabilities": some }), true),
        (json!({ "vulnerabilities": some, "components": [] }), true),
        (json!({ "vulnerabilities": [] }), true),
        (json!({ "vulnerabilities": [], "components": [] }), false),
        (json!({ "vulnerabilities": null }), false),
        (json!({ "components": [] }), false),
        (json!({}), false),
    ] {
        assert_eq!(cyclonedx(members.clone()).expect("a bill").is_vex, is_vex, "{members}");
    }
}

#[test]
fn licence_exceptions_are_ids_of_the_list_too() {
    let bill = |id: &str| {
        let licenses = json!([{ "license": { "id": id } }]);
        let component = json!({ "type": "library", "name": "a", "licenses": licenses });
        cyclonedx(json!({ "components": [component] }))
    };
    assert!(bill("Classpath-exception-2.0").is_ok() && bill("MIT").is_ok());
    assert!(bill("No-Such-Licence").is_err());
}

#[test]
fn a_vulnerability_is_of_whom_it_says_and_of_nobody_else() {
    let serial = "3e671687-395b-41f5-a30f-a58921a69b79";
    let reports = |extra: Value, affects: Value| {
        let mut vulnerability = json!({ "id": "CVE-2024-1", "affects": [affects] });
        let members = vulnerability.as_object_mut().expect("an object");
        members.extend(extra.as_object().expect("an object").clone());
        let sbom = cyclonedx(json!({
            "serialNumber": format!("urn:uuid:{serial}"),
            "components": [{ "type": "library", "name": "a", "version": "1.0", "bom-ref": "a" }],
            "vulnerabilities": [vulnerability],
        }));
        sbom.expect("a bill").components(0..9)[0].reported.len()
    };
    let versions = |versions: Value| json!({ "ref": "a", "versions": versions });
    let none = || json!({});
    assert_eq!(reports(none(), json!({ "ref": "a" })), 1);
    assert_eq!(reports(json!({ "rejected": "2024-01-01T00:00:00Z" }), json!({ "ref": "a" })), 0);
    assert_eq!(reports(none(), versions(json!([{ "version": "1.0", "status": "unaffected" }]))), 0);
    let both = json!([{ "version": "1.0" }, { "range": "vers:npm/>=2", "status": "unaffected" }]);
    assert_eq!(reports(none(), versions(both)), 1);
    assert_eq!(reports(none(), versions(json!([{ "range": "vers:npm/<2" }]))), 1);
    let link = |serial: &str| json!({ "ref": format!("urn:cdx:{serial}/1#a") });
    assert_eq!(reports(none(), link(serial)), 1);
    assert_eq!(reports(none(), link("11111111-395b-41f5-a30f-a58921a69b79")), 0);
}

#[test]
fn a_vulnerability_has_its_best_rating() {
    use SeverityBand::{Critical, High};
    let high = json!({ "vector": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N", "score": 1 });
    let none = json!({ "vector": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N" });
    let old = json!({ "vector": "AV:N/AC:M/Au:N/C:C/I:C/A:C", "method": "CVSSv2" });
    for (ratings, expected) in [
        (json!(null), None),
        (json!([{ "severity": "unknown" }, { "score": "1", "vector": 7 }]), None),
        (json!([{ "severity": "medium" }, { "severity": "critical" }]), Some(Critical)),
        (json!([{ "severity": "info" }]), Some(SeverityBand::None)),
        (json!([{ "score": 7.5, "method": "CVSSv3" }, { "severity": "low" }]), Some(High)),
        (json!([{ "score": 0.9, "method": "other", "severity": "high" }]), Some(High)),
        (json!([high, none, { "score": 10 }]), Some(High)),
        (json!([{ "vector": old["vector"] }, none]), Some(SeverityBand::None)),
    ] {
        let sbom = cyclonedx(json!({
            "components": [{ "type": "library", "name": "a", "bom-ref": "a" }],
            "vulnerabilities": [
                { "id": "CVE-2024-1", "affects": [{ "ref": "a" }], "ratings": ratings },
            ],
        }));
        let components = sbom.expect("a bill").components(0..1);
        assert_eq!(components[0].reported[0].severity, expected, "{ratings}");
    }
}

#[test]
fn vulnerabilities_that_are_skipped_are_counted() {
    let sbom = cyclonedx(json!({
        "components": [{ "type": "library", "name": "a", "bom-ref": "a" }],
        "vulnerabilities": [
            { "id": "CVE-2024-1" }, { "id": "CVE-2024-2", "affects": [] },
            { "affects": [{ "ref": "a" }] }, { "id": "CVE-2024-3", "affects": [{ "ref": "a" }] },
            { "rejected": "2024-01-01T00:00:00Z" },
        ],
    }));
    let expected = [
        "1 vulnerabilities without a usable id were skipped.",
        "2 vulnerabilities without `affects` were skipped.",
    ];
    assert_eq!(sbom.expect("a bill").warnings, expected);
}

#[test]
fn source_packages_are_read_from_what_trivy_writes() {
    for (path, name, expected) in [
        ("cyclonedx/dependency-track/bom-issue4455.json", "libssl3", Some("openssl@3.3.2-r0")),
        ("cyclonedx/dependency-track/bom-issue4455.json", "org.dom4j:dom4j", None),
        ("spdx/trivy-mageia.spdx.json", "basesystem-minimal", Some("basesystem@1:2-21.mga5")),
        ("spdx/alpine-2.3.spdx.json", "musl", None),
    ] {
        let Some(sbom) = file(path) else { return };
        let mut components = sbom.components(0..sbom.len()).into_iter();
        let component = components.find(|component| component.name == name);
        let component = component.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(component.source_package.as_deref(), expected, "{name}");
    }
    let properties = |values: &[(&str, Value)]| {
        let property = |(name, value): &(&str, Value)| json!({ "name": format!("aquasecurity:trivy:{name}"), "value": value });
        let properties: Vec<Value> = values.iter().map(property).collect();
        let component = json!({ "type": "library", "name": "a", "properties": properties });
        let sbom = cyclonedx(json!({ "components": [component] })).expect("a bill");
        sbom.components(0..1).remove(0).source_package
    };
    let [name, version] = [("SrcName", json!("b")), ("SrcVersion", json!("1.0"))];
    let [release, epoch] = [("SrcRelease", json!("2")), ("SrcEpoch", json!("3"))];
    assert_eq!(properties(std::slice::from_ref(&name)).as_deref(), Some("b"));
    assert_eq!(properties(&[release, version, epoch, name]).as_deref(), Some("b@3:1.0-2"));
    assert_eq!(properties(&[("SrcName", json!(1)), ("PkgID", json!("a"))]), None);
}

#[test]
fn equal_purls_are_one_component() {
    let component = |purl: &str, scope: &str| json!({ "type": "library", "name": "x", "purl": purl, "scope": scope, "bom-ref": scope });
    let sbom = read(&json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6",
        "components": [
            component("pkg:PyPI/A_b@1", "excluded"), component("pkg:pypi/a-b@1", "required"),
            { "type": "library", "name": "a", "version": "1", "purl": "no purl" },
            { "type": "file", "name": "  " },
        ],
        "dependencies": [{ "ref": "excluded", "dependsOn": ["required", "gone"] }],
    }));
    let sbom = sbom.expect("a bill");
    let components = sbom.components(0..sbom.len());
    assert_eq!(components.len(), 2);
    assert_eq!(components[0].scope, Some(Scope::Required));
    assert_eq!(components[0].dependencies, ["gone", "pkg:pypi/a-b@1"]);
    assert_eq!(components[1].limitations.len(), 2);
    assert_eq!(sbom.warnings, ["1 components without a name were skipped."]);
}

#[test]
fn several_versions_of_a_purl_without_version_are_a_limitation() {
    let component = |version: &str| json!({ "type": "library", "name": "col", "version": version, "purl": "pkg:npm/col" });
    let merged = |versions: &[&str]| {
        let components: Vec<Value> = versions.iter().map(|version| component(version)).collect();
        let sbom = read(&json!({
            "bomFormat": "CycloneDX", "specVersion": "1.6", "components": components,
        }));
        let components = sbom.expect("a bill").components(0..2);
        let [found] = &components[..] else { panic!("one component") };
        (found.version.clone().unwrap_or_default(), found.limitations.clone())
    };
    let (version, limitations) = merged(&["", "3.0.0", "1.0.0", "2.0.0"]);
    assert_eq!((version.as_str(), limitations.len()), ("3.0.0", 1));
    assert!(limitations[0].contains("only \"3.0.0\" is compared"), "{limitations:?}");
    assert_eq!(merged(&["3.0.0", "3.0.0"]), ("3.0.0".to_owned(), vec![]));
}

#[test]
fn stored_texts_have_no_nul() {
    let link = format!("urn:cdx:{}/1#a%00b", Uuid::from_u128(1));
    let stated = json!([{
        "id": "CVE-2026\0-1", "references": [{ "id": "GHSA\0-1" }],
        "analysis": { "state": "exploitable", "detail": "a\0b" },
        "affects": [{ "ref": "a\0b" }, { "ref": link }],
    }]);
    let sbom = cyclonedx(json!({ "vulnerabilities": stated })).expect("a bill");
    let stored = serde_json::to_string(&sbom.statements).expect("JSON");
    assert!(sbom.statements.len() == 2 && !stored.contains("\\u0000"), "{stored}");
    assert_eq!(sbom.statements[0].target, Target::Component("ab".to_owned()));

    let license = json!([{ "license": { "id": "M\0IT" } }]);
    let component = json!([{ "type": "library", "name": "a", "licenses": license }]);
    let mistake = cyclonedx(json!({ "components": component })).expect_err("a mistake");
    assert!(mistake.to_string().contains("`MIT`"), "{mistake}");
}

#[test]
fn what_is_too_deep_or_neither_standard_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Sbom::read(deep.as_bytes()).expect_err("a mistake").message.contains("deeper"));
    assert!(Sbom::read(b"{}").is_err() && Sbom::read(b"").is_err() && Sbom::read(b"\xff").is_err());
    assert!(
        Sbom::read(b"\xef\xbb\xbf{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.6\"}").is_ok()
    );
    let old = read(&json!({ "bomFormat": "CycloneDX", "specVersion": "1.1" }));
    assert_eq!(old.expect_err("a mistake").pointer, "/specVersion");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\{\"(bomFormat|spdxVersion)\":\\PC{0,80}") {
        let _ = Sbom::read(text.as_bytes());
    }

    #[test]
    fn a_bill_with_a_piece_missing_is_read_or_refused(cut in any::<prop::sample::Index>()) {
        let whole = json!({
            "bomFormat": "CycloneDX", "specVersion": "1.6",
            "components": [{ "type": "library", "name": "é", "purl": "pkg:npm/%C3%A9@1" }],
            "vulnerabilities": [{ "id": "CVE-1", "affects": [{ "ref": "pkg:npm/%C3%A9@1" }] }],
        })
        .to_string();
        let _ = Sbom::read(&whole.as_bytes()[..cut.index(whole.len())]);
    }
}
