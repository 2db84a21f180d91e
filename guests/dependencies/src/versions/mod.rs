//! Orders of versions in package ecosystems.
//!
//! [`Scheme::parse`] parses a version once. Parsed versions compare as in the ecosystem's own
//! tools. A text that is not a version of its ecosystem has no order, and is neither affected nor
//! unaffected by a range.

mod alpine;
mod composer;
mod debian;
mod dotted;
mod maven;
mod ruby;
mod semantic;
pub(crate) mod vers;

use std::cmp::Ordering;

/// Maximum size of a version text that is parsed, in bytes; longer ones are invalid.
const MAX_CHARACTERS: usize = 256;

/// Version order of a package ecosystem: how its versions are parsed and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scheme {
    /// Semantic Versioning 2.0.0, parsed leniently: optional `v`, fewer or more than three numbers.
    Semantic,
    /// Bitnami: as `Semantic`, but digits after a hyphen are a revision: `17.2.0-8` is after
    /// `17.2.0`.
    Bitnami,
    /// Pub: as `Semantic`, but build metadata counts: `1.0.0+1` is after `1.0.0`.
    Pub,
    /// NuGet: as `Semantic`, but pre-releases are compared without letter case.
    NuGet,
    /// PEP 440, the versions of Python packages.
    Python,
    /// Maven: the order of Maven's class `ComparableVersion`.
    Maven,
    /// RubyGems: the order of Ruby's class `Gem::Version`.
    Ruby,
    /// Composer: PHP's `version_compare` after normalization; a numeric branch such as `2.0.x-dev`
    /// is after all versions with its numbers.
    Composer,
    /// Debian packages, as dpkg compares them; also used for opam.
    Debian,
    /// Alpine Linux packages, as apk-tools compares them.
    Alpine,
    /// RPM packages: compared by epoch, version and release.
    Rpm,
    /// Numbers separated by dots and hyphens: CRAN and Hackage.
    Dotted,
}

/// A version that was parsed by a [`Scheme`], for comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Version(Scheme, ParsedVersion);

#[derive(Clone, Debug)]
enum ParsedVersion {
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
    /// All schemes, for tests and the fuzzer, which check that each order is total.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) const ALL: [Self; 12] = [
        Self::Semantic,
        Self::Bitnami,
        Self::Pub,
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
            Self::Semantic => ParsedVersion::Semantic(semantic::parse(text, false)?),
            Self::Bitnami => ParsedVersion::Semantic(semantic::parse_revision(text)?),
            Self::Pub => ParsedVersion::Semantic(semantic::parse_with_build(text)?),
            Self::NuGet => ParsedVersion::Semantic(semantic::parse(text, true)?),
            Self::Python => ParsedVersion::Python(Box::new(text.parse().ok()?)),
            Self::Maven => ParsedVersion::Maven(maven::parse(text)?),
            Self::Ruby => ParsedVersion::Ruby(ruby::parse(text)?),
            Self::Composer => ParsedVersion::Composer(composer::parse(text)?),
            Self::Debian => ParsedVersion::Debian(debian::parse(text)?),
            Self::Alpine => ParsedVersion::Alpine(alpine::parse(text)?),
            Self::Rpm => ParsedVersion::Rpm(text.to_owned()),
            Self::Dotted => ParsedVersion::Dotted(dotted::parse(text)?),
        };
        Some(Version(self, read))
    }

    /// Whether two equal versions may be of one build of a package. Gems for different platforms
    /// are not.
    pub(crate) fn is_same_build(self, one: &str, other: &str) -> bool {
        self != Self::Ruby || ruby::may_share_platform(one.trim(), other.trim())
    }

    /// Parses the last affected version of a range. A version of Bitnami without revision means all
    /// its revisions, and one of Python without local part all its local versions.
    pub(crate) fn parse_last(self, text: &str) -> Option<Version> {
        match self {
            Self::Bitnami => self.parse(&semantic::last_revision(text.trim())),
            Self::Python if !text.contains('+') => {
                self.parse(&format!("{}+{}", text.trim(), u64::MAX))
            }
            _ => self.parse(text),
        }
    }

    /// Parses a Python version without its local part (`2.0.0` for `2.0.0+cu118`), because PEP 440
    /// ignores that part when it compares with a version that has none. `None` for other versions.
    pub(crate) fn parse_public(self, text: &str) -> Option<Version> {
        let (public, _) = text.split_once('+').filter(|_| self == Self::Python)?;
        self.parse(public)
    }
}

impl Ord for Version {
    /// Compares versions. Callers never compare versions of different schemes; these are ordered by
    /// scheme, so that the order is total. The schemes with semantic versions come first.
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.1, &other.1) {
            (ParsedVersion::Semantic(a), ParsedVersion::Semantic(b)) => a.compare(b),
            (ParsedVersion::Python(a), ParsedVersion::Python(b)) => a.cmp(b),
            (ParsedVersion::Maven(a), ParsedVersion::Maven(b)) => a.compare(b),
            (ParsedVersion::Ruby(a), ParsedVersion::Ruby(b)) => a.compare(b),
            (ParsedVersion::Composer(a), ParsedVersion::Composer(b)) => a.compare(b),
            (ParsedVersion::Debian(a), ParsedVersion::Debian(b)) => a.compare(b),
            (ParsedVersion::Alpine(a), ParsedVersion::Alpine(b)) => a.compare(b),
            (ParsedVersion::Rpm(a), ParsedVersion::Rpm(b)) => rpm_version::rpm_evr_compare(a, b),
            (ParsedVersion::Dotted(a), ParsedVersion::Dotted(b)) => a.cmp(b),
            _ => self.0.cmp(&other.0),
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

/// Compares two decimal numbers of any length, given as digits.
fn compare_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Whether a text consists of decimal digits.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Compares two lists of version parts one by one. `missing` takes the place of the parts that the
/// shorter list lacks.
fn compare_padded<T: Ord>(a: &[T], b: &[T], missing: &T) -> Ordering {
    (0..a.len().max(b.len()))
        .map(|at| a.get(at).unwrap_or(missing).cmp(b.get(at).unwrap_or(missing)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// A decimal number of any length in a version: the count of its digits without leading zeros, and
/// these digits. So numbers compare by length, then by text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number(usize, String);

impl Number {
    fn new(digits: &str) -> Self {
        let digits = digits.trim_start_matches('0');
        Self(digits.len(), digits.to_owned())
    }

    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests;
