//! Which versions of a component a vulnerability in a CycloneDX document
//! affects.

use super::model::{AffectedStatus, AffectedVersion};
use crate::versions::vers::{VersError, VersRange};

/// Whether a vulnerability affects a component of some version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sbom) enum Hit {
    Yes,
    No,
    /// Assumed, since a range cannot be evaluated: which, and why.
    Assumed(String),
}

/// Entries that name the version come first, then ranges that have it. Without
/// either, the document's naming the component counts, unless all entries are
/// ranges that do not have the version, or are of versions that are not affected.
pub(super) fn is_affected(versions: &[AffectedVersion<'_>], version: Option<&str>) -> Hit {
    let unaffected = |one: &&AffectedVersion<'_>| one.status == AffectedStatus::Unaffected;
    let names =
        |one: &&AffectedVersion<'_>| one.version.is_some() && one.version.as_deref() == version;
    let named: Vec<_> = versions.iter().filter(names).collect();
    if !named.is_empty() {
        return Hit::of(!named.iter().all(unaffected));
    }
    let (mut covered, mut open) = (Vec::new(), None);
    for one in versions {
        match one.range.as_deref().map(|range| (range, lies_in(range, version))) {
            Some((_, Ok(true))) => covered.push(one),
            Some((range, Err(why))) => open = Some(format!("the range {range:?}, as {why}")),
            Some((_, Ok(false))) | None => {}
        }
    }
    if covered.iter().any(|one| !unaffected(one)) {
        return Hit::Yes;
    }
    match open {
        Some(open) => Hit::Assumed(open),
        None if !covered.is_empty() => Hit::No,
        None => {
            let mut affected = versions.iter().filter(|one| !unaffected(one));
            Hit::of(versions.is_empty() || affected.any(|one| one.range.is_none()))
        }
    }
}

impl Hit {
    fn of(affected: bool) -> Self {
        if affected { Self::Yes } else { Self::No }
    }
}

fn lies_in(range: &str, version: Option<&str>) -> Result<bool, VersError> {
    VersRange::parse(range)?.contains(version)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hit(version: Option<&str>, versions: &Value) -> Hit {
        let text = versions.to_string();
        let versions: Vec<AffectedVersion<'_>> = serde_json::from_str(&text).expect("versions");
        is_affected(&versions, version)
    }

    #[test]
    fn a_range_affects_the_versions_that_lie_in_it() {
        let below_one = json!([{ "range": "vers:npm/<1.0.0" }]);
        assert_eq!(hit(Some("0.9.0"), &below_one), Hit::Yes);
        assert_eq!(hit(Some("1.0.0"), &below_one), Hit::No);
        assert_eq!(hit(Some("1.0.0"), &json!([])), Hit::Yes);
    }

    #[test]
    fn a_named_version_comes_before_a_range() {
        let fixed = json!([
            { "range": "vers:npm/<2.0.0" }, { "version": "1.5.0", "status": "unaffected" },
        ]);
        assert_eq!(hit(Some("1.5.0"), &fixed), Hit::No);
        assert_eq!(hit(Some("1.4.0"), &fixed), Hit::Yes);
        let both = json!([
            { "range": "vers:npm/<2.0.0" }, { "range": "vers:npm/>=2.0.0", "status": "unaffected" },
        ]);
        assert_eq!(hit(Some("2.0.0"), &both), Hit::No);
    }

    #[test]
    fn a_range_that_cannot_be_evaluated_is_assumed_to_affect() {
        let open = |version, range: &str| hit(version, &json!([{ "range": range }]));
        for (version, range) in [
            (Some("1.0.0"), "vers:openssl/<1.1.1a"),
            (Some("1.0.0"), "<1.0.0"),
            (Some("latest"), "vers:npm/<1.0.0"),
            (None, "vers:npm/<1.0.0"),
        ] {
            assert!(matches!(open(version, range), Hit::Assumed(why) if why.contains(range)));
        }
        assert_eq!(open(None, "vers:npm/*"), Hit::Yes);
        let unaffected = json!([{ "range": "vers:openssl/>=3", "status": "unaffected" }]);
        assert!(matches!(hit(Some("3"), &unaffected), Hit::Assumed(_)));
    }
}
