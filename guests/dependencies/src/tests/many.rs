//! More advisories, and more matches, than one call may read and write.

use super::*;

const PACKAGES: usize = 120;
const ADVISORIES: usize = 100;

fn purls() -> Vec<String> {
    (0..PACKAGES).map(|package| format!("pkg:npm/p{package:03}@1.0.0")).collect()
}

fn bill() -> Upload<'static> {
    let purls = purls();
    sbom("many.json", &bom("shop", &purls.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// The first advisories, about every package before a version, as a file.
fn advisories(count: usize, modified: &str, fixed: &str) -> Upload<'static> {
    let affected: Vec<Value> = (0..PACKAGES)
        .map(|package| {
            json!({
                "package": { "ecosystem": "npm", "name": format!("p{package:03}") },
                "ranges": [{
                    "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": fixed }],
                }],
            })
        })
        .collect();
    let records: Vec<Value> = (0..count)
        .map(|advisory| {
            json!({
                "id": format!("GHSA-{advisory:03}"), "modified": modified, "affected": affected,
            })
        })
        .collect();
    let content = Value::from(records).to_string().into_bytes();
    Upload { filename: "osv.json", format: "osv", content }
}

fn matches(world: &World) -> usize {
    let matches = world.host.documents("matches");
    matches.iter().filter(|found| found["latest"] == true).count()
}

#[test]
fn packages_with_many_advisories_are_imported_and_looked_at_again() {
    let world = World::new();
    let all = PACKAGES * ADVISORIES;
    world.audit(Some("main"), &[advisories(ADVISORIES, "2026-01-01T00:00:00Z", "2.0.0")]);
    assert_eq!(world.host.documents("affected_packages").len(), all);
    for known in [0, PACKAGES] {
        let audit = world.audit(Some("main"), &[bill()]);
        let told = world.told();
        assert_eq!((&told["audit_id"], &told["status"]), (&json!(audit), &json!("succeeded")));
        assert_eq!(told["facts"]["vulnerable"], json!(PACKAGES), "{told}");
        assert_eq!(told["facts"]["advisories"].as_array().map(Vec::len), Some(ADVISORIES));
        assert_eq!(world.host.documents("components").len(), PACKAGES + known);
        assert_eq!(matches(&world), all);
    }

    world.audit(Some("main"), &[advisories(2, "2026-02-01T00:00:00Z", "0.5.0")]);
    assert_eq!(matches(&world), all - 2 * PACKAGES);
    let list = world.list(&[]);
    let items = list["items"].as_array().expect("items").iter();
    let counts: Vec<usize> =
        items.map(|item| item["advisories"].as_array().expect("advisories").len()).collect();
    assert_eq!(counts, [ADVISORIES - 2; 100]);
}

#[test]
fn two_bills_of_one_audit_share_packages_with_many_advisories() {
    let world = World::new();
    let other = sbom("other.json", &bom("admin", &["pkg:npm/p000@1.0.0", "pkg:npm/p001@1.0.0"]));
    world.audit(Some("main"), &[advisories(ADVISORIES, "2026-01-01T00:00:00Z", "2.0.0")]);
    world.audit(Some("main"), &[bill(), other]);
    assert_eq!(world.told()["facts"]["total"], json!(PACKAGES));
    assert_eq!(world.told()["facts"]["vulnerable"], json!(PACKAGES));
    assert_eq!(matches(&world), PACKAGES * ADVISORIES);
}

#[test]
fn a_scanner_that_takes_much_back_is_believed() {
    let world = World::new();
    let purls: Vec<String> = (0..300).map(|package| format!("pkg:npm/p{package:03}@1")).collect();
    let purls: Vec<&str> = purls.iter().map(String::as_str).collect();
    for reported in [40, 1] {
        let affects: Vec<Value> = purls.iter().map(|purl| json!({ "ref": purl })).collect();
        let vulnerabilities: Vec<Value> = (0..reported)
            .map(|at| json!({ "id": format!("CVE-2026-{at:04}"), "affects": affects }))
            .collect();
        let mut bill = bom("shop", &purls);
        bill["vulnerabilities"] = vulnerabilities.into();
        world.audit(Some("main"), &[sbom("scan.json", &bill)]);
        assert_eq!(world.told()["facts"]["vulnerable"], json!(purls.len()));
        assert_eq!(matches(&world), reported * purls.len());
    }
}

#[test]
fn a_package_with_more_entries_than_are_read_says_so() {
    let world = World::new();
    let entry = |at: usize, fixed: &str| {
        json!({
            "package_key": "npm:left-pad", "advisory_id": format!("GHSA-{at:04}"), "aliases": [],
            "withdrawn": false, "severity": "low", "artifact_sha256": "00",
            "affected": {
                "package": { "ecosystem": "npm", "name": "left-pad" },
                "ranges": [{
                    "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": fixed }],
                }],
            },
        })
    };
    let entries = crate::matching::MOST_ENTRIES + 10;
    for at in 0..entries {
        let fixed = if at % 1_000 == 0 { "2.0.0" } else { "0.1.0" };
        world.host.put_document("affected_packages", &format!("GHSA-{at:04}/0"), entry(at, fixed));
    }
    world.audit(None, &[sbom("a.json", &bom("shop", &["pkg:npm/zed@1", LEFT_PAD]))]);
    let list = world.list(&[]);
    let left_pad = &list["items"][0];
    let found = left_pad["advisories"].as_array().expect("advisories");
    let ids: Vec<&Value> = found.iter().map(|found| &found["advisory_id"]).collect();
    assert_eq!(ids, ["GHSA-1000", "GHSA-2000", "GHSA-3000", "GHSA-4000"], "the latest ids");
    let said = format!(
        "Advisories have {entries} entries for this package; the 4000 of the latest ids were \
         looked at."
    );
    assert_eq!(left_pad["limitations"], json!([said]));
    assert_eq!(list["items"][1]["limitations"], json!([]));
}

#[test]
fn of_more_vulnerabilities_than_are_kept_the_most_severe_are() {
    let world = World::new();
    let entry = |at: usize, severity: &str| {
        json!({
            "package_key": "npm:left-pad", "advisory_id": format!("GHSA-{at:04}"), "aliases": [],
            "withdrawn": false, "severity": severity, "artifact_sha256": "00",
            "affected": { "package": { "ecosystem": "npm", "name": "left-pad" }, "versions": ["1.0.0"] },
        })
    };
    for at in 0..2_100 {
        let severity = if at < 200 { "critical" } else { "low" };
        world.host.put_document(
            "affected_packages",
            &format!("GHSA-{at:04}/0"),
            entry(at, severity),
        );
    }
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let left_pad = world.list(&[])["items"][0].clone();
    let found = left_pad["advisories"].as_array().expect("advisories");
    assert_eq!(found.len(), 2_000);
    assert_eq!(found[199]["advisory_id"], "GHSA-0199", "none of the critical ones is missing");
    let said = "This package has 2100 vulnerabilities; the 2000 most severe are listed.";
    assert_eq!(left_pad["limitations"], json!([said]));
}
