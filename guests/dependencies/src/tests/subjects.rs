//! Tests of SBOMs that replace other SBOMs with the same subject or path, and of the warnings about
//! this.

use super::*;

/// Creates an SBOM of these purls with this subject (CycloneDX `metadata.component`); without a
/// subject for null.
fn about(subject: Value, purls: &[&str]) -> Value {
    let mut bom = bom("shop", purls);
    let metadata = bom["metadata"].as_object_mut().expect("an object");
    metadata.remove("component");
    if !subject.is_null() {
        metadata.insert("component".to_owned(), subject);
    }
    bom
}

fn dot() -> Value {
    json!({ "type": "file", "name": ".", "bom-ref": "root" })
}

fn warnings(world: &World) -> Vec<String> {
    strings(&world.audit_report()["warnings"])
}

#[test]
fn sboms_whose_subject_is_a_folder_stay_side_by_side() {
    for weak in [
        dot(),
        json!({ "type": "application", "name": "." }),
        json!({ "type": "file", "name": "requirements.txt" }),
        json!({ "type": "application", "name": " " }),
        Value::Null,
    ] {
        let bom = |purl: &str| about(weak.clone(), &[purl]);
        let world = with_advisory();
        let front = sbom("front/bom.json", &bom("pkg:npm/front@1"));
        let back = sbom("back/bom.json", &bom("pkg:npm/back@1"));
        world.audit(None, &[front, back]);
        assert_eq!(names(&world.list(&[])), ["back", "front"]);
        assert!(!world.audit_report()["warnings"].to_string().contains("replaces"));
    }
    let world = with_advisory();
    let package = json!({ "type": "file", "name": ".", "purl": "pkg:npm/shop@1" });
    let front = sbom("front/bom.json", &about(package.clone(), &["pkg:npm/front@1"]));
    world.audit(None, &[front, sbom("back/bom.json", &about(package, &["pkg:npm/back@1"]))]);
    assert_eq!(names(&world.list(&[])), ["front"], "a purl identifies it");
}

#[test]
fn a_document_that_is_set_aside_is_reported() {
    let world = with_advisory();
    let new = sbom("b.json", &bom("shop", &["pkg:npm/new@2"]));
    let old = sbom("a.json", &bom("shop", &["pkg:npm/old@1", "pkg:npm/other@1"]));
    world.audit(None, &[new, old]);
    let list = world.list(&[]);
    assert_eq!(names(&list), ["new"]);
    let warnings = warnings(&world);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("b.json of "), "{warnings:?}");
    assert!(warnings[0].contains("replaces a.json of "), "{warnings:?}");
    assert!(warnings[0].contains("(2 components)"), "{warnings:?}");
    assert!(warnings[0].ends_with("a later document of the same subject, shop."), "{warnings:?}");
    assert_eq!(list["limitations"], json!([]), "the subject certainly is the same");
}

#[test]
fn equal_names_of_files_without_subject_are_reported_where_components_are_read() {
    let world = with_advisory();
    let new = sbom("bom.json", &about(dot(), &["pkg:npm/front@1"]));
    let old = sbom("bom.json", &about(dot(), &["pkg:npm/back@1"]));
    world.audit(None, &[new, old]);
    let list = world.list(&[]);
    assert_eq!(names(&list), ["front"]);
    let warnings = warnings(&world);
    assert!(warnings[0].contains("the same filename, and neither names a subject"));
    assert_eq!(list["items"][0]["limitations"], json!([warnings[0]]));
}

#[test]
fn the_same_content_twice_sets_nothing_aside() {
    let world = with_advisory();
    let bom = bom("shop", &[LEFT_PAD]);
    world.audit(None, &[sbom("a.json", &bom), sbom("a.json", &bom)]);
    assert_eq!(warnings(&world), [""; 0]);
    let dot = about(dot(), &[LEFT_PAD]);
    world.audit(Some("next"), &[sbom("a/bom.json", &dot), sbom("b/bom.json", &dot)]);
    assert_eq!(names(&world.list(&[("branch_ref", json!("next"))])), ["left-pad"]);
}

#[test]
fn a_document_without_components_replaces_none_that_has_some() {
    let world = with_advisory();
    let mut empty = bom("shop", &[""; 0]);
    empty["dependencies"] = json!([]);
    world.audit(None, &[sbom("b.json", &empty), sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    assert_eq!(names(&world.list(&[])), ["left-pad"]);
    assert!(warnings(&world)[0].contains("has no components, so it does not replace a.json"));

    world.audit(None, &[sbom("b.json", &empty)]);
    assert_eq!(names(&world.list(&[])), ["left-pad"], "not in a later audit either");
    assert!(warnings(&world)[0].contains("does not replace the inventory of audit"));

    world.audit(Some("next"), &[sbom("b.json", &empty)]);
    let sboms = world.audit_report()["counts"]["sboms"].clone();
    assert_eq!(sboms, 1, "where there is none, it is the inventory");
}

#[test]
fn an_sbom_that_the_next_audit_has_not_is_reported() {
    let world = with_advisory();
    let front = || sbom("front.json", &bom("front", &["pkg:npm/front@1"]));
    world.audit(None, &[front(), sbom("back.json", &bom("back", &["pkg:npm/back@1"]))]);
    assert_eq!(warnings(&world), [""; 0]);
    world.audit(None, &[front()]);
    let list = world.list(&[]);
    assert_eq!(names(&list), ["front"]);
    let warnings = warnings(&world);
    assert!(warnings[0].contains("back.json (1 component"), "{warnings:?}");
    assert_eq!(list["items"][0]["limitations"], json!([warnings[0]]));
    world.audit(None, &[front()]);
    assert_eq!(world.list(&[])["limitations"], json!([]), "it is said once");
}
