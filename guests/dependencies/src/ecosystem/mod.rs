//! Packages as advisories name them: an ecosystem of the OSV schema, a name by the rules of that
//! ecosystem, and the release of a distribution.

mod release;
mod spelling;

use std::borrow::Cow;

use crate::purl::Purl;
use crate::text::bounded;
use crate::versions::Scheme;
pub(crate) use release::DistributionRelease;
pub(crate) use spelling::{SpellingMatch, SubpathMeaning, go_path, has_upper_case, module_purl};

/// Maximum size of a package key in an index, in bytes.
const MAX_KEY: usize = 1_000;

/// A package in the form in which advisories and components are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    /// Ecosystem of the OSV schema without a release: `Debian`, not `Debian:12`. If OSV has no
    /// ecosystem for the purl's type, that type.
    pub(crate) ecosystem: Cow<'static, str>,
    /// Release of the distribution to which the package belongs; `None` if it is unknown, and for
    /// other packages.
    pub(crate) release: Option<DistributionRelease>,
    /// Name of the package, normalized so that equal packages have equal names.
    name: String,
    /// Version of the package to compare with advisories: that of the source package if it is
    /// known, with the epoch.
    pub(crate) version: Option<String>,
}

/// Ecosystem of the OSV schema by purl type, for types other than those of distributions.
const TYPES: &[(&str, &str)] = &[
    // Old versions of Syft wrote `alpine` instead of `apk`.
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

/// Ecosystem of the OSV schema by purl type and namespace, for packages of distributions.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("apk", "alpaquita", "Alpaquita"),
    ("apk", "alpine", "Alpine"),
    ("apk", "chainguard", "Chainguard"),
    ("apk", "minimos", "MinimOS"),
    ("apk", "wolfi", "Wolfi"),
    ("deb", "debian", "Debian"),
    ("deb", "echo", "Echo"),
    ("deb", "ubuntu", "Ubuntu"),
    // Trivy writes `alma`, `cbl-mariner`, `opensuse-leap`, `opensuse-tumbleweed` and `slem`.
    ("rpm", "alma", "AlmaLinux"),
    ("rpm", "almalinux", "AlmaLinux"),
    ("rpm", "azurelinux", "Azure Linux"),
    ("rpm", "cbl-mariner", "Azure Linux"),
    ("rpm", "mageia", "Mageia"),
    ("rpm", "mariner", "Azure Linux"),
    ("rpm", "openeuler", "openEuler"),
    ("rpm", "opensuse", "openSUSE"),
    ("rpm", "opensuse-leap", "openSUSE"),
    ("rpm", "opensuse-tumbleweed", "openSUSE"),
    ("rpm", "photon", "Photon OS"),
    ("rpm", "redhat", "Red Hat"),
    ("rpm", "rhel", "Red Hat"),
    ("rpm", "rocky", "Rocky Linux"),
    ("rpm", "rocky-linux", "Rocky Linux"),
    ("rpm", "rockylinux", "Rocky Linux"),
    ("rpm", "slem", "SUSE"),
    ("rpm", "sles", "SUSE"),
    ("rpm", "suse", "SUSE"),
];

/// Distributions whose advisories name binary packages. Those of the others name source packages.
const BINARY_NAMES: [&str; 3] = ["AlmaLinux", "Photon OS", "Red Hat"];

/// Values that tools write into SBOMs instead of an unknown version.
const PLACEHOLDERS: [&str; 7] =
    ["", "UNKNOWN", "NOASSERTION", "NONE", "unspecified", "undefined", "(devel)"];

/// Returns the version order of an ecosystem of the OSV schema; `None` if it is unknown.
pub(crate) fn scheme(ecosystem: &str) -> Option<Scheme> {
    Some(match ecosystem {
        "Bitnami" => Scheme::Bitnami,
        "ConanCenter" | "crates.io" | "GitHub Actions" | "Go" | "Hex" | "Julia" | "Kubernetes"
        | "npm" | "SwiftURL" | "VSCode" => Scheme::Semantic,
        "Pub" => Scheme::Pub,
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

impl Package {
    /// Returns the package that a purl identifies.
    pub(crate) fn of_purl(purl: &Purl) -> Self {
        Self::of_component(purl, &name_of(purl), None)
    }

    /// Returns the package of an SBOM's component. `name` is the component's; it decides whether
    /// the purl's subpath belongs to the path of a Go module. `source` is its source package in the
    /// SBOM, used if the purl does not name one: `openssl@3.0.11-1` or `openssl`.
    pub(crate) fn of_component(purl: &Purl, name: &str, source: Option<&str>) -> Self {
        let ecosystem = ecosystem_of(purl);
        let text = purl.qualifier("upstream").or(source).filter(|_| names_sources(&ecosystem));
        let source = text.and_then(source_package);
        let kernel = source.and_then(|(name, _)| kernel_source(&ecosystem, name));
        // The source package of signed kernels has versions of its own.
        let source_version = source.and_then(|(_, version)| version).filter(|_| kernel.is_none());
        let name = match source {
            Some((name, _)) => kernel.unwrap_or_else(|| name.to_owned()),
            None if SubpathMeaning::of(purl, name, None) == Some(SubpathMeaning::Module) => {
                name.to_owned()
            }
            None => name_of(purl),
        };
        let is_file = text.is_some_and(|text| text.ends_with(".rpm"));
        Self {
            version: match source_version {
                // `epoch` is the binary package's. A source version has its own, except in the
                // name of a file.
                Some(version) if !is_file => Some(version.to_owned()),
                version => {
                    version.or(purl.version.as_deref()).map(|version| with_epoch(purl, version))
                }
            },
            name: folded(&ecosystem, &name),
            release: purl.qualifier("distro").and_then(DistributionRelease::read),
            ecosystem,
        }
    }

    /// Returns the package that an OSV record names: `ecosystem` such as `Debian:12`, and `name`
    /// such as `curl`. The suffix of an ecosystem that is no distribution, such as the registry in
    /// `Maven:https://maven.google.com`, is ignored.
    pub(crate) fn of_osv(ecosystem: &str, name: &str) -> Self {
        let (base, suffix) = ecosystem.split_once(':').unwrap_or((ecosystem, ""));
        let release = Some(suffix).filter(|_| is_distribution(base));
        Self {
            ecosystem: Cow::Owned(base.to_owned()),
            release: release.and_then(|release| DistributionRelease::of_osv(base, release)),
            name: folded(base, name),
            version: None,
        }
    }

    /// Returns the package with this version.
    #[cfg(test)]
    pub(crate) fn at(self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self }
    }

    /// Returns the package's version as advisories write it; `None` if it is missing, or a
    /// placeholder for an unknown one.
    pub(crate) fn comparable_version(&self) -> Option<Cow<'_, str>> {
        let text = self.version.as_deref()?.trim();
        if PLACEHOLDERS.iter().any(|placeholder| text.eq_ignore_ascii_case(placeholder)) {
            return None;
        }
        Some(if self.ecosystem == "Go" { go_version(text) } else { Cow::Borrowed(text) })
    }

    /// Returns the package key, by which components and advisories of the same package find each
    /// other.
    pub(crate) fn key(&self) -> String {
        bounded(&format!("{}:{}", self.ecosystem, self.name), MAX_KEY)
    }
}

/// Returns the ecosystem of the OSV schema for a purl; the purl's type if OSV has none for it.
pub(crate) fn ecosystem_of(purl: &Purl) -> Cow<'static, str> {
    let kind = purl.kind.as_str();
    if let Some((_, ecosystem)) = TYPES.iter().find(|(known, _)| *known == kind) {
        return Cow::Borrowed(ecosystem);
    }
    let namespace = purl.namespace.as_deref().unwrap_or_default();
    let distribution = DISTRIBUTIONS.iter().find(|(k, n, _)| *k == kind && *n == namespace);
    distribution
        .map_or_else(|| Cow::Owned(kind.to_owned()), |(_, _, ecosystem)| Cow::Borrowed(*ecosystem))
}

fn is_distribution(ecosystem: &str) -> bool {
    DISTRIBUTIONS.iter().any(|(_, _, known)| *known == ecosystem)
}

/// Whether the advisories of an ecosystem name source packages instead of binary packages.
fn names_sources(ecosystem: &str) -> bool {
    is_distribution(ecosystem) && !BINARY_NAMES.contains(&ecosystem)
}

/// Whether a purl names the source package of its package (qualifier `upstream`).
pub(crate) fn has_source(purl: &Purl) -> bool {
    purl.qualifier("upstream").is_some_and(|source| source_package(source).is_some())
}

/// Whether advisories for the package of a purl name its source package instead. False for a source
/// package (`arch=source` in Debian, `arch=src` in RPM).
pub(crate) fn needs_source(purl: &Purl) -> bool {
    let is_source = matches!(purl.qualifier("arch"), Some("source" | "src"));
    !is_source && names_sources(&ecosystem_of(purl))
}

/// Returns the name of a purl's package in its ecosystem, for example `group:artifact` in Maven.
pub(crate) fn name_of(purl: &Purl) -> String {
    let Some(namespace) = &purl.namespace else {
        // cyclonedx-gomod writes `std` for Go's standard library.
        let is_go_std = purl.kind == "golang" && purl.name == "std";
        return if is_go_std { "stdlib".to_owned() } else { purl.name.clone() };
    };
    match purl.kind.as_str() {
        "apk" | "deb" | "rpm" | "alpm" => purl.name.clone(),
        "maven" => format!("{namespace}:{}", purl.name),
        "vscode-extension" => format!("{namespace}.{}", purl.name),
        "swift" if is_repository(namespace) => namespace.trim_end_matches(".git").to_owned(),
        _ => format!("{namespace}/{}", purl.name),
    }
}

/// Whether the namespace of a Swift purl is the whole address of a repository, as Syft wrote it. On
/// GitHub, that is a host and two names.
fn is_repository(namespace: &str) -> bool {
    let is_on_github = namespace.starts_with("github.com/");
    namespace.ends_with(".git") || (is_on_github && namespace.matches('/').count() == 2)
}

/// Returns the source package that advisories name for signed kernels, whose own source package is
/// `linux-signed-amd64` in Debian and `linux-signed-gcp` in Ubuntu: `linux` and `linux-gcp`. `None`
/// for other source packages.
fn kernel_source(ecosystem: &str, source: &str) -> Option<String> {
    let suffix = source.strip_prefix("linux-signed")?;
    match ecosystem {
        // The end of the suffix is the processor: `linux-signed-6.1-amd64` in Debian 11.
        "Debian" => suffix.rsplit_once('-').map(|(suffix, _)| format!("linux{suffix}")),
        "Ubuntu" => Some(format!("linux{suffix}")),
        _ => None,
    }
}

/// Returns name and version of the source package in a text: `openssl@3.0.11-1`, `openssl` or
/// `openssl-1.1.1k-6.el8.src.rpm`. `None` for the name of an RPM file without a version.
fn source_package(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(file) = text.strip_suffix(".rpm") {
        let (package, _) = file.rsplit_once('.')?;
        let (version_at, _) = package.rmatch_indices('-').nth(1)?;
        return Some((&package[..version_at], Some(&package[version_at + 1..])));
    }
    Some(text.split_once('@').map_or((text, None), |(name, version)| (name, Some(version))))
}

fn with_epoch(purl: &Purl, version: &str) -> String {
    match purl.qualifier("epoch").filter(|epoch| *epoch != "0") {
        Some(epoch) if !version.contains(':') => format!("{epoch}:{version}"),
        _ => version.to_owned(),
    }
}

/// Returns the version of a Go toolchain as Go's advisories write it: `1.21-rc.2` for `go1.21rc2`.
fn go_version(text: &str) -> Cow<'_, str> {
    let toolchain =
        text.strip_prefix("go").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    // Text after a space names experiments of the build.
    let Some(version) = toolchain.and_then(|rest| rest.split_whitespace().next()) else {
        return Cow::Borrowed(text);
    };
    for word in ["rc", "beta"] {
        if let Some((release, number)) = version.split_once(word) {
            return Cow::Owned(format!("{release}-{word}.{number}"));
        }
    }
    Cow::Borrowed(version)
}

fn folded(ecosystem: &str, name: &str) -> String {
    match ecosystem {
        // Names in these ecosystems, and their purls, are case-sensitive.
        "Bioconductor" | "CRAN" | "Hackage" | "Julia" | "Maven" | "RubyGems" => name.to_owned(),
        // PEP 503: any sequence of `-`, `_` and `.` equals one hyphen.
        "PyPI" => {
            let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("-").to_lowercase()
        }
        // A Git URL; purls have it without scheme and suffix.
        "SwiftURL" => {
            let name = name.trim_start_matches("https://");
            name.trim_end_matches(".git").to_lowercase()
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
            ("pkg:rpm/alma/curl@7?distro=alma-9.2", "AlmaLinux:9", "curl"),
            ("pkg:rpm/cbl-mariner/curl@7?distro=cbl-mariner-2.0", "Azure Linux:2", "curl"),
            (
                "pkg:rpm/opensuse-leap/curl@7?distro=opensuse-leap-15.3",
                "openSUSE:Leap 15.3",
                "curl",
            ),
            ("pkg:rpm/rocky-linux/curl@7?distro=rocky-8.7", "Rocky Linux:8", "curl"),
            (
                "pkg:rpm/sles/libopenssl1_1@1.1.1l-150400.7.22.1?distro=sles-15.4\
                 &upstream=openssl-1_1-1.1.1l-150400.7.22.1.src.rpm",
                "SUSE:Linux Enterprise Server 15 SP4",
                "openssl-1_1",
            ),
            // Advisories of Red Hat and AlmaLinux name binary packages.
            (
                "pkg:rpm/redhat/openssl-libs@3.0.7-27.el9?distro=rhel-9.4\
                 &upstream=openssl-3.0.7-27.el9.src.rpm",
                "Red Hat:enterprise_linux:9::baseos",
                "openssl-libs",
            ),
            (
                "pkg:composer/drupal/webform@6.1.0",
                "Packagist:https://packages.drupal.org/8",
                "drupal/webform",
            ),
            ("pkg:maven/a/b@1", "Maven:https://maven.google.com", "a:b"),
            (
                "pkg:vscode-extension/ms-python/python@1",
                "VSCode:https://open-vsx.org",
                "ms-python.python",
            ),
            ("pkg:swift/github.com/a/b@1", "SwiftURL", "https://github.com/a/b.git"),
            ("pkg:swift/github.com/a/b.git/B@1", "SwiftURL", "github.com/a/b"),
            ("pkg:swift/github.com/a/b/b@1", "SwiftURL", "github.com/a/b"),
            ("pkg:swift/gitlab.com/a/b/b@1", "SwiftURL", "gitlab.com/a/b/b"),
            ("pkg:golang/std@go1.20.4?type=module", "Go", "stdlib"),
            ("pkg:golang/example.com/std@v1", "Go", "example.com/std"),
            ("pkg:cargo/openssl-src@111", "crates.io", "openssl-src"),
            ("pkg:generic/radare2", "generic", "radare2"),
        ] {
            let osv = Package::of_osv(ecosystem, name);
            let ours = package(purl);
            assert_eq!(ours.key(), osv.key(), "{purl}");
            if let Some(theirs) = &osv.release {
                let ours = ours.release.as_ref().expect("a release");
                assert_eq!(theirs.covers(ours), Some(true), "{purl}");
            }
        }
    }

    #[test]
    fn epochs_and_source_versions_count() {
        let version = |purl: &str| package(purl).version;
        assert_eq!(version("pkg:rpm/redhat/a@1-2?epoch=3").as_deref(), Some("3:1-2"));
        assert_eq!(version("pkg:deb/debian/a@2:1?epoch=2").as_deref(), Some("2:1"));
        let upstream = "pkg:deb/debian/a@1.0-1%2Bb2?upstream=b%401.0-1";
        assert_eq!(version(upstream).as_deref(), Some("1.0-1"));
        let upstream = "pkg:rpm/rocky/b-c@2-1?epoch=1&upstream=b-a-1.0-3.el8.src.rpm";
        assert_eq!(version(upstream).as_deref(), Some("1:1.0-3.el8"));
        assert_eq!(version("pkg:rpm/rocky/b@2-1?upstream=b.src.rpm").as_deref(), Some("2-1"));
        let upstream = "pkg:deb/debian/a@2-5?epoch=1&upstream=b";
        assert_eq!(version(upstream).as_deref(), Some("1:2-5"));
        // The binary package has an epoch that its source package does not have.
        let upstream = "pkg:deb/debian/bsdutils@2.38.1-5?epoch=1&upstream=util-linux%402.38.1-5";
        assert_eq!(version(upstream).as_deref(), Some("2.38.1-5"));
        let purl = Purl::parse("pkg:deb/debian/bsdutils@2.38.1-5?epoch=1").expect("a purl");
        let package = Package::of_component(&purl, "bsdutils", Some("util-linux@2.38.1-5"));
        assert_eq!(package.version.as_deref(), Some("2.38.1-5"));
        assert_eq!(version("pkg:npm/a"), None);
    }

    #[test]
    fn a_signed_kernel_is_its_source_package_with_the_version_of_the_binary_package() {
        for (purl, ecosystem, name, version) in [
            (
                "pkg:deb/debian/linux-image-6.1.0-27-amd64@6.1.115-1?upstream=linux-signed-amd64\
                 %406.1.115%2B1",
                "Debian",
                "linux",
                "6.1.115-1",
            ),
            (
                "pkg:deb/debian/linux-image-6.1.0-0.deb11.21-amd64@6.1.90-1~deb11u1?upstream=\
                 linux-signed-6.1-amd64%406.1.90%2B1~deb11u1",
                "Debian",
                "linux-6.1",
                "6.1.90-1~deb11u1",
            ),
            ("pkg:deb/ubuntu/a@6.8.0-49?upstream=linux-signed", "Ubuntu", "linux", "6.8.0-49"),
            (
                "pkg:deb/ubuntu/a@6.17.0-1?upstream=linux-signed-gcp-6.17%406.17.0-1%2B1",
                "Ubuntu",
                "linux-gcp-6.17",
                "6.17.0-1",
            ),
            ("pkg:deb/debian/a@1?upstream=linux%402", "Debian", "linux", "2"),
        ] {
            let expected = Package::of_osv(ecosystem, name).at(version);
            assert_eq!(package(purl), expected, "{purl}");
        }
    }

    #[test]
    fn versions_of_go_toolchains_are_read_without_their_prefix() {
        let version = |version: &str| {
            let package = Package::of_osv("Go", "stdlib").at(version);
            package.comparable_version().map(Cow::into_owned)
        };
        for (written, expected) in [
            ("go1.19.1", "1.19.1"),
            ("go1.21rc2", "1.21-rc.2"),
            ("go1.18beta1", "1.18-beta.1"),
            ("go1.22.1 X:nocoverageredesign", "1.22.1"),
            ("1.19.1", "1.19.1"),
            ("v1.2.3", "v1.2.3"),
            ("gopher", "gopher"),
        ] {
            assert_eq!(version(written).as_deref(), Some(expected));
        }
        let npm = Package::of_osv("npm", "a").at("go1.2");
        assert_eq!(npm.comparable_version().as_deref(), Some("go1.2"));
    }

    #[test]
    fn placeholders_are_no_versions() {
        for written in ["UNKNOWN", "unknown", "NOASSERTION", " ", "(devel)", "unspecified"] {
            let package = Package::of_osv("Maven", "a:b").at(written);
            assert_eq!(package.comparable_version(), None, "{written}");
        }
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
