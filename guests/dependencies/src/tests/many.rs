//! Tests with more advisories and matches than one step of a job may read and write.

use super::*;

const PACKAGES: usize = 120;
const ADVISORIES: usize = 100;
/// Number of advisory entries of a package with which an assessment needs several steps.
const LARGE: usize = 1_100;

fn bill() -> Upload<'static> {
    let purls: Vec<String> = (0..PACKAGES).map(|at| format!("pkg:npm/p{at:03}@1.0.0")).collect();
    sbom("many.json", &bom("shop", &purls))
}

/// Creates an upload of `count` OSV advisories, each for all versions before `fixed` of all
/// packages.
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
    osv(&records.into())
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
        let told = world.audit_report();
        assert_eq!((&told["audit_id"], &told["status"]), (&json!(audit), &json!("succeeded")));
        assert_eq!(told["facts"]["vulnerable"], json!(PACKAGES), "{told}");
        assert_eq!(told["facts"]["advisories"].as_array().map(Vec::len), Some(ADVISORIES));
        assert_eq!(world.host.documents("components").len(), PACKAGES + known);
        assert_eq!(matches(&world), all);
    }

    world.audit(Some("main"), &[advisories(2, "2026-02-01T00:00:00Z", "0.5.0")]);
    assert_eq!(matches(&world), all - 2 * PACKAGES);
    let list = world.list(&[]);
    let said = format!("{} advisories affect this package; the 50 most", ADVISORIES - 2);
    for item in list["items"].as_array().expect("items") {
        assert_eq!(item["advisories"].as_array().map(Vec::len), Some(50));
        let limitation = item["limitations"][0].as_str().expect("a limitation");
        assert!(limitation.starts_with(&said), "{limitation}");
    }
}

#[test]
fn two_bills_of_one_audit_share_packages_with_many_advisories() {
    let world = World::new();
    let other = sbom("other.json", &bom("admin", &["pkg:npm/p000@1.0.0", "pkg:npm/p001@1.0.0"]));
    world.audit(Some("main"), &[advisories(ADVISORIES, "2026-01-01T00:00:00Z", "2.0.0")]);
    world.audit(Some("main"), &[bill(), other]);
    assert_eq!(world.audit_report()["facts"]["total"], json!(PACKAGES));
    assert_eq!(world.audit_report()["facts"]["vulnerable"], json!(PACKAGES));
    assert_eq!(matches(&world), PACKAGES * ADVISORIES);
}

#[test]
fn a_scanner_that_takes_much_back_is_believed() {
    let world = World::new();
    let purls: Vec<String> = (0..300).map(|package| format!("pkg:npm/p{package:03}@1")).collect();
    for reported in [40, 1] {
        let affects: Vec<Value> = purls.iter().map(|purl| json!({ "ref": purl })).collect();
        let vulnerabilities: Vec<Value> = (0..reported)
            .map(|at| json!({ "id": format!("CVE-2026-{at:04}"), "affects": affects }))
            .collect();
        let mut bill = bom("shop", &purls);
        bill["vulnerabilities"] = vulnerabilities.into();
        world.audit(Some("main"), &[sbom("scan.json", &bill)]);
        assert_eq!(world.audit_report()["facts"]["vulnerable"], json!(purls.len()));
        assert_eq!(matches(&world), reported * purls.len());
    }
}

/// Creates a document of `affected_packages` for `left-pad` 1.0.0 only.
fn entry(id: &str, severity: &str) -> Value {
    json!({
        "package_key": "npm:left-pad", "advisory_id": id, "aliases": [format!("CVE-{id}")],
        "withdrawn": false, "severity": severity, "artifact_sha256": "00",
        "affected": { "package": { "ecosystem": "npm", "name": "left-pad" }, "versions": ["1.0.0"] },
    })
}

fn put_entries(world: &World, count: usize) {
    for at in 0..count {
        let id = format!("GHSA-{at:04}");
        let severity = if at == count - 1 { "critical" } else { "low" };
        let entry = entry(&id, severity);
        world.host.put_document("affected_packages", &format!("{id}/0"), entry);
    }
}

#[test]
fn an_sbom_whose_advisories_need_smaller_batches_is_counted_once() {
    let world = World::new();
    for name in ["a", "b"] {
        let id = format!("GHSA-{name}");
        let mut entry = entry(&id, "low");
        entry["package_key"] = json!(format!("npm:{name}"));
        entry["affected"]["versions"] = json!(["1".repeat(7 << 20)]);
        world.host.put_document("affected_packages", &format!("{id}/0"), entry);
    }
    world.audit(None, &[sbom("a.json", &bom("shop", &["pkg:npm/a@1", "pkg:npm/b@1"]))]);
    assert_eq!(world.audit_report()["counts"]["sboms"], 1);
}

/// Reads all pages of the advisories of a dependency, and returns the advisory ids.
fn all_advisories(world: &World, id: &Value, limit: u32) -> Vec<String> {
    let request = Request::to("list_component_advisories").with("component_id", id.clone());
    texts(&world.pages(&request, limit), "advisory_id")
}

#[test]
fn a_row_has_the_most_severe_advisories_and_the_others_are_paged() {
    let world = World::new();
    put_entries(&world, 120);
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD, "pkg:npm/zed@1"]))]);
    let list = world.list(&[]);
    let left_pad = &list["items"][0];
    let found = left_pad["advisories"].as_array().expect("advisories");
    assert_eq!(found.len(), 50);
    assert_eq!(found[49]["advisory_id"], "GHSA-0119", "the critical one is there");
    let limitation = left_pad["limitations"][0].as_str().expect("a limitation");
    assert!(
        limitation.starts_with("120 advisories affect this package; the 50 most"),
        "{limitation}"
    );
    assert_eq!(list["items"][1]["limitations"], json!([]));
    for limit in [7, 100] {
        let all = all_advisories(&world, &left_pad["id"], limit);
        assert_eq!(all.len(), 120);
        assert!(all.is_sorted(), "{all:?}");
    }
    assert_eq!(all_advisories(&world, &list["items"][1]["id"], 10), [""; 0]);
    for name in ["GHSA-0000", "GHSA-0077", "cve-ghsa-0118"] {
        assert_eq!(names(&world.list(&[("advisory", json!(name))])), ["left-pad"], "{name}");
    }
    let told = world.audit_report();
    assert_eq!(told["facts"]["advisories"].as_array().map(Vec::len), Some(2 * 120), "with aliases");
    assert_eq!(told["counts"]["advisories"], 120);
}

#[test]
fn an_advisory_list_of_a_component_with_few_is_paged_too() {
    let world = World::new();
    put_entries(&world, 5);
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let id = world.list(&[])["items"][0]["id"].clone();
    assert_eq!(all_advisories(&world, &id, 2).len(), 5);
    let absent = Request::to("list_component_advisories").with("limit", 5);
    let absent = absent.with("component_id", Uuid::from_u128(1).to_string());
    assert!(world.host.call(absent).is_err(), "there is no such component");
}

#[test]
fn a_package_with_more_entries_than_a_step_reads_keeps_all_its_advisories() {
    let world = World::new();
    put_entries(&world, LARGE);
    let purls = ["pkg:npm/a@1", LEFT_PAD, "pkg:npm/left-pad@1.0.0?x=y", "pkg:npm/zed@1"];
    for audit in 1..=2 {
        world.audit(Some("main"), &[sbom("a.json", &bom("shop", &purls))]);
        let told = world.audit_report();
        assert_eq!((&told["facts"]["total"], &told["facts"]["vulnerable"]), (&json!(4), &json!(2)));
        assert_eq!(told["facts"]["advisories"].as_array().map(Vec::len), Some(2 * LARGE));
        let list = world.list(&[]);
        assert_eq!(names(&list), ["a", "left-pad", "left-pad", "zed"], "{audit}");
        let all = all_advisories(&world, &list["items"][2]["id"], 100);
        assert_eq!(all.len(), LARGE);
        assert_eq!(names(&world.list(&[("advisory", json!("GHSA-1099"))])).len(), 2);
        assert_eq!(matches(&world), 2 * 2 * LARGE);
        assert_eq!(world.host.documents("scan_parts").len(), 0);
    }
}

#[test]
fn a_large_package_follows_its_advisories() {
    let world = World::new();
    put_entries(&world, LARGE);
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let told = world.events("dependency.vulnerable").len();
    world.ingest(&advisory("GHSA-NEW", &["CVE-NEW"], "1.2.0"));
    assert_eq!(world.events("dependency.vulnerable").len(), told + 1);
    assert_eq!(names(&world.list(&[("advisory", json!("CVE-NEW"))])), ["left-pad"]);
    let mut withdrawn = advisory("GHSA-NEW", &["CVE-NEW"], "1.2.0");
    withdrawn["modified"] = json!("2026-02-01T00:00:00Z");
    withdrawn["withdrawn"] = json!("2026-02-01T00:00:00Z");
    world.ingest(&withdrawn);
    assert_eq!(names(&world.list(&[("advisory", json!("CVE-NEW"))])), [""; 0]);
    let list = world.list(&[]);
    assert_eq!(all_advisories(&world, &list["items"][0]["id"], 100).len(), LARGE);
    assert_eq!(matches(&world), 2 * LARGE);
    assert_eq!(world.host.documents("scan_parts").len(), 0);
}

#[test]
fn components_that_the_version_before_wrote_are_listed_with_the_same_bound() {
    let world = World::new();
    put_entries(&world, 1);
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let id = world.list(&[])["items"][0]["id"].as_str().expect("an id").to_owned();
    let mut component = world.host.documents("components").remove(0);
    let first = component["advisories"][0].clone();
    let many: Vec<Value> = (0..80)
        .map(|at| {
            let mut entry = first.clone();
            entry["advisory_id"] = json!(format!("OLD-{at:02}"));
            entry
        })
        .collect();
    let members = component.as_object_mut().expect("an object");
    for new in ["advisory_count", "unfinished", "revision"] {
        members.remove(new);
    }
    members.insert("advisories".to_owned(), many.into());
    let keys: Vec<String> = (0..80).map(|at| format!("OLD-{at:02}")).collect();
    members.insert("advisory_keys".to_owned(), json!(keys));
    let found = world.host.documents("matches").remove(0);
    for key in &keys {
        let mut old = found.clone();
        old["advisory_key"] = json!(key);
        world.host.put_document("matches", &format!("{id}/{key}"), old);
    }
    world.host.put_document("components", &id, component);
    let list = world.list(&[]);
    assert_eq!(list["items"][0]["advisories"].as_array().map(Vec::len), Some(50));
    assert_eq!(all_advisories(&world, &json!(id), 30).len(), 80);
}
