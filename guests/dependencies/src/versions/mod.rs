//! Version orders of ecosystems.
//!
//! [`Scheme::parse`] parses a version once; parsed versions compare as in the ecosystem's own
//! tools. A text that is not a version of its ecosystem is not ordered, and nothing is concluded
//! from it.

mod alpine;
mod composer;
mod debian;
mod dotted;
mod maven;
mod ruby;
mod semantic;
pub(crate) mod vers;

use std::cmp::Ordering;

/// Maximum length of a version, in characters.
const MAX_CHARACTERS: usize = 256;

/// Version order of an ecosystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Semantic Versioning 2.0.0, parsed leniently: optional `v`, fewer or more than three numbers.
    Semantic,
    /// NuGet: four numbers, pre-releases without case.
    NuGet,
    /// PEP 440.
    Python,
    /// Maven's `ComparableVersion`.
    Maven,
    /// RubyGems' `Gem::Version`.
    Ruby,
    /// Composer: PHP's `version_compare` after normalization.
    Composer,
    /// dpkg, also used by opam.
    Debian,
    /// apk-tools'.
    Alpine,
    /// RPM: epoch, version and release.
    Rpm,
    /// Numbers separated by dots and hyphens: CRAN, Hackage.
    Dotted,
}

/// A version parsed by its scheme.
#[derive(Clone, Debug)]
pub(crate) struct Version(Read);

#[derive(Clone, Debug)]
enum Read {
    Semantic(semantic::Version),
    Python(Box<pep440_rs::Version>),
    Maven(maven::Version),
    Ruby(ruby::Version),
    Composer(composer::Version),
    Debian(debian::Version),
    Alpine(alpine::Version),
    Rpm(String),
    Dotted(dotted::Version),
}

impl Scheme {
    /// All schemes. Tests and the fuzzer check the laws of each order.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) const ALL: [Self; 10] = [
        Self::Semantic,
        Self::NuGet,
        Self::Python,
        Self::Maven,
        Self::Ruby,
        Self::Composer,
        Self::Debian,
        Self::Alpine,
        Self::Rpm,
        Self::Dotted,
    ];

    /// Parses a version; `None` if it is invalid in this scheme.
    pub(crate) fn parse(self, text: &str) -> Option<Version> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_CHARACTERS {
            return None;
        }
        let read = match self {
            Self::Semantic => Read::Semantic(semantic::parse(text, false)?),
            Self::NuGet => Read::Semantic(semantic::parse(text, true)?),
            Self::Python => Read::Python(Box::new(text.parse().ok()?)),
            Self::Maven => Read::Maven(maven::parse(text)),
            Self::Ruby => Read::Ruby(ruby::parse(text)?),
            Self::Composer => Read::Composer(composer::parse(text)?),
            Self::Debian => Read::Debian(debian::parse(text)?),
            Self::Alpine => Read::Alpine(alpine::parse(text)?),
            Self::Rpm => Read::Rpm(text.to_owned()),
            Self::Dotted => Read::Dotted(dotted::parse(text)?),
        };
        Some(Version(read))
    }
}

impl Ord for Version {
    /// Compares versions. Versions of different schemes are never compared in practice; they are
    /// ordered by scheme to make the order total.
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Read::Semantic(a), Read::Semantic(b)) => a.cmp(b),
            (Read::Python(a), Read::Python(b)) => a.cmp(b),
            (Read::Maven(a), Read::Maven(b)) => a.cmp(b),
            (Read::Ruby(a), Read::Ruby(b)) => a.cmp(b),
            (Read::Composer(a), Read::Composer(b)) => a.cmp(b),
            (Read::Debian(a), Read::Debian(b)) => a.compare(b),
            (Read::Alpine(a), Read::Alpine(b)) => a.compare(b),
            (Read::Rpm(a), Read::Rpm(b)) => rpm_version::rpm_evr_compare(a, b),
            (Read::Dotted(a), Read::Dotted(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl Read {
    fn rank(&self) -> u8 {
        match self {
            Self::Semantic(_) => 0,
            Self::Python(_) => 1,
            Self::Maven(_) => 2,
            Self::Ruby(_) => 3,
            Self::Composer(_) => 4,
            Self::Debian(_) => 5,
            Self::Alpine(_) => 6,
            Self::Rpm(_) => 7,
            Self::Dotted(_) => 8,
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

/// Compares two decimal numbers of any length.
fn compare_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Whether a text is a decimal number.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of any length without leading zeros, so that it compares by length, then by text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number(String);

impl Number {
    fn new(digits: &str) -> Self {
        Self(digits.trim_start_matches('0').to_owned())
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
