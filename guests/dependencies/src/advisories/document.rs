//! Stored advisories: the advisory, its affected packages and its names. Packages and names are
//! separate documents with their own indexes.

use area_sdk::prelude::*;

use crate::ecosystem::{self, Package};
use crate::osv::{Affected, Osv, Rating, Reference, Severity};
use crate::purl::Purl;
use crate::text::{advisory_key, bounded};

/// Maximum stored size of texts, in bytes.
const MAX_DETAILS: usize = 65_536;

/// An advisory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredAdvisory {
    pub(crate) advisory_id: String,
    pub(crate) schema_version: Option<String>,
    pub(crate) modified: Timestamp,
    pub(crate) published: Option<Timestamp>,
    pub(crate) withdrawn: Option<Timestamp>,
    pub(crate) aliases: Vec<String>,
    pub(crate) related: Vec<String>,
    pub(crate) upstream: Vec<String>,
    pub(crate) summary: String,
    pub(crate) details: String,
    /// Rating by CVSS, otherwise by the database's word.
    pub(crate) severity: Option<Rating>,
    pub(crate) cvss_score: Option<String>,
    pub(crate) severities: Vec<Severity>,
    pub(crate) affected: Vec<Affected>,
    pub(crate) references: Vec<Reference>,
    /// SHA-256 of the advisory's original text.
    pub(crate) artifact_sha256: String,
}

impl Document for StoredAdvisory {
    const COLLECTION: &'static str = "advisories";
}

/// A package that an advisory affects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AffectedPackage {
    pub(crate) package_key: String,
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) withdrawn: bool,
    pub(crate) severity: Option<Rating>,
    pub(crate) artifact_sha256: String,
    pub(crate) affected: Affected,
}

impl Document for AffectedPackage {
    const COLLECTION: &'static str = "affected_packages";
}

/// An id or alias in upper case (the document's id) with the advisories that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AdvisoryName {
    pub(crate) advisories: Vec<NamedAdvisory>,
}

/// Members of an advisory that contain its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NamedAdvisory {
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) withdrawn: bool,
}

impl Document for AdvisoryName {
    const COLLECTION: &'static str = "advisory_names";
}

/// Returns the key by which packages of an advisory match components.
fn package_key(affected: &Affected) -> Option<String> {
    let named = affected.package.as_ref()?;
    let package = Package::of_osv(&named.ecosystem, &named.name);
    let purl = named.purl.as_deref().and_then(|purl| Purl::parse(purl).ok());
    match purl {
        // Package URLs use another name for this ecosystem.
        Some(purl) if ecosystem::scheme(&package.ecosystem).is_none() => {
            Some(Package::of_purl(&purl).key())
        }
        _ => Some(package.key()),
    }
}

impl StoredAdvisory {
    pub(crate) fn new(osv: Osv, artifact_sha256: String) -> Self {
        Self {
            severity: osv.rating(),
            cvss_score: osv.cvss_score(),
            advisory_id: osv.id,
            schema_version: osv.schema_version,
            modified: osv.modified,
            published: osv.published,
            withdrawn: osv.withdrawn,
            aliases: osv.aliases,
            related: osv.related,
            upstream: osv.upstream,
            summary: bounded(&osv.summary, MAX_DETAILS),
            details: bounded(&osv.details, MAX_DETAILS),
            severities: osv.severity,
            affected: osv.affected,
            references: osv.references,
            artifact_sha256,
        }
    }

    /// Returns the keys of its names, without duplicates.
    pub(crate) fn name_keys(&self) -> Vec<String> {
        let names = std::iter::once(&self.advisory_id).chain(&self.aliases);
        let mut keys: Vec<String> = names.map(|name| advisory_key(name)).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Returns its approximate size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let versions = |affected: &Affected| 200 + 40 * affected.versions.len();
        let names = self.related.len() + self.upstream.len() + self.references.len();
        let affected: usize = self.affected.iter().map(versions).sum();
        1_000 + self.details.len() + 100 * names + affected
    }

    pub(crate) fn named(&self) -> NamedAdvisory {
        NamedAdvisory {
            advisory_id: self.advisory_id.clone(),
            aliases: self.aliases.clone(),
            withdrawn: self.withdrawn.is_some(),
        }
    }

    /// Returns its packages, by document id.
    pub(crate) fn packages(&self) -> Vec<(String, AffectedPackage)> {
        let entries = self.affected.iter().enumerate();
        let package = |(at, affected): (usize, &Affected)| {
            let package = AffectedPackage {
                package_key: package_key(affected)?,
                advisory_id: self.advisory_id.clone(),
                aliases: self.aliases.clone(),
                withdrawn: self.withdrawn.is_some(),
                severity: affected.rating().or(self.severity),
                artifact_sha256: self.artifact_sha256.clone(),
                affected: affected.clone(),
            };
            Some((format!("{}/{at}", self.advisory_id), package))
        };
        entries.filter_map(package).collect()
    }
}
