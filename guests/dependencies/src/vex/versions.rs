//! Versions to which a vulnerability or a VEX statement is limited (`affects[].versions`).

use area_sdk::prelude::*;

use crate::versions::vers::{VersError, VersRange};

/// An item of `affects[].versions` in a VEX statement: a version or a range, with its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StatedVersion {
    pub(crate) text: VersionOrRange,
    /// The item's own status; `None` if the document has none, so that the statement's state
    /// applies.
    pub(crate) status: Option<VersionStatus>,
}

/// A single version, or a `vers` range of versions, in a VEX statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "VersionText")]
pub(crate) enum VersionOrRange {
    Exact(String),
    Range(String),
}

/// Whether a version or range is affected (`affects[].versions[].status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Status")]
pub(crate) enum VersionStatus {
    Affected,
    Unaffected,
    Unknown,
}

/// Whether a VEX statement applies to a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VersionApplicability {
    No,
    /// Assumed to apply, because a version range cannot be evaluated. Contains the range and the
    /// reason.
    Assumed(String),
    Yes,
}

/// Whether a vulnerability affects a version, according to the items of a VEX statement.
///
/// Items with this version take precedence, then ranges that contain it. Without either, the
/// vulnerability affects the version, unless all items are ranges without the version, or versions
/// that are not affected.
pub(super) fn is_affected(
    versions: &[StatedVersion],
    version: Option<&str>,
) -> VersionApplicability {
    let unaffected = |one: &&StatedVersion| one.status == Some(VersionStatus::Unaffected);
    let entries = MatchingVexVersions::of(versions, version);
    if !entries.named.is_empty() {
        return VersionApplicability::of(!entries.named.iter().all(unaffected));
    }
    if entries.covering.iter().any(|one| !unaffected(one)) {
        return VersionApplicability::Yes;
    }
    match entries.open {
        Some(open) => VersionApplicability::Assumed(open),
        None if !entries.covering.is_empty() => VersionApplicability::No,
        None => {
            let mut affected = versions.iter().filter(|one| !unaffected(one));
            let names = |one: &StatedVersion| matches!(one.text, VersionOrRange::Exact(_));
            VersionApplicability::of(versions.is_empty() || affected.any(names))
        }
    }
}

/// Whether a VEX statement that ends a match, such as `not_affected`, applies to a version: it has
/// no versions, or lists the version, or has a range that contains it.
pub(super) fn is_cleared(
    versions: &[StatedVersion],
    version: Option<&str>,
) -> VersionApplicability {
    let against =
        |one: &&StatedVersion| !matches!(one.status, None | Some(VersionStatus::Unaffected));
    let entries = MatchingVexVersions::of(versions, version);
    let deciding = if entries.named.is_empty() { entries.covering } else { entries.named };
    match entries.open {
        _ if versions.is_empty() => VersionApplicability::Yes,
        _ if !deciding.is_empty() => VersionApplicability::of(!deciding.iter().any(against)),
        Some(open) => VersionApplicability::Assumed(open),
        None => VersionApplicability::No,
    }
}

/// Whether a VEX statement about a product concerns this version of it: the statement has no
/// versions, or lists the version, or has a range that contains the version or cannot be evaluated.
pub(super) fn is_listed(versions: &[StatedVersion], version: Option<&str>) -> bool {
    let entries = MatchingVexVersions::of(versions, version);
    let found = !entries.named.is_empty() || !entries.covering.is_empty();
    versions.is_empty() || found || entries.open.is_some()
}

/// Items of `affects[].versions` that decide about one version.
struct MatchingVexVersions<'a> {
    /// Items that are exactly this version.
    named: Vec<&'a StatedVersion>,
    /// Items that are ranges which contain this version.
    covering: Vec<&'a StatedVersion>,
    /// A range that cannot be evaluated, and the reason; `None` if all can.
    open: Option<String>,
}

impl<'a> MatchingVexVersions<'a> {
    fn of(versions: &'a [StatedVersion], version: Option<&str>) -> Self {
        let mut entries = Self { named: Vec::new(), covering: Vec::new(), open: None };
        for one in versions {
            match &one.text {
                VersionOrRange::Exact(text) if Some(text.as_str()) == version => {
                    entries.named.push(one);
                }
                VersionOrRange::Exact(_) => {}
                VersionOrRange::Range(range) => match lies_in(range, version) {
                    Ok(true) => entries.covering.push(one),
                    Ok(false) => {}
                    Err(why) => entries.open = Some(format!("the range {range:?}, as {why}")),
                },
            }
        }
        entries
    }
}

impl VersionApplicability {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

fn lies_in(range: &str, version: Option<&str>) -> Result<bool, VersError> {
    VersRange::parse(range)?.contains(version)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stated(versions: &Value) -> Vec<StatedVersion> {
        let text = |one: &Value, member: &str| one[member].as_str().map(ToOwned::to_owned);
        let one = |one: &Value| StatedVersion {
            text: match text(one, "version") {
                Some(version) => VersionOrRange::Exact(version),
                None => VersionOrRange::Range(text(one, "range").expect("a range")),
            },
            status: serde_json::from_value(one["status"].clone()).expect("a status"),
        };
        versions.as_array().expect("versions").iter().map(one).collect()
    }

    fn hit(version: Option<&str>, versions: &Value) -> VersionApplicability {
        is_affected(&stated(versions), version)
    }

    #[test]
    fn a_statement_clears_the_versions_that_it_names() {
        use VersionApplicability::{No, Yes};
        for (versions, expected) in [
            (json!([]), Yes),
            (json!([{ "version": "1.5.0" }]), Yes),
            (json!([{ "version": "1.5.0", "status": "unaffected" }]), Yes),
            (json!([{ "version": "1.5.0", "status": "affected" }]), No),
            (json!([{ "version": "1.5.0", "status": "unknown" }]), No),
            (json!([{ "version": "1.4.0" }]), No),
            (json!([{ "range": "vers:npm/>=1.5.0|<2.0.0" }]), Yes),
            (json!([{ "range": "vers:npm/<1.5.0" }]), No),
            (
                json!([
                    { "range": "vers:npm/<2.0.0" }, { "version": "1.5.0", "status": "affected" },
                ]),
                No,
            ),
        ] {
            assert_eq!(is_cleared(&stated(&versions), Some("1.5.0")), expected, "{versions}");
        }
        let open = stated(&json!([{ "range": "vers:generic/<2" }]));
        assert!(matches!(is_cleared(&open, Some("1.5.0")), VersionApplicability::Assumed(_)));
    }

    #[test]
    fn a_range_affects_the_versions_that_lie_in_it_unless_a_version_is_named() {
        use VersionApplicability::{No, Yes};
        let below_one = json!([{ "range": "vers:npm/<1.0.0" }]);
        let fixed = json!([
            { "range": "vers:npm/<2.0.0" }, { "version": "1.5.0", "status": "unaffected" },
        ]);
        let both = json!([
            { "range": "vers:npm/<2.0.0" }, { "range": "vers:npm/>=2.0.0", "status": "unaffected" },
        ]);
        for (version, versions, expected) in [
            ("0.9.0", &below_one, Yes),
            ("1.0.0", &below_one, No),
            ("1.0.0", &json!([]), Yes),
            ("1.5.0", &fixed, No),
            ("1.4.0", &fixed, Yes),
            ("2.0.0", &both, No),
        ] {
            assert_eq!(hit(Some(version), versions), expected, "{version} {versions}");
        }
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
            assert!(
                matches!(open(version, range), VersionApplicability::Assumed(why) if why.contains(range))
            );
        }
        assert_eq!(open(None, "vers:npm/*"), VersionApplicability::Yes);
        let unaffected = json!([{ "range": "vers:openssl/>=3", "status": "unaffected" }]);
        assert!(matches!(hit(Some("3"), &unaffected), VersionApplicability::Assumed(_)));
    }
}
