//! Tests of the purl parser with the published tests of the purl specification, and with further
//! cases.

use area_shared::testing::{corpus, files_with, read_text};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Inputs for which the published tests contradict each other: some expect a canonical purl, others
/// an error. The specification's text about qualifier keys supports the canonical purl.
const CONTRADICTED: &[&str] = &[
    "pkg:gem/jruby-launcher@1.1.2?Platform=java",
    "pkg:Rpm/fedora/curl@7.50.3-1.fc25?Arch=i386&Distro=fedora-25",
];

fn text(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

fn build(input: &Value) -> PurlResult<Purl> {
    let pairs = input["qualifiers"].as_object().into_iter().flatten();
    Purl::build(Purl {
        kind: text(&input["type"]).unwrap_or_default(),
        namespace: text(&input["namespace"]),
        name: text(&input["name"]).unwrap_or_default(),
        version: text(&input["version"]),
        qualifiers: pairs.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect(),
        subpath: text(&input["subpath"]),
    })
}

fn as_parts(purl: &Purl) -> Value {
    let qualifiers = (!purl.qualifiers.is_empty()).then_some(&purl.qualifiers);
    serde_json::json!({
        "type": purl.kind, "namespace": purl.namespace, "name": purl.name,
        "version": purl.version, "qualifiers": qualifiers, "subpath": purl.subpath,
    })
}

/// Runs one published test. The error text contains the actual result.
fn check(test: &Value) -> Result<(), String> {
    let input = &test["input"];
    let purl = match test["test_type"].as_str() {
        Some("build") => build(input),
        _ => Purl::parse(input.as_str().unwrap_or_default()),
    };
    let refused = test["expected_failure"] == true;
    let expected = &test["expected_output"];
    match (purl, refused) {
        (Err(_), true) => Ok(()),
        (Ok(purl), false) if expected.is_string() => {
            (text(expected) == Some(purl.to_string())).then_some(()).ok_or(purl.to_string())
        }
        (Ok(purl), false) => {
            (as_parts(&purl) == *expected).then_some(()).ok_or(as_parts(&purl).to_string())
        }
        (Ok(purl), true) => Err(format!("not refused: {purl}")),
        (Err(PurlError(why)), false) => Err(format!("refused: {why}")),
    }
}

#[test]
fn the_published_tests_pass() {
    let Some(folder) = corpus("purl") else { return };
    let files = files_with(&folder, "json");
    let mut count = 0;
    for file in files {
        let suite: Value = serde_json::from_str(&read_text(&file)).expect("JSON");
        for test in suite["tests"].as_array().expect("tests") {
            let contradicted = test["expected_failure"] == true
                && test["input"].as_str().is_some_and(|input| CONTRADICTED.contains(&input));
            if !contradicted {
                check(test).unwrap_or_else(|got| panic!("{}: {test:#}\n{got}", file.display()));
                count += 1;
            }
        }
    }
    assert!(count >= 580, "only {count} tests");
}

#[test]
fn what_is_no_purl_is_refused_with_a_reason() {
    for wrong in ["", "pkg:", "pkg:npm", "pkg:npm/", "PKG:npm/a", "pkg:npm/%ff", "pkg:npm/%00"] {
        assert!(Purl::parse(wrong).is_err(), "{wrong}");
    }
    assert!(Purl::parse(&format!("pkg:npm/{}", "a".repeat(5000))).is_err());
}

#[test]
fn a_package_is_its_purl_without_version() {
    let purl = Purl::parse("pkg:maven/org.apache/a@1?type=jar#x").expect("a purl");
    assert_eq!(purl.package().to_string(), "pkg:maven/org.apache/a");
}

#[test]
fn a_slash_in_a_version_is_part_of_the_version() {
    for (text, namespace, name, version) in [
        ("pkg:githubactions/pypa/publish@release/v1", Some("pypa"), "publish", Some("release/v1")),
        ("pkg:npm/%40sc/filedep@file:../b", Some("@sc"), "filedep", Some("file:../b")),
        ("pkg:npm/tag@npm:%40babel/x%401.0.0", None, "tag", Some("npm:@babel/x@1.0.0")),
        ("pkg:npm/@scope/name@1/2", Some("@scope"), "name", Some("1/2")),
        ("pkg:npm/@scope/name@1?a=b@c/d#e@f/g", Some("@scope"), "name", Some("1")),
        ("pkg:npm/@scope/name", Some("@scope"), "name", None),
        ("pkg:npm//@scope/name", Some("@scope"), "name", None),
        ("pkg:golang/a.b/@c/d", Some("a.b/@c"), "d", None),
    ] {
        let purl = Purl::parse(text).expect("a purl");
        let parts = (purl.namespace.as_deref(), purl.name.as_str(), purl.version.as_deref());
        assert_eq!(parts, (namespace, name, version), "{text}");
        assert_eq!(Purl::parse(&purl.to_string()), Ok(purl), "{text}");
    }
}

proptest! {
    #[test]
    fn canonical_text_is_a_fixed_point(text in "pkg:[a-z]{1,5}/[ -~é/]{0,24}") {
        if let Ok(purl) = Purl::parse(&text) {
            let canonical = purl.to_string();
            prop_assert_eq!(Purl::parse(&canonical).map(|again| again.to_string()), Ok(canonical));
        }
    }
}
