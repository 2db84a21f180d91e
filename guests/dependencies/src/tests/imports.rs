//! Tests of SBOM imports that become the inventory.

use super::*;

#[test]
fn an_audit_brings_its_components() {
    let world = World::new();
    let purls = ["pkg:npm/%40a/b@2.0.0", LEFT_PAD, "pkg:npm/zed@3"];
    let audit = world.audit(Some("main"), &[sbom("bom.json", &bom("shop", &purls))]);
    let told = world.audit_report();
    assert_eq!(told["status"], "succeeded");
    assert_eq!(told["audit_id"], json!(audit));
    assert_eq!(told["facts"], json!({ "total": 3, "direct": 2 }));

    let list = world.list(&[]);
    assert_eq!(names(&list), ["@a/b", "left-pad", "zed"]);
    assert_eq!((&list["has_more"], &list["historical"]), (&json!(false), &json!(false)));
    let first = &list["items"][0];
    assert_eq!(first.as_object().map(serde_json::Map::len), Some(20));
    assert_eq!(first["purl"], "pkg:npm/%40a/b@2.0.0");
    assert_eq!((&first["ecosystem"], &first["version"]), (&json!("npm"), &json!("2.0.0")));
    assert_eq!(first["direct"], true);
    assert_eq!(first["dependencies"], json!([LEFT_PAD, "pkg:npm/zed@3"]));
    assert_eq!((&first["commit_sha"], &first["branch_ref"]), (&json!(COMMIT), &json!("main")));
    assert_eq!(first["source_scope"]["subject"], "shop");
    assert_eq!(first["source_scope"]["tool"], "syft 1.0.0");
    assert_eq!(first["scope"], "required");
    assert_eq!(first["observed_at"], "2026-09-01T00:00:00.000000Z");
    assert_eq!(first["component_ref"], "pkg:npm/%40a/b@2.0.0");
    assert_eq!(first["limitations"], json!([]));
    assert_eq!(list["items"][2]["direct"], false);
}

#[test]
fn the_next_audit_takes_the_place_of_the_one_before() {
    let world = World::new();
    let first =
        world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD, "pkg:npm/a@1"]))]);
    let second = world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let list = world.list(&[]);
    assert_eq!(names(&list), ["left-pad"]);
    assert_eq!(list["items"][0]["audit_id"], json!(second));
    assert_eq!(names(&world.list(&[("history", json!(true))])), ["a", "left-pad", "left-pad"]);
    assert_eq!(names(&world.list(&[("audit_id", json!(first))])), [""; 0]);
    let history = [("history", json!(true)), ("audit_id", json!(first))];
    assert_eq!(names(&world.list(&history)), ["a", "left-pad"]);
}

#[test]
fn a_head_of_an_earlier_version_learns_its_components_from_the_next_audit() {
    let world = World::new();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let mut head = world.host.documents("heads").remove(0);
    head.as_object_mut().expect("an object").remove("components");
    let id = sha256(format!("{REPOSITORY}\nmain").as_bytes());
    world.host.put_document("heads", &id, head);
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD, "pkg:npm/a@1"]))]);
    assert_eq!(world.host.documents("heads").len(), 1);
}

#[test]
fn branches_and_subjects_stand_beside_each_other() {
    let world = World::new();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    world.audit(
        Some("next"),
        &[
            sbom("b.json", &bom("shop", &["pkg:npm/new@2"])),
            sbom("a.json", &bom("shop", &["pkg:npm/old@1"])),
            sbom("c.json", &bom("admin", &["pkg:npm/new@2", "pkg:npm/admin@1"])),
        ],
    );
    let total = world.audit_report()["facts"]["total"].clone();
    assert_eq!(total, 2, "newest of each subject, each package once");
    assert_eq!(names(&world.list(&[])), ["admin", "left-pad", "new"]);
    assert_eq!(names(&world.list(&[("branch_ref", json!("next"))])), ["admin", "new"]);
}

#[test]
fn an_earlier_audit_that_finishes_late_is_history() {
    let world = World::new();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    world.host.advance(-3600);
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &["pkg:npm/old@1"]))]);
    assert_eq!(names(&world.list(&[])), ["left-pad"]);
    assert_eq!(names(&world.list(&[("history", json!(true))])), ["left-pad", "old"]);
}

#[test]
fn a_wrong_file_stops_neither_the_others_nor_the_audit() {
    let world = World::new();
    let mut wrong = bom("shop", &[LEFT_PAD]);
    wrong["components"][0]["type"] = json!("thing");
    world.audit(None, &[sbom("wrong.json", &wrong), sbom("a.json", &bom("admin", &[LEFT_PAD]))]);
    let told = world.audit_report();
    assert_eq!((&told["status"], &told["counts"]["components"]), (&json!("succeeded"), &json!(1)));
    assert_eq!(told["counts"]["refused"], 1, "the components of one SBOM are unknown");
    no_facts(&told);
    assert_eq!(told["errors"][0]["code"], "invalid_sbom");
    let detail = told["errors"][0]["detail"].as_str().expect("a text");
    assert!(detail.starts_with("/components/0/type: unknown variant `thing`"), "{detail}");

    world.audit(None, &[sbom("wrong.json", &wrong)]);
    assert_eq!(world.audit_report()["status"], "failed");
    assert_eq!(world.audit_report()["warnings"], json!([]), "there is a bill, though a wrong one");
    assert_eq!(names(&world.list(&[])), ["left-pad"], "what was known stays");
    world.audit(None, &[]);
    assert_eq!(world.audit_report()["status"], "succeeded");
    assert!(world.audit_report()["warnings"][0].as_str().is_some_and(|w| w.contains("no SBOM")));
}

#[test]
fn an_audit_that_imports_no_sbom_has_no_facts() {
    let world = World::new();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    assert_eq!(world.audit_report()["facts"]["total"], 1);
    let osv = osv(&advisory("GHSA-1", &[], "2"));
    let mut empty = bom("shop", &[LEFT_PAD]);
    empty["components"] = json!([]);
    empty["dependencies"] = json!([]);
    for uploads in [vec![], vec![osv], vec![sbom("a.json", &empty)]] {
        world.audit(Some("main"), &uploads);
        let told = world.audit_report();
        assert_eq!((&told["status"], &told["counts"]["sboms"]), (&json!("succeeded"), &json!(0)));
        assert_eq!(told["counts"]["components"], 0, "{told}");
        no_facts(&told);
    }
}

/// Asserts that the last warning of an audit reports that there are no facts.
fn no_facts(told: &Value) {
    let last = strings(&told["warnings"]).pop().expect("a warning");
    assert!(last.starts_with("The audit has no facts about dependencies"), "{last}");
}

#[test]
fn without_an_advisory_nothing_counts_as_compared() {
    let world = World::new();
    let is_limited = || world.list(&[])["limitations"].to_string().contains("has no advisories");
    let report = |bom: &Value| {
        world.audit(Some("main"), &[sbom("a.json", bom)]);
        let told = world.audit_report();
        let has_warning = told["warnings"].to_string().contains("has no advisories");
        (told["facts"].clone(), has_warning)
    };
    let clean = bom("shop", &[LEFT_PAD]);
    assert!(!is_limited(), "there is nothing to compare");
    assert_eq!(report(&clean), (json!({ "total": 1, "direct": 1 }), true));
    assert!(is_limited());
    let mut scanned = clean.clone();
    scanned["vulnerabilities"] = json!([{ "id": "CVE-2026-5", "affects": [{ "ref": LEFT_PAD }] }]);
    let (facts, has_warning) = report(&scanned);
    assert_eq!((&facts["vulnerable"], has_warning), (&json!(1), false));
    // The scanner finds nothing any more.
    let facts = json!({ "total": 1, "direct": 1, "vulnerable": 0, "advisories": [] });
    assert_eq!(report(&clean), (facts.clone(), false));
    world.ingest(&advisory("GHSA-1", &[], "0.1.0"));
    assert_eq!((report(&clean), is_limited()), ((facts, false), false));
}

#[test]
fn errors_beyond_the_limit_are_counted() {
    let world = World::new();
    let wrong = (0..102).map(|at| osv(&json!({ "id": at })));
    world.audit(None, &wrong.collect::<Vec<_>>());
    let told = world.audit_report();
    assert_eq!(told["errors"].as_array().map(Vec::len), Some(100));
    assert_eq!(told["warnings"][1], "2 more errors are not reported.");

    let file = [osv(&vec![json!({ "id": 1 }); 23].into())];
    // The second audit uses the stored results of reading the file.
    for _ in 0..2 {
        world.audit(None, &file);
        let told = world.audit_report();
        assert_eq!(told["errors"].as_array().map(Vec::len), Some(20));
        assert_eq!(told["warnings"][1], "3 more errors are not reported.");
    }
}

#[test]
fn facts_have_all_advisories_or_none() {
    let world = with_advisory();
    let (_, mut steps) = world.begin_audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    steps.payload.as_mut().expect("a job")["tally"]["lacks_advisories"] = json!(true);
    while steps.step() {}
    let told = world.audit_report();
    assert_eq!(told["facts"], json!({ "total": 1, "direct": 1, "vulnerable": 0 }));
    let warning = told["warnings"][0].as_str().expect("a warning");
    assert!(warning.starts_with("Too many advisories affect the components"), "{warning}");
}

#[test]
fn without_a_graph_nothing_is_said_to_be_direct() {
    let world = with_advisory();
    let mut bom = bom("shop", &[LEFT_PAD]);
    bom["dependencies"] = json!([]);
    world.audit(None, &[sbom("a.json", &bom)]);
    let list = world.list(&[]);
    assert_eq!(list["items"][0]["direct"], false);
    assert!(
        list["limitations"][0].as_str().is_some_and(|text| text.contains("no dependency graph"))
    );
    assert_eq!(list["limitations"], list["items"][0]["limitations"]);
}

#[test]
fn an_empty_node_of_the_subject_does_not_say_what_is_direct() {
    let world = with_advisory();
    let mut document = bom("shop", &[LEFT_PAD]);
    document["dependencies"] = json!([{ "ref": "root" }, { "ref": LEFT_PAD }]);
    world.audit(None, &[sbom("a.json", &document)]);
    let list = world.list(&[]);
    assert_eq!(list["items"][0]["direct"], false);
    let limitation = "graph does not say what its subject itself depends on";
    assert!(list["items"][0]["limitations"].to_string().contains(limitation), "{list:#}");
    document["components"] = json!([]);
    document["dependencies"] = json!([{ "ref": "root" }]);
    world.audit(Some("empty"), &[sbom("a.json", &document)]);
    assert_eq!(world.audit_report()["warnings"], json!([]));
}

/// Creates an SBOM with so many components that its import takes several steps.
fn large_bom() -> Value {
    let purls: Vec<String> = (0..6600).map(|n| format!("pkg:npm/p{n}@1")).collect();
    bom("shop", &purls)
}

#[test]
fn large_bills_are_taken_in_steps() {
    let world = World::new();
    world.audit(None, &[sbom("a.json", &large_bom())]);
    world.audit(None, &[sbom("a.json", &large_bom())]);
    assert_eq!(world.audit_report()["facts"]["total"], 6600);
    let documents = world.host.documents("components");
    assert_eq!(documents.len(), 13_200);
    assert_eq!(documents.iter().filter(|component| component["latest"] == true).count(), 6600);
}

/// Returns the limitations of the list of dependencies that describe a running, failed or
/// incomplete import.
fn of_imports(list: &Value) -> Vec<String> {
    let mut limitations = strings(&list["limitations"]);
    limitations.retain(|text| text.starts_with("The import of audit"));
    limitations
}

#[test]
fn an_inventory_answers_when_it_is_whole_and_until_then_the_one_before_it() {
    let world = World::new();
    let large = large_bom();
    for before in [vec![], vec!["left-pad"]] {
        let (audit, mut steps) = world.begin_audit(Some("main"), &[sbom("a.json", &large)]);
        let mut seen = 0;
        while steps.step() {
            let list = world.list(&[("branch_ref", json!("main"))]);
            if names(&list).len() == 100 {
                break;
            }
            seen += usize::from(world.host.documents("components").len() > 1);
            assert_eq!(names(&list), before);
            let said = of_imports(&list);
            assert!(said.len() == 1 && said[0].contains(&audit.to_string()), "{said:?}");
            let history = world.list(&[("history", json!(true)), ("audit_id", json!(audit))]);
            assert_eq!(names(&history), [""; 0]);
        }
        assert!(seen > 1, "the import takes several steps");
        while steps.step() {}
        let list = world.list(&[("q", json!("p6599"))]);
        assert_eq!((names(&list), of_imports(&list)), (vec!["p6599".to_owned()], vec![]));
        world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
        world.check_heads();
    }
}

#[test]
fn an_import_that_fails_leaves_the_inventory_before_it_and_says_so() {
    let world = World::new();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let (audit, mut steps) = world.begin_audit(Some("main"), &[sbom("a.json", &large_bom())]);
    while world.host.documents("components").len() == 1 {
        assert!(steps.step());
    }
    steps.attempt = crate::ingest::ATTEMPTS;
    while steps.step() {}
    assert_eq!(world.audit_report()["status"], "failed");
    assert_eq!(world.audit_report()["audit_id"], json!(audit));
    let list = world.list(&[]);
    assert_eq!(names(&list), ["left-pad"]);
    let said = of_imports(&list);
    assert!(
        said.len() == 1 && said[0].contains("failed") && said[0].contains("9 times"),
        "{said:?}"
    );
    assert_eq!(names(&world.list(&[("history", json!(true))])), ["left-pad"]);

    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &["pkg:npm/next@1"]))]);
    let list = world.list(&[]);
    assert_eq!((names(&list), of_imports(&list)), (vec!["next".to_owned()], vec![]));
    assert_eq!(names(&world.list(&[("history", json!(true))])), ["left-pad", "next"]);
    assert_eq!(world.host.documents("components").len(), 2, "what was written is deleted");
    assert_eq!(world.host.documents("imports").len(), 0);
}

#[test]
fn a_file_that_is_left_out_is_told_where_the_inventory_is_read() {
    let world = World::new();
    let mut wrong = bom("shop", &[LEFT_PAD]);
    wrong["components"][0]["type"] = json!("thing");
    world.audit(None, &[sbom("wrong.json", &wrong), sbom("a.json", &bom("admin", &[LEFT_PAD]))]);
    let list = world.list(&[]);
    let said = of_imports(&list);
    assert!(said.len() == 1 && said[0].contains("wrong.json: /components/0/type"), "{said:?}");
    let elsewhere = [("repository_id", json!(Uuid::from_u128(0x78)))];
    assert_eq!(of_imports(&world.list(&elsewhere)), [""; 0]);
    world.audit(None, &[sbom("wrong.json", &wrong)]);
    let list = world.list(&[]);
    assert_eq!((names(&list).len(), of_imports(&list).len()), (1, 2), "{list}");
    world.audit(None, &[sbom("a.json", &bom("admin", &[LEFT_PAD]))]);
    assert_eq!(of_imports(&world.list(&[])), [""; 0]);
}

#[test]
fn a_file_whose_content_was_deleted_is_imported_after_it_is_uploaded_again() {
    let world = World::new();
    let bom = sbom("a.json", &bom("shop", &[LEFT_PAD]));
    let uploads = [bom, osv(&advisory("GHSA-1", &[], "2"))];
    let (_, mut steps) = world.begin_audit(None, &uploads);
    let payload = steps.payload.as_mut().expect("a job");
    for input in payload["audit"]["inputs"].as_array_mut().expect("inputs") {
        input["blob"] = json!("deleted");
    }
    while steps.step() {}
    let errors = world.audit_report()["errors"].clone();
    let codes = texts(errors.as_array().expect("errors"), "code");
    assert_eq!(codes, ["artifact_missing", "artifact_missing"]);
    world.audit(None, &uploads);
    let report = world.audit_report();
    assert_eq!((&report["errors"], &report["facts"]["vulnerable"]), (&json!([]), &json!(1)));
}

#[test]
fn a_reassessment_raises_no_alert_for_hidden_components() {
    for (state, identity, expected) in
        [("running", None, 1), ("running", Some("new"), 2), ("superseded", Some("new"), 1)]
    {
        let world = World::new();
        world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
        world.host.advance(60);
        let audit = Uuid::from_u128(0xf001);
        let import = json!({
            "repository_id": REPOSITORY, "branch_ref": "main", "started_at": world.host.now(),
            "state": state, "details": [],
        });
        world.host.put_document("imports", &audit.to_string(), import);
        let mut component = world.host.documents("components").remove(0);
        component["audit_id"] = json!(audit);
        if let Some(identity) = identity {
            component["identity"] = json!(identity);
        }
        let id = Uuid::from_u128(0xf002).to_string();
        world.host.put_document("components", &id, component);
        world.ingest(&advisory("GHSA-1", &[], "1.2.0"));
        let told = world.events("dependency.vulnerable");
        assert_eq!(told.len(), expected, "{state} {identity:?}");
    }
}
