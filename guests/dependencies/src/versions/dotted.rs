//! Versions that are numbers separated by dots and hyphens; a prefix is before a longer version.
//! The order of CRAN's `package_version` and Haskell's Package Versioning Policy.

use super::{Number, is_number};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(Vec<Number>);

pub(super) fn parse(text: &str) -> Option<Version> {
    let numbers = text.split(['.', '-']);
    numbers.map(|n| is_number(n).then(|| Number::new(n))).collect::<Option<_>>().map(Version)
}
