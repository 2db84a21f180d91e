//! Tests of the list of dependencies: filters, order and pages.

use proptest::prelude::*;

use super::*;

fn pages(world: &World, limit: u32, filters: &[(&str, Value)]) -> Vec<String> {
    texts(&world.pages(&listing(filters), limit), "id")
}

#[test]
fn the_order_is_name_ecosystem_version_id() {
    let world = World::new();
    let purls = ["pkg:pypi/b@2", "pkg:npm/b@10", "pkg:npm/b@9", "pkg:npm/B@1", "pkg:cargo/a@1"];
    world.audit(None, &[sbom("a.json", &bom("shop", &purls))]);
    let list = world.list(&[]);
    let key = |item: &Value| {
        ["name", "ecosystem", "version"]
            .map(|member| item[member].as_str().unwrap_or_default().to_owned())
    };
    let keys: Vec<[String; 3]> = list["items"].as_array().expect("items").iter().map(key).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    assert_eq!(keys.len(), 5);
}

#[test]
fn q_looks_into_name_and_purl_without_case() {
    let world = World::new();
    let purls = ["pkg:maven/org.Apache/Log4j-core@2.13.2", "pkg:npm/other@1"];
    world.audit(None, &[sbom("a.json", &bom("shop", &purls))]);
    for q in ["log4J", "org.apache:", "maven/org", "@2.13"] {
        assert_eq!(names(&world.list(&[("q", json!(q))])), ["org.Apache:Log4j-core"], "{q}");
    }
    assert_eq!(names(&world.list(&[("q", json!("%"))])), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_row_is_lost_or_doubled(count in 1..60_usize, limit in 1..20_u32, vulnerable in 0..3_usize) {
        let world = World::new();
        let purls: Vec<String> = (0..count).map(|n| match n % 3 {
            0 => format!("pkg:npm/left-pad@1.0.{n}"),
            1 => format!("pkg:npm/p{}@{n}.0.0", n % 4),
            _ => format!("pkg:pypi/p{}@{n}", n % 5),
        }).collect();
        world.import(&advisory("GHSA-1", &["CVE-1"], &format!("{vulnerable}.5.0"))).expect("imported");
        world.audit(Some("main"), &[sbom("a.json", &bom("shop", &purls))]);
        for filters in [&[][..], &[("advisory", json!("cve-1"))], &[("q", json!("p1"))]] {
            let whole = pages(&world, 100, filters);
            prop_assert_eq!(&pages(&world, limit, filters), &whole);
            let distinct: std::collections::BTreeSet<&String> = whole.iter().collect();
            prop_assert_eq!(distinct.len(), whole.len());
        }
    }
}

#[test]
fn rows_that_come_and_go_between_pages_move_no_others() {
    let world = World::new();
    let before: Vec<String> = (0..30).map(|n| format!("pkg:npm/p{:02}@1", n * 2)).collect();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &before))]);
    let request = || Request::to("list_dependencies").with("limit", 10);
    let first = world.host.call(request()).expect("a page").body;
    let other: Vec<String> = (0..30).map(|n| format!("pkg:npm/p{:02}@1", n * 2 + 1)).collect();
    world.audit(Some("other"), &[sbom("b.json", &bom("other", &other))]);
    let second = world.host.call(request().with("cursor", first["next_cursor"].clone()));
    let second = names(&second.expect("a page").body);
    assert_eq!(second.first().map(String::as_str), Some("p19"), "the one after p18");
}
