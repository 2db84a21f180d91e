//! Entry point for fuzzing verification predicates.

use serde_json::json;

use crate::predicate;

/// Checks a predicate and evaluates it with sample facts. Returns the total size of the error
/// messages in bytes.
pub fn cel(bytes: &[u8]) -> usize {
    let source = String::from_utf8_lossy(bytes);
    let refused = predicate::check(&source).err();
    let mut facts = predicate::sample();
    let rules: serde_json::Map<_, _> = (0..200).map(|n| (format!("js/{n}"), json!(n))).collect();
    facts["findings"]["by_rule"] = rules.into();
    facts["dependencies"]["advisories"] = (0..200).map(|n| format!("CVE-2026-{n}")).collect();
    let verdict = predicate::evaluate(&source, &facts);
    refused.map_or(0, |text| text.len()) + format!("{verdict:?}").len()
}
