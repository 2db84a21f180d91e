//! Packages as advisories know them: an ecosystem of the OSV schema, a name by
//! that ecosystem's rules, and the release of a distribution.

use std::borrow::Cow;

use crate::purl::Purl;
use crate::text::bounded;
use crate::versions::Scheme;

/// Bytes of a key, which an index holds.
const MAX_KEY: usize = 1_000;

/// A package, as advisories and components are brought together by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    /// Without a release: `Debian`, not `Debian:12`. The purl's type where OSV
    /// has no ecosystem for it.
    pub(crate) ecosystem: Cow<'static, str>,
    /// The release of a distribution.
    pub(crate) release: Option<Release>,
    /// Folded, so that equal ones are equal.
    name: String,
    /// The version that advisories speak of: the source package's, where the
    /// purl names one, with the epoch.
    pub(crate) version: Option<String>,
}

/// A distribution's release: `12`, `22.04`, `sid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// `[12]`, `[22, 4]`, `[15, 4]` of `15 SP4`; none, where it has a name alone.
    numbers: Vec<u32>,
    /// As it is written, in lower case.
    text: String,
}

/// Purl types and their ecosystems.
const TYPES: &[(&str, &str)] = &[
    // As Syft wrote it before there was `apk`.
    ("alpine", "Alpine"),
    ("bioconductor", "Bioconductor"),
    ("bitnami", "Bitnami"),
    ("cargo", "crates.io"),
    ("composer", "Packagist"),
    ("conan", "ConanCenter"),
    ("cran", "CRAN"),
    ("gem", "RubyGems"),
    ("github", "GitHub Actions"),
    ("githubactions", "GitHub Actions"),
    ("golang", "Go"),
    ("hackage", "Hackage"),
    ("hex", "Hex"),
    ("julia", "Julia"),
    ("maven", "Maven"),
    ("npm", "npm"),
    ("nuget", "NuGet"),
    ("opam", "opam"),
    ("pub", "Pub"),
    ("pypi", "PyPI"),
    ("swift", "SwiftURL"),
    ("vscode-extension", "VSCode"),
];

/// Distributions, by purl type and namespace.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("apk", "alpaquita", "Alpaquita"),
    ("apk", "alpine", "Alpine"),
    ("apk", "chainguard", "Chainguard"),
    ("apk", "minimos", "MinimOS"),
    ("apk", "wolfi", "Wolfi"),
    ("deb", "debian", "Debian"),
    ("deb", "echo", "Echo"),
    ("deb", "ubuntu", "Ubuntu"),
    ("rpm", "almalinux", "AlmaLinux"),
    ("rpm", "azurelinux", "Azure Linux"),
    ("rpm", "mageia", "Mageia"),
    ("rpm", "mariner", "Azure Linux"),
    ("rpm", "openeuler", "openEuler"),
    ("rpm", "opensuse", "openSUSE"),
    ("rpm", "photon", "Photon OS"),
    ("rpm", "redhat", "Red Hat"),
    ("rpm", "rhel", "Red Hat"),
    ("rpm", "rocky", "Rocky Linux"),
    ("rpm", "rockylinux", "Rocky Linux"),
    ("rpm", "sles", "SUSE"),
    ("rpm", "suse", "SUSE"),
];

/// Releases that are known by a name.
const CODE_NAMES: &[(&str, &[u32])] = &[
    ("jessie", &[8]),
    ("stretch", &[9]),
    ("buster", &[10]),
    ("bullseye", &[11]),
    ("bookworm", &[12]),
    ("trixie", &[13]),
    ("trusty", &[14, 4]),
    ("xenial", &[16, 4]),
    ("bionic", &[18, 4]),
    ("focal", &[20, 4]),
    ("jammy", &[22, 4]),
    ("noble", &[24, 4]),
];

/// How an ecosystem orders its versions; nothing where that is not known.
pub(crate) fn scheme(ecosystem: &str) -> Option<Scheme> {
    Some(match ecosystem {
        "Bitnami" | "ConanCenter" | "crates.io" | "GitHub Actions" | "Go" | "Hex" | "Julia"
        | "Kubernetes" | "npm" | "Pub" | "SwiftURL" | "VSCode" => Scheme::Semantic,
        "NuGet" => Scheme::NuGet,
        "PyPI" => Scheme::Python,
        "Maven" => Scheme::Maven,
        "RubyGems" => Scheme::Ruby,
        "Packagist" => Scheme::Composer,
        "Debian" | "Docker Hardened Images" | "Echo" | "opam" | "Ubuntu" => Scheme::Debian,
        "Alpaquita"
        | "Alpine"
        | "BellSoft Hardened Containers"
        | "Chainguard"
        | "MinimOS"
        | "Wolfi" => Scheme::Alpine,
        "AlmaLinux" | "Azure Linux" | "Mageia" | "openEuler" | "openSUSE" | "Photon OS"
        | "Red Hat" | "Rocky Linux" | "SUSE" => Scheme::Rpm,
        "Bioconductor" | "CRAN" | "GHC" | "Hackage" => Scheme::Dotted,
        _ => return None,
    })
}

impl Release {
    /// By the first numbers of a text, `12` of `debian-12`, `22.04` of
    /// `Pro:22.04:LTS`, and the service pack behind them; else by its name.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return None;
        }
        let named = CODE_NAMES.iter().find(|(name, _)| text.ends_with(name));
        let numbers = named.map_or_else(|| numbers(&text), |(_, numbers)| numbers.to_vec());
        Some(Self { numbers, text })
    }

    /// Whether what holds for this release holds for `other`: 12 for 12.5. One
    /// that has a name alone holds for those that are called so.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self.numbers.is_empty() {
            let words = |text: &str| {
                let words = text.split(|c: char| !c.is_alphanumeric());
                words.map(str::to_owned).collect::<Vec<_>>()
            };
            let theirs = words(&other.text);
            return words(&self.text).iter().all(|word| theirs.contains(word));
        }
        other.numbers.starts_with(&self.numbers)
    }
}

/// The first numbers of a text with dots between them, and that of a service
/// pack: `[15, 4]` of `Linux Enterprise Server 15 SP4`.
fn numbers(text: &str) -> Vec<u32> {
    let digits = |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
    let Some(from) = text.find(|c: char| c.is_ascii_digit()) else { return Vec::new() };
    let rest = text.get(from..).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (release, behind) = rest.split_at(end);
    let pack = behind.split_once("sp").and_then(|(_, pack)| digits(pack).parse().ok());
    release.split('.').map_while(|number| number.parse().ok()).chain(pack).collect()
}

impl Package {
    /// The package of a purl.
    pub(crate) fn of_purl(purl: &Purl) -> Self {
        let ecosystem = ecosystem_of(purl);
        let (source, source_version) = source_package(purl);
        let name = source.map_or_else(|| name_of(purl), ToOwned::to_owned);
        let version = source_version.map(ToOwned::to_owned).or_else(|| with_epoch(purl));
        Self {
            name: folded(&ecosystem, &name),
            release: purl.qualifier("distro").and_then(Release::read),
            version,
            ecosystem,
        }
    }

    /// A package as OSV names it: `Debian:12` and `curl`.
    pub(crate) fn of_osv(ecosystem: &str, name: &str) -> Self {
        let (base, release) = ecosystem.split_once(':').unwrap_or((ecosystem, ""));
        Self {
            ecosystem: Cow::Owned(base.to_owned()),
            release: Release::read(release),
            name: folded(base, name),
            version: None,
        }
    }

    /// The same package at a version.
    #[cfg(test)]
    pub(crate) fn at(self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self }
    }

    /// What brings advisories and components together.
    pub(crate) fn key(&self) -> String {
        bounded(&format!("{}:{}", self.ecosystem, self.name), MAX_KEY)
    }
}

fn ecosystem_of(purl: &Purl) -> Cow<'static, str> {
    let kind = purl.kind.as_str();
    if let Some((_, ecosystem)) = TYPES.iter().find(|(known, _)| *known == kind) {
        return Cow::Borrowed(ecosystem);
    }
    let namespace = purl.namespace.as_deref().unwrap_or_default();
    let distribution = DISTRIBUTIONS.iter().find(|(k, n, _)| *k == kind && *n == namespace);
    distribution
        .map_or_else(|| Cow::Owned(kind.to_owned()), |(_, _, ecosystem)| Cow::Borrowed(*ecosystem))
}

/// The name by which its ecosystem knows the package.
pub(crate) fn name_of(purl: &Purl) -> String {
    let Some(namespace) = &purl.namespace else { return purl.name.clone() };
    match purl.kind.as_str() {
        "apk" | "deb" | "rpm" | "alpm" => purl.name.clone(),
        "maven" => format!("{namespace}:{}", purl.name),
        _ => format!("{namespace}/{}", purl.name),
    }
}

/// Debian's and Alpine's advisories name source packages; `upstream` tells
/// which, perhaps with its version.
fn source_package(purl: &Purl) -> (Option<&str>, Option<&str>) {
    let source = purl
        .qualifier("upstream")
        .filter(|_| matches!(purl.kind.as_str(), "alpine" | "apk" | "deb"));
    match source.and_then(|source| source.split_once('@')) {
        Some((name, version)) => (Some(name), Some(version)),
        None => (source, None),
    }
}

fn with_epoch(purl: &Purl) -> Option<String> {
    let version = purl.version.as_ref()?;
    match purl.qualifier("epoch").filter(|epoch| *epoch != "0") {
        Some(epoch) if !version.contains(':') => Some(format!("{epoch}:{version}")),
        _ => Some(version.clone()),
    }
}

fn folded(ecosystem: &str, name: &str) -> String {
    match ecosystem {
        // These tell upper and lower case apart, and so do their purls.
        "Bioconductor" | "CRAN" | "Hackage" | "Julia" | "Maven" | "RubyGems" => name.to_owned(),
        // PEP 503: runs of these are one hyphen.
        "PyPI" => {
            let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("-").to_lowercase()
        }
        _ => name.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(purl: &str) -> Package {
        Package::of_purl(&Purl::parse(purl).expect("a purl"))
    }

    #[test]
    fn purls_and_osv_names_meet_in_one_key() {
        for (purl, ecosystem, name) in [
            (
                "pkg:maven/org.apache.logging.log4j/log4j-core@2",
                "Maven",
                "org.apache.logging.log4j:log4j-core",
            ),
            ("pkg:npm/%40angular/core@1", "npm", "@angular/core"),
            ("pkg:pypi/zope.interface", "PyPI", "Zope_Interface"),
            ("pkg:golang/github.com/Masterminds/vcs@v1", "Go", "github.com/Masterminds/vcs"),
            ("pkg:nuget/Newtonsoft.Json@1", "NuGet", "newtonsoft.json"),
            ("pkg:composer/laravel/framework", "Packagist", "laravel/framework"),
            ("pkg:swift/github.com/apple/swift-nio@1", "SwiftURL", "github.com/apple/swift-nio"),
            (
                "pkg:deb/debian/libssl3@3.0.9-1?upstream=openssl&distro=debian-12",
                "Debian:12",
                "openssl",
            ),
            (
                "pkg:apk/alpine/libssl3@3.1.4-r1?upstream=openssl&distro=3.18.4",
                "Alpine:v3.18",
                "openssl",
            ),
            ("pkg:rpm/rocky/curl@7?distro=rocky-8.7", "Rocky Linux:8", "curl"),
            ("pkg:cargo/openssl-src@111", "crates.io", "openssl-src"),
            ("pkg:generic/radare2", "generic", "radare2"),
        ] {
            let osv = Package::of_osv(ecosystem, name);
            let ours = package(purl);
            assert_eq!(ours.key(), osv.key(), "{purl}");
            if let (Some(theirs), Some(ours)) = (&osv.release, &ours.release) {
                assert!(theirs.covers(ours), "{purl}");
            }
        }
    }

    #[test]
    fn releases_are_told_apart() {
        let release = |text: &str| Release::read(text).expect("a release");
        assert!(release("v3.18").covers(&release("alpine-3.18.4")));
        assert!(!release("v3.1").covers(&release("alpine-3.18.4")));
        assert!(release("22.04:LTS").covers(&release("jammy")));
        assert!(release("enterprise_linux:8::baseos").covers(&release("rhel-8.4")));
        assert!(!release("rhel_eus:8.6::baseos").covers(&release("rhel-8")));
        assert!(release("Leap 15.3").covers(&release("opensuse-leap-15.3")));
        assert!(release("Linux Enterprise Server 15 SP4").covers(&release("sles-15.4")));
        assert!(!release("Linux Enterprise Server 15 SP4").covers(&release("sles-15.5")));
        assert!(!release("24.03-LTS-SP1").covers(&release("openeuler-24.03-LTS")));
        assert!(release("24.03-LTS-SP1").covers(&release("openEuler-24.03-LTS-SP1")));
        assert_eq!(Release::read(" "), None);
    }

    #[test]
    fn a_release_without_a_number_is_for_those_called_so() {
        let release = |text: &str| Release::read(text).expect("a release");
        for (theirs, ours) in [
            ("Tumbleweed", "opensuse-leap-15.5"),
            ("stream", "alpaquita-23"),
            ("edge", "alpine-3.18"),
            ("sid", "debian-12"),
        ] {
            assert!(!release(theirs).covers(&release(ours)), "{theirs} {ours}");
        }
        assert!(release("Tumbleweed").covers(&release("opensuse-tumbleweed-20240101")));
        assert!(release("edge").covers(&release("edge")));
        assert!(release("sid").covers(&release("debian-sid")));
    }

    #[test]
    fn epochs_and_source_versions_count() {
        let version = |purl: &str| package(purl).version;
        assert_eq!(version("pkg:rpm/redhat/a@1-2?epoch=3").as_deref(), Some("3:1-2"));
        assert_eq!(version("pkg:deb/debian/a@2:1?epoch=2").as_deref(), Some("2:1"));
        let upstream = "pkg:deb/debian/a@1.0-1%2Bb2?upstream=b%401.0-1";
        assert_eq!(version(upstream).as_deref(), Some("1.0-1"));
        assert_eq!(version("pkg:npm/a"), None);
    }

    #[test]
    fn every_ecosystem_of_the_schema_is_known_or_exact() {
        assert_eq!(scheme("Maven"), Some(Scheme::Maven));
        assert_eq!(scheme("OSS-Fuzz"), None);
        for (_, ecosystem) in TYPES {
            assert!(scheme(ecosystem).is_some(), "{ecosystem}");
        }
        for (_, _, ecosystem) in DISTRIBUTIONS {
            assert!(scheme(ecosystem).is_some(), "{ecosystem}");
        }
    }
}
