//! The entries of advisories for the packages of components, and what they say
//! of the components' versions.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope, Value};

use super::{AdvisoryMatch, Assessed, Assessment, MatchBasis, Vulnerability};
use crate::advisories::document::AffectedPackage;
use crate::ecosystem::{Package, Spelling};
use crate::inventory::component::StoredComponent;
use crate::osv::evaluate::{self, Ground};
use crate::text::advisory_key;

/// The tool that compares versions: this area.
const EVALUATOR: &str = "osv";

/// Entries of advisories that are read for one look at components. A package
/// may have more; then those of the latest ids are, and the component says so.
pub(crate) const MOST_ENTRIES: usize = 4_000;

/// The limitation of a component that advisories for another spelling affect.
const CASE_UNKNOWN: &str = "The SBOM writes the paths of Go modules in lower case, so advisories \
                            for paths that differ in upper and lower case are applied too.";

/// Entries that are in memory at a time: some list hundreds of versions.
const PAGE: u32 = 500;

/// How many keys one question holds.
const KEYS: usize = 500;

/// How many entries there are for packages that have any, by package key.
type Counts = BTreeMap<String, usize>;

/// Assesses as many of the components as one look has room for, and at least
/// the first.
pub(super) fn assess(
    scope: &Scope,
    components: &[&StoredComponent],
) -> Result<Assessed, DocumentError> {
    let entries = count(scope, components)?;
    let components = &components[..together(components, &entries)];
    let mut assessments: Vec<Assessment> =
        components.iter().map(|component| Assessment::of(component, &entries)).collect();
    let packages: Vec<_> = components.iter().map(|component| component.package()).collect();
    let of_key = by_key(components, &entries);
    let keys: Vec<&str> = of_key.keys().copied().collect();
    let mut read = 0;
    for keys in keys.chunks(KEYS) {
        // Of one package those of the latest ids first.
        let query = scope.documents::<AffectedPackage>().query();
        let query = query.one_of("package_key", keys.iter().copied()).descending("package_key");
        for entry in query.limit(PAGE).all().take(MOST_ENTRIES) {
            let entry = entry?.value;
            read += 1;
            for &at in of_key.get(entry.package_key.as_str()).into_iter().flatten() {
                if let Some(package) = &packages[at] {
                    assessments[at].look_at(components[at], package, &entry);
                }
            }
        }
    }
    for (assessment, package) in assessments.iter_mut().zip(&packages) {
        if let Some(package) = package {
            assessment.close_doubts(package);
        }
    }
    Ok(Assessed { assessments, read })
}

/// How many of the components have no more entries, together, than are read.
fn together(components: &[&StoredComponent], entries: &Counts) -> usize {
    let (mut room, mut seen) = (MOST_ENTRIES, BTreeSet::new());
    let fits = components.iter().take_while(|component| {
        let key = component.package_key.as_ref().filter(|key| seen.insert(*key));
        let of_package = key.and_then(|key| entries.get(key)).copied().unwrap_or_default();
        let left = room.checked_sub(of_package + component.reported.len());
        room = left.unwrap_or(room);
        left.is_some()
    });
    fits.count().max(1).min(components.len())
}

fn count(scope: &Scope, components: &[&StoredComponent]) -> Result<Counts, DocumentError> {
    let keys = components.iter().filter_map(|component| component.package_key.as_deref());
    let keys: Vec<&str> = keys.collect::<BTreeSet<_>>().into_iter().collect();
    let mut counts = Counts::new();
    for keys in keys.chunks(KEYS) {
        let entries = scope.documents::<AffectedPackage>().query();
        let entries = entries.one_of("package_key", keys.iter().copied());
        for (key, count) in entries.count_by(&["package_key"])? {
            if let [Value::Text(key)] = key.as_slice() {
                counts.insert(key.clone(), usize::try_from(count).unwrap_or(usize::MAX));
            }
        }
    }
    Ok(counts)
}

/// Where the components of each package are that has entries.
fn by_key<'a>(
    components: &[&'a StoredComponent],
    entries: &Counts,
) -> BTreeMap<&'a str, Vec<usize>> {
    let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, component) in components.iter().enumerate() {
        if let Some(key) = component.package_key.as_deref()
            && entries.contains_key(key)
        {
            by_key.entry(key).or_default().push(at);
        }
    }
    by_key
}

impl Assessment {
    /// Of a component that nothing is known of yet.
    fn of(component: &StoredComponent, entries: &Counts) -> Self {
        let mut new = Self::default();
        let entries = component.package_key.as_ref().and_then(|key| entries.get(key));
        if let Some(entries) = entries.filter(|entries| **entries > MOST_ENTRIES) {
            new.limitations.insert(format!(
                "Advisories have {entries} entries for this package; the {MOST_ENTRIES} of the \
                 latest ids were looked at."
            ));
        }
        new
    }

    /// Notes whether an entry affects a component, the version of this package.
    fn look_at(&mut self, component: &StoredComponent, package: &Package, entry: &AffectedPackage) {
        if entry.withdrawn || !entry.is_for_release_of(package, &mut self.limitations) {
            return;
        }
        let mut verdict = evaluate::evaluate(&entry.affected, package);
        match entry.spelling(component, package) {
            Spelling::Same => {}
            Spelling::Unknown if verdict.ground.is_some() => {
                self.limitations.insert(CASE_UNKNOWN.to_owned());
            }
            Spelling::Unknown => {}
            Spelling::Different => verdict = verdict.of_other_case(),
        }
        self.doubts.note(&entry.advisory_id, &verdict);
        if let Some(ground) = verdict.ground {
            self.vulnerabilities.push(entry.affects(component, ground));
        }
    }

    /// Adds the limitations for entries that could not be compared.
    fn close_doubts(&mut self, package: &Package) {
        self.limitations.extend(std::mem::take(&mut self.doubts).limitations(package));
    }
}

impl AffectedPackage {
    fn spelling(&self, component: &StoredComponent, package: &Package) -> Spelling {
        let theirs = self.affected.package.as_ref().map_or("", |named| named.name.as_str());
        Spelling::of(&package.ecosystem, &component.name, theirs, component.case_known)
    }

    /// Whether the entry is for the package's release of its distribution.
    fn is_for_release_of(&self, package: &Package, limitations: &mut BTreeSet<String>) -> bool {
        let Some(named) = &self.affected.package else { return false };
        let release = Package::of_osv(&named.ecosystem, &named.name).release;
        let Some(ours) = release else { return true };
        let Some(theirs) = &package.release else {
            limitations.insert(format!(
                "The purl names no release of {}, so advisories for single releases are not \
                 applied.",
                package.ecosystem
            ));
            return false;
        };
        ours.covers(theirs).unwrap_or_else(|| {
            limitations.insert(format!(
                "The number of {:?}, the release of {} in the purl, is not known, so advisories \
                 for single releases are not applied.",
                theirs.text(),
                package.ecosystem
            ));
            false
        })
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
}
