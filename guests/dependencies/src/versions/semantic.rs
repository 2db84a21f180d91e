//! Semantic Versioning 2.0.0, parsed as leniently as its ecosystems write versions: optional `v`,
//! fewer or more than three numbers, leading zeros. Build metadata is ignored, except in Pub.

use std::cmp::Ordering;

use super::{Number, compare_digits, is_number};

#[derive(Clone, Debug)]
pub(super) struct Version {
    /// Numbers of the version without trailing zeros.
    numbers: Vec<Number>,
    /// Pre-release identifiers of the version; empty for a release.
    pre: Vec<String>,
    /// Build identifiers of the version; empty for all ecosystems but Pub.
    build: Vec<String>,
}

/// Parses a version by Semantic Versioning; `None` if it is invalid. `fold_case` ignores letter
/// case, as NuGet does.
pub(super) fn parse(text: &str, fold_case: bool) -> Option<Version> {
    let text = text.strip_prefix(['v', 'V', '=']).unwrap_or(text).trim_start();
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    let (numbers, pre) = text.split_once('-').map_or((text, None), |(n, pre)| (n, Some(pre)));
    let mut read = Vec::with_capacity(3);
    for number in numbers.split('.') {
        read.push(is_number(number).then(|| Number::new(number))?);
    }
    while read.last().is_some_and(Number::is_zero) {
        read.pop();
    }
    let fold = |word: &str| if fold_case { word.to_lowercase() } else { word.to_owned() };
    let pre = pre.into_iter().flat_map(|pre| pre.split('.')).map(fold).collect();
    Some(Version { numbers: read, pre, build: Vec::new() })
}

/// Parses a version of Pub, where build identifiers decide between versions that are equal without
/// them: `1.0.0+1` is after `1.0.0`.
pub(super) fn parse_with_build(text: &str) -> Option<Version> {
    let build = text.split_once('+').into_iter().flat_map(|(_, build)| build.split('.'));
    Some(Version { build: build.map(str::to_owned).collect(), ..parse(text, false)? })
}

/// Parses a version of Bitnami. A revision is the fourth number: `17.2.0-8` is `17.2.0.8`.
pub(super) fn parse_revision(text: &str) -> Option<Version> {
    let Some((release, revision)) = revision(text) else { return parse(text, false) };
    let zeros = ".0".repeat(3_usize.saturating_sub(release.split('.').count()));
    parse(&format!("{release}{zeros}.{revision}"), false)
}

/// Returns a version of Bitnami with a revision that is after all others, unless the version has a
/// revision.
pub(super) fn last_revision(text: &str) -> String {
    match revision(text) {
        Some(_) => text.to_owned(),
        None => format!("{text}-{}", u32::MAX),
    }
}

fn revision(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once('-').filter(|(_, revision)| is_number(revision))
}

/// Compares lists of pre-release or build identifiers; if one begins with the other, the longer
/// list is the later one.
fn compare_lists(a: &[String], b: &[String]) -> Ordering {
    let differs = a.iter().zip(b).map(|(a, b)| compare_identifiers(a, b)).find(|o| o.is_ne());
    differs.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare_identifiers(a: &str, b: &str) -> Ordering {
    match (is_number(a), is_number(b)) {
        (true, true) => compare_digits(a, b),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

impl Version {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_numbers = self.numbers.cmp(&other.numbers);
        let by_pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => compare_lists(&self.pre, &other.pre),
        };
        by_numbers.then_with(by_pre).then_with(|| compare_lists(&self.build, &other.build))
    }
}
