//! Tests of the limitations of components that cannot be compared with an advisory.

use super::*;

/// Creates an OSV advisory with one `affected` entry: this package, with the members of `says`.
fn advisory_of(id: &str, ecosystem: &str, name: &str, says: &Value) -> Value {
    let mut affected = json!({ "package": { "ecosystem": ecosystem, "name": name } });
    for (member, value) in says.as_object().expect("members") {
        affected[member] = value.clone();
    }
    json!({ "id": id, "modified": "2026-01-01T00:00:00Z", "affected": [affected] })
}

fn range(kind: &str, events: &Value) -> Value {
    json!({ "ranges": [{ "type": kind, "events": events }] })
}

/// Returns the name, the advisory ids and the limitations of each component.
fn results(world: &World) -> Vec<(String, Vec<String>, Vec<String>)> {
    let list = world.list(&[]);
    let items = list["items"].as_array().expect("items").iter();
    let results = names(&list).into_iter().zip(items);
    results.map(|(name, item)| (name, ids(item), strings(&item["limitations"]))).collect()
}

/// Imports the advisories and an SBOM with one component. Returns the advisory ids and the
/// limitations of the component.
fn result(purl: &str, advisories: &[Value]) -> (Vec<String>, Vec<String>) {
    let world = World::new();
    for advisory in advisories {
        world.import(advisory).expect("imported");
    }
    world.audit(None, &[sbom("a.json", &bom("shop", &[purl]))]);
    let [(_, advisories, limitations)] = &results(&world)[..] else { panic!("one component") };
    (advisories.clone(), limitations.clone())
}

#[test]
fn a_component_without_a_version_is_not_silently_clean() {
    let all =
        advisory_of("MAL-1", "npm", "evil", &range("SEMVER", &json!([{ "introduced": "0" }])));
    assert_eq!(result("pkg:npm/evil", &[all]), (vec!["MAL-1".to_owned()], vec![]));
    let some = json!([{ "introduced": "0" }, { "fixed": "2.0.0" }]);
    let some = advisory_of("GHSA-1", "npm", "left-pad", &range("SEMVER", &some));
    let listed = advisory_of("GHSA-2", "npm", "left-pad", &json!({ "versions": ["1.0.0"] }));
    let limitation = "2 advisories cannot be compared because the component has no version: \
                      GHSA-2, GHSA-1.";
    assert_eq!(result("pkg:npm/left-pad", &[some, listed]), (vec![], vec![limitation.to_owned()]));
}

#[test]
fn a_release_by_name_is_compared_or_reported() {
    let all = json!([{ "introduced": "0" }]);
    for (name, ecosystem) in
        [("plucky", "Ubuntu:25.04"), ("oracular", "Ubuntu:24.10"), ("mantic", "Ubuntu:23.10")]
    {
        let advisory = advisory_of("UBUNTU-1", ecosystem, "curl", &range("ECOSYSTEM", &all));
        let purl = format!("pkg:deb/ubuntu/curl@8.0?distro={name}");
        assert_eq!(result(&purl, &[advisory]).0, ["UBUNTU-1"], "{name}");
    }
    let advisory = advisory_of("DEBIAN-1", "Debian:14", "curl", &range("ECOSYSTEM", &all));
    let forky = "pkg:deb/debian/curl@8.0?distro=forky";
    assert_eq!(result(forky, std::slice::from_ref(&advisory)).0, ["DEBIAN-1"]);
    let (advisories, limitations) =
        result("pkg:deb/debian/curl@8.0?distro=zurg", std::slice::from_ref(&advisory));
    assert_eq!(advisories, [""; 0]);
    assert!(limitations[0].contains("\"zurg\""), "{limitations:?}");
    let trixie = "pkg:deb/debian/curl@8.0?distro=trixie";
    assert_eq!(result(trixie, &[advisory]), (vec![], vec![]));
}

#[test]
fn an_advisory_for_a_minor_release_of_red_hat_is_applied_or_reported() {
    let some = range("ECOSYSTEM", &json!([{ "introduced": "0" }, { "fixed": "9.0-1" }]));
    let of_product = |product: &str| {
        let ecosystem = format!("Red Hat:{product}");
        advisory_of("RHSA-1", &ecosystem, "curl", &some)
    };
    let of_release = |release: &str| of_product(&format!("enterprise_linux:{release}"));
    let purl = "pkg:rpm/redhat/curl@8.0-1?distro=rhel-10.1";
    assert_eq!(result(purl, &[of_release("10.0")]).0, ["RHSA-1"]);
    let (advisories, limitations) = result(purl, &[of_release("10.2")]);
    assert_eq!(advisories, [""; 0]);
    let expected = "Advisories of Red Hat for minor releases that may be later than \"rhel-10.1\"";
    assert!(limitations.iter().any(|one| one.starts_with(expected)), "{limitations:?}");
    let (advisories, limitations) =
        result("pkg:rpm/redhat/curl@8.0-1?distro=rhel-8", &[of_product("rhel_eus:8.6::baseos")]);
    assert_eq!(advisories, [""; 0]);
    let expected = "Advisories of Red Hat for the extended support of a minor release";
    assert!(limitations.iter().any(|one| one.starts_with(expected)), "{limitations:?}");
}

#[test]
fn advisories_for_a_source_package_are_applied_or_reported() {
    let some = json!([{ "introduced": "0" }, { "fixed": "3.0.13-1" }]);
    let world = World::new();
    let openssl = advisory_of("DEBIAN-1", "Debian:12", "openssl", &range("ECOSYSTEM", &some));
    world.import(&openssl).expect("imported");
    let libssl = "pkg:deb/debian/libssl3@3.0.11-1?distro=debian-12.4";
    let curl = "pkg:deb/debian/curl@8.0?distro=debian-12.4";
    let names = ["libssl3", "curl"];
    let audit = |document: &Value| {
        world.audit(Some("main"), &[sbom("a.json", document)]);
        let results = results(&world).into_iter();
        results.map(|(name, advisories, limitations)| (name, (advisories, limitations))).collect()
    };
    let mut document = bom("shop", &[libssl, curl]);
    let unknown: std::collections::BTreeMap<_, _> = audit(&document);
    for name in names {
        let (advisories, limitations) = &unknown[name];
        assert_eq!(advisories, &[""; 0], "{name}");
        assert!(limitations[0].contains("names no source packages"), "{limitations:?}");
    }
    document["components"][0]["properties"] = json!([
        { "name": "aquasecurity:trivy:SrcName", "value": "openssl" },
        { "name": "aquasecurity:trivy:SrcVersion", "value": "3.0.11" },
        { "name": "aquasecurity:trivy:SrcRelease", "value": "1" },
    ]);
    let known: std::collections::BTreeMap<_, _> = audit(&document);
    assert_eq!(known["libssl3"], (vec!["DEBIAN-1".to_owned()], vec![]));
    assert_eq!(known["curl"], (vec![], vec![]));
    let mut newer = openssl;
    newer["id"] = json!("DEBIAN-2");
    world.ingest(&newer);
    let again = results(&world).into_iter().find(|(name, ..)| name == "libssl3");
    assert_eq!(again.expect("a component").1, ["DEBIAN-1", "DEBIAN-2"]);
}

#[test]
fn a_source_package_needs_no_other() {
    let limitations = |arch: &str| {
        let purl = format!("pkg:deb/debian/openssl@3.0.11-1?arch={arch}&distro=debian-12.4");
        result(&purl, &[]).1
    };
    assert_eq!(limitations("source"), [""; 0]);
    assert!(limitations("amd64")[0].contains("names no source packages"));
}

#[test]
fn a_registry_is_no_release() {
    let all = json!([{ "introduced": "0" }]);
    let ecosystem = "Packagist:https://packages.drupal.org/8";
    let advisory = advisory_of("DRUPAL-1", ecosystem, "drupal/webform", &range("ECOSYSTEM", &all));
    let purl = "pkg:composer/drupal/webform@6.1.0";
    assert_eq!(result(purl, &[advisory]), (vec!["DRUPAL-1".to_owned()], vec![]));
}

#[test]
fn an_advisory_for_fips_builds_is_not_applied_to_others() {
    let some = json!([{ "introduced": "0" }, { "fixed": "3.0.2-0ubuntu1.15+Fips1" }]);
    let advisory =
        advisory_of("USN-1", "Ubuntu:Pro:FIPS:22.04:LTS", "openssl", &range("ECOSYSTEM", &some));
    let purl = |version| format!("pkg:deb/ubuntu/openssl@{version}?distro=ubuntu-22.04");
    let all = std::slice::from_ref(&advisory);
    assert_eq!(result(&purl("3.0.2-0ubuntu1.12"), all), (vec![], vec![]));
    assert_eq!(result(&purl("3.0.2-0ubuntu1.12%2BFips1"), all).0, ["USN-1"]);
}

#[test]
fn an_advisory_for_a_service_pack_of_openeuler_is_applied_or_reported() {
    let some = range("ECOSYSTEM", &json!([{ "introduced": "0" }, { "fixed": "9.0-1" }]));
    let advisory = advisory_of("OESA-1", "openEuler:22.03-LTS-SP3", "curl", &some);
    let result = |release: &str| {
        let purl = format!("pkg:rpm/openeuler/curl@8.0-1?distro=openEuler-{release}");
        result(&purl, std::slice::from_ref(&advisory))
    };
    assert_eq!(result("22.03-LTS-SP3").0, ["OESA-1"]);
    let (advisories, limitations) = result("22.03");
    assert_eq!(advisories, [""; 0]);
    let expected = "Advisories of openEuler for minor releases that may be later than";
    assert!(limitations.iter().any(|one| one.starts_with(expected)), "{limitations:?}");
}

#[test]
fn a_package_without_an_ecosystem_is_not_silently_clean() {
    for (purl, reason) in [
        ("pkg:rpm/amzn/curl@8", "distribution without an ecosystem"),
        ("pkg:rpm/fedora/curl@8", "distribution without an ecosystem"),
        ("pkg:deb/curl@8", "distribution without an ecosystem"),
        ("pkg:apk/x/a@1", "distribution without an ecosystem"),
        ("pkg:generic/curl@8", "no ecosystem for the type"),
        ("pkg:none/bash@4.3-48.mga5", "no ecosystem for the type"),
        ("pkg:maven/log4j-core@2.0", "has no group"),
    ] {
        let (_, limitations) = result(purl, &[]);
        assert!(limitations[0].contains(reason), "{purl}: {limitations:?}");
    }
    for purl in ["pkg:oci/curl@8", "pkg:docker/library/curl@8", "pkg:github/actions/checkout@v4"] {
        assert_eq!(result(purl, &[]), (vec![], vec![]), "{purl}");
    }
}

#[test]
fn packages_without_an_ecosystem_are_one_warning_for_each_sbom() {
    let world = with_advisory();
    let purls = ["a", "b", "c", "d", "e"].map(|name| format!("pkg:generic/{name}@1"));
    let mut document = bom("shop", &purls);
    document["components"][4]["type"] = json!("file");
    let components = document["components"].as_array_mut().expect("components");
    components.push(json!({ "type": "library", "name": "x", "purl": LEFT_PAD }));
    world.audit(None, &[sbom("a.json", &document)]);
    let expected = "a.json: 4 components cannot be compared with the ranges of versions in \
                    advisories: pkg:generic/a, pkg:generic/b, pkg:generic/c, and 1 more.";
    assert_eq!(world.audit_report()["warnings"], json!([expected]));
    let limited = results(&world).into_iter().filter(|(.., limitations)| !limitations.is_empty());
    let limited: Vec<String> = limited.map(|(name, ..)| name).collect();
    assert_eq!(limited, ["a", "b", "c", "d"]);
}

#[test]
fn commits_are_mentioned_only_where_nothing_else_answers() {
    let commits = json!({ "type": "GIT", "events": [{ "introduced": "0" }] });
    let answer =
        json!({ "type": "ECOSYSTEM", "events": [{ "introduced": "0" }, { "fixed": "1" }] });
    let says = |ranges: Value| json!({ "ranges": ranges });
    let both = advisory_of("PYSEC-1", "PyPI", "pip", &says(json!([commits, answer])));
    assert_eq!(result("pkg:pypi/pip@24", std::slice::from_ref(&both)), (vec![], vec![]));
    let mut apart = advisory_of("PYSEC-1", "PyPI", "pip", &says(json!([answer])));
    let other = advisory_of("PYSEC-1", "PyPI", "pip", &says(json!([commits])));
    apart["affected"].as_array_mut().expect("entries").push(other["affected"][0].clone());
    assert_eq!(result("pkg:pypi/pip@24", &[apart]), (vec![], vec![]));
    let limitation = "1 advisory cannot be compared because only ranges of commits are given: \
                      PYSEC-1.";
    assert_eq!(result("pkg:pypi/pip@24", &[other]), (vec![], vec![limitation.to_owned()]));
}

#[test]
fn an_advisory_without_ranges_and_versions_is_not_silently_passed_over() {
    let mut advisory = advisory_of("MAL-1", "npm", "left-pad", &json!({}));
    let limitation = "1 advisory cannot be compared because neither ranges nor versions are \
                      given: MAL-1.";
    for purl in [LEFT_PAD, "pkg:npm/left-pad"] {
        let found = result(purl, std::slice::from_ref(&advisory));
        assert_eq!(found, (vec![], vec![limitation.to_owned()]), "{purl}");
    }
    let some = range("SEMVER", &json!([{ "introduced": "0" }, { "fixed": "0.1.0" }]));
    let answer = advisory_of("MAL-1", "npm", "left-pad", &some)["affected"][0].clone();
    advisory["affected"].as_array_mut().expect("entries").push(answer);
    assert_eq!(result(LEFT_PAD, &[advisory]), (vec![], vec![]));
}

#[test]
fn hundreds_of_doubts_are_one_limitation() {
    let some = json!([{ "introduced": "0" }, { "fixed": "1.20.0" }]);
    let advisories: Vec<Value> = (100..250)
        .map(|n| advisory_of(&format!("GO-{n}"), "Go", "stdlib", &range("SEMVER", &some)))
        .collect();
    let (found, limitations) = result("pkg:golang/stdlib@weird", &advisories);
    assert_eq!((found.len(), limitations.len()), (0, 1));
    assert!(limitations[0].starts_with("150 advisories cannot be compared"), "{limitations:?}");
    let (found, limitations) = result("pkg:golang/stdlib@go1.19.1", &advisories);
    assert_eq!((found.len(), limitations.len()), (50, 1), "the row shows some of them");
    assert!(limitations[0].starts_with("150 advisories affect"), "{limitations:?}");
    let (found, limitations) = result("pkg:golang/stdlib@go1.20.1", &advisories);
    assert_eq!((found.len(), limitations), (0, vec![]));
}

#[test]
fn the_standard_library_of_go_is_compared_under_each_of_its_names() {
    let some = range("SEMVER", &json!([{ "introduced": "0" }, { "fixed": "1.20.5" }]));
    let advisory = advisory_of("GO-1", "Go", "stdlib", &some);
    for name in ["std", "stdlib"] {
        let purl = format!("pkg:golang/{name}@go1.20.4?type=module");
        let found = result(&purl, std::slice::from_ref(&advisory));
        assert_eq!(found, (vec!["GO-1".to_owned()], vec![]), "{name}");
    }
}

#[test]
fn go_modules_that_differ_in_case_are_two() {
    let some = json!([{ "introduced": "0" }, { "fixed": "2.0.0" }]);
    let world = World::new();
    let name = "github.com/0xJacky/Nginx-UI";
    world.import(&advisory_of("GO-1", "Go", name, &range("SEMVER", &some))).expect("imported");
    let purls = [
        "pkg:golang/github.com/0xJacky/Nginx-UI@v1.0.0",
        "pkg:golang/github.com/0xJacky/nginx-ui@v1.0.0",
    ];
    world.audit(None, &[sbom("a.json", &bom("shop", &purls))]);
    let other = "1 advisory cannot be applied because the paths of the Go modules differ in upper \
                 and lower case: GO-1.";
    let expected = [
        (name.to_owned(), vec!["GO-1".to_owned()], vec![]),
        ("github.com/0xJacky/nginx-ui".to_owned(), vec![], vec![other.to_owned()]),
    ];
    assert_eq!(results(&world), expected);
}

#[test]
fn a_scanner_that_writes_go_paths_in_lower_case_misses_nothing() {
    let some = json!([{ "introduced": "0" }, { "fixed": "2.0.0" }]);
    let advisory = advisory_of("GO-1", "Go", "github.com/Azure/x", &range("SEMVER", &some));
    let lower = "pkg:golang/github.com/azure/x@v1.0.0";
    let (found, limitations) = result(lower, std::slice::from_ref(&advisory));
    assert_eq!(found, ["GO-1"]);
    assert!(limitations[0].contains("lower case"), "{limitations:?}");
    // The upper-case letters of another purl show that the scanner does not convert paths to lower
    // case.
    let world = World::new();
    world.import(&advisory).expect("imported");
    let purls = [lower, "pkg:golang/github.com/BurntSushi/toml@v1.0.0"];
    world.audit(None, &[sbom("a.json", &bom("shop", &purls))]);
    assert!(results(&world).iter().all(|(_, advisories, _)| advisories.is_empty()));
}

#[test]
fn a_go_module_whose_path_ends_in_the_subpath_is_that_module() {
    let some = range("SEMVER", &json!([{ "introduced": "0" }, { "fixed": "9.0.0" }]));
    let world = World::new();
    for (id, name) in [("GO-1", "a.b/pgx"), ("GO-2", "a.b/pgx/v5"), ("GO-3", "a.b/pgx/log")] {
        world.import(&advisory_of(id, "Go", name, &some)).expect("imported");
    }
    let mut document = bom(
        "shop",
        &[
            "pkg:golang/a.b/pgx@v1.0.0#log",
            "pkg:golang/a.b/pgx@v5.5.0#v5",
            "pkg:golang/a.b/pgx@v1.0.0#other",
        ],
    );
    document["components"][0]["name"] = json!("a.b/pgx/log");
    world.audit(None, &[sbom("a.json", &document)]);
    let mut found = results(&world);
    found.sort();
    let [(path, of_path, unknown), (log, of_log, none), (v5, of_v5, nothing)] = &found[..] else {
        panic!("three components: {found:?}")
    };
    assert_eq!([path, log, v5], ["a.b/pgx", "a.b/pgx/log", "a.b/pgx/v5"]);
    assert_eq!([of_path, of_log, of_v5], [&["GO-1"], &["GO-3"], &["GO-2"]]);
    assert!(unknown[0].contains("subpath") && none.is_empty() && nothing.is_empty());
}

#[test]
fn a_gem_with_a_platform_is_its_version() {
    let between = |introduced: &str, fixed: &str| {
        let events = json!([{ "introduced": introduced }, { "fixed": fixed }]);
        advisory_of("GEM-1", "RubyGems", "nokogiri", &range("ECOSYSTEM", &events))
    };
    for platform in ["arm64-darwin", "java", "x64-mingw-ucrt", "x86_64-linux"] {
        let purl = format!("pkg:gem/nokogiri@1.13.6-{platform}");
        let affected = result(&purl, &[between("1.13.6", "1.13.7")]);
        assert_eq!(affected, (vec!["GEM-1".to_owned()], vec![]), "{platform}");
        assert_eq!(result(&purl, &[between("0", "1.13.6")]), (vec![], vec![]), "{platform}");
    }
}

#[test]
fn a_placeholder_of_maven_is_not_silently_clean() {
    let some = range("ECOSYSTEM", &json!([{ "introduced": "1.0" }, { "fixed": "2.0" }]));
    let advisory = advisory_of("GHSA-1", "Maven", "org.a:lib", &some);
    let limitation = "1 advisory cannot be compared because version \"${lib.version}\" or a bound \
                      of the range is not a version of Maven: GHSA-1.";
    let found = result("pkg:maven/org.a/lib@%24%7Blib.version%7D", &[advisory]);
    assert_eq!(found, (vec![], vec![limitation.to_owned()]));
}

#[test]
fn build_identifiers_count_in_pub() {
    let some = range("ECOSYSTEM", &json!([{ "introduced": "0" }, { "fixed": "1.0.0+2" }]));
    let advisory = advisory_of("PUB-1", "Pub", "p", &some);
    let listed = advisory_of("PUB-2", "Pub", "p", &json!({ "versions": ["1.0.0+1"] }));
    let found = |version: &str| {
        let purl = format!("pkg:pub/p@{version}");
        let mut found = result(&purl, &[advisory.clone(), listed.clone()]).0;
        found.sort();
        found
    };
    assert_eq!(found("1.0.0"), ["PUB-1"]);
    assert_eq!(found("1.0.0%2B1"), ["PUB-1", "PUB-2"]);
    assert_eq!(found("1.0.0%2B2"), [""; 0]);
}
