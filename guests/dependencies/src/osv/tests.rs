//! Tests of OSV's evaluation algorithm, with constructed and with real advisories.

use area_shared::testing::{corpus, files_with, read_text};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::evaluate::{AffectedReason, ComparisonObstacle, Verdict, evaluate};
use super::*;
use crate::ecosystem::Package;
use crate::purl::Purl;

fn affected(ecosystem: &str, ranges: &Value, versions: &Value) -> Affected {
    let entry = json!({
        "package": { "ecosystem": ecosystem, "name": "a" }, "ranges": ranges, "versions": versions,
    });
    serde_json::from_value(entry).expect("an affected package")
}

fn events(kind: &str, events: &Value) -> Value {
    json!([{ "type": kind, "events": events }])
}

/// Creates an `affected` entry with one range and without `versions`.
fn of_range(ecosystem: &str, kind: &str, range: &Value) -> Affected {
    affected(ecosystem, &events(kind, range), &json!([]))
}

fn package(ecosystem: &str, version: &str) -> Package {
    Package::of_osv(ecosystem, "a").at(version)
}

fn ground(affected: &Affected, ecosystem: &str, version: &str) -> Option<AffectedReason> {
    evaluate(affected, &package(ecosystem, version)).ground
}

#[track_caller]
fn check(entry: &Affected, ecosystem: &str, inside: &[&str], outside: &[&str]) {
    for version in inside {
        assert!(ground(entry, ecosystem, version).is_some(), "{version} is affected");
    }
    for version in outside {
        assert_eq!(ground(entry, ecosystem, version), None, "{version} is not affected");
    }
}

#[test]
fn a_range_goes_from_introduced_to_fixed() {
    let range = json!([{ "introduced": "1.0.0" }, { "fixed": "1.2.0" }]);
    let entry = of_range("npm", "SEMVER", &range);
    check(&entry, "npm", &["1.0.0", "1.1.9", "1.2.0-rc.1"], &["0.9.9", "1.2.0", "2.0.0"]);
}

#[test]
fn zero_is_before_every_version_and_events_need_no_order() {
    let unordered = json!([
        { "fixed": "3.2.22" }, { "introduced": "4.2.0" }, { "fixed": "4.2.2" },
        { "introduced": "0" }, { "introduced": "4.0.0" }, { "fixed": "4.1.11" },
    ]);
    let entry = of_range("RubyGems", "ECOSYSTEM", &unordered);
    check(
        &entry,
        "RubyGems",
        &["0.0.1.a", "3.2.21", "4.0.0", "4.1.10", "4.2.0", "4.2.1"],
        &["3.2.22", "3.9", "4.1.11", "4.2.2", "5"],
    );
}

#[test]
fn the_last_affected_version_is_affected() {
    let ranges = json!([{ "introduced": "0" }, { "last_affected": "2.0" }]);
    let entry = affected("PyPI", &events("ECOSYSTEM", &ranges), &json!(null));
    check(&entry, "PyPI", &["1.0", "2.0", "2.0.0"], &["2.0.post1", "2.1"]);
}

#[test]
fn a_local_version_of_python_is_affected_with_its_public_version() {
    let last = json!([{ "introduced": "0" }, { "last_affected": "2.0.0" }]);
    let last = affected("PyPI", &events("ECOSYSTEM", &last), &json!(null));
    let listed = affected("PyPI", &json!([]), &json!(["2.0"]));
    for entry in [last, listed] {
        let inside = ["2.0.0", "2.0.0+cu118", "2.0+20240101.1"];
        check(&entry, "PyPI", &inside, &["2.0.0.post1", "2.0.1+cu118"]);
    }
    let fixed = json!([{ "introduced": "2.0.0" }, { "fixed": "2.1.0" }]);
    let fixed = affected("PyPI", &events("ECOSYSTEM", &fixed), &json!(["1.0+cpu"]));
    let outside = ["2.1.0+cpu", "1.0", "1.0+cu118"];
    check(&fixed, "PyPI", &["2.0.0+cpu", "1.0+cpu"], &outside);
}

#[test]
fn a_limit_ends_what_is_said() {
    let limited = json!([{ "introduced": "1.0.0" }, { "limit": "1.5.0" }, { "limit": "1.7.0" }]);
    let entry = of_range("npm", "SEMVER", &limited);
    check(&entry, "npm", &["1.0.0", "1.6.0"], &["1.7.0", "2.0.0"]);
    let unlimited = json!([{ "introduced": "1.0.0" }, { "limit": "*" }]);
    let entry = of_range("npm", "SEMVER", &unlimited);
    check(&entry, "npm", &["1.0.0", "99.0.0"], &["0.1.0"]);
}

#[test]
fn listed_versions_count_before_ranges() {
    let ranges = events("ECOSYSTEM", &json!([{ "introduced": "5" }]));
    let entry = affected("Maven", &ranges, &json!(["1.0", "6"]));
    assert_eq!(ground(&entry, "Maven", "1.0"), Some(AffectedReason::Listed));
    assert_eq!(ground(&entry, "Maven", "1.0.0"), Some(AffectedReason::Listed));
    assert_eq!(ground(&entry, "Maven", "6"), Some(AffectedReason::Listed));
    assert_eq!(ground(&entry, "Maven", "7"), Some(AffectedReason::Range));
    assert_eq!(ground(&entry, "Maven", "2"), None);
}

#[test]
fn unknown_ecosystems_match_exactly_or_where_all_versions_do() {
    let some = events("ECOSYSTEM", &json!([{ "introduced": "0" }, { "fixed": "2" }]));
    let entry = affected("Nobody", &some, &json!(["release-1"]));
    assert_eq!(ground(&entry, "Nobody", "release-1"), Some(AffectedReason::Listed));
    let verdict = evaluate(&entry, &package("Nobody", "release-2"));
    assert_eq!((verdict.ground, verdict.obstacle), (None, Some(ComparisonObstacle::NoOrder)));
    let all = events("ECOSYSTEM", &json!([{ "introduced": "0" }]));
    let entry = affected("Nobody", &all, &json!(["release-1"]));
    assert_eq!(ground(&entry, "Nobody", "release-2"), Some(AffectedReason::Range));
    // Semantic ranges use their own order in every ecosystem.
    let semver = json!([{ "introduced": "0" }, { "fixed": "2.0.0" }]);
    let entry = of_range("Nobody", "SEMVER", &semver);
    assert_eq!(ground(&entry, "Nobody", "1.0.0"), Some(AffectedReason::Range));
}

#[test]
fn commits_are_not_evaluated() {
    let entry = of_range("npm", "GIT", &json!([{ "introduced": "0" }]));
    let expected = Verdict { obstacle: Some(ComparisonObstacle::Commits), ..Verdict::default() };
    assert_eq!(evaluate(&entry, &package("npm", "1.0.0")), expected);
}

#[test]
fn an_entry_without_ranges_and_versions_is_not_evaluated() {
    let entry = affected("npm", &json!([]), &json!(null));
    let expected = Verdict { obstacle: Some(ComparisonObstacle::NoRanges), ..Verdict::default() };
    assert_eq!(evaluate(&entry, &package("npm", "1.0.0")), expected);
    assert_eq!(evaluate(&entry, &Package::of_osv("npm", "a")), expected);
}

#[test]
fn a_list_or_another_range_answers_next_to_commits() {
    let commits = json!({ "type": "GIT", "events": [{ "introduced": "0" }] });
    let range = json!({ "type": "ECOSYSTEM", "events": [{ "introduced": "0" }, { "fixed": "1" }] });
    for (ranges, versions) in
        [(json!([commits, range]), json!([])), (json!([commits]), json!(["1"]))]
    {
        let verdict = evaluate(&affected("PyPI", &ranges, &versions), &package("PyPI", "2"));
        assert_eq!((verdict.ground, verdict.answered), (None, true));
    }
}

#[test]
fn an_odd_version_is_affected_only_where_it_is_listed_or_all_are() {
    let ranges = events("SEMVER", &json!([{ "introduced": "0" }, { "fixed": "9.0.0" }]));
    let entry = affected("npm", &ranges, &json!(["latest"]));
    assert_eq!(ground(&entry, "npm", "latest"), Some(AffectedReason::Listed));
    let verdict = evaluate(&entry, &package("npm", "next"));
    assert_eq!((verdict.ground, verdict.obstacle), (None, Some(ComparisonObstacle::Unreadable)));
    let all = of_range("npm", "SEMVER", &json!([{ "introduced": "0" }]));
    assert_eq!(ground(&all, "npm", "next"), Some(AffectedReason::Range));
}

#[test]
fn a_component_without_a_version_is_affected_where_all_versions_are() {
    let none = Package::of_osv("npm", "a");
    let verdict = |kind: &str, range: Value, versions: Value| {
        let range = if range.is_null() { json!([]) } else { events(kind, &range) };
        evaluate(&affected("npm", &range, &versions), &none)
    };
    for all in [
        json!([{ "introduced": "0" }]),
        json!([{ "introduced": "0" }, { "introduced": "4.0.0" }]),
        json!([{ "introduced": "0" }, { "limit": "*" }]),
    ] {
        let verdict = verdict("SEMVER", all.clone(), json!(["1.0.0"]));
        let expected = (Some(AffectedReason::Range), None);
        assert_eq!((verdict.ground, verdict.obstacle), expected, "{all}");
    }
    for some in [
        json!([{ "introduced": "0" }, { "fixed": "1.0.0" }]),
        json!([{ "introduced": "0" }, { "last_affected": "1.0.0" }]),
        json!([{ "introduced": "0" }, { "limit": "1.0.0" }]),
        json!([{ "introduced": "1.0.0" }]),
        json!(null),
    ] {
        let verdict = verdict("SEMVER", some.clone(), json!(["1.0.0"]));
        let expected =
            Verdict { obstacle: Some(ComparisonObstacle::NoVersion), ..Verdict::default() };
        assert_eq!(verdict, expected, "{some}");
    }
    let commits = verdict("GIT", json!([{ "introduced": "0" }]), json!([]));
    assert_eq!((commits.ground, commits.obstacle), (None, Some(ComparisonObstacle::NoVersion)));
}

fn read(folder: &str, name: &str) -> Option<Osv> {
    let path = corpus(folder)?.join(name);
    Some(Osv::read(&read_text(&path)).expect("an advisory"))
}

/// Whether any entry of the advisory affects the purl.
fn affects(osv: &Osv, purl: &str) -> bool {
    let package = Package::of_purl(&Purl::parse(purl).expect("a purl"));
    osv.affected.iter().any(|entry| {
        let named = entry.package.as_ref().expect("a package");
        Package::of_osv(&named.ecosystem, &named.name).key() == package.key()
            && evaluate(entry, &package).ground.is_some()
    })
}

#[test]
fn log4shell_affects_what_it_says() {
    let Some(osv) = read("osv/github-advisory", "GHSA-jfh8-c2jp-5v3q.json") else { return };
    let core =
        |version| format!("pkg:maven/org.apache.logging.log4j/log4j-core@{version}?type=jar");
    for version in ["2.13.2", "2.13.0", "2.14.1", "2.4", "2.12.1", "2.0-beta9", "2.3"] {
        assert!(affects(&osv, &core(version)), "{version}");
    }
    for version in ["2.15.0", "2.12.2", "2.3.1", "2.12.9"] {
        assert!(!affects(&osv, &core(version)), "{version}");
    }
    assert_eq!(osv.rating(), Some(SeverityBand::Critical));
    assert_eq!(osv.cvss_score().as_deref(), Some("10.0"));
}

#[test]
fn real_ranges_are_evaluated() {
    let Some(mut osv) = read("osv/rustsec", "RUSTSEC-2020-0071.json") else { return };
    // Copies of the OSV database contain different names for the same ecosystem.
    for package in osv.affected.iter_mut().filter_map(|affected| affected.package.as_mut()) {
        package.ecosystem = "crates.io".to_owned();
    }
    assert!(affects(&osv, "pkg:cargo/time@0.1.43"));
    assert!(!affects(&osv, "pkg:cargo/time@0.2.23"));
    assert!(!affects(&osv, "pkg:cargo/time@0.3.0"));
    let osv = read("osv/go", "GO-2021-0113.json").expect("an advisory");
    assert!(affects(&osv, "pkg:golang/golang.org/x/text@v0.3.6"));
    assert!(!affects(&osv, "pkg:golang/golang.org/x/text@v0.3.7"));
    let osv = read("osv/osv-schema", "maven_greater_than.osv.json").expect("an advisory");
    assert!(affects(&osv, "pkg:maven/org.xwiki.commons/xwiki-commons-core@12.10.1"));
    assert!(!affects(&osv, "pkg:maven/org.xwiki.commons/xwiki-commons-core@12.10.2"));
    assert!(!affects(&osv, "pkg:maven/org.xwiki.commons/xwiki-commons-core@11.5"));
    let osv = read("osv/dependency-track", "osv-DSA-5474-1.json").expect("an advisory");
    assert!(affects(&osv, "pkg:deb/debian/intel-microcode@3.20230512.1?distro=debian-12"));
    assert!(!affects(&osv, "pkg:deb/debian/intel-microcode@3.20230808.1"));
}

#[test]
fn all_real_advisories_are_read() {
    let Some(folder) = corpus("osv") else { return };
    let schema = folder.join("schema");
    let files = files_with(&folder, "json").into_iter().filter(|f| !f.starts_with(&schema));
    let (mut read, mut refused) = (0, Vec::new());
    for file in files {
        match Osv::read(&read_text(&file)) {
            Ok(_) => read += 1,
            Err(mistake) => refused.push((file, mistake.to_string())),
        }
    }
    assert_eq!((read, refused.len()), (27, 1), "{refused:?}");
    let (file, why) = &refused[0];
    assert!(file.ends_with("osv-vulnerability-invalid-cvss.json"), "{}", file.display());
    assert!(why.starts_with("missing field `modified`"), "{why}");
}

#[test]
fn a_severity_may_be_told_of_a_package_alone() {
    let package = |score: &str| {
        let package = json!({ "ecosystem": "npm", "name": "a" });
        json!({ "package": package, "severity": [{ "type": "CVSS_V3", "score": score }] })
    };
    let low = "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N";
    let critical = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H";
    let osv = json!({
        "id": "X-1", "modified": "2024-01-01T00:00:00Z", "affected": [package(low), package(critical)],
    });
    let osv = Osv::read(&osv.to_string()).expect("an advisory");
    assert_eq!(osv.rating(), Some(SeverityBand::Critical));
    assert_eq!(osv.cvss_score().as_deref(), Some("9.8"));
    assert_eq!(osv.affected[0].rating(), Some(SeverityBand::Low));
}

#[test]
fn a_revision_of_bitnami_is_after_its_version() {
    for kind in ["SEMVER", "ECOSYSTEM"] {
        let entry = |range: Value| of_range("Bitnami", kind, &range);
        let fixed = entry(json!([{ "introduced": "17.0.0" }, { "fixed": "17.2.0" }]));
        check(&fixed, "Bitnami", &["17.0.0-0", "17.1.9-12"], &["17.2.0", "17.2.0-8", "16.9.0-1"]);
        let fixed = entry(json!([{ "introduced": "0" }, { "fixed": "17.2.0-8" }]));
        check(&fixed, "Bitnami", &["17.2.0", "17.2.0-7"], &["17.2.0-8", "17.2-10"]);
        let last = entry(json!([{ "introduced": "0" }, { "last_affected": "17.2.0" }]));
        check(&last, "Bitnami", &["17.2.0", "17.2.0-8", "17.2.0-rc1"], &["17.2.1-0"]);
    }
}

#[test]
fn a_listed_gem_of_one_platform_is_not_that_of_another() {
    let entry = affected("RubyGems", &json!([]), &json!(["1.2.3-x86_64-linux", "1.1"]));
    check(
        &entry,
        "RubyGems",
        &["1.2.3", "1.2.3-x86_64-linux", "1.1.0-java"],
        &["1.2.3-arm64-darwin", "1.2.3-java", "1.2.4-x86_64-linux"],
    );
}

#[test]
fn a_severity_is_read_from_the_word_of_a_distribution() {
    let vector =
        json!({ "type": "CVSS_V3", "score": "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N" });
    let word = |word: &str| json!({ "type": "Ubuntu", "score": word });
    for (own, package, expected) in [
        (json!([word("high")]), json!([]), Some(SeverityBand::High)),
        (json!([word("negligible")]), json!([]), Some(SeverityBand::Low)),
        (json!([word("untriaged")]), json!([]), None),
        (json!([word("high"), vector]), json!([]), Some(SeverityBand::Low)),
        (json!([]), json!([word("medium")]), Some(SeverityBand::Medium)),
        (json!([word("high")]), json!([vector]), Some(SeverityBand::Low)),
    ] {
        let osv = json!({
            "id": "UBUNTU-CVE-1", "modified": "2024-01-01T00:00:00Z", "severity": own,
            "affected": [{
                "package": { "ecosystem": "Ubuntu:24.04:LTS", "name": "a" }, "severity": package,
            }],
        });
        assert_eq!(Osv::read(&osv.to_string()).expect("an advisory").rating(), expected, "{osv}");
    }
}

#[test]
fn what_is_wrong_is_told_by_pointer() {
    let good = json!({ "id": "A-1", "modified": "2024-01-01T00:00:00Z", "affected": null });
    assert!(Osv::read(&good.to_string()).is_ok());
    let range = |events: Value| json!([{ "ranges": [{ "type": "SEMVER", "events": events }] }]);
    for (member, value, pointer) in [
        ("id", json!("a b"), "/id"),
        ("id", json!(""), "/id"),
        ("id", json!(7), "/id"),
        ("modified", json!("yesterday"), "/modified"),
        ("aliases", json!(["A-1", ""]), "/aliases/1"),
        ("affected", range(json!([{ "fixed": "1" }])), "/affected/0/ranges/0/events"),
        ("affected", range(json!([{ "begun": "1" }])), "/affected/0/ranges/0/events/0"),
        ("affected", json!([{ "package": { "ecosystem": "npm" } }]), "/affected/0/package"),
    ] {
        let mut wrong = good.clone();
        wrong[member] = value;
        let mistake = Osv::read(&wrong.to_string()).expect_err("a mistake");
        assert_eq!(mistake.pointer, pointer, "{mistake}");
    }
    assert_eq!(Osv::read("{").expect_err("a mistake").pointer, "");
    assert!(Osv::read("[]").is_err());
}

#[test]
fn texts_of_an_advisory_have_no_nul() {
    let osv = json!({
        "id": "A-1", "modified": "2024-01-01T00:00:00Z", "schema_version": "1\0",
        "aliases": ["CVE\0-1"], "related": ["CVE\0-2"],
        "references": [{ "type": "WEB\0", "url": "https://a\0" }],
        "affected": [{ "package": { "ecosystem": "npm", "name": "a\0" }, "versions": ["1\0"] }],
    });
    let osv = Osv::read(&osv.to_string()).expect("an advisory");
    assert!(!format!("{osv:?}").contains(r"\0"), "{osv:?}");
    assert_eq!(osv.aliases, ["CVE-1"]);
}

proptest! {
    #[test]
    fn nothing_before_the_introduced_version_is_affected(
        from in 0..50_u32, to in 0..50_u32, at in 0..50_u32,
    ) {
        let range = json!([{ "introduced": format!("{from}.0.0") }, { "fixed": format!("{to}.0.0") }]);
        let entry = of_range("npm", "SEMVER", &range);
        let expected = if from < to { (from..to).contains(&at) } else { from > to && at >= from };
        prop_assert_eq!(ground(&entry, "npm", &format!("{at}.0.0")).is_some(), expected);
    }

    #[test]
    fn any_json_is_read_or_refused(text in "\\{\"id\":\\PC{0,60}") {
        let _ = Osv::read(&text);
    }
}

#[test]
fn a_range_of_maven_versions_that_maven_orders_in_a_circle_is_evaluated() {
    let circle = ["1.p.a.1", "1.0.b1", "1", "1.q.a.1", "1.0.a1", "1.p.b.1", "1.0.rc1"];
    let event = |at: usize| {
        let kind = if at.is_multiple_of(2) { "introduced" } else { "fixed" };
        json!({ kind: circle[at * 5 % circle.len()] })
    };
    let entry = of_range("Maven", "ECOSYSTEM", &(0..60).map(event).collect());
    for version in circle {
        assert!(evaluate(&entry, &package("Maven", version)).answered, "{version}");
    }
}

#[test]
fn a_range_of_too_many_events_is_an_obstacle() {
    let many = (0..=1_000).map(|n| json!({ "introduced": format!("{n}.0.0") })).collect();
    let entry = of_range("npm", "SEMVER", &many);
    let verdict = evaluate(&entry, &package("npm", "1.0.0"));
    assert_eq!((verdict.ground, verdict.obstacle), (None, Some(ComparisonObstacle::TooManyEvents)));
}
