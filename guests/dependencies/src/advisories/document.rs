//! Stored advisories. The affected packages and the names of an advisory are separate documents
//! with their own indexes.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::artifacts::READER;
use crate::ecosystem::{self, Package};
use crate::osv::{Affected, Osv, Reference, Severity, SeverityBand};
use crate::purl::Purl;
use crate::text::{advisory_key, bounded};

/// Maximum size of an advisory's stored `summary`, and of its stored `details`, in bytes.
const MAX_DETAILS: usize = 65_536;

/// An advisory as stored: the content of its OSV record, and the severity computed from it.
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
    /// Severity band of the advisory: from its CVSS vector, otherwise from the severity word of its
    /// distribution or database; `None` if it has neither.
    pub(crate) severity: Option<SeverityBand>,
    pub(crate) cvss_score: Option<String>,
    pub(crate) severities: Vec<Severity>,
    pub(crate) affected: Vec<Affected>,
    pub(crate) references: Vec<Reference>,
    /// Lower-case hex SHA-256 of the original text of the advisory's OSV record.
    pub(crate) artifact_sha256: String,
    /// Value of [`READER`], the version of the parsing code, when the advisory was stored; 0 for
    /// versions before 4.
    #[serde(default)]
    pub(crate) reader: u32,
}

document!(StoredAdvisory, "advisories");

impl StoredAdvisory {
    /// Whether the workspace has no advisory, so that no component is compared with any.
    pub(crate) fn none(scope: &Scope) -> Result<bool, DocumentError> {
        Ok(scope.documents::<Self>().query().count_up_to(1)? == 0)
    }
}

/// A stored `affected` entry of an advisory: one package and its affected versions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AffectedPackage {
    pub(crate) package_key: String,
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) withdrawn: bool,
    /// Time from which the advisory is withdrawn; `None` if it is not withdrawn, or if a [`READER`]
    /// before 6 stored the entry.
    #[serde(default)]
    pub(crate) withdrawn_at: Option<Timestamp>,
    pub(crate) severity: Option<SeverityBand>,
    pub(crate) artifact_sha256: String,
    pub(crate) affected: Affected,
}

document!(AffectedPackage, "affected_packages");

/// The advisories that have one name as id or alias. The name, in upper case, is the document's id.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AdvisoryName")]
pub(crate) struct AdvisoriesWithName {
    pub(crate) advisories: Vec<AdvisoryIdentity>,
}

/// An advisory that has a certain name: its id, its aliases, and whether it is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NamedAdvisory")]
pub(crate) struct AdvisoryIdentity {
    pub(crate) advisory_id: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) withdrawn: bool,
    /// Time from which the advisory is withdrawn; `None` if it is not withdrawn, or if a [`READER`]
    /// before 6 stored this reference to it.
    #[serde(default)]
    pub(crate) withdrawn_at: Option<Timestamp>,
}

document!(AdvisoriesWithName, "advisory_names");

/// Whether an advisory counts as withdrawn at the time `at`. It does if `withdrawn` is set and the
/// withdrawal began (`from`) by then; a withdrawal without a time counts at any time.
fn is_withdrawn(withdrawn: bool, from: Option<Timestamp>, at: Timestamp) -> bool {
    withdrawn && from.is_none_or(|from| from <= at)
}

impl AffectedPackage {
    /// Returns the entry with `withdrawn` set to whether its advisory is withdrawn at this time.
    pub(crate) fn at(self, time: Timestamp) -> Self {
        Self { withdrawn: is_withdrawn(self.withdrawn, self.withdrawn_at, time), ..self }
    }
}

impl AdvisoriesWithName {
    /// Returns the entry with `withdrawn` of each advisory set to whether it is withdrawn at this
    /// time.
    pub(crate) fn at(mut self, time: Timestamp) -> Self {
        for named in &mut self.advisories {
            named.withdrawn = is_withdrawn(named.withdrawn, named.withdrawn_at, time);
        }
        self
    }
}

/// Returns the package key of an advisory's `affected` entry, which components of the package have
/// as well; `None` for an entry without a package.
fn package_key(affected: &Affected) -> Option<String> {
    let named = affected.package.as_ref()?;
    let package = Package::of_osv(&named.ecosystem, &named.name);
    let purl = named.purl.as_deref().and_then(|purl| Purl::parse(purl).ok());
    match purl {
        // For this ecosystem, the name in purls differs from the name in OSV.
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
            reader: READER,
        }
    }

    /// Returns the keys (upper-case forms) of the advisory's id and aliases, without duplicates.
    pub(crate) fn name_keys(&self) -> Vec<String> {
        let names = std::iter::once(&self.advisory_id).chain(&self.aliases);
        let mut keys: Vec<String> = names.map(|name| advisory_key(name)).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Returns the approximate size of the advisory in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let versions = |affected: &Affected| 200 + 40 * affected.versions.len();
        let names = self.related.len() + self.upstream.len() + self.references.len();
        let affected: usize = self.affected.iter().map(versions).sum();
        1_000 + self.details.len() + 100 * names + affected
    }

    pub(crate) fn named(&self) -> AdvisoryIdentity {
        AdvisoryIdentity {
            advisory_id: self.advisory_id.clone(),
            aliases: self.aliases.clone(),
            withdrawn: self.withdrawn.is_some(),
            withdrawn_at: self.withdrawn,
        }
    }

    /// Returns the `affected` entries of the advisory that name a package, each with its document
    /// id.
    pub(crate) fn packages(&self) -> Vec<(String, AffectedPackage)> {
        let entries = self.affected.iter().enumerate();
        let package = |(at, affected): (usize, &Affected)| {
            let package = AffectedPackage {
                package_key: package_key(affected)?,
                advisory_id: self.advisory_id.clone(),
                aliases: self.aliases.clone(),
                withdrawn: self.withdrawn.is_some(),
                withdrawn_at: self.withdrawn,
                severity: affected.rating().or(self.severity),
                artifact_sha256: self.artifact_sha256.clone(),
                affected: affected.clone(),
            };
            Some((format!("{}/{at}", self.advisory_id), package))
        };
        entries.filter_map(package).collect()
    }
}
