//! Tests of VEX documents without statements, which withdraw those of the document before them.

use super::vex::{MINIMIST, advisories, limitations, shop, statement, statements, vex, world};
use super::*;

#[test]
fn an_empty_vex_document_withdraws_the_statements_of_the_one_before() {
    let stated = json!([
        statement("CVE-2026-1", "not_affected", LEFT_PAD),
        statement("CVE-2026-2", "exploitable", MINIMIST),
    ]);
    for (subject, with_sbom) in
        [(Some("shop"), true), (Some("shop"), false), (None, true), (None, false)]
    {
        let world = world();
        let vex =
            |vulnerabilities: &Value| sbom("shop.vex.json", &vex(subject, vulnerabilities.clone()));
        let shop = || sbom("shop.cdx.json", &shop());
        world.audit(Some("main"), &[vex(&stated), shop()]);
        assert_eq!(advisories(&world, "left-pad"), [""; 0], "{subject:?}");
        assert_eq!(advisories(&world, "minimist"), ["CVE-2026-2"], "{subject:?}");

        let shop = with_sbom.then(shop);
        let uploads: Vec<Upload<'_>> = [vex(&json!([]))].into_iter().chain(shop).collect();
        world.audit(Some("main"), &uploads);
        assert_eq!(advisories(&world, "left-pad"), ["GHSA-1"], "{subject:?}");
        assert_eq!(advisories(&world, "minimist"), [""; 0], "{subject:?}");
        assert_eq!(limitations(&world, "left-pad"), [""; 0], "{subject:?}");
        assert_eq!(statements(&world, &[]).len(), 0, "{subject:?}");
        let report = world.audit_report();
        assert_eq!(report["warnings"], json!([]), "{subject:?}");
        assert_eq!(report["counts"]["vex_documents"], 1, "{subject:?}");
        assert_eq!(report["facts"]["vulnerable"], 1, "{subject:?}");
    }
}

#[test]
fn empty_components_and_vulnerabilities_are_the_sbom_of_an_empty_project() {
    let world = world();
    let mut empty = vex(Some("shop"), json!([]));
    empty["components"] = json!([]);
    world.audit(Some("main"), &[sbom("shop.cdx.json", &empty)]);
    let counts = world.audit_report()["counts"].clone();
    assert_eq!((&counts["sboms"], &counts["vex_documents"]), (&json!(1), &json!(0)));
}
