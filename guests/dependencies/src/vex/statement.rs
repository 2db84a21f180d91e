//! A VEX statement about one advisory and one reference: to a component, a product, or an element
//! of another document.

use std::borrow::Cow;

use area_sdk::prelude::*;
use area_sdk::text::name;
use percent_encoding::percent_decode_str;

use super::versions::{self, StatedVersion, VersionApplicability};
use crate::osv::SeverityBand;
use crate::purl::Purl;
use crate::text::advisory_key;

/// The state of an advisory for a component in a VEX statement (`analysis.state` in CycloneDX).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "State")]
pub(crate) enum VexState {
    /// The component is affected. Used for a vulnerability without `analysis` in a document without
    /// components.
    Affected,
    Exploitable,
    InTriage,
    FalsePositive,
    NotAffected,
    Resolved,
    ResolvedWithPedigree,
}

impl VexState {
    /// Whether a VEX statement with this state ends a match: the advisory does not apply to the
    /// component.
    pub(crate) fn ends(self) -> bool {
        matches!(
            self,
            Self::FalsePositive | Self::NotAffected | Self::Resolved | Self::ResolvedWithPedigree
        )
    }

    /// Whether a VEX statement with this state adds a match: the advisory applies to the component,
    /// whatever version ranges it has.
    pub(crate) fn adds(self) -> bool {
        matches!(self, Self::Affected | Self::Exploitable)
    }

    /// Returns the state, followed by the justification if there is one:
    /// `not_affected: code_not_reachable`.
    pub(crate) fn verdict(self, justification: Option<&str>) -> String {
        match justification {
            Some(justification) => format!("{}: {justification}", name(&self)),
            None => name(&self),
        }
    }
}

/// A VEX statement: the state of one advisory for one reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Statement {
    pub(crate) advisory_id: String,
    /// Other ids of the advisory in the statement's document (`references[].id`).
    pub(crate) aliases: Vec<String>,
    pub(crate) state: VexState,
    pub(crate) justification: Option<String>,
    pub(crate) detail: Option<String>,
    /// Reference to a component or product, as written in the document (`affects[].ref`).
    pub(crate) reference: String,
    pub(crate) target: Target,
    /// Versions to which the statement is limited (`affects[].versions`); empty means all.
    pub(crate) versions: Vec<StatedVersion>,
    /// Severity of the advisory by its best rating in the statement's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) severity: Option<SeverityBand>,
    /// Names and versions of the components in the statement's own document that the reference
    /// names. The import of that document applies such a statement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resolved: Vec<String>,
}

/// What a VEX statement's reference refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// The product that the statement's document describes.
    Product,
    /// A component, by purl, or by its `bom-ref` in an SBOM of the same product.
    Component(String),
    /// A BOM-Link: another document by serial number and version, or the element of it after `#`.
    Link { serial: Uuid, version: u64, element: Option<String> },
}

impl Target {
    /// Parses the reference of a VEX statement. `roots` are the references of the document's
    /// subject.
    pub(crate) fn of(reference: &str, roots: &[Cow<'_, str>]) -> Self {
        if let Some(link) = reference.strip_prefix("urn:cdx:")
            && let Some(link) = Self::link(link)
        {
            return link;
        }
        if roots.iter().any(|root| root == reference) {
            return Self::Product;
        }
        Self::Component(reference.to_owned())
    }

    /// Parses a BOM-Link without its prefix `urn:cdx:`: `serial/version#element`.
    fn link(link: &str) -> Option<Self> {
        let (document, element) = match link.split_once('#') {
            Some((document, element)) => (document, Some(element)),
            None => (link, None),
        };
        let (serial, version) = document.split_once('/')?;
        let element = element.filter(|element| !element.is_empty());
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Some(Self::Link {
            serial: serial.parse().ok()?,
            version: version.parse().ok()?,
            element: element.map(decoded),
        })
    }
}

impl Statement {
    /// Returns the keys of the id and the aliases of the statement's advisory.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.advisory_id).chain(&self.aliases).map(|name| advisory_key(name))
    }

    /// Whether the statement applies to this version of its target.
    pub(crate) fn holds_for(&self, version: Option<&str>) -> VersionApplicability {
        match self.state.ends() {
            true => versions::is_cleared(&self.versions, version),
            false => versions::is_affected(&self.versions, version),
        }
    }

    /// Whether the VEX statement applies to a product with this version.
    pub(super) fn holds_for_product(&self, version: Option<&str>) -> VersionApplicability {
        match versions::is_listed(&self.versions, version) {
            true => self.holds_for(version),
            false => VersionApplicability::No,
        }
    }
}

/// Whether the purl in a VEX statement covers a component's purl: the package is the same, and so
/// are version, qualifiers and subpath, as far as the statement's purl has them.
pub(crate) fn covers(stated: &Purl, component: &Purl) -> bool {
    let same = (&stated.kind, &stated.namespace, &stated.name)
        == (&component.kind, &component.namespace, &component.name);
    let given =
        |stated: &Option<String>, found: &Option<String>| stated.is_none() || stated == found;
    same && given(&stated.version, &component.version)
        && given(&stated.subpath, &component.subpath)
        && stated.qualifiers.iter().all(|(key, value)| component.qualifier(key) == Some(value))
}

/// Whether two advisory names are of one vulnerability: they are equal, or one is a distribution's
/// record of the other (`DEBIAN-CVE-2024-1`).
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    let record = |of: &str, cve: &str| {
        cve.starts_with("CVE-") && of.strip_suffix(cve).is_some_and(|left| left.ends_with('-'))
    };
    one == other || record(one, other) || record(other, one)
}
