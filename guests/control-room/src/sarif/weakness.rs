//! Subject of a SARIF result beyond its rule: a package, an advisory or a weakness. The subject
//! determines the rule family, within which findings of different tools are compared.

use serde_json::{Map, Value};

use super::model::Rule;
use super::rules::FoundRule;
use crate::text::clean;

/// Names of vulnerability databases whose ids consist of the name, a year and a number.
const NUMBERED: [&str; 6] = ["CVE", "RUSTSEC", "GO", "PYSEC", "OSV", "MAL"];

/// Returns the first package URL in the properties or the logical locations of a SARIF result.
pub(super) fn purl<'a>(
    properties: [Option<&'a Map<String, Value>>; 2],
    logical_names: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let said = properties.into_iter().flatten().find_map(|properties| {
        let one = ["purl", "packageUrl", "package_url"]
            .iter()
            .find_map(|&name| properties.get(name)?.as_str());
        // A rule that lists several packages does not tell which one this result is about.
        one.or_else(|| match properties.get("purls")?.as_array()?.as_slice() {
            [only] => only.as_str(),
            _ => None,
        })
    });
    let mut all = said.into_iter().chain(logical_names);
    all.find(|text| text.starts_with("pkg:")).map(|purl| clean(purl, 500))
}

/// Returns the first advisory id in a text, for example `CVE-2021-44228` or `GHSA-…`.
pub(super) fn advisory(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.contains('-')).find_map(|word| ghsa(word).or_else(|| numbered(word)))
}

fn ghsa(word: &str) -> Option<String> {
    let rest = word.get(..5).filter(|head| head.eq_ignore_ascii_case("GHSA-"))?;
    let id = word.get(..19)?;
    let groups = id[rest.len()..].split('-');
    let good = groups.clone().count() == 3 && groups.into_iter().all(|group| group.len() == 4);
    good.then(|| format!("GHSA-{}", id[5..].to_ascii_lowercase()))
}

fn numbered(word: &str) -> Option<String> {
    let mut parts = word.split('-');
    let (database, year, number) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let known = NUMBERED.iter().any(|known| database.eq_ignore_ascii_case(known));
    let good = known && year.len() == 4 && digits(year) && !number.is_empty() && digits(number);
    good.then(|| format!("{}-{year}-{number}", database.to_ascii_uppercase()))
}

/// Returns the first CWE weakness to which a SARIF rule refers, in the form `cwe-79`.
fn cwe(rule: &Rule) -> Option<String> {
    let properties = rule.properties.as_ref();
    let listed = |name: &str| -> Vec<&str> {
        match properties.and_then(|properties| properties.get(name)) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    };
    let said = ["cwe", "tags"].into_iter().flat_map(listed).find_map(cwe_in);
    said.or_else(|| rule.relationships.iter().flatten().find_map(related_cwe))
}

fn cwe_in(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let rest = &lower[lower.rfind("cwe-")? + 4..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    cwe_number(&rest[..digits])
}

fn cwe_number(digits: &str) -> Option<String> {
    digits.parse::<u32>().ok().map(|number| format!("cwe-{number}"))
}

fn related_cwe(relationship: &super::model::Relationship) -> Option<String> {
    let target = relationship.target.as_ref()?;
    let id = target.id.as_deref()?;
    let of_cwe = || target.tool_component.as_ref()?.name.as_deref().filter(|name| *name == "CWE");
    cwe_in(id).or_else(|| of_cwe().and_then(|_| cwe_number(id)))
}

/// Returns the rule family of a result, which different tools and rules can share: the advisory;
/// without one, the weakness; otherwise the last segment of the rule id.
pub(super) fn family(rule: &FoundRule<'_>, advisory: Option<&str>) -> String {
    if let Some(advisory) = advisory {
        return advisory.to_ascii_lowercase();
    }
    rule.rule.and_then(cwe).unwrap_or_else(|| last_segment(&rule.id))
}

fn last_segment(id: &str) -> String {
    let last = id.rsplit(['/', '.', ':']).find(|segment| !segment.is_empty()).unwrap_or(id);
    last.to_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: Value) -> Rule {
        serde_json::from_value(value).expect("a rule")
    }

    #[test]
    fn advisories_are_found_in_ids_and_sentences() {
        for (text, id) in [
            ("CVE-2018-14618/curl", Some("CVE-2018-14618")),
            ("CVE-1999-0001-package-1", Some("CVE-1999-0001")),
            ("see ghsa-jfh8-C2JP-5v3q.", Some("GHSA-jfh8-c2jp-5v3q")),
            ("RUSTSEC-2020-0071", Some("RUSTSEC-2020-0071")),
            ("GHSA-jfh8", None),
            ("CVE-20-1", None),
            ("CIS-DI-0010", None),
            ("żółć-2020-1", None),
            ("GHSA-żółć-żółć-żółć", None),
        ] {
            assert_eq!(advisory(text).as_deref(), id, "{text}");
        }
    }

    #[test]
    fn weaknesses_are_found_in_tags_properties_and_relationships() {
        for value in [
            json!({ "properties": { "tags": ["security", "external/cwe/cwe-079"] } }),
            json!({ "properties": { "cwe": "CWE-79: Cross-site scripting" } }),
            json!({ "properties": { "cwe": ["CWE-79"] } }),
            json!({ "relationships": [{ "target": { "id": "CWE-79" } }] }),
            json!({ "relationships": [
                { "target": { "id": "79", "toolComponent": { "name": "CWE" } } },
            ] }),
        ] {
            assert_eq!(cwe(&rule(value)).as_deref(), Some("cwe-79"));
        }
        assert_eq!(
            cwe(&rule(json!({ "properties": { "tags": ["cwe-", "CWE-99999999999"] } }))),
            None
        );
    }

    #[test]
    fn families_of_rules_without_a_weakness_are_the_ends_of_their_ids() {
        assert_eq!(last_segment("java.lang.security.cbc_padding"), "cbc-padding");
        assert_eq!(last_segment("js/sql-injection"), "sql-injection");
        assert_eq!(last_segment("///"), "///");
    }

    #[test]
    fn a_package_is_taken_where_only_one_is_told_of() {
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let one = map(json!({ "purls": ["pkg:npm/a@1"] }));
        let two = map(json!({ "purls": ["pkg:npm/a@1", "pkg:npm/b@1"] }));
        let named = || ["/x", "pkg:npm/c@1"].into_iter();
        assert_eq!(purl([Some(&one), None], named()).as_deref(), Some("pkg:npm/a@1"));
        assert_eq!(purl([Some(&two), None], named()).as_deref(), Some("pkg:npm/c@1"));
        assert_eq!(purl([None, None], std::iter::empty()), None);
    }
}
