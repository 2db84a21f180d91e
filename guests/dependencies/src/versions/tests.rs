//! Tests of the version orders, with examples from the ecosystems' documentation and test suites.

use proptest::prelude::*;

use super::*;
use crate::fuzzing::check_laws;

fn version(scheme: Scheme, text: &str) -> Version {
    scheme.parse(text).unwrap_or_else(|| panic!("{scheme:?} does not read {text:?}"))
}

/// Asserts the order of a chain such as `1.0 < 1.1 = 1.1.0 < 2.0`.
fn check(scheme: Scheme, chain: &str) {
    let groups: Vec<Vec<&str>> =
        chain.split(" < ").map(|group| group.split(" = ").map(str::trim).collect()).collect();
    for (at, group) in groups.iter().enumerate() {
        for (other_at, other) in groups.iter().enumerate() {
            for (a, b) in group.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
                let order = version(scheme, a).cmp(&version(scheme, b));
                assert_eq!(order, at.cmp(&other_at), "{scheme:?}: {a} and {b}");
            }
        }
    }
}

#[test]
fn semantic_versions_are_ordered_by_precedence() {
    check(
        Scheme::Semantic,
        "1.0.0-0 < 1.0.0-alpha < 1.0.0-alpha.1 < 1.0.0-alpha.beta < 1.0.0-beta < 1.0.0-beta.2 < \
         1.0.0-beta.11 < 1.0.0-rc.1 < 1.0.0 = v1.0.0 = 1.0 = 1.0.0+build = 01.0.0 < 1.0.0.1 < \
         2.0.0 < 2.1.0 < 2.1.1 < 10.0.0",
    );
    check(Scheme::Semantic, "v0.0.0-20170915032832-14c0d48ead0c < v0.3.6 < v0.3.7");
}

#[test]
fn pub_versions_are_ordered_by_build_identifiers_too() {
    check(
        Scheme::Pub,
        "1.0.0-rc.1 < 1.0.0-rc.1+1 < 1.0.0 = 1.0 < 1.0.0+1 < 1.0.0+2 < 1.0.0+2.1 < 1.0.0+10 < \
         1.0.0+a < 1.0.1",
    );
}

#[test]
fn pypi_versions_are_those_of_pep_440() {
    check(
        Scheme::Python,
        "1.dev0 < 1.0.dev456 < 1.0a1 < 1.0a2.dev456 < 1.0a12 < 1.0b1.dev456 < 1.0b2 < \
         1.0b2.post345 < 1.0rc1.dev456 < 1.0rc1 = 1.0c1 < 1.0 = 1 = 1.0.0 < 1.0+abc.5 < 1.0+5 < \
         1.0.post456 < 1.1.dev1 < 1!0.1",
    );
}

#[test]
fn maven_versions_are_comparable_versions() {
    check(
        Scheme::Maven,
        "1-alpha2snapshot < 1-alpha2 < 1-alpha-123 < 1-beta-2 < 1-beta123 < 1-m2 < 1-m11 < 1-rc < \
         1-cr2 < 1-rc123 < 1-SNAPSHOT < 1 < 1-sp < 1-sp2 < 1-sp123 < 1-abc < 1-def < 1-pom-1 < \
         1-1-snapshot < 1-1 < 1-2 < 1-123",
    );
    check(
        Scheme::Maven,
        "2.0 = 2 = 2.0.0 = 2-ga = 2.final < 2.0.a < 2-1 < 2.0.2 < 2.0.123 < 2.1.0 < 2.1-a < 2.1b \
         < 2.1-c < 2.1-1 < 2.1.0.1 < 2.2 < 2.123 < 11.a2 < 11.a11 < 11.b2 < 11.b11 < 11.m2 < \
         11.m11 < 11 < 11.a < 11b < 11c < 11m",
    );
    // These chains are from Maven's own test class `ComparableVersionTest`.
    for chain in [
        "1-ga = 1 = 1.0 = 1-0 = 1.0-0 = 1-final = 1-release = 1.",
        "1x = 1.0.0-x = 1-x",
        "1a = 1-a < 1-1 < 1.1",
        "1a1 = 1-alpha-1 < 1b1 = 1-beta-1 < 1m1 = 1-milestone-1 < 1-rc1 = 1-cr1",
        "1-alpha2snapshot < 1-alpha2",
        "6.1.0rc3 < 6.1.0 < 6.1H.5-beta",
        "6.1.0rc3 < 6.1H.5-beta < 6.2",
        "20190126.230843 < 1234567890.12345 < 123456789012345.1H.5-beta < 12345678901234567890.1",
        "1-0.alpha < 1-0.beta < 1",
        "2.0.1-xyz < 2.0.1-123",
        "2.0.1.MR < 2.0.2",
        "0.0.0.2021.07.06.1 < 0.0.0.2021.07.06.2",
    ] {
        check(Scheme::Maven, chain);
    }
    check(Scheme::Maven, "2.13.0-rc1 < 2.13.0 < 2.13.2 < 2.15.0 < 2.15.0.redhat-1");
}

#[test]
fn maven_versions_that_maven_orders_in_a_circle_have_an_order() {
    check(Scheme::Maven, "1.0.b1 < 1 < 1.p.a.1");
    check(Scheme::Maven, "1.0.rc.1 < 1 < 1.xyz.1 < 1-0-1");
    check(Scheme::Maven, "1.0-0-alpha < 1 < 1.xyz.1");
}

#[test]
fn placeholders_and_ranges_are_no_maven_versions() {
    for wrong in [
        "${lib.version}",
        "[1.0,2.0)",
        "[1.5,)",
        ">= 1.0, < 2.0",
        "latest.release",
        "LATEST",
        "RELEASE",
        "1.+",
        "+",
    ] {
        assert!(Scheme::Maven.parse(wrong).is_none(), "{wrong}");
    }
    check(Scheme::Maven, "1.0 = 1.0-release < 1.0+build");
}

#[test]
fn a_platform_is_no_part_of_a_gem_version() {
    for platform in [
        "arm64-darwin",
        "x86_64-linux",
        "x86_64-linux-gnu",
        "aarch64-linux-musl",
        "x64-mingw-ucrt",
        "mingw32",
        "mswin64",
        "universal-darwin-19",
        "armv7l-linux",
        "java",
        "jruby",
    ] {
        check(Scheme::Ruby, &format!("1.13.5 < 1.13.6 = 1.13.6-{platform} < 1.13.7"));
        check(Scheme::Ruby, &format!("2.0-rc1 = 2.0-rc1-{platform} < 2.0"));
    }
    check(Scheme::Ruby, "1.0-armada = 1.0.pre.armada < 1.0");
}

#[test]
fn gem_versions_have_pre_releases_by_letters() {
    check(
        Scheme::Ruby,
        "1.0.a < 1.0.a.2 < 1.0.b1 < 1.0.rc1 = 1.0.rc.1 < 1.0 = 1 = 1.0.0 < 1.0.1 < 1.8.2.a < \
         1.8.2.a10 < 1.8.2.b < 1.8.2 < 1.9.a.1 < 1.9.0.dev = 1.9.dev < 1.9.3",
    );
    check(Scheme::Ruby, "1-1 = 1.pre.1 < 1");
}

#[test]
fn composer_versions_are_php_versions() {
    check(
        Scheme::Composer,
        "1.0.0-dev < 1.0.0-alpha1 = 1.0.0a1 < 1.0.0-beta = 1.0b < 1.0-beta2 < 1.0.0-RC1 < \
         1.0.0-rc2 < 1.0 = v1.0.0 = 1.0.0.0 < 1.0.0-p1 = 1.0.0-patch1 < 1.0.1 < 1.10 < 2.0",
    );
    check(
        Scheme::Composer,
        "1.9 < 2.0-dev < 2.0.0 < 2.0.99 < 2.0.x-dev = 2.0.X-dev = 2.0.*-dev = v2.0.x.x.dev < 2.1-dev \
         < 2.1 < 2.x-dev < 3.0.0",
    );
    assert!(Scheme::Composer.parse("dev-main").is_none());
}

#[test]
fn constraints_are_no_composer_versions() {
    for wrong in ["8.*", "1.0 - 2.0", "1.0.x", "2.X", "1.0|2.0", "1.0,<2", "1.0@dev"] {
        assert!(Scheme::Composer.parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn nuget_versions_have_four_numbers_and_no_case() {
    check(
        Scheme::NuGet,
        "1.0.0-ALPHA = 1.0-alpha < 1.0.0-beta.2 < 1.0.0-beta.10 < 1.0.0-rc < 1.0 = 1.0.0.0 < \
         1.0.0.1 < 1.0.1",
    );
}

#[test]
fn debian_versions_are_those_of_dpkg() {
    check(
        Scheme::Debian,
        "0~~ < 0~~a < 0~ < 0 < 1.0~beta1~svn1245 < 1.0~beta1 < 1.0 = 1.0-0 = 1.00 < 1.0-1 < \
         1.0-1+b1 < 1.0-1.1 < 1.0a < 1.0+dfsg < 1.1 < 1.2.10 < 1:0.4 < 1:0.5-1 < 2:0",
    );
    check(Scheme::Debian, "3.20230808.1~deb11u1 < 3.20230808.1~deb12u1 < 3.20230808.1");
    for wrong in ["", "a:1", "1:", "1 2", "1.0-é"] {
        assert!(Scheme::Debian.parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn alpine_versions_are_those_of_apk_tools() {
    check(
        Scheme::Alpine,
        "1.0_alpha < 1.0_alpha2 < 1.0_beta < 1.0_pre1 < 1.0_rc1 < 1.0_rc1_p1 < 1.0 = 1.0-r0 < \
         1.0-r1 < 1.0-r10 < 1.0_git20200101 < 1.0_p1 < 1.0_p10 < 1.0b < 1.0c < 1.0.1 < \
         1.01 < 1.1 < 1.9 < 1.10 < 10",
    );
    for wrong in ["1.0-beta", "a", "1..2", "1_what", "1.0-r", ""] {
        assert!(Scheme::Alpine.parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn rpm_versions_have_epochs_tildes_and_carets() {
    check(
        Scheme::Rpm,
        "1.0~rc1-1 < 1.0-1 < 1.0^git1-1 < 1.0.1-1 < 1.0.10-1.el8 < 1.0.10-1.el8_1 < 2.0-1 < 1:0.1-1",
    );
}

#[test]
fn dotted_versions_are_numbers() {
    check(Scheme::Dotted, "0.9.1 < 1 < 1.0 < 1.0-4 = 1.0.4 < 1.0.5 < 1.10");
    assert!(Scheme::Dotted.parse("1.0a").is_none());
}

#[test]
fn what_is_too_long_is_no_version() {
    assert!(Scheme::Maven.parse(&"1-".repeat(200)).is_none());
    assert!(Scheme::Maven.parse(&"1-".repeat(128)).is_some());
    assert!(Scheme::Semantic.parse("99999999999999999999999999.1").is_some());
}

/// Generates texts that look like versions.
fn looks_like_a_version() -> impl Strategy<Value = String> {
    "[0-9]{1,2}([.]0{0,2}[0-9]{1,2}){0,2}([-._~+]?(a|b|rc|dev|pre|sp|ga|p|post|final|r)?[.-]?[0-9]{0,2}){0,2}"
}

/// Generates texts of a few fixed pieces, so that two texts often share a prefix.
fn is_made_of_pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "0", "1", "00", "10", "a", "b", "p", "x", "rc", "dev", "alpha", "final", "ga", "sp", "pre",
        "post", "snapshot", ".", "-", "_", "~", "^", "+", ":", "1.", "0.", ".0", "-1", ".b1",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..8)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_scheme_is_a_total_order(
        texts in prop_oneof![
            prop::array::uniform3(looks_like_a_version()),
            prop::array::uniform3(is_made_of_pieces()),
        ],
    ) {
        for scheme in Scheme::ALL {
            let [a, b, c] = texts.each_ref().map(|text| scheme.parse(text));
            if let (Some(a), Some(b), Some(c)) = (a, b, c) {
                check_laws(&[a, b, c]);
            }
        }
    }

    #[test]
    fn strict_versions_are_ordered_as_the_semver_crate_does(
        a in "[0-9]\\.[0-9]\\.[0-9](-[a-z0-9]{1,3}(\\.[a-z0-9]{1,3}){0,2})?",
        b in "[0-9]\\.[0-9]\\.[0-9](-[a-z0-9]{1,3}(\\.[a-z0-9]{1,3}){0,2})?",
    ) {
        if let (Ok(theirs_a), Ok(theirs_b)) = (semver::Version::parse(&a), semver::Version::parse(&b)) {
            let ours = version(Scheme::Semantic, &a).cmp(&version(Scheme::Semantic, &b));
            prop_assert_eq!(ours, theirs_a.cmp_precedence(&theirs_b));
        }
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,40}") {
        for scheme in Scheme::ALL {
            if let Some(version) = scheme.parse(&text) {
                prop_assert!(version == version.clone());
            }
        }
    }
}
