//! Releases of distributions, by number or name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names and numbers of Debian's and Ubuntu's releases, see `releases/LICENSE`.
const TABLES: [&str; 2] =
    [include_str!("releases/debian.csv"), include_str!("releases/ubuntu.csv")];

/// Names of rolling distribution releases, which have no number. Advisories for a numbered release
/// do not apply to a package of a rolling release.
const ROLLING: [&str; 2] = ["stream", "tumbleweed"];

/// Special builds of Ubuntu for which there are separate advisories.
const BUILDS: [&str; 3] = ["bluefield", "fips", "realtime"];

/// Number of a Debian or Ubuntu release by series name: `[12]` for `bookworm`. Empty for a series
/// without a number, such as `sid`.
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
    /// Parts of the release's number: `[12]`, `[22, 4]`, or `[15, 4]` for `15 SP4`; empty for a
    /// release without a number.
    numbers: Vec<u32>,
    /// Text from which the release was parsed, in lower case.
    text: String,
    /// Special build of the release for which an advisory is: `fips` for
    /// `Pro:FIPS-updates:22.04:LTS`; `None` for the release itself.
    variant: Option<&'static str>,
    /// Kind of packages of Red Hat Enterprise Linux or openEuler for which an advisory is: of the
    /// main release, extended support or a service pack; `None` for other products.
    stream: Option<ReleaseStream>,
}

/// Stream of packages of Red Hat Enterprise Linux or openEuler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReleaseStream {
    /// Packages of a minor release of Red Hat become those of the next one.
    Main,
    /// Extended support of a single minor release of Red Hat: `rhel_eus`, `rhel_aus` and others.
    Extended,
    /// A release of openEuler or one of its service packs. Purls often have the release only,
    /// because `VERSION_ID` in `/etc/os-release` is `22.03` in all service packs of 22.03.
    ServicePack,
}

impl DistributionRelease {
    /// Parses the release of a distribution: the name of a Debian or Ubuntu series, otherwise the
    /// first numbers of the text (`12` in `debian-12`, `22.04` in `Pro:22.04:LTS`) and the service
    /// pack after them.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return None;
        }
        let named = words(&text).find_map(|word| SERIES.get(word));
        let numbers = named.cloned().unwrap_or_else(|| numbers(&text));
        Some(Self { numbers, text, variant: None, stream: None })
    }

    /// Parses the distribution release in an OSV ecosystem. Those of Red Hat and SUSE are names of
    /// products: the release is `elN` in `satellite:6.16::el8`, `8.6` in `rhel_e4s:8.6::baseos`,
    /// and the last number in `Linux Enterprise Module for Python 3 15 SP6`.
    pub(super) fn of_osv(ecosystem: &str, text: &str) -> Option<Self> {
        let mut release = Self::read(text)?;
        let text = release.text.as_str();
        match ecosystem {
            "Red Hat" => {
                let editions = words(text).filter_map(|word| word.strip_prefix("el"));
                let edition = editions.last().and_then(|number| number.parse().ok());
                let version = || numbers(text.split_once(':').map_or(text, |(_, rest)| rest));
                release.numbers = edition.map_or_else(version, |number| vec![number]);
                release.stream = ReleaseStream::of_product(text);
            }
            "openEuler" => release.stream = Some(ReleaseStream::ServicePack),
            "SUSE" => release.numbers = numbers(from_last_number(text)),
            "Ubuntu" => {
                let build = |word: &str| BUILDS.into_iter().find(|build| *build == word);
                release.variant = words(text).find_map(build);
            }
            _ => {}
        }
        Some(release)
    }

    /// Whether an advisory for this release is for the build of a package: one for the FIPS builds
    /// of Ubuntu only if `fips` occurs in the package's name, version or release. `name` is the
    /// package's name in the advisory, such as `linux-fips`.
    pub(crate) fn is_for_build(&self, release: &Self, name: &str, version: Option<&str>) -> bool {
        self.variant.is_none_or(|variant| {
            let version = version.unwrap_or_default().to_lowercase();
            [name, &version, &release.text].iter().any(|text| text.contains(variant))
        })
    }

    /// Whether an advisory for this release applies to a package of the release `other`; one for 12
    /// applies to 12.5. Releases without numbers are compared by name. `None` if that cannot be
    /// decided: only `other` has no known number, or it may be an earlier minor release of a main
    /// stream, or it may be the minor release of an extended support, or the service pack.
    pub(crate) fn covers(&self, other: &Self) -> Option<bool> {
        if self.numbers.is_empty() {
            return Some(words(&self.text).all(|word| other.has_word(word)));
        }
        let is_rolling = ROLLING.iter().any(|name| other.has_word(name));
        if other.numbers.is_empty() && !is_rolling {
            return None;
        }
        match self.stream {
            Some(ReleaseStream::Main) => self.continues_in(other),
            Some(ReleaseStream::Extended) if self.is_minor_of(other) => None,
            // A purl with `LTS` would name the service pack too.
            Some(ReleaseStream::ServicePack)
                if self.is_minor_of(other) && !other.has_word("lts") =>
            {
                None
            }
            _ => Some(other.numbers.starts_with(&self.numbers)),
        }
    }

    /// Whether this is a minor release of the major release `other`.
    fn is_minor_of(&self, other: &Self) -> bool {
        let is_shorter = !other.numbers.is_empty() && other.numbers.len() < self.numbers.len();
        is_shorter && self.numbers.starts_with(&other.numbers)
    }

    /// Whether an advisory for this release of a main stream applies to a package of `other`: to
    /// this and later minor releases. `None` if `other` is, or may be, an earlier one. Its package
    /// may be affected too, but the fixed version may be that of another advisory.
    fn continues_in(&self, other: &Self) -> Option<bool> {
        let (ours, theirs) = (self.numbers.split_first(), other.numbers.split_first());
        let (Some((major, minor)), Some((other_major, other_minor))) = (ours, theirs) else {
            return Some(false);
        };
        if major != other_major {
            return Some(false);
        }
        let is_first = minor.iter().all(|number| *number == 0);
        (is_first || other_minor >= minor).then_some(true)
    }

    /// Whether the release is the extended support of a minor release of Red Hat Enterprise Linux.
    pub(crate) fn is_extended_support(&self) -> bool {
        self.stream == Some(ReleaseStream::Extended)
    }

    /// Whether the number of the release is known.
    pub(crate) fn has_number(&self) -> bool {
        !self.numbers.is_empty()
    }

    fn has_word(&self, word: &str) -> bool {
        words(&self.text).any(|other| other == word)
    }

    /// Returns the text from which the release was parsed, in lower case.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl ReleaseStream {
    /// Returns the stream of a product in an ecosystem of OSV, such as `rhel_eus:8.6::baseos`;
    /// `None` for a product without own packages of the distribution.
    fn of_product(text: &str) -> Option<Self> {
        match text.split(':').next()? {
            "enterprise_linux" => Some(Self::Main),
            "rhel_eus" | "rhel_eus_long_life" | "rhel_aus" | "rhel_tus" | "rhel_e4s" => {
                Some(Self::Extended)
            }
            _ => None,
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// Returns the rest of a text from its last word that begins with a digit; the whole text if no
/// word does.
fn from_last_number(text: &str) -> &str {
    let is_number = |at: &usize| text[*at..].starts_with(|c: char| c.is_ascii_digit());
    let words = text.rmatch_indices(' ').map(|(at, _)| at + 1);
    words.chain([0]).find(is_number).map_or(text, |at| &text[at..])
}

/// Returns the first dotted numbers in the text of a release, and the service pack: `[15, 4]` for
/// `Linux Enterprise Server 15 SP4`.
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
    fn a_number_of_a_product_is_no_release() {
        for (ecosystem, theirs, ours, expected) in [
            ("Red Hat", "rhel_software_collections:3::el7", "rhel-7.9", true),
            ("Red Hat", "satellite:6.16::el8", "rhel-8.10", true),
            ("Red Hat", "satellite:6.16::el8", "rhel-6.16", false),
            ("Red Hat", "rhel_eus:8.6::baseos", "rhel-8.6", true),
            ("Red Hat", "rhel_eus:8.6::baseos", "rhel-8.4", false),
            ("Red Hat", "rhel_e4s:8.6::baseos", "rhel-8.6", true),
            ("Red Hat", "rhel_e4s:8.6::baseos", "rhel-4.8", false),
            ("Red Hat", "enterprise_linux:9::appstream", "rhel-9.2", true),
            ("SUSE", "Linux Enterprise Module for Python 3 15 SP6", "sles-15.6", true),
            ("SUSE", "Linux Enterprise Module for Python 3 15 SP6", "sles-15.5", false),
            ("SUSE", "Linux Enterprise Server 12 SP5-LTSS", "sles-12.5", true),
            ("SUSE", "Linux Enterprise Micro 5.3", "slem-5.3", true),
        ] {
            let theirs = DistributionRelease::of_osv(ecosystem, theirs).expect("a release");
            let ours = DistributionRelease::read(ours).expect("a release");
            assert_eq!(theirs.covers(&ours), Some(expected), "{theirs:?} {ours:?}");
        }
    }

    #[test]
    fn an_advisory_for_a_minor_release_of_red_hat_depends_on_its_stream() {
        for (theirs, ours, expected) in [
            ("enterprise_linux:10.0", "rhel-10.0", Some(true)),
            ("enterprise_linux:10.0", "rhel-10.1", Some(true)),
            ("enterprise_linux:10.0", "rhel-10", Some(true)),
            ("enterprise_linux:10.1", "redhat-10.2", Some(true)),
            ("enterprise_linux:10.1", "rhel-10.0", None),
            ("enterprise_linux:10.1", "rhel-10", None),
            ("enterprise_linux:10.0", "rhel-9.7", Some(false)),
            ("enterprise_linux:9::baseos", "rhel-9.7", Some(true)),
            ("rhel_eus:10.0", "rhel-10.1", Some(false)),
            ("rhel_eus:8.6::baseos", "rhel-8", None),
            ("rhel_aus:8.2::appstream", "redhat-8", None),
            ("rhel_eus:8.6::baseos", "rhel-9", Some(false)),
            ("rhel_eus:8.6::baseos", "centos-stream", Some(false)),
        ] {
            let theirs = DistributionRelease::of_osv("Red Hat", theirs).expect("a release");
            let ours = DistributionRelease::read(ours).expect("a release");
            assert_eq!(theirs.covers(&ours), expected, "{theirs:?} {ours:?}");
        }
    }

    #[test]
    fn a_release_of_openeuler_without_its_service_pack_is_undecided() {
        for (theirs, ours, expected) in [
            ("22.03-LTS-SP3", "openEuler-22.03", None),
            ("22.03-LTS-SP3", "openEuler-22.03-LTS", Some(false)),
            ("22.03-LTS-SP3", "openEuler-22.03-LTS-SP2", Some(false)),
            ("22.03-LTS-SP3", "openEuler-22.03-LTS-SP3", Some(true)),
            ("22.03-LTS-SP3", "openEuler-24.03", Some(false)),
            ("22.03-LTS", "openEuler-22.03", Some(true)),
        ] {
            let theirs = DistributionRelease::of_osv("openEuler", theirs).expect("a release");
            let ours = DistributionRelease::read(ours).expect("a release");
            assert_eq!(theirs.covers(&ours), expected, "{theirs:?} {ours:?}");
        }
    }

    #[test]
    fn an_advisory_for_a_build_of_ubuntu_is_for_no_other() {
        for (theirs, ours, name, version, expected) in [
            ("Pro:FIPS-updates:22.04:LTS", "ubuntu-22.04", "a", "3.0.2-0ubuntu1.12", false),
            ("Pro:FIPS-updates:22.04:LTS", "ubuntu-22.04", "a", "3.0.2-0ubuntu1.12+Fips1.1", true),
            ("Pro:FIPS-preview:22.04:LTS", "ubuntu-fips-22.04", "a", "1", true),
            ("Pro:Realtime:22.04:LTS", "ubuntu-22.04", "linux", "5.15.0-1", false),
            ("Pro:22.04:LTS:Realtime:Kernel", "ubuntu-22.04", "linux-realtime", "5.15.0-1", true),
            ("22.04:LTS:for:NVIDIA:BlueField", "ubuntu-22.04", "linux-bluefield", "5.15-1", true),
            ("22.04:LTS:for:NVIDIA:BlueField", "ubuntu-22.04", "linux", "5.15-1", false),
            ("Pro:22.04:LTS:of:another:kind", "ubuntu-22.04", "a", "1", true),
            ("Pro:18.04:LTS", "ubuntu-18.04", "a", "1", true),
            ("22.04:LTS", "jammy", "a", "1", true),
            ("25.04", "plucky", "a", "1", true),
        ] {
            let theirs = DistributionRelease::of_osv("Ubuntu", theirs).expect("a release");
            let ours = DistributionRelease::read(ours).expect("a release");
            assert_eq!(theirs.covers(&ours), Some(true), "{theirs:?}");
            let is_for_build = theirs.is_for_build(&ours, name, Some(version));
            assert_eq!(is_for_build, expected, "{theirs:?} {name} {version}");
        }
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
