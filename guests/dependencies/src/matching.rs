//! Which advisories a component is affected by: those whose entries say so,
//! and what scanners reported, each vulnerability once under all its names.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::advisories::document::{AdvisoryName, AffectedPackage};
use crate::ecosystem::{self, Package};
use crate::inventory::component::StoredComponent;
use crate::osv::Rating;
use crate::osv::evaluate::{self, Ground};
use crate::text::advisory_key;

/// The tool that compares versions: this area.
const EVALUATOR: &str = "osv";

/// Why a component is taken to be affected, the best reason last.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatchBasis {
    /// A scanner says so, in the SBOM or as evidence.
    ScannerReported,
    /// The version lies in a range of the advisory.
    VersionRange,
    /// The advisory lists the version.
    PurlExact,
}

/// An advisory that affects a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AdvisoryMatch {
    pub(crate) advisory_id: String,
    /// SHA-256 of the artifact that says so: the advisory, or the SBOM.
    pub(crate) artifact_sha256: String,
    pub(crate) match_basis: MatchBasis,
    /// The import that brought the component.
    pub(crate) scanner_run_id: Uuid,
    /// `osv` where versions were compared, else the scanner.
    pub(crate) source_tool: String,
}

/// A vulnerability of a component, under all its names.
#[derive(Clone, Debug)]
pub(crate) struct Vulnerability {
    pub(crate) entry: AdvisoryMatch,
    pub(crate) severity: Option<Rating>,
    pub(crate) names: BTreeSet<String>,
}

/// What is known of a component's vulnerabilities.
#[derive(Debug, Default)]
pub(crate) struct Assessment {
    /// By advisory id.
    pub(crate) vulnerabilities: Vec<Vulnerability>,
    /// What could not be told.
    pub(crate) limitations: BTreeSet<String>,
}

/// The advisories that components may be affected by, read together.
#[derive(Debug, Default)]
pub(crate) struct Known {
    packages: BTreeMap<String, Vec<AffectedPackage>>,
    names: BTreeMap<String, AdvisoryName>,
}

/// How many keys one question holds.
const KEYS: usize = 500;

impl Known {
    /// What is known for these components.
    pub(crate) fn load<'a>(
        scope: &Scope,
        components: impl Iterator<Item = &'a StoredComponent> + Clone,
    ) -> Result<Self, DocumentError> {
        let keys = components.clone().filter_map(|component| component.package_key.as_deref());
        let names = components.flat_map(|component| &component.reported);
        let names = names.map(|reported| advisory_key(&reported.advisory_id));
        Ok(Self {
            packages: packages(scope, &keys.collect())?,
            names: advisory_names(scope, names.collect())?,
        })
    }

    /// What a component is affected by.
    pub(crate) fn assess(&self, component: &StoredComponent) -> Assessment {
        let mut assessment = Assessment::default();
        let mut found = self.by_version(component, &mut assessment.limitations);
        found.extend(self.by_report(component, &mut assessment.limitations));
        assessment.vulnerabilities = merged(found);
        assessment
    }

    fn by_version(
        &self,
        component: &StoredComponent,
        limitations: &mut BTreeSet<String>,
    ) -> Vec<Vulnerability> {
        let Some(package) = component.package() else { return Vec::new() };
        let entries = component.package_key.as_ref().and_then(|key| self.packages.get(key));
        let entries = entries.into_iter().flatten().filter(|entry| !entry.withdrawn);
        let mut found = Vec::new();
        for entry in entries {
            if !entry.is_for_release_of(&package, limitations) {
                continue;
            }
            let verdict = evaluate::evaluate(&entry.affected, &package);
            if let Some(ground) = verdict.ground {
                found.push(entry.affects(component, ground));
            } else if verdict.unevaluated {
                limitations.insert(entry.unevaluated(&package));
            }
        }
        found
    }

    fn by_report(
        &self,
        component: &StoredComponent,
        limitations: &mut BTreeSet<String>,
    ) -> Vec<Vulnerability> {
        let mut found = Vec::new();
        for reported in &component.reported {
            let id = &reported.advisory_id;
            if let Some(why) = &reported.dismissed {
                limitations.insert(format!("The SBOM says of {id}: {why}."));
                continue;
            }
            let known = self.names.get(&advisory_key(id)).map(|name| name.advisories.as_slice());
            let known = known.unwrap_or_default();
            if !known.is_empty() && known.iter().all(|named| named.withdrawn) {
                continue;
            }
            let known = known.iter().filter(|named| !named.withdrawn);
            let others =
                known.flat_map(|named| std::iter::once(&named.advisory_id).chain(&named.aliases));
            let names = std::iter::once(id).chain(&reported.aliases).chain(others);
            found.push(Vulnerability {
                entry: AdvisoryMatch {
                    advisory_id: id.clone(),
                    artifact_sha256: reported.artifact_sha256.clone(),
                    match_basis: MatchBasis::ScannerReported,
                    scanner_run_id: component.scanner_run_id,
                    source_tool: reported.source_tool.clone(),
                },
                severity: None,
                names: names.map(|name| advisory_key(name)).collect(),
            });
        }
        found
    }
}

impl AffectedPackage {
    /// Whether the entry is for the package's release of its distribution.
    fn is_for_release_of(&self, package: &Package, limitations: &mut BTreeSet<String>) -> bool {
        let Some(named) = &self.affected.package else { return false };
        let release = Package::of_osv(&named.ecosystem, &named.name).release;
        match (&release, &package.release) {
            (None, _) => true,
            (Some(ours), Some(theirs)) => ours.covers(theirs),
            (Some(_), None) => {
                limitations.insert(format!(
                    "The purl names no release of {}, so advisories for single releases are not \
                     applied.",
                    package.ecosystem
                ));
                false
            }
        }
    }

    fn affects(&self, component: &StoredComponent, ground: Ground) -> Vulnerability {
        let names = std::iter::once(&self.advisory_id).chain(&self.aliases);
        Vulnerability {
            entry: AdvisoryMatch {
                advisory_id: self.advisory_id.clone(),
                artifact_sha256: self.artifact_sha256.clone(),
                match_basis: match ground {
                    Ground::Listed => MatchBasis::PurlExact,
                    Ground::Range => MatchBasis::VersionRange,
                },
                scanner_run_id: component.scanner_run_id,
                source_tool: EVALUATOR.to_owned(),
            },
            severity: self.severity,
            names: names.map(|name| advisory_key(name)).collect(),
        }
    }

    fn unevaluated(&self, package: &Package) -> String {
        let id = &self.advisory_id;
        if ecosystem::scheme(&package.ecosystem).is_none() {
            let ecosystem = &package.ecosystem;
            return format!("{id} has ranges, but the order of {ecosystem} versions is not known.");
        }
        format!("{id} has ranges of commits, or of versions that cannot be compared with this one.")
    }
}

/// Brings together what has a name in common; the best reason speaks for it.
fn merged(found: Vec<Vulnerability>) -> Vec<Vulnerability> {
    let mut groups: Vec<Vulnerability> = Vec::new();
    for mut vulnerability in found {
        let (same, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| !group.names.is_disjoint(&vulnerability.names));
        for group in same {
            vulnerability = vulnerability.merge(group);
        }
        groups = others;
        groups.push(vulnerability);
    }
    groups.sort_by(|a, b| a.entry.advisory_id.cmp(&b.entry.advisory_id));
    groups
}

impl Vulnerability {
    fn merge(self, other: Self) -> Self {
        let rank = |v: &Self| (v.entry.match_basis, std::cmp::Reverse(preference(&v.entry)));
        let (mut best, rest) =
            if rank(&self) >= rank(&other) { (self, other) } else { (other, self) };
        best.severity = best.severity.max(rest.severity);
        best.names.extend(rest.names);
        best
    }
}

/// A database's own id says more than the common one.
fn preference(entry: &AdvisoryMatch) -> (bool, bool, String) {
    let id = &entry.advisory_id;
    (id.starts_with("CVE-"), !id.starts_with("GHSA-"), id.clone())
}

fn packages(
    scope: &Scope,
    keys: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Vec<AffectedPackage>>, DocumentError> {
    let keys: Vec<&str> = keys.iter().copied().collect();
    let mut packages: BTreeMap<String, Vec<AffectedPackage>> = BTreeMap::new();
    for keys in keys.chunks(KEYS) {
        let query = scope.documents::<AffectedPackage>().query();
        let query = query.one_of("package_key", keys.iter().copied()).ascending("package_key");
        for package in query.limit(1000).all() {
            let package = package?.value;
            packages.entry(package.package_key.clone()).or_default().push(package);
        }
    }
    Ok(packages)
}

fn advisory_names(
    scope: &Scope,
    keys: BTreeSet<String>,
) -> Result<BTreeMap<String, AdvisoryName>, DocumentError> {
    let found = scope.documents::<AdvisoryName>().get_many(keys)?;
    Ok(found.into_iter().map(|name| (name.id, name.value)).collect())
}
