//! Releases of distributions, by number or name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names and numbers of Debian's and Ubuntu's releases, see `releases/LICENSE`.
const TABLES: [&str; 2] =
    [include_str!("releases/debian.csv"), include_str!("releases/ubuntu.csv")];

/// Names of rolling releases that advisories use. All advisories for the distribution apply to a
/// package of a rolling release.
const ROLLING: [&str; 2] = ["stream", "tumbleweed"];

/// Release number by series name: `[12]` for `bookworm`. Empty for a series without a number, such
/// as `sid`.
static SERIES: LazyLock<BTreeMap<&str, Vec<u32>>> = LazyLock::new(|| {
    let rows = TABLES.into_iter().flat_map(|table| table.lines().skip(1));
    rows.filter_map(|row| {
        let mut cells = row.split(',');
        let (version, series) = (cells.next()?, cells.nth(1)?);
        Some((series, numbers(version)))
    })
    .collect()
});

/// Release of a distribution, for example `12`, `22.04` or `sid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DistributionRelease {
    /// Parts of the number: `[12]`, `[22, 4]`, or `[15, 4]` for `15 SP4`; empty for a release
    /// without a number.
    numbers: Vec<u32>,
    /// The original text in lower case.
    text: String,
}

impl DistributionRelease {
    /// Parses a release: the name of a Debian or Ubuntu series, otherwise the first numbers of the
    /// text (`12` in `debian-12`, `22.04` in `Pro:22.04:LTS`) and the service pack after them.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return None;
        }
        let named = words(&text).find_map(|word| SERIES.get(word));
        let numbers = named.cloned().unwrap_or_else(|| numbers(&text));
        Some(Self { numbers, text })
    }

    /// Whether an advisory for this release applies to a package of the release `other`; one for 12
    /// applies to 12.5. Releases without numbers are compared by name. `None` if only `other` has
    /// no known number.
    pub(crate) fn covers(&self, other: &Self) -> Option<bool> {
        if self.numbers.is_empty() {
            return Some(words(&self.text).all(|word| other.has_word(word)));
        }
        let is_rolling = ROLLING.iter().any(|name| other.has_word(name));
        if other.numbers.is_empty() && !is_rolling {
            return None;
        }
        Some(other.numbers.starts_with(&self.numbers))
    }

    fn has_word(&self, word: &str) -> bool {
        words(&self.text).any(|other| other == word)
    }

    /// Returns the original text in lower case.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// Returns the first dotted numbers of a text, and the service pack: `[15, 4]` for `Linux
/// Enterprise Server 15 SP4`.
fn numbers(text: &str) -> Vec<u32> {
    let digits = |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
    let Some(from) = text.find(|c: char| c.is_ascii_digit()) else { return Vec::new() };
    let rest = text.get(from..).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (release, behind) = rest.split_at(end);
    let pack = behind.split_once("sp").and_then(|(_, pack)| digits(pack).parse().ok());
    release.split('.').map_while(|number| number.parse().ok()).chain(pack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(theirs: &str, ours: &str) -> Option<bool> {
        let release = |text: &str| DistributionRelease::read(text).expect("a release");
        release(theirs).covers(&release(ours))
    }

    #[test]
    fn releases_are_told_apart() {
        for (theirs, ours, expected) in [
            ("v3.18", "alpine-3.18.4", true),
            ("v3.1", "alpine-3.18.4", false),
            ("22.04:LTS", "jammy", true),
            ("enterprise_linux:8::baseos", "rhel-8.4", true),
            ("rhel_eus:8.6::baseos", "rhel-8", false),
            ("Leap 15.3", "opensuse-leap-15.3", true),
            ("Linux Enterprise Server 15 SP4", "sles-15.4", true),
            ("Linux Enterprise Server 15 SP4", "sles-15.5", false),
            ("24.03-LTS-SP1", "openeuler-24.03-LTS", false),
            ("24.03-LTS-SP1", "openEuler-24.03-LTS-SP1", true),
        ] {
            assert_eq!(covers(theirs, ours), Some(expected), "{theirs} {ours}");
        }
        assert_eq!(DistributionRelease::read(" "), None);
    }

    #[test]
    fn a_release_without_a_number_is_for_those_called_so() {
        for (theirs, ours) in [
            ("Tumbleweed", "opensuse-leap-15.5"),
            ("stream", "alpaquita-23"),
            ("edge", "alpine-3.18"),
            ("sid", "debian-12"),
        ] {
            assert_eq!(covers(theirs, ours), Some(false), "{theirs} {ours}");
        }
        assert_eq!(covers("Tumbleweed", "opensuse-tumbleweed-20240101"), Some(true));
        assert_eq!(covers("edge", "edge"), Some(true));
        assert_eq!(covers("sid", "debian-sid"), Some(true));
    }

    #[test]
    fn every_series_of_debian_and_ubuntu_has_its_number() {
        for (theirs, ours) in [
            ("25.04", "plucky"),
            ("24.10", "ubuntu-oracular"),
            ("23.10", "mantic"),
            ("22.04:LTS", "Ubuntu-Jammy"),
            ("14", "forky"),
            ("7", "debian-wheezy"),
            ("13", "trixie/sid"),
            ("26.04:LTS", "resolute"),
            ("4.0", "etch"),
        ] {
            assert_eq!(covers(theirs, ours), Some(true), "{theirs} {ours}");
            assert_eq!(covers("11", ours), Some(false), "{ours}");
        }
        assert!(SERIES.len() > 60, "{}", SERIES.len());
    }

    #[test]
    fn a_name_without_a_known_number_cannot_be_compared_with_one() {
        for ours in ["zurg", "ubuntu-zany", "debian", "sid", "unstable", "edge", "rolling"] {
            assert_eq!(covers("14", ours), None, "{ours}");
        }
        // Advisories use the names of these rolling releases, so advisories for others do not
        // apply.
        for ours in ["tumbleweed", "alpaquita-stream"] {
            assert_eq!(covers("15.5", ours), Some(false), "{ours}");
        }
    }
}
