//! Version ranges as `vers` URIs, such as `vers:npm/>=1.0.0|<2.0.0`. The rules are those of
//! <https://github.com/package-url/vers-spec>.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::{Scheme, Version};

/// A parsed version range in the `vers` notation.
#[derive(Debug)]
pub(crate) enum VersRange {
    /// All versions: `vers:all/*`, or `*` after another versioning scheme (`vers:npm/*`).
    All,
    /// No version: `vers:none/*`.
    None,
    /// Versions with their comparators, sorted by version in the order of this scheme.
    Constraints(Scheme, Vec<(Version, Comparator)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Reason why a `vers` range cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersError {
    /// The text is not a `vers` URI.
    Malformed,
    /// The version order of the range's versioning scheme is not known.
    UnknownScheme,
    /// A version in the range is invalid in its scheme, or the component's version is invalid or
    /// missing.
    Unreadable,
}

impl fmt::Display for VersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not a `vers` URI",
            Self::UnknownScheme => "the order of its versioning scheme is not known",
            Self::Unreadable => "a version in it, or the component's, cannot be read",
        })
    }
}

/// Returns the version order of a `vers` versioning scheme; `None` if it is unknown. Most schemes
/// have the name of a purl type.
fn scheme(name: &str) -> Option<Scheme> {
    Some(match name {
        "bitnami" => Scheme::Bitnami,
        "cargo" | "conan" | "github" | "golang" | "hex" | "julia" | "npm" | "semver" | "swift"
        | "vscode-extension" => Scheme::Semantic,
        "pub" => Scheme::Pub,
        "nuget" => Scheme::NuGet,
        "pypi" => Scheme::Python,
        "maven" => Scheme::Maven,
        "gem" => Scheme::Ruby,
        "composer" => Scheme::Composer,
        "deb" | "opam" => Scheme::Debian,
        "alpine" | "apk" => Scheme::Alpine,
        "rpm" => Scheme::Rpm,
        "bioconductor" | "cran" | "hackage" | "intdot" => Scheme::Dotted,
        _ => return None,
    })
}

impl VersRange {
    /// Parses a `vers` URI.
    pub(crate) fn parse(uri: &str) -> Result<Self, VersError> {
        let uri: String = uri.chars().filter(|c| !c.is_whitespace()).collect();
        let (name, constraints) = uri
            .split_once(':')
            .filter(|(vers, _)| vers.eq_ignore_ascii_case("vers"))
            .and_then(|(_, rest)| rest.split_once('/'))
            .ok_or(VersError::Malformed)?;
        let constraints = constraints.trim_matches('|');
        match (name.to_ascii_lowercase().as_str(), constraints) {
            (_, "") => Err(VersError::Malformed),
            ("none", "*") => Ok(Self::None),
            (_, "*") => Ok(Self::All),
            (name, constraints) => {
                let scheme = scheme(name).ok_or(VersError::UnknownScheme)?;
                let constraints = constraints.split('|').filter(|text| !text.is_empty());
                let mut constraints: Vec<_> =
                    constraints.map(|text| constraint(scheme, text)).collect::<Result<_, _>>()?;
                constraints.sort_by(|(a, _), (b, _)| a.cmp(b));
                Ok(Self::Constraints(scheme, constraints))
            }
        }
    }

    /// Whether the range contains a version. An error if that cannot be decided, for example
    /// because the version is invalid or `None`.
    pub(crate) fn contains(&self, version: Option<&str>) -> Result<bool, VersError> {
        match self {
            Self::All => Ok(true),
            Self::None => Ok(false),
            Self::Constraints(scheme, constraints) => {
                let version = version.and_then(|version| scheme.parse(version));
                Ok(lies_in(constraints, &version.ok_or(VersError::Unreadable)?))
            }
        }
    }
}

fn constraint(scheme: Scheme, text: &str) -> Result<(Version, Comparator), VersError> {
    const COMPARATORS: [(&str, Comparator); 6] = [
        ("!=", Comparator::NotEqual),
        ("<=", Comparator::LessOrEqual),
        (">=", Comparator::GreaterOrEqual),
        ("<", Comparator::Less),
        (">", Comparator::Greater),
        ("=", Comparator::Equal),
    ];
    let stripped = COMPARATORS
        .iter()
        .find_map(|(mark, comparator)| Some((text.strip_prefix(mark)?, *comparator)));
    let (version, comparator) = stripped.unwrap_or((text, Comparator::Equal));
    // `*` is valid only as the single constraint.
    if version == "*" {
        return Err(VersError::Malformed);
    }
    let version = percent_decode_str(version).decode_utf8().map_err(|_| VersError::Malformed)?;
    let version = match comparator {
        Comparator::LessOrEqual => scheme.parse_last(&version),
        _ => scheme.parse(&version),
    };
    Ok((version.ok_or(VersError::Unreadable)?, comparator))
}

/// Whether a range with these constraints contains the version. Constraints with exactly this
/// version count first, then the intervals between neighboring bounds. Of two neighbors that bound
/// the same side, the wider one counts.
fn lies_in(constraints: &[(Version, Comparator)], version: &Version) -> bool {
    use Comparator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let mut same = constraints.iter().filter(|(at, _)| at == version).map(|(_, c)| *c);
    if same.clone().any(|c| c == NotEqual) {
        return false;
    }
    if same.any(|c| matches!(c, Equal | LessOrEqual | GreaterOrEqual)) {
        return true;
    }
    let mut bounds = constraints.iter().filter(|(_, c)| !matches!(c, Equal | NotEqual)).peekable();
    if bounds.peek().is_none() {
        // A range that only excludes versions contains all others.
        return constraints.iter().all(|(_, c)| *c == NotEqual);
    }
    // An exclusive bound at the version itself does not include the version.
    let is_below = |(at, c): &&(Version, Comparator)| at < version || at == version && *c == Less;
    let is_above =
        |(at, c): &&(Version, Comparator)| at > version || at == version && *c == Greater;
    let below = bounds.clone().rfind(is_below);
    let above = bounds.find(is_above);
    let opens = |c: &Comparator| matches!(c, Greater | GreaterOrEqual);
    below.is_some_and(|(_, c)| opens(c)) || above.is_some_and(|(_, c)| !opens(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: &str, inside: &[&str], outside: &[&str]) {
        let read = VersRange::parse(range).expect("a range");
        for version in inside {
            assert_eq!(read.contains(Some(version)), Ok(true), "{range} has {version}");
        }
        for version in outside {
            assert_eq!(read.contains(Some(version)), Ok(false), "{range} has not {version}");
        }
    }

    #[test]
    fn bounds_count_with_their_comparator() {
        check("vers:npm/<1.0.0", &["0.9.9", "1.0.0-rc.1"], &["1.0.0", "1.0.1"]);
        check("vers:npm/<=1.0.0", &["1.0.0"], &["1.0.1"]);
        check("vers:npm/>1.0.0", &["1.0.1"], &["1.0.0", "0.1.0"]);
        check("vers:npm/>=1.0.0", &["1.0.0", "2.0.0"], &["0.9.9"]);
        check("vers:npm/1.2.3", &["1.2.3"], &["1.2.4"]);
        check("vers:npm/=1.2.3", &["1.2.3"], &["1.2.4"]);
        check("vers:npm/!=1.2.3", &["1.2.4", "1.2.2"], &["1.2.3"]);
        check("vers:npm/*", &["1.2.3", "whatever"], &[]);
        check("vers:all/*", &["1.2.3"], &[]);
        check("vers:none/*", &[], &["1.2.3"]);
    }

    #[test]
    fn intervals_lie_between_neighboring_bounds() {
        check(
            "vers:npm/1.2.3|>=2.0.0|<5.0.0",
            &["1.2.3", "2.0.0", "4.9.9"],
            &["1.2.4", "1.9.9", "5.0.0"],
        );
        check(
            "vers:pypi/<1|>=2|<3|>4|!=2.5|!=6",
            &["0.9", "2", "2.4", "5"],
            &["1", "1.5", "2.5", "3", "4", "6"],
        );
        check("vers:npm/>=0.5.0|<1.0.0|>2.0.0", &["0.9.0", "3.0.0"], &["1.0.0", "2.0.0"]);
        // The order of the text and blanks do not matter.
        check("vers:npm/ <5.0.0 | >=2.0.0 ", &["3.0.0"], &["1.0.0", "5.0.0"]);
        check("vers:npm/<1.0.0|<2.0.0", &["1.5.0", "1.0.0", "0.5.0"], &["2.0.0"]);
        check("vers:npm/>1.0.0|>2.0.0", &["1.5.0", "2.0.0", "3.0.0"], &["1.0.0"]);
    }

    #[test]
    fn each_scheme_has_its_own_order() {
        check("vers:deb/<1.0-1", &["1.0~rc1-1"], &["1.0-1", "1:0.1"]);
        check("vers:maven/>=1.0-alpha|<1.0", &["1.0-beta"], &["1.0", "1.0-sp1"]);
        check("vers:pypi/<1.0", &["1.0.dev1"], &["1.0.post1"]);
        check("vers:pypi/<=1.0", &["1.0", "1.0+cpu"], &["1.0.post1"]);
        check("vers:alpine/<1.2.3-r1", &["1.2.3-r0"], &["1.2.3-r1"]);
        check("vers:rpm/<0:1.2-3.el8", &["1.2-2.el8"], &["1.2-3.el8"]);
        check("vers:npm/<1.0.0%2Bbuild", &["0.9.0"], &["1.0.0"]);
        check("vers:pub/<1.0.0%2B2", &["1.0.0", "1.0.0+1"], &["1.0.0+2"]);
        check("vers:gem/<1.13.6", &["1.13.5-java"], &["1.13.6-java"]);
        check("vers:golang/>=v1.2.3", &["v1.2.3"], &["v1.2.2"]);
        check("vers:bitnami/<17.2.0", &["17.1.0-3", "17.2.0-rc1"], &["17.2.0-8"]);
        check("vers:bitnami/<=17.2.0", &["17.2.0", "17.2.0-8"], &["17.2.1"]);
    }

    #[test]
    fn what_cannot_be_evaluated_says_why() {
        for (range, error) in [
            ("", VersError::Malformed),
            ("npm/<1", VersError::Malformed),
            ("vers:npm", VersError::Malformed),
            ("vers:npm/", VersError::Malformed),
            ("vers:npm/<*", VersError::Malformed),
            ("vers:npm/1|*", VersError::Malformed),
            ("vers:openssl/<1.1.1a", VersError::UnknownScheme),
            ("vers:npm/<latest", VersError::Unreadable),
        ] {
            assert_eq!(VersRange::parse(range).err(), Some(error), "{range}");
        }
        let range = VersRange::parse("vers:npm/<1").expect("a range");
        assert_eq!(range.contains(Some("latest")), Err(VersError::Unreadable));
        assert_eq!(range.contains(None), Err(VersError::Unreadable));
    }
}
