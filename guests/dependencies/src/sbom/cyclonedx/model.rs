//! The members of a CycloneDX document that are read, with the rules of the standard's JSON schema.

use std::borrow::Cow;

use area_sdk::prelude::*;
use serde::de::Error as _;

use super::super::Scope;
use super::licenses::LicenseListSummary;
use super::properties::{ComponentProperties, FirstNamelessProperty};
use super::ratings::BestRating;
use crate::reading::list::{self, MemoryBoundedList};
use crate::reading::{ImportFailure, nullable};
use crate::vex::VersionStatus;

/// A CycloneDX document, reduced to the members that are read or checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bom<'a> {
    #[serde(rename = "bomFormat")]
    _bom_format: BomFormat,
    pub(super) spec_version: SpecVersion,
    pub(super) serial_number: Option<SerialNumber>,
    /// `version` of the document under its serial number, unchecked; [`Bom::version`] returns it.
    #[serde(default)]
    version: serde_json::Value,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) metadata: Metadata<'a>,
    /// `None` if the member is missing or null, which in a VEX document means something else than
    /// an empty list; see [`Bom::is_vex`].
    #[serde(borrow, default)]
    pub(super) components: Option<MemoryBoundedList<ComponentItem<'a>>>,
    #[serde(default)]
    services: MemoryBoundedList<ServiceItem>,
    #[serde(borrow, default)]
    pub(super) dependencies: MemoryBoundedList<DependencyItem<'a>>,
    /// `None` if the member is missing or null.
    #[serde(borrow, default)]
    pub(super) vulnerabilities: Option<MemoryBoundedList<VulnerabilityItem<'a>>>,
}

#[derive(Deserialize)]
enum BomFormat {
    #[serde(rename = "CycloneDX")]
    CycloneDx,
}

/// Value of `specVersion` in a CycloneDX document: the versions that have a JSON format.
#[derive(Clone, Copy, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SpecVersion {
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
    #[serde(rename = "1.4")]
    V1_4,
    #[serde(rename = "1.5")]
    V1_5,
    #[serde(rename = "1.6")]
    V1_6,
    #[serde(rename = "1.7")]
    V1_7,
}

/// `serialNumber` of a CycloneDX document, without the prefix `urn:uuid:`.
pub(super) struct SerialNumber(pub(super) Uuid);

impl<'de> Deserialize<'de> for SerialNumber {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let uuid = text.strip_prefix("urn:uuid:").and_then(|uuid| uuid.parse::<Uuid>().ok());
        uuid.map(Self).ok_or_else(|| D::Error::custom("a serial number is `urn:uuid:` and a UUID"))
    }
}

/// A `bom-ref` of a CycloneDX document, or a reference to one; never empty.
#[derive(Clone)]
pub(super) struct BomRef<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for BomRef<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'a, str>::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(D::Error::custom("a reference is not empty"));
        }
        Ok(Self(text))
    }
}

impl std::ops::Deref for BomRef<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Metadata<'a> {
    pub(super) timestamp: Option<Timestamp>,
    #[serde(borrow, default)]
    pub(super) component: Option<Box<ComponentItem<'a>>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) tools: Tools<'a>,
    #[serde(default)]
    licenses: LicenseListSummary,
    #[serde(default)]
    properties: FirstNamelessProperty,
}

/// `metadata.tools`: a list, or since 1.5 an object with components and services.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Tools<'a> {
    Listed(#[serde(borrow)] Vec<Tool<'a>>),
    Grouped {
        #[serde(borrow, default)]
        components: Vec<Tool<'a>>,
        #[serde(borrow, default)]
        services: Vec<Tool<'a>>,
    },
}

impl Default for Tools<'_> {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

#[derive(Deserialize)]
pub(super) struct Tool<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) version: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct ComponentItem<'a> {
    #[serde(rename = "type")]
    pub(super) kind: ComponentType,
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) group: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) purl: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "bom-ref", default)]
    pub(super) bom_ref: Option<BomRef<'a>>,
    pub(super) scope: Option<Scope>,
    #[serde(default)]
    hashes: Hashes,
    #[serde(default)]
    licenses: LicenseListSummary,
    #[serde(default)]
    pub(super) properties: ComponentProperties,
    #[serde(rename = "pedigree", default)]
    _pedigree: Option<Box<Pedigree>>,
    #[serde(rename = "swid", default)]
    _swid: Option<Box<Swid>>,
    #[serde(borrow, default)]
    pub(super) components: MemoryBoundedList<ComponentItem<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ComponentType {
    Application,
    Container,
    CryptographicAsset,
    Data,
    Device,
    DeviceDriver,
    File,
    Firmware,
    Framework,
    Library,
    MachineLearningModel,
    OperatingSystem,
    Platform,
}

/// `hashes` of a component in a CycloneDX document. Only the SHA-256 digest is stored.
#[derive(Default)]
struct Hashes(Option<Box<str>>);

impl<'de> Deserialize<'de> for Hashes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list::fold(deserializer, Self::default(), |hashes, _, hash: Hash<'de>| {
            if hash.alg == HashAlgorithm::Sha256 {
                hashes.0 = Some(hash.content.0.to_lowercase().into_boxed_str());
            }
            Ok(())
        })
    }
}

#[derive(Deserialize)]
struct Hash<'a> {
    alg: HashAlgorithm,
    #[serde(borrow)]
    content: HexDigest<'a>,
}

#[derive(Deserialize, PartialEq, Eq)]
enum HashAlgorithm {
    #[serde(rename = "MD5")]
    Md5,
    #[serde(rename = "SHA-1")]
    Sha1,
    #[serde(rename = "SHA-256")]
    Sha256,
    #[serde(
        rename = "SHA-384",
        alias = "SHA-512",
        alias = "SHA3-256",
        alias = "SHA3-384",
        alias = "SHA3-512",
        alias = "BLAKE2b-256",
        alias = "BLAKE2b-384",
        alias = "BLAKE2b-512",
        alias = "BLAKE3",
        alias = "Streebog-256",
        alias = "Streebog-512"
    )]
    Other,
}

struct HexDigest<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for HexDigest<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'a, str>::deserialize(deserializer)?;
        let good = matches!(text.len(), 32 | 40 | 64 | 96 | 128)
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        good.then_some(Self(text))
            .ok_or_else(|| D::Error::custom("a digest is 32, 40, 64, 96 or 128 hexadecimal digits"))
    }
}

#[derive(Deserialize)]
struct Pedigree {
    #[serde(rename = "patches", default)]
    _patches: MemoryBoundedList<Patch>,
}

#[derive(Deserialize)]
struct Patch {
    #[serde(rename = "type")]
    _type: PatchType,
    #[serde(rename = "resolves", default)]
    _resolves: MemoryBoundedList<Issue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PatchType {
    Unofficial,
    Monkey,
    Backport,
    CherryPick,
}

#[derive(Deserialize)]
struct Issue {
    #[serde(rename = "type")]
    _type: IssueType,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum IssueType {
    Defect,
    Enhancement,
    Security,
}

#[derive(Deserialize)]
struct Swid {
    #[serde(rename = "tagId")]
    _tag_id: String,
    #[serde(rename = "name")]
    _name: String,
}

#[derive(Deserialize)]
struct ServiceItem {
    #[serde(rename = "data", default)]
    _data: MemoryBoundedList<ServiceData>,
    #[serde(default)]
    properties: FirstNamelessProperty,
    #[serde(default)]
    services: MemoryBoundedList<ServiceItem>,
}

#[derive(Deserialize)]
struct ServiceData {
    #[serde(rename = "flow")]
    _flow: Flow,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Flow {
    Inbound,
    Outbound,
    BiDirectional,
    Unknown,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DependencyItem<'a> {
    #[serde(borrow, rename = "ref")]
    pub(super) reference: BomRef<'a>,
    #[serde(borrow, default)]
    pub(super) depends_on: MemoryBoundedList<BomRef<'a>>,
}

#[derive(Deserialize)]
pub(super) struct VulnerabilityItem<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) references: MemoryBoundedList<VulnerabilityReference<'a>>,
    #[serde(default)]
    pub(super) ratings: BestRating,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) analysis: Analysis,
    /// Time at which the vulnerability's source rejected the vulnerability; `None` if it did not.
    pub(super) rejected: Option<Timestamp>,
    #[serde(borrow, default)]
    pub(super) affects: MemoryBoundedList<AffectedComponent<'a>>,
}

#[derive(Deserialize)]
pub(super) struct VulnerabilityReference<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Analysis {
    pub(super) state: Option<AnalysisState>,
    pub(super) justification: Option<String>,
    pub(super) detail: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnalysisState {
    Exploitable,
    FalsePositive,
    InTriage,
    NotAffected,
    Resolved,
    ResolvedWithPedigree,
}

#[derive(Deserialize)]
pub(super) struct AffectedComponent<'a> {
    #[serde(borrow, rename = "ref")]
    pub(super) reference: BomRef<'a>,
    #[serde(borrow, default)]
    pub(super) versions: MemoryBoundedList<AffectedVersion<'a>>,
}

/// An item of `affects[].versions` in a CycloneDX document: a version or a range, with its status.
#[derive(Deserialize)]
pub(super) struct AffectedVersion<'a> {
    /// The affected version; `None` if the item is a range.
    #[serde(borrow, default)]
    pub(super) version: Option<Cow<'a, str>>,
    /// The range of versions as a `vers` URI; `None` if the item is a version.
    #[serde(borrow, default)]
    pub(super) range: Option<Cow<'a, str>>,
    /// Status of the version or range; the standard's default is `affected`.
    pub(super) status: Option<VersionStatus>,
}

impl ComponentItem<'_> {
    /// Returns `sha256:` and the SHA-256 digest of the component; `None` if the document has none.
    pub(super) fn sha256(&self) -> Option<String> {
        self.hashes.0.as_ref().map(|hex| format!("sha256:{hex}"))
    }

    fn check(&self, version: SpecVersion) -> Result<(), ImportFailure> {
        self.properties.names.check(version)?;
        self.licenses.check(version)?;
        each("/components", &self.components.0, |inner| inner.check(version))
    }
}

impl ServiceItem {
    fn check(&self, version: SpecVersion) -> Result<(), ImportFailure> {
        self.properties.check(version)?;
        each("/services", &self.services.0, |inner| inner.check(version))
    }
}

impl Bom<'_> {
    /// Returns the version of the document under its serial number; 1 if it is missing or invalid.
    pub(super) fn version(&self) -> u64 {
        self.version.as_u64().unwrap_or(1)
    }

    /// Whether the document is a VEX document. The caller has checked that it has no components.
    /// A VEX document without vulnerabilities withdraws the statements of the one before; with an
    /// empty list `components`, it would be the SBOM of a product without components.
    pub(super) fn is_vex(&self) -> bool {
        let lacks_components = self.components.is_none();
        self.vulnerabilities.as_ref().is_some_and(|list| lacks_components || !list.0.is_empty())
    }

    /// Checks the rules of the CycloneDX schema that the types do not express.
    pub(super) fn check(&self) -> Result<(), ImportFailure> {
        let version = self.spec_version;
        let metadata = &self.metadata;
        let within = |mistake: ImportFailure| mistake.within("/metadata");
        metadata.licenses.check(version).map_err(within)?;
        metadata.properties.check(version).map_err(within)?;
        if let Some(root) = &metadata.component {
            root.check(version).map_err(|mistake| mistake.within("/metadata/component"))?;
        }
        if let Some(components) = &self.components {
            each("/components", &components.0, |component| component.check(version))?;
        }
        each("/services", &self.services.0, |service| service.check(version))
    }
}

/// Checks every item of a list, and adds the item's position to the pointer of an error.
fn each<T>(
    list: &str,
    items: &[T],
    mut check: impl FnMut(&T) -> Result<(), ImportFailure>,
) -> Result<(), ImportFailure> {
    items
        .iter()
        .enumerate()
        .try_for_each(|(at, item)| check(item).map_err(|m| m.within(&format!("{list}/{at}"))))
}
