//! Entry points for fuzzing the parsers of SBOMs, advisories, package URLs and versions.

use std::cmp::Ordering;

use crate::ecosystem::Package;
use crate::osv::Osv;
use crate::osv::evaluate::evaluate;
use crate::purl::Purl;
use crate::sbom::Sbom;
use crate::versions::vers::VersRange;
use crate::versions::{Scheme, Version};

/// Fuzzes the SBOM parser: parses an SBOM in CycloneDX or SPDX, and its components. Returns the
/// total size of their texts in bytes.
pub fn sbom(bytes: &[u8]) -> usize {
    let Ok(sbom) = Sbom::read(bytes) else { return 0 };
    let components = sbom.components(0..sbom.len());
    let texts = components.iter().map(|one| {
        let lists = [&one.dependencies, &one.limitations];
        one.name.len() + lists.into_iter().flatten().map(String::len).sum::<usize>()
    });
    texts.sum::<usize>() + sbom.warnings.concat().len()
}

/// Fuzzes the advisory parser: parses an OSV record and compares it with a version of each of its
/// packages. Returns the total size of its ids in bytes.
pub fn osv(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let Ok(osv) = Osv::read(&text) else { return 0 };
    for affected in &osv.affected {
        let Some(package) = &affected.package else { continue };
        let mut package = Package::of_osv(&package.ecosystem, &package.name);
        package.version = affected.versions.first().cloned().or(Some("1.0.0".to_owned()));
        let _ = (evaluate(affected, &package), affected.rating());
    }
    let _ = (osv.rating(), osv.cvss_score());
    osv.aliases.concat().len() + osv.related.concat().len()
}

/// Fuzzes the parser of package URLs. Returns the size of the URL's canonical form in bytes.
///
/// # Panics
/// If the canonical form changes when it is parsed again.
pub fn purl(bytes: &[u8]) -> usize {
    let Ok(purl) = Purl::parse(&String::from_utf8_lossy(bytes)) else { return 0 };
    let canonical = purl.to_string();
    if let Ok(again) = Purl::parse(&canonical) {
        assert_eq!(again.to_string(), canonical, "the canonical form is its own");
    }
    canonical.len()
}

/// Fuzzes the CVSS parser: parses a vector and computes its score. Returns 0.
pub fn cvss(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let Ok(vector) = text.parse::<cvss::Cvss>() else { return 0 };
    let _ = (vector.score(), vector.severity());
    0
}

/// Fuzzes the version orders: parses lines as versions by every scheme, compares three at a time,
/// and parses the input as a `vers` range. Returns 0.
///
/// # Panics
/// If an order is not total.
pub fn versions(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(range) = VersRange::parse(&text) {
        let _ = range.contains(Some("1.0.0"));
    }
    for scheme in Scheme::ALL {
        let read: Vec<Version> =
            text.lines().filter_map(|line| scheme.parse(line)).take(1_000).collect();
        read.windows(3).for_each(check_laws);
        let mut sorted = read;
        sorted.sort();
    }
    0
}

/// Asserts that the comparison of three versions is a total order: reflexive, antisymmetric and
/// transitive.
pub(crate) fn check_laws(three: &[Version]) {
    let [a, b, c] = three else { return };
    for (x, y, z) in [(a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)] {
        assert_eq!(x.cmp(x), Ordering::Equal, "{x:?}");
        assert_eq!(x.cmp(y), y.cmp(x).reverse(), "{x:?} {y:?}");
        assert!(!(x <= y && y <= z) || x <= z, "{x:?} {y:?} {z:?}");
        assert!(x != y || x.cmp(z) == y.cmp(z), "{x:?} {y:?} {z:?}");
    }
}
