//! Identity `finding-v1`: decides whether results of different runs are the same finding.
//!
//! The identity is the SHA-256 (lower-case hex) of the canonical JSON (RFC 8785) of `[workspace,
//! repository, tool, rule, key, ordinal]`. The key is the first of these that a result has: the
//! tool's own fingerprint, `primaryLocationLineHash`, package and advisory, path and snippet
//! without white space, path and message without digits. The ordinal counts equal results of one
//! file, so that they match as a multiset. Line, severity, package version and tool version are
//! not part of the identity, because they change while the finding stays the same.

use std::collections::{BTreeMap, HashMap};

use area_sdk::Uuid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::similarity::hash;

/// Name and version of the algorithm for identities of findings, returned as
/// `fingerprint_algorithm_version`.
pub(crate) const ALGORITHM: &str = "finding-v1";

/// Key that identifies a result among a tool's results of the same rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultKey {
    /// The tool's own fingerprint of the result: one of `fingerprints`, or all of
    /// `partialFingerprints` that do not describe a commit.
    Fingerprint(BTreeMap<String, String>),
    /// `primaryLocationLineHash` of GitHub: a hash of the result's line and its context.
    LineHash(String),
    /// The vulnerable package, as a purl without version, and its advisory.
    Package { purl: String, advisory: String },
    /// Path of the result, and the code at its location without white space.
    Snippet { path: String, snippet: String },
    /// Path of the result, and its message without digits, severity and package versions.
    Message { path: String, message: String },
}

/// Properties of a SARIF result from which its [`ResultKey`] is chosen.
pub(crate) struct ResultTraits<'a> {
    pub(crate) fingerprints: &'a BTreeMap<String, Value>,
    pub(crate) partial_fingerprints: &'a BTreeMap<String, Value>,
    pub(crate) purl: Option<&'a str>,
    pub(crate) advisory: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) snippet: Option<&'a str>,
    pub(crate) message: &'a str,
}

/// Name of GitHub's partial fingerprint of a result's line.
const LINE_HASH: &str = "primaryLocationLineHash";
/// Name of GitHub's partial fingerprint of a result's column, which identifies no result by itself.
const COLUMN: &str = "primaryLocationStartColumnFingerprint";

/// Names of partial fingerprints in which Gitleaks and KICS describe the commit that introduced a
/// result. They are no identity: rewriting the history changes them, and all results of a commit
/// have the same.
const COMMIT: [&str; 5] = ["commitSha", "email", "author", "date", "commitMessage"];

/// Names of the lines with which Trivy and Docker Scout write severity and package versions into a
/// message, in lower case. They are no identity: a new vulnerability database changes them.
const CHANGING_LINES: [&str; 4] =
    ["affected range", "fixed version", "installed version", "severity"];

/// Beginnings of the names of lines with which Docker Scout writes scores into a message.
const SCORE_LINES: [&str; 2] = ["cvss ", "epss "];

/// Text before the aliases of an advisory in a message of OSV-Scanner.
const BEFORE_ALIASES: &str = " (also known as '";

/// Texts after the severity in a message of Snyk: `with a high severity vulnerability`.
const AFTER_SEVERITY: [&str; 2] = [" severity vulnerability", " severity misconfiguration"];

/// Severities in messages of Snyk.
const SEVERITIES: [&str; 4] = ["critical", "high", "medium", "low"];

/// Maximum size in bytes of a small key with a path; see [`ResultKey::is_small`].
const MOST_SMALL_BYTES: usize = 4_000;

/// Value that Semgrep writes instead of a fingerprint for users who are not signed in.
const NO_FINGERPRINT: &str = "requires login";

impl ResultKey {
    /// Whether the key is small enough to be stored with each observation of an import. Equal
    /// results with a larger key keep their ordinals.
    pub(crate) fn is_small(&self) -> bool {
        match self {
            Self::Fingerprint(_) | Self::LineHash(_) | Self::Package { .. } => true,
            Self::Snippet { path, snippet: text } | Self::Message { path, message: text } => {
                path.len() + text.len() <= MOST_SMALL_BYTES
            }
        }
    }

    /// Returns the key of a result: the first kind of key for which the result has a value.
    pub(crate) fn of(traits: &ResultTraits<'_>) -> Self {
        let traits = &ResultTraits { purl: traits.purl.map(package_of), ..*traits };
        let key = Self::before_message(&COMMIT, traits);
        key.unwrap_or_else(|| message(traits.path, &lasting(traits.message)))
    }

    /// Returns the key that older versions gave the result. They used the description of the commit
    /// as a fingerprint, the whole purl, and the whole message.
    pub(crate) fn former(traits: &ResultTraits<'_>) -> Self {
        let key = Self::before_message(&[], traits);
        key.unwrap_or_else(|| message(traits.path, traits.message))
    }

    /// Returns the keys by snippet and by message that are weaker than this one, strongest first.
    pub(crate) fn weaker(&self, traits: &ResultTraits<'_>) -> Vec<Self> {
        let message = message(traits.path, &lasting(traits.message));
        let mut keys: Vec<Self> = snippet(traits).into_iter().chain([message]).collect();
        let own = keys.iter().position(|key| key == self);
        keys.split_off(own.map_or(0, |own| own + 1))
    }

    /// Returns the first kind of key that is preferred to path and message; `None` if the result
    /// has no value for any. Partial fingerprints with an ignored name do not count.
    fn before_message(ignored: &[&str], traits: &ResultTraits<'_>) -> Option<Self> {
        fingerprint(ignored, traits)
            .or_else(|| line_hash(traits))
            .or_else(|| package(traits))
            .or_else(|| snippet(traits))
    }
}

fn text<'a>((name, value): (&'a String, &'a Value)) -> Option<(&'a str, &'a str)> {
    let value = value.as_str()?.trim();
    (!value.is_empty() && value != NO_FINGERPRINT).then_some((name, value))
}

/// Whether this partial fingerprint describes the commit that introduced the result.
pub(crate) fn is_of_commit(name: &str) -> bool {
    COMMIT.contains(&without_version(name))
}

/// Returns the result's first `fingerprints` entry by name; without one, all `partialFingerprints`
/// other than GitHub's and the ignored ones; `None` if there is none.
fn fingerprint(ignored: &[&str], traits: &ResultTraits<'_>) -> Option<ResultKey> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let whole = traits.fingerprints.iter().find_map(text).map(owned);
    let parts = || {
        let parts = traits.partial_fingerprints.iter().filter_map(text);
        let own =
            move |name: &str| ![LINE_HASH, COLUMN].contains(&name) && !ignored.contains(&name);
        parts.filter(move |(name, _)| own(without_version(name))).map(owned)
    };
    let found: BTreeMap<_, _> = match whole {
        Some(whole) => [whole].into(),
        None => parts().collect(),
    };
    (!found.is_empty()).then_some(ResultKey::Fingerprint(found))
}

/// Removes the version from a fingerprint's name: `name` for `name/v1`.
fn without_version(name: &str) -> &str {
    name.split_once('/').map_or(name, |(name, _)| name)
}

fn line_hash(traits: &ResultTraits<'_>) -> Option<ResultKey> {
    let mut parts = traits.partial_fingerprints.iter().filter_map(text);
    let (_, hash) = parts.find(|(name, _)| without_version(name) == LINE_HASH)?;
    Some(ResultKey::LineHash(hash.to_owned()))
}

fn package(traits: &ResultTraits<'_>) -> Option<ResultKey> {
    let (purl, advisory) = (traits.purl?.to_owned(), traits.advisory?.to_owned());
    Some(ResultKey::Package { purl, advisory })
}

/// Returns a purl without its version, qualifiers and subpath.
fn package_of(purl: &str) -> &str {
    let purl = purl.split(['?', '#']).next().unwrap_or(purl);
    match purl.rsplit_once('@') {
        // Not the unencoded scope of a package of npm.
        Some((package, _)) if !package.ends_with('/') => package,
        _ => purl,
    }
}

fn snippet(traits: &ResultTraits<'_>) -> Option<ResultKey> {
    let snippet: String = traits.snippet?.chars().filter(|c| !c.is_whitespace()).collect();
    (!snippet.is_empty()).then(|| ResultKey::Snippet { path: traits.path.to_owned(), snippet })
}

fn message(path: &str, message: &str) -> ResultKey {
    let message = message.chars().filter(|c| !c.is_numeric()).collect();
    ResultKey::Message { path: path.to_owned(), message }
}

/// Returns a hash of a message without the parts that change while the finding stays the same. It
/// depends on digits, so that it distinguishes results whose keys are equal.
pub(crate) fn message_hash(message: &str) -> u32 {
    hash(lasting(message).as_bytes())
}

/// Removes the parts of a message that change while the finding stays the same: severity, scores,
/// package versions, aliases, and white space at the ends of lines.
fn lasting(message: &str) -> String {
    let text = lasting_lines(message);
    let aliases = text.split_once(BEFORE_ALIASES);
    let text = match aliases.and_then(|(before, after)| Some((before, after.split_once(')')?.1))) {
        Some((before, after)) => format!("{before}{after}"),
        None => text,
    };
    let severity = |end: usize| SEVERITIES.iter().find(|word| text[..end].ends_with(**word));
    let found = AFTER_SEVERITY.iter().find_map(|mark| {
        let end = text.find(mark)?;
        Some(end - severity(end)?.len()..end)
    });
    match found {
        Some(severity) => format!("{}{}", &text[..severity.start], &text[severity.end..]),
        None => text,
    }
}

/// Returns the lines of a message that do not change, with the packages of their purls.
fn lasting_lines(message: &str) -> String {
    let mut changes = false;
    let lines = message.split('\n').filter(|line| {
        let name = line.split_once(':').map(|(name, _)| name.trim().to_ascii_lowercase());
        changes = name.is_some_and(|name| match name.as_str() {
            // The line continues the one before it.
            "" => changes,
            name => {
                CHANGING_LINES.contains(&name)
                    || SCORE_LINES.iter().any(|start| name.starts_with(*start))
            }
        });
        !changes
    });
    let without_versions = |line: &str| {
        let words = line.trim_end().split(' ').map(|word| match word.starts_with("pkg:") {
            true => package_of(word),
            false => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.map(without_versions).collect::<Vec<_>>().join("\n")
}

/// Returns the identity of the finding for a result. `ordinal` is the result's number among equal
/// ones.
pub(crate) fn identity(
    workspace: Uuid,
    repository: Uuid,
    (tool, rule): (&str, &str),
    key: &ResultKey,
    ordinal: u64,
) -> String {
    named_by(&(workspace, repository, tool, rule, key, ordinal))
}

/// Computes the identities of one analysis's results in one file. Equal results get consecutive
/// ordinals.
#[derive(Debug)]
pub(crate) struct FindingIdentityGenerator {
    workspace: Uuid,
    repository: Uuid,
    seen: HashMap<[u8; 32], u64>,
}

impl FindingIdentityGenerator {
    pub(crate) fn new(workspace: Uuid, repository: Uuid) -> Self {
        Self { workspace, repository, seen: HashMap::new() }
    }

    /// Returns the identity of the next result and its ordinal among equal results, and counts the
    /// result.
    pub(crate) fn next(&mut self, tool: &str, rule: &str, key: &ResultKey) -> (String, u64) {
        let equals = (self.workspace, self.repository, tool, rule, key);
        let count = self.seen.entry(digest(&equals)).or_default();
        let ordinal = *count;
        *count += 1;
        (identity(self.workspace, self.repository, (tool, rule), key, ordinal), ordinal)
    }
}

/// Returns the SHA-256 digest of a value's canonical JSON.
fn digest(value: &impl Serialize) -> [u8; 32] {
    let canonical = serde_json_canonicalizer::to_vec(value).expect("text, ids and numbers");
    Sha256::digest(canonical).into()
}

/// Returns an id derived from a value: the lower-case hex SHA-256 of the value's canonical JSON.
pub(crate) fn named_by(parts: &impl Serialize) -> String {
    hex(&digest(parts))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> BTreeMap<String, Value> {
        value.as_object().cloned().unwrap_or_default().into_iter().collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "called with json!")]
    fn key(whole: Value, parts: Value, package: bool, snippet: Option<&str>) -> ResultKey {
        ResultKey::of(&ResultTraits {
            fingerprints: &map(&whole),
            partial_fingerprints: &map(&parts),
            purl: package.then_some("pkg:npm/a@1"),
            advisory: package.then_some("CVE-2020-0001"),
            path: "src/a.rs",
            snippet,
            message: "Line 12 has 3 faults",
        })
    }

    #[test]
    fn the_first_key_that_exists_counts() {
        let whole = json!({ "b/v1": "2", "a/v1": "1" });
        let parts = json!({ "primaryLocationLineHash": "abc:1", COLUMN: "4" });
        let own = json!({ "primaryLocationLineHash": "abc:1", "own/v1": "x" });
        let one = |name: &str, value: &str| {
            ResultKey::Fingerprint([(name.to_owned(), value.to_owned())].into())
        };
        assert_eq!(key(whole, parts.clone(), true, Some("x")), one("a/v1", "1"));
        assert_eq!(key(json!({}), own, true, Some("x")), one("own/v1", "x"));
        let commit = json!({
            "commitSha": "1f2e", "email": "a@b", "author": "A", "date": "d", "commitMessage": "m",
        });
        assert!(matches!(key(json!({}), commit, false, Some("x")), ResultKey::Snippet { .. }));
        assert!(is_of_commit("commitSha/v1") && !is_of_commit("own/v1"));
        let placeholder = json!({ "matchBasedId/v1": "requires login" });
        assert_eq!(
            key(placeholder, parts, true, Some("x")),
            ResultKey::LineHash("abc:1".to_owned())
        );
        let package = ResultKey::Package {
            purl: "pkg:npm/a".to_owned(),
            advisory: "CVE-2020-0001".to_owned(),
        };
        assert_eq!(key(json!({}), json!({ COLUMN: "4" }), true, Some("x")), package);
        let path = "src/a.rs".to_owned();
        let snippet = ResultKey::Snippet { path: path.clone(), snippet: "leta=1;".to_owned() };
        assert_eq!(key(json!({}), json!({}), false, Some("  let a\n= 1;")), snippet);
        let message = ResultKey::Message { path, message: "Line  has  faults".to_owned() };
        assert_eq!(key(json!({}), json!({ "x": 7 }), false, Some(" \n")), message);
    }

    fn key_of_message(message: &str) -> ResultKey {
        let none = BTreeMap::new();
        ResultKey::of(&ResultTraits {
            fingerprints: &none,
            partial_fingerprints: &none,
            purl: None,
            advisory: None,
            path: "image",
            snippet: None,
            message,
        })
    }

    #[test]
    fn severity_and_package_versions_in_a_message_are_not_part_of_the_identity() {
        let trivy = |package: &str, versions: [&str; 2], severity: &str| {
            let [installed, fixed] = versions;
            key_of_message(&format!(
                "Package: {package}\nInstalled Version: {installed}\nVulnerability CVE-2026-1\n\
                 Severity: {severity}\nFixed Version: {fixed}\nLink: [CVE-2026-1](https://a.b)"
            ))
        };
        let curl = trivy("curl", ["7.88-10", ""], "LOW");
        let changed = trivy("curl", ["7.88-10+deb12u1", "7.88-10+deb12u5"], "HIGH");
        assert_eq!(curl, changed);
        assert_ne!(curl, trivy("libcurl", ["7.88-10", ""], "LOW"));
        let snyk = |package: &str, severity: &str| {
            key_of_message(&format!(
                "This file introduces a vulnerable {package} package with a {severity} severity \
                 vulnerability."
            ))
        };
        assert_eq!(snyk("qs", "high"), snyk("qs", "low"));
        assert_ne!(snyk("qs", "high"), snyk("ms", "high"));
        let iac = |severity: &str| {
            key_of_message(&format!(
                "This line contains a potential {severity} severity misconfiguration"
            ))
        };
        assert_eq!(iac("medium"), iac("critical"));
        let scout = |version: &str, severity: &str, fixed: &str| {
            key_of_message(&format!(
                "Vulnerability  : CVE-2026-1   \n  Severity       : {severity}  \n\
                 \x20 Package        : pkg:deb/debian/apt@{version}?os_version=12  \n\
                 \x20 Affected range : >={version}\n                 : <3-x\n\
                 \x20 Fixed version  : {fixed}\n  EPSS Score     : 0.1%"
            ))
        };
        assert_eq!(scout("2.6", "LOW", "not fixed  "), scout("2.6%2Bdeb12u1", "HIGH", "3-x"));
        let osv = |aliases: &str| {
            key_of_message(&format!("Package 'qs@1' is vulnerable to 'CVE-2026-1'{aliases}."))
        };
        assert_eq!(osv(""), osv(" (also known as 'GHSA-a', 'GHSA-b')"));
        assert_ne!(osv(""), osv(" (disputed)"));
        let other = "Has a Severity: high\n\n severity";
        let whole = ResultKey::Message { path: "image".to_owned(), message: other.to_owned() };
        assert_eq!(key_of_message(other), whole, "other messages are not changed");
        let mut identities = FindingIdentityGenerator::new(Uuid::nil(), Uuid::nil());
        let of = [("CVE-2026-1", &curl), ("CVE-2026-1", &changed), ("CVE-2026-2", &curl)];
        let of = of.map(|(rule, key)| identities.next("Trivy", rule, key).0);
        assert!(of[0] != of[1] && of[0] != of[2] && of[1] != of[2], "{of:?}");
    }

    #[test]
    fn an_identity_is_the_digest_of_the_canonical_array() {
        let mut identities = FindingIdentityGenerator::new(Uuid::nil(), Uuid::max());
        let key = ResultKey::LineHash("é:1".to_owned());
        let (first, _) = identities.next("Bandit", "B101", &key);
        let array = json!([Uuid::nil(), Uuid::max(), "Bandit", "B101", { "line_hash": "é:1" }, 0]);
        let canonical = serde_json_canonicalizer::to_vec(&array).expect("canonical");
        assert_eq!(first, hex(&Sha256::digest(canonical)));
        assert_ne!(identities.next("Bandit", "B101", &key).0, first, "an equal one is another");
    }

    fn identities_of(rules: &[u8]) -> Vec<String> {
        let mut identities = FindingIdentityGenerator::new(Uuid::nil(), Uuid::nil());
        let key = ResultKey::LineHash(String::new());
        rules.iter().map(|rule| identities.next("t", &rule.to_string(), &key).0).collect()
    }

    proptest! {
        /// Property: two files share as many identities as results, counting equal ones; the order
        /// within a file does not matter.
        #[test]
        fn equal_results_match_as_a_multiset(
            a in prop::collection::vec(0_u8..4, 0..20),
            b in prop::collection::vec(0_u8..4, 0..20),
        ) {
            let (in_a, in_b) = (identities_of(&a), identities_of(&b));
            let unique: std::collections::BTreeSet<_> = in_a.iter().collect();
            prop_assert_eq!(unique.len(), a.len());
            let common = in_b.iter().filter(|id| unique.contains(id)).count();
            let count = |all: &[u8], rule: u8| all.iter().filter(|&&other| other == rule).count();
            let expected: usize = (0..4).map(|rule| count(&a, rule).min(count(&b, rule))).sum();
            prop_assert_eq!(common, expected);
            let mut sorted = a.clone();
            sorted.sort_unstable();
            let again: std::collections::BTreeSet<_> = identities_of(&sorted).into_iter().collect();
            prop_assert_eq!(again, in_a.into_iter().collect());
        }
    }
}
