//! Tests of VEX statements in SBOMs and in separate documents.

use area_shared::testing::corpus;

use super::*;

const SERIAL: &str = "3e671687-395b-41f5-a30f-a58921a69b79";
pub(super) const MINIMIST: &str = "pkg:npm/minimist@1.2.5";

/// Creates a CycloneDX VEX document: an SBOM without components, with these `vulnerabilities`.
pub(super) fn vex(subject: Option<&str>, vulnerabilities: Value) -> Value {
    let mut vex = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "vulnerabilities": vulnerabilities,
    });
    if let Some(name) = subject {
        let component = json!({ "type": "application", "name": name, "bom-ref": "product" });
        vex["metadata"] = json!({ "component": component });
    }
    vex
}

pub(super) fn statement(advisory: &str, state: &str, reference: &str) -> Value {
    let mut analysis = json!({ "state": state });
    if state == "not_affected" {
        analysis["justification"] = json!("code_not_reachable");
    }
    json!({ "id": advisory, "analysis": analysis, "affects": [{ "ref": reference }] })
}

/// Creates a host with an advisory for `left-pad` 1.0.0: GHSA-1, with the alias CVE-2026-1.
pub(super) fn world() -> World {
    let world = World::new();
    world.import(&advisory("GHSA-1", &["CVE-2026-1"], "1.2.0")).expect("imported");
    world
}

/// Creates the SBOM of `shop` with a serial number, in which `left-pad` has the `bom-ref` `pad`.
pub(super) fn shop() -> Value {
    let mut shop = bom("shop", &[LEFT_PAD, MINIMIST]);
    shop["serialNumber"] = json!(format!("urn:uuid:{SERIAL}"));
    shop["components"][0]["bom-ref"] = json!("pad");
    shop
}

fn item<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut items = list["items"].as_array().expect("items").iter();
    items.find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

pub(super) fn advisories(world: &World, name: &str) -> Vec<String> {
    let list = world.list(&[]);
    ids(item(&list, name))
}

pub(super) fn limitations(world: &World, name: &str) -> Vec<String> {
    let list = world.list(&[]);
    strings(&item(&list, name)["limitations"])
}

pub(super) fn statements(world: &World, filters: &[(&str, &str)]) -> Vec<Value> {
    let request = Request::to("list_vex_statements").with("limit", 100);
    let request = filters.iter().fold(request, |request, (name, value)| request.with(name, *value));
    let page = world.host.call(request).expect("a list").body;
    page["items"].as_array().expect("items").clone()
}

fn warned(world: &World, part: &str) {
    let warnings = strings(&world.audit_report()["warnings"]);
    let found = warnings.iter().any(|warning| warning.contains(part));
    assert!(found, "{part:?} is not in {warnings:#?}");
}

#[test]
fn a_vex_document_does_not_replace_the_sbom_of_its_product() {
    for reference in ["product", "pad", LEFT_PAD, "pkg:npm/left-pad"] {
        let world = world();
        let statements = json!([statement("CVE-2026-1", "not_affected", reference)]);
        let vex = sbom("shop.vex.json", &vex(Some("shop"), statements));
        world.audit(Some("main"), &[vex, sbom("shop.cdx.json", &shop())]);
        assert_eq!(names(&world.list(&[])), ["left-pad", "minimist"], "{reference}");
        assert_eq!(advisories(&world, "left-pad"), [""; 0], "{reference}");
        let said = "Not listed, since shop.vex.json states not_affected: code_not_reachable: \
                    GHSA-1 (CVE-2026-1).";
        assert_eq!(limitations(&world, "left-pad"), [said], "{reference}");
        assert_eq!(limitations(&world, "minimist"), [""; 0], "{reference}");
        let told = world.audit_report();
        assert_eq!((&told["facts"]["total"], &told["facts"]["vulnerable"]), (&json!(2), &json!(0)));
        assert_eq!(told["warnings"], json!([]), "{reference}");
        assert_eq!(names(&world.list(&[("advisory", json!("CVE-2026-1"))])), [""; 0]);
    }
}

#[test]
fn a_vex_document_comes_after_the_sbom_or_before_it() {
    let statements = json!([
        statement("CVE-2026-1", "not_affected", LEFT_PAD),
        statement("CVE-2026-2", "exploitable", MINIMIST),
    ]);
    let document = || sbom("shop.vex.json", &vex(Some("shop"), statements.clone()));
    let check = |world: &World| {
        assert_eq!(advisories(world, "left-pad"), [""; 0]);
        assert_eq!(advisories(world, "minimist"), ["CVE-2026-2"]);
        assert_eq!(names(&world.list(&[("advisory", json!("CVE-2026-2"))])), ["minimist"]);
    };
    let world = world();
    world.audit(Some("main"), &[sbom("shop.cdx.json", &shop())]);
    assert_eq!(advisories(&world, "left-pad"), ["GHSA-1"]);
    world.audit(Some("main"), &[document()]);
    check(&world);
    let facts = world.audit_report()["facts"].clone();
    assert_eq!((&facts["total"], &facts["vulnerable"]), (&json!(2), &json!(1)));
    assert_eq!(facts["advisories"], json!(["CVE-2026-2"]));
    let basis = item(&world.list(&[]), "minimist")["advisories"][0]["match_basis"].clone();
    assert_eq!(basis, "scanner_reported");
    let told: Vec<Value> = world.events("dependency.vulnerable");
    assert_eq!(told.last().expect("an event")["advisory_id"], "CVE-2026-2");

    let other = super::vex::world();
    other.audit(Some("main"), &[document()]);
    warned(&other, "shop.vex.json: 2 of 2 statements match no component: CVE-2026-1 of");
    other.audit(Some("main"), &[sbom("shop.cdx.json", &shop())]);
    check(&other);
    assert_eq!(other.audit_report()["warnings"], json!([]));
    assert_eq!(other.audit_report()["facts"]["vulnerable"], 1);
    let found = statements_of(&other, "CVE-2026-2");
    assert_eq!(found["matches"]["components"][0]["purl"], MINIMIST);
}

fn statements_of(world: &World, advisory: &str) -> Value {
    let mut found = statements(world, &[("advisory", advisory)]);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn a_bom_link_means_one_document() {
    for (link, matches) in [
        (format!("urn:cdx:{SERIAL}/1#pad"), true),
        (format!("urn:cdx:{SERIAL}/1#pkg%3Anpm%2Fleft-pad%401.0.0"), true),
        (format!("urn:cdx:{SERIAL}/1#root"), true),
        (format!("urn:cdx:{SERIAL}/1"), true),
        (format!("urn:cdx:{SERIAL}/2#pad"), false),
        (format!("urn:cdx:{SERIAL}/1#other"), false),
        ("urn:cdx:11111111-395b-41f5-a30f-a58921a69b79/1#pad".to_owned(), false),
    ] {
        let document = vex(None, json!([statement("CVE-2026-1", "false_positive", &link)]));
        for before in [true, false] {
            let world = world();
            let mut parts = [sbom("vex.json", &document), sbom("shop.cdx.json", &shop())];
            if before {
                parts.reverse();
            }
            let [first, second] = parts;
            world.audit(Some("main"), &[first]);
            // A statement also counts if an audit of another branch imports its document.
            world.audit(Some(if before { "other" } else { "main" }), &[second]);
            let expected: &[&str] = if matches { &[] } else { &["GHSA-1"] };
            assert_eq!(advisories(&world, "left-pad"), expected, "{link} {before}");
            let found = statements_of(&world, "CVE-2026-1");
            let empty = found["matches"]["component_count"] == 0;
            let product = found["matches"]["is_product"] == true;
            assert_eq!(!empty || product, matches, "{link}: {found:#}");
            if !matches {
                warned(&world, &format!("CVE-2026-1 of {link}"));
            }
        }
    }
}

#[test]
fn a_statement_inside_an_sbom_ends_the_match_by_range() {
    for state in ["not_affected", "false_positive", "resolved", "resolved_with_pedigree"] {
        let world = world();
        let mut shop = shop();
        shop["vulnerabilities"] = json!([statement("CVE-2026-1", state, "pad")]);
        world.audit(Some("main"), &[sbom("shop.cdx.json", &shop)]);
        assert_eq!(advisories(&world, "left-pad"), [""; 0], "{state}");
        let said = limitations(&world, "left-pad");
        assert!(said[0].starts_with(&format!("Not listed, since shop.cdx.json states {state}")));
        assert!(said[0].ends_with(": GHSA-1 (CVE-2026-1)."), "{said:?}");
        assert_eq!(world.audit_report()["facts"]["vulnerable"], 0);
        let listed = statements_of(&world, "cve-2026-1");
        assert_eq!((&listed["state"], &listed["reference"]), (&json!(state), &json!("pad")));
        assert_eq!(listed["matches"]["component_count"], 1);
        assert_eq!(listed["document"]["filename"], "shop.cdx.json");
        assert_eq!(listed["document"]["serial_number"], SERIAL);
    }
    for state in ["in_triage", "exploitable"] {
        let world = world();
        let mut shop = shop();
        shop["vulnerabilities"] = json!([statement("CVE-2026-1", state, "pad")]);
        world.audit(Some("main"), &[sbom("shop.cdx.json", &shop)]);
        assert_eq!(advisories(&world, "left-pad"), ["GHSA-1"], "{state}");
        assert_eq!(limitations(&world, "left-pad"), [""; 0], "{state}");
    }
}

#[test]
fn a_statement_survives_what_advisories_do_later() {
    let world = world();
    let statements = json!([statement("CVE-2026-1", "not_affected", "product")]);
    let vex = sbom("shop.vex.json", &vex(Some("shop"), statements));
    world.audit(Some("main"), &[vex, sbom("shop.cdx.json", &shop())]);
    let mut later = advisory("GHSA-1", &["CVE-2026-1"], "1.1.0");
    later["modified"] = json!("2026-02-01T00:00:00Z");
    world.import(&later).expect("imported");
    world.ingest(&advisory("PYSEC-1", &["CVE-2026-1"], "1.1.0"));
    assert_eq!(advisories(&world, "left-pad"), [""; 0]);
    world.ingest(&advisory("GHSA-9", &["CVE-2026-9"], "1.1.0"));
    assert_eq!(advisories(&world, "left-pad"), ["GHSA-9"]);
    world.audit(Some("main"), &[sbom("shop.cdx.json", &shop())]);
    assert_eq!(advisories(&world, "left-pad"), ["GHSA-9"], "nor is it lost with the next audit");
}

#[test]
fn a_later_document_of_the_subject_replaces_the_statements() {
    let world = world();
    let document = |statements: Value| vex(Some("shop"), statements);
    let shop = || sbom("shop.cdx.json", &shop());
    let first = document(json!([
        statement("CVE-2026-1", "not_affected", "product"),
        statement("CVE-2026-2", "exploitable", MINIMIST),
    ]));
    world.audit(Some("main"), &[sbom("1.vex.json", &first), shop()]);
    assert_eq!(advisories(&world, "minimist"), ["CVE-2026-2"]);

    let second = document(json!([statement("CVE-2026-1", "in_triage", "product")]));
    world.host.advance(60);
    world.audit(Some("main"), &[sbom("2.vex.json", &second)]);
    assert_eq!(advisories(&world, "left-pad"), ["GHSA-1"]);
    assert_eq!(advisories(&world, "minimist"), [""; 0]);
    assert_eq!(limitations(&world, "left-pad"), [""; 0]);
    let listed = statements(&world, &[]);
    assert_eq!(listed.len(), 1, "{listed:#?}");
    assert_eq!(listed[0]["document"]["filename"], "2.vex.json");

    // A document that is imported later, but was written earlier, does not change the result.
    world.host.advance(-3600);
    world.audit(Some("main"), &[sbom("1.vex.json", &first)]);
    assert_eq!(advisories(&world, "left-pad"), ["GHSA-1"]);
}

#[test]
fn of_contradicting_documents_the_newest_counts() {
    let mut own = shop();
    own["vulnerabilities"] = json!([statement("CVE-2026-1", "exploitable", "pad")]);
    let denied = vex(Some("shop"), json!([statement("CVE-2026-1", "not_affected", "pad")]));
    let world = world();
    world.audit(Some("main"), &[sbom("shop.cdx.json", &own)]);
    world.audit(Some("main"), &[sbom("shop.vex.json", &denied)]);
    assert_eq!(advisories(&world, "left-pad"), [""; 0]);
    world.audit(Some("main"), &[sbom("shop.cdx.json", &own)]);
    assert_eq!(advisories(&world, "left-pad"), ["GHSA-1"], "the SBOM is newer now");
}

#[test]
fn a_newer_document_adds_the_match_that_the_sbom_denied() {
    let mut own = shop();
    own["vulnerabilities"] = json!([statement("CVE-2026-2", "not_affected", MINIMIST)]);
    let affected = vex(Some("shop"), json!([statement("CVE-2026-2", "exploitable", MINIMIST)]));
    let world = world();
    world.audit(Some("main"), &[sbom("shop.cdx.json", &own)]);
    assert_eq!(advisories(&world, "minimist"), [""; 0]);
    world.audit(Some("main"), &[sbom("shop.vex.json", &affected)]);
    assert_eq!(advisories(&world, "minimist"), ["CVE-2026-2"]);
    assert_eq!(limitations(&world, "minimist"), [""; 0]);
    world.audit(Some("main"), &[sbom("shop.cdx.json", &own)]);
    assert_eq!(advisories(&world, "minimist"), [""; 0], "the SBOM is newer now");
}

#[test]
fn a_statement_about_one_product_is_not_about_another() {
    let world = world();
    let vex = vex(Some("shop"), json!([statement("CVE-2026-1", "not_affected", LEFT_PAD)]));
    let inputs = [
        sbom("shop.vex.json", &vex),
        sbom("shop.cdx.json", &shop()),
        sbom("admin.cdx.json", &bom("admin", &[LEFT_PAD, "pkg:npm/left-pad@1.0.1"])),
    ];
    world.audit(Some("main"), &inputs);
    let list = world.list(&[]);
    let items = list["items"].as_array().expect("items");
    for item in items.iter().filter(|item| item["name"] == "left-pad") {
        assert_eq!(item["advisories"][0]["advisory_id"], "GHSA-1", "{item:#}");
    }
    let said = items[0]["limitations"][0].as_str().expect("a limitation");
    assert!(said.starts_with("Listed although shop.vex.json states not_affected"), "{said}");
}

#[test]
fn a_statement_about_one_of_several_mentions_ends_nothing() {
    let world = world();
    let mut shop = shop();
    let mut second = shop["components"][0].clone();
    second["bom-ref"] = json!("pad-2");
    shop["components"].as_array_mut().expect("components").push(second);
    let document = |reference: &str| {
        vex(Some("shop"), json!([statement("CVE-2026-1", "resolved", reference)]))
    };
    for (reference, ended) in
        [("pad", false), ("pad-2", false), (LEFT_PAD, true), ("product", true)]
    {
        let inputs = [sbom("v.json", &document(reference)), sbom("shop.cdx.json", &shop)];
        world.audit(Some(reference), &inputs);
        let list = world.list(&[("branch_ref", json!(reference))]);
        let left_pad = item(&list, "left-pad");
        assert_eq!(left_pad["advisories"] == json!([]), ended, "{reference}: {left_pad:#}");
        shop["vulnerabilities"] = json!([statement("CVE-2026-1", "resolved", reference)]);
        let branch = format!("{reference}-inside");
        world.audit(Some(&branch), &[sbom("shop.cdx.json", &shop)]);
        let list = world.list(&[("branch_ref", json!(branch))]);
        let own = reference == "product";
        let left_pad = item(&list, "left-pad");
        assert_eq!(left_pad["advisories"] == json!([]), ended && !own, "{branch}: {left_pad:#}");
        shop["vulnerabilities"] = json!([]);
    }
}

#[test]
fn a_statement_holds_for_its_versions() {
    for (about, versions, ended) in [
        (LEFT_PAD, json!([{ "version": "1.0.0", "status": "unaffected" }]), true),
        (LEFT_PAD, json!([{ "version": "1.0.0" }]), true),
        (LEFT_PAD, json!([{ "version": "1.0.0", "status": "affected" }]), false),
        (LEFT_PAD, json!([{ "version": "2.0.0" }]), false),
        (LEFT_PAD, json!([{ "range": "vers:npm/<9.0.0" }]), true),
        (LEFT_PAD, json!([{ "range": "vers:npm/>9.0.0" }]), false),
        (LEFT_PAD, json!([{ "range": "vers:generic/<9" }]), false),
        ("pkg:npm/left-pad@2.0.0", json!([]), false),
        ("pkg:npm/left-pad@1.0.0?arch=x", json!([]), false),
    ] {
        let world = world();
        let mut statement = statement("CVE-2026-1", "not_affected", about);
        statement["affects"][0]["versions"] = versions.clone();
        let vex = sbom("vex.json", &vex(None, json!([statement])));
        world.audit(None, &[vex, sbom("shop.cdx.json", &shop())]);
        assert_eq!(advisories(&world, "left-pad").is_empty(), ended, "{about} {versions}");
        if !ended {
            warned(&world, &format!("CVE-2026-1 of {about}"));
        }
    }
}

#[test]
fn a_statement_about_another_version_of_the_product_does_not_apply() {
    for (version, ended) in [("1.0", true), ("2.0", false)] {
        let world = world();
        let mut vex =
            vex(Some("shop"), json!([statement("CVE-2026-1", "not_affected", "product")]));
        vex["metadata"]["component"]["version"] = json!("1.0");
        let mut shop = shop();
        shop["metadata"]["component"]["version"] = json!(version);
        world.audit(None, &[sbom("vex.json", &vex), sbom("shop.cdx.json", &shop)]);
        assert_eq!(advisories(&world, "left-pad").is_empty(), ended, "{version}");
        if !ended {
            warned(&world, "(it is of another version)");
        }
    }
}

#[test]
fn a_distribution_s_record_of_a_cve_ends_with_it() {
    let world = World::new();
    world.import(&advisory("DEBIAN-CVE-2026-1", &[], "2")).expect("imported");
    world.import(&advisory("DEBIAN-CVE-2026-10", &[], "2")).expect("imported");
    let vex = vex(Some("shop"), json!([statement("CVE-2026-1", "not_affected", "product")]));
    world.audit(None, &[sbom("vex.json", &vex), sbom("shop.cdx.json", &shop())]);
    assert_eq!(advisories(&world, "left-pad"), ["DEBIAN-CVE-2026-10"]);
}

#[test]
fn components_of_an_earlier_version_take_statements() {
    let world = world();
    world.audit(Some("main"), &[sbom("shop.cdx.json", &shop())]);
    let mut noted = world.host.documents("imported_sboms").remove(0);
    let (audit, sha256) = (noted["audit_id"].clone(), noted["artifact_sha256"].clone());
    let id = format!("{}/{}", audit.as_str().expect("an id"), sha256.as_str().expect("a digest"));
    noted["audit_id"] = json!(Uuid::nil());
    world.host.put_document("imported_sboms", &id, noted);
    let vex = vex(Some("shop"), json!([statement("CVE-2026-1", "not_affected", "pad")]));
    world.audit(Some("main"), &[sbom("shop.vex.json", &vex)]);
    assert_eq!(advisories(&world, "left-pad"), [""; 0]);
}

#[test]
fn statements_are_listed_by_repository_component_and_advisory() {
    let world = world();
    let both = json!([
        statement("CVE-2026-1", "not_affected", LEFT_PAD),
        statement("CVE-2026-2", "in_triage", "pkg:npm/gone@1"),
    ]);
    let inputs = [sbom("vex.json", &vex(None, both)), sbom("shop.cdx.json", &shop())];
    world.audit(Some("main"), &inputs);
    assert_eq!(statements(&world, &[]).len(), 2);
    let of = |name: &str, value: &str| -> Vec<Value> {
        let found = statements(&world, &[(name, value)]);
        found.iter().map(|found| found["advisory_id"].clone()).collect()
    };
    assert_eq!(of("component", "LEFT-pad"), ["CVE-2026-1"]);
    assert_eq!(of("component", "gone"), ["CVE-2026-2"]);
    assert_eq!(of("advisory", "cve-2026-2"), ["CVE-2026-2"]);
    assert_eq!(of("advisory", "CVE-2026"), [""; 0]);
    assert_eq!(of("repository_id", &REPOSITORY.to_string()).len(), 2);
    assert_eq!(of("repository_id", &Uuid::from_u128(1).to_string()), [""; 0]);
    warned(&world, "vex.json: 1 of 2 statements match no component: CVE-2026-2 of pkg:npm/gone@1");
    assert_eq!(world.audit_report()["counts"]["unmatched_statements"], 1);
}

#[test]
fn a_published_vex_document_is_read_and_reported() {
    let Some(folder) = corpus("cyclonedx") else { return };
    let content = std::fs::read(folder.join("vex.cdx.json")).expect("a file");
    let vex = Upload { filename: "vex.cdx.json", format: "cyclonedx", content };
    let world = World::new();
    let purl = "pkg:maven/com.fasterxml.jackson.core/jackson-databind@2.10.0?type=jar";
    let mut bom = bom("acme", &[purl]);
    bom["serialNumber"] = json!(format!("urn:uuid:{SERIAL}"));
    bom["vulnerabilities"] = json!([{ "id": "CVE-2020-25649", "affects": [{ "ref": purl }] }]);
    world.audit(None, &[vex, sbom("acme.cdx.json", &bom)]);
    let name = "com.fasterxml.jackson.core:jackson-databind";
    assert_eq!(advisories(&world, name), [""; 0]);
    assert!(limitations(&world, name)[0].contains("not_affected: code_not_reachable"));
}

#[test]
fn a_vex_document_whose_vulnerabilities_are_skipped_is_no_sbom() {
    let world = world();
    let skipped = vex(Some("shop"), json!([{ "id": "CVE-2026-1" }, { "id": "two words" }]));
    world.audit(None, &[sbom("shop.vex.json", &skipped), sbom("shop.cdx.json", &shop())]);
    let warnings = json!([
        "shop.vex.json: 1 vulnerabilities without a usable id were skipped.",
        "shop.vex.json: 1 vulnerabilities without `affects` were skipped.",
    ]);
    assert_eq!(world.audit_report()["warnings"], warnings);
    assert_eq!(world.audit_report()["counts"]["vex_documents"], 1);
    assert_eq!(names(&world.list(&[])), ["left-pad", "minimist"]);
}

#[test]
fn a_match_has_the_severity_that_the_document_states() {
    for is_vex in [false, true] {
        let world = World::new();
        let mut exploitable = statement("CVE-2026-2", "exploitable", MINIMIST);
        exploitable["ratings"] = json!([{ "severity": "high" }]);
        let mut shop = shop();
        if is_vex {
            let vex = sbom("shop.vex.json", &vex(Some("shop"), json!([exploitable])));
            world.audit(None, &[vex, sbom("shop.cdx.json", &shop)]);
        } else {
            shop["vulnerabilities"] = json!([exploitable]);
            world.audit(None, &[sbom("shop.cdx.json", &shop)]);
        }
        assert_eq!(world.events("dependency.vulnerable")[0]["severity"], "high", "{is_vex}");
    }
}

#[test]
fn many_statements_on_many_components_are_applied_in_steps() {
    let world = world();
    let purls: Vec<String> = (0..700).map(|at| format!("pkg:npm/p{at:03}@1")).collect();
    let all = purls.iter().map(|purl| statement("CVE-2026-3", "exploitable", purl)).collect();
    let vex = vex(Some("shop"), Value::Array(all));
    world.audit(None, &[sbom("shop.cdx.json", &bom("shop", &purls))]);
    world.audit(None, &[sbom("shop.vex.json", &vex)]);
    assert_eq!(world.audit_report()["facts"]["vulnerable"], 700);
    world.audit(None, &[sbom("shop.cdx.json", &bom("shop", &purls))]);
    assert_eq!(world.audit_report()["facts"]["vulnerable"], 700);
    assert_eq!(world.audit_report()["warnings"], json!([]));
}

#[test]
fn a_statement_means_the_go_module_that_its_subpath_names() {
    let (module, subpath) = ("pkg:golang/a.b/pgx/v5@v5.5.0", "pkg:golang/a.b/pgx@v5.5.0#v5");
    for (purl, reference, affected) in [
        (subpath, module, true),
        (module, subpath, true),
        (subpath, "pkg:golang/a.b/pgx#v5", true),
        (subpath, "pkg:golang/a.b/pgx@v5.5.0", false),
    ] {
        let world = World::new();
        let vex = vex(Some("shop"), json!([statement("CVE-2026-1", "exploitable", reference)]));
        world.audit(None, &[sbom("v.json", &vex), sbom("a.json", &bom("shop", &[purl]))]);
        assert_eq!(advisories(&world, "a.b/pgx/v5").len(), usize::from(affected), "{reference}");
    }
}
