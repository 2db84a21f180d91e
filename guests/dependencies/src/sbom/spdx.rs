//! Parser of SPDX 2.2 and 2.3 documents in JSON.

use std::borrow::Cow;
use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::text::name;

use super::bill::{DependencyEdges, PackageMention, ParsedSbom, Sbom};
use super::identity::bounded;
use super::references::ReferenceMap;
use super::subject::SbomSubject;
use super::{Format, Scope};
use crate::purl::Purl;
use crate::reading::list::{self, MemoryBoundedList};
use crate::reading::{ImportFailure, UnparsedDocument};

/// `SPDXID` of an SPDX document itself.
const DOCUMENT: &str = "SPDXRef-DOCUMENT";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    spdx_version: SpdxVersion,
    #[serde(borrow, rename = "SPDXID")]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    creation_info: CreationInfo<'a>,
    #[serde(borrow, default)]
    packages: MemoryBoundedList<Package<'a>>,
    #[serde(borrow, default)]
    relationships: Relationships<'a>,
    #[serde(borrow, default)]
    document_describes: MemoryBoundedList<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
enum SpdxVersion {
    #[serde(rename(serialize = "2.2", deserialize = "SPDX-2.2"))]
    V2_2,
    #[serde(rename(serialize = "2.3", deserialize = "SPDX-2.3"))]
    V2_3,
}

#[derive(Deserialize)]
struct CreationInfo<'a> {
    created: Timestamp,
    #[serde(borrow)]
    creators: Vec<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package<'a> {
    #[serde(borrow, rename = "SPDXID")]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    version_info: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    external_refs: MemoryBoundedList<ExternalRef<'a>>,
    #[serde(borrow, default)]
    checksums: MemoryBoundedList<Checksum<'a>>,
    #[serde(borrow, default)]
    primary_package_purpose: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    source_info: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef<'a> {
    #[serde(borrow)]
    reference_type: Cow<'a, str>,
    #[serde(borrow)]
    reference_locator: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum<'a> {
    #[serde(borrow)]
    algorithm: Cow<'a, str>,
    #[serde(borrow)]
    checksum_value: Cow<'a, str>,
}

/// `relationships` of an SPDX document that are read: dependencies between packages, and what the
/// document describes. Others are skipped.
#[derive(Default)]
struct Relationships<'a>(Vec<Relationship<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Relationships<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list::fold(deserializer, Self::default(), |kept, _, relationship: Relationship<'a>| {
            let kind = relationship.relationship_type.as_ref();
            if matches!(kind, "DESCRIBES" | "DESCRIBED_BY") || dependency(kind).is_some() {
                list::push(&mut kept.0, relationship)?;
            }
            Ok(())
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Relationship<'a> {
    #[serde(borrow)]
    spdx_element_id: Cow<'a, str>,
    #[serde(borrow)]
    relationship_type: Cow<'a, str>,
    #[serde(borrow)]
    related_spdx_element: Cow<'a, str>,
}

pub(super) fn read(source: UnparsedDocument<'_>) -> Result<Sbom<'_>, ImportFailure> {
    let document: Document<'_> = source.json()?;
    document.check()?;
    let subjects: BTreeSet<String> = document.subjects().into_iter().map(Into::into).collect();
    let (subject, tool) = (document.subject(&subjects), document.tool());
    let links = DependencyLinks::of(document.relationships.0);
    let mut packages = document.packages.0;
    let is_subject = |package: &Package<'_>| subjects.contains(package.id.as_ref());
    // Several described packages are the content of the document, not one product.
    if packages.iter().filter(|package| is_subject(package)).count() == 1 {
        packages.retain(|package| !is_subject(package));
    }
    Ok(Sbom::new(ParsedSbom {
        format: Format::Spdx,
        spec_version: name(&document.spdx_version),
        serial: None,
        subject,
        roots: subjects.into_iter().map(Cow::Owned).collect(),
        tool,
        created_at: Some(document.creation_info.created),
        mentions: packages.into_iter().map(|package| mention(package, &links)).collect(),
        edges: links.edges,
        warnings: Vec::new(),
    }))
}

impl Document<'_> {
    fn check(&self) -> Result<(), ImportFailure> {
        check_id("/SPDXID", &self.id)?;
        for (at, package) in self.packages.0.iter().enumerate() {
            check_id(&format!("/packages/{at}/SPDXID"), &package.id)?;
            if package.name.trim().is_empty() {
                return Err(ImportFailure::at(format!("/packages/{at}/name"), "Is empty."));
            }
        }
        Ok(())
    }

    /// Returns the ids of the packages that the SPDX document describes as its subjects; none if
    /// these are all its packages.
    fn subjects(&self) -> BTreeSet<&str> {
        let described = self.relationships.0.iter().filter_map(|relationship| {
            let (from, to) = relationship.ends();
            match relationship.relationship_type.as_ref() {
                "DESCRIBES" if from == DOCUMENT => Some(to),
                "DESCRIBED_BY" if to == DOCUMENT => Some(from),
                _ => None,
            }
        });
        let subjects: BTreeSet<&str> =
            self.document_describes.0.iter().map(AsRef::as_ref).chain(described).collect();
        let is_subject = |package: &Package<'_>| subjects.contains(package.id.as_ref());
        if self.packages.0.iter().all(is_subject) { BTreeSet::new() } else { subjects }
    }

    fn subject(&self, subjects: &BTreeSet<String>) -> Option<SbomSubject> {
        let mut described =
            self.packages.0.iter().filter(|package| subjects.contains(package.id.as_ref()));
        match (described.next(), described.next()) {
            (Some(only), None) => Some(only.subject()),
            _ if self.name.trim().is_empty() => None,
            _ => Some(SbomSubject {
                key: bounded(&self.name),
                name: bounded(&self.name),
                references: vec![DOCUMENT.to_owned()],
                is_weak: SbomSubject::is_place(&self.name),
                ..SbomSubject::default()
            }),
        }
    }

    fn tool(&self) -> Option<String> {
        let mut creators = self.creation_info.creators.iter();
        creators.find_map(|creator| creator.strip_prefix("Tool:")).map(|tool| bounded(tool.trim()))
    }
}

fn check_id(pointer: &str, id: &str) -> Result<(), ImportFailure> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    match id.strip_prefix("SPDXRef-") {
        Some(rest) if !rest.is_empty() && rest.chars().all(letter) => Ok(()),
        _ => {
            Err(ImportFailure::at(pointer, "An id is `SPDXRef-` and letters, digits, `.` and `-`."))
        }
    }
}

impl ExternalRef<'_> {
    /// Whether the reference is a purl. Its type is `purl`, or a URI that ends with it.
    fn is_purl(&self) -> bool {
        self.reference_type.rsplit('/').next() == Some("purl")
    }
}

impl Package<'_> {
    fn purl(&self) -> Option<&str> {
        let mut purls = self.external_refs.0.iter().filter(|reference| reference.is_purl());
        purls.next().map(|reference| reference.reference_locator.as_ref())
    }

    /// Returns the version of the package; `None` also for the values with which SPDX says that
    /// there is none, or that it is not known.
    fn version(&self) -> Option<&str> {
        self.version_info.as_deref().filter(|version| !matches!(*version, "NONE" | "NOASSERTION"))
    }

    /// Whether the SPDX package is a single file (`primaryPackagePurpose`), whose name does not
    /// identify it.
    fn is_file(&self) -> bool {
        self.primary_package_purpose.as_deref() == Some("FILE")
    }

    fn is_package(&self) -> bool {
        !matches!(
            self.primary_package_purpose.as_deref(),
            Some("CONTAINER" | "DEVICE" | "FILE" | "OPERATING-SYSTEM" | "OPERATING_SYSTEM")
        )
    }

    /// Returns the source package that Trivy writes into `sourceInfo` (`built package from: openssl
    /// 3.0.11-1`), in the form `openssl@3.0.11-1`.
    fn source_package(&self) -> Option<String> {
        let mut words =
            self.source_info.as_deref()?.strip_prefix("built package from: ")?.split_whitespace();
        let name = words.next()?;
        Some(words.next().map_or_else(|| name.to_owned(), |version| format!("{name}@{version}")))
    }

    fn subject(&self) -> SbomSubject {
        let purl = self.purl().and_then(|purl| Purl::parse(purl).ok());
        let sha256 = self.checksums.0.iter().find(|checksum| checksum.algorithm == "SHA256");
        let digest = sha256.map(|sum| format!("sha256:{}", sum.checksum_value.to_lowercase()));
        let versions = [purl.as_ref().and_then(|p| p.version.as_deref()), self.version()];
        let mut versions = versions.into_iter().flatten();
        let hash = versions.clone().find(|version| version.starts_with("sha256:"));
        let references = std::iter::once(self.id.as_ref()).chain(self.purl());
        let key: &str = match self.primary_package_purpose.as_deref() {
            Some("CONTAINER") => SbomSubject::image_name(&self.name),
            _ => &self.name,
        };
        SbomSubject {
            key: purl.as_ref().map_or_else(|| bounded(key), |p| p.package().to_string()),
            name: bounded(&self.name),
            is_weak: purl.is_none() && (self.is_file() || SbomSubject::is_place(&self.name)),
            version: versions.next().filter(|version| !version.is_empty()).map(bounded),
            references: references.map(bounded).collect(),
            digest: hash.map(str::to_lowercase).or(digest),
        }
    }
}

impl Relationship<'_> {
    fn ends(&self) -> (&str, &str) {
        (&self.spdx_element_id, &self.related_spdx_element)
    }
}

/// Dependencies between the packages of an SPDX document, from its `relationships`.
#[derive(Default)]
struct DependencyLinks<'a> {
    edges: DependencyEdges<'a>,
    /// For each package, the strongest scope with which another package depends on it.
    scopes: ReferenceMap<'a, Scope>,
}

impl<'a> DependencyLinks<'a> {
    fn of(relationships: Vec<Relationship<'a>>) -> Self {
        let mut links = Self::default();
        for relationship in relationships {
            let Some((inverse, scope)) = dependency(&relationship.relationship_type) else {
                continue;
            };
            let (from, to) = (relationship.spdx_element_id, relationship.related_spdx_element);
            match (to.as_ref(), inverse) {
                // The package is known to have no dependencies.
                ("NONE", false) => {
                    links.edges.or_insert(from, Vec::new());
                    continue;
                }
                ("NONE", true) | ("NOASSERTION", _) => continue,
                _ => {}
            }
            let (from, to) = if inverse { (to, from) } else { (from, to) };
            let known = links.scopes.or_insert(to.clone(), scope);
            *known = (*known).min(scope);
            links.edges.or_insert(from, Vec::new()).push(to);
        }
        links
    }
}

/// Returns whether a type of SPDX relationship points from the dependency to its user, and the
/// scope of the dependency; `None` if the relationship is not a dependency.
fn dependency(kind: &str) -> Option<(bool, Scope)> {
    Some(match kind {
        "DEPENDS_ON" => (false, Scope::Required),
        "DEPENDENCY_OF" | "RUNTIME_DEPENDENCY_OF" => (true, Scope::Required),
        "OPTIONAL_DEPENDENCY_OF" | "PROVIDED_DEPENDENCY_OF" => (true, Scope::Optional),
        "BUILD_DEPENDENCY_OF" | "DEV_DEPENDENCY_OF" | "TEST_DEPENDENCY_OF" => {
            (true, Scope::Excluded)
        }
        _ => return None,
    })
}

fn mention<'a>(package: Package<'a>, links: &DependencyLinks<'_>) -> PackageMention<'a> {
    let (source_package, is_package) = (package.source_package(), package.is_package());
    let has_version = package.version().is_some();
    let purls = package.external_refs.0.into_iter().filter(ExternalRef::is_purl);
    let mut purls = purls.map(|reference| reference.reference_locator);
    PackageMention {
        is_package,
        scope: links.scopes.get(&package.id).copied(),
        purl: purls.next(),
        further_purls: purls.collect(),
        reference: Some(package.id),
        group: None,
        name: package.name,
        version: package.version_info.filter(|_| has_version),
        source_package,
    }
}
