//! Which advisories a component is affected by: those whose entries say so,
//! and what scanners reported, each vulnerability once under all its names.

mod by_version;
mod doubts;

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::advisories::document::AdvisoryName;
use crate::inventory::component::{ReportedAdvisory, StoredComponent};
use crate::osv::Rating;
use crate::text::advisory_key;
use crate::vex::{self, Opinions, State};

pub(crate) use by_version::MOST_ENTRIES;
use doubts::Doubts;

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
    doubts: Doubts,
    /// Advisories whose match a VEX statement ended.
    pub(crate) ended: BTreeSet<String>,
}

/// Names of vulnerabilities under which a component is kept.
pub(crate) const MOST_NAMES: usize = 2_000;

/// The first of some components, each with what it is affected by.
#[derive(Debug, Default)]
pub(crate) struct Assessed {
    /// In the order of the components.
    pub(crate) assessments: Vec<Assessment>,
    /// Documents that were read for it.
    pub(crate) read: usize,
}

/// Assesses as many of these components as one look has room for, and at least
/// the first.
pub(crate) fn assess(
    scope: &Scope,
    components: &[&StoredComponent],
) -> Result<Assessed, DocumentError> {
    let (context, fits) = vex::Context::load(scope, components)?;
    let Assessed { mut assessments, read } = by_version::assess(scope, &components[..fits])?;
    let components = &components[..assessments.len()];
    let opinions: Vec<Opinions> =
        components.iter().map(|component| Opinions::on(component, &context)).collect();
    let names = advisory_names(scope, components, &opinions)?;
    for ((component, assessment), opinions) in
        components.iter().zip(&mut assessments).zip(&opinions)
    {
        let added = opinions.added(component);
        assessment.take_reported(component, component.reported.iter().chain(&added), &names);
        assessment.vulnerabilities = merged(std::mem::take(&mut assessment.vulnerabilities));
        assessment.apply(opinions);
        assessment.bound();
    }
    Ok(Assessed { assessments, read: read + names.len() + context.read })
}

impl Assessment {
    /// Adds what scanners reported, under all the names that advisories know.
    fn take_reported<'a>(
        &mut self,
        component: &StoredComponent,
        reported: impl Iterator<Item = &'a ReportedAdvisory>,
        names: &BTreeMap<String, AdvisoryName>,
    ) {
        let is_open = |reported: &&ReportedAdvisory| !reported.stated().is_some_and(State::ends);
        for reported in reported.filter(is_open) {
            let id = &reported.advisory_id;
            let known = names.get(&advisory_key(id)).map(|name| name.advisories.as_slice());
            let known = known.unwrap_or_default();
            if !known.is_empty() && known.iter().all(|named| named.withdrawn) {
                continue;
            }
            let known = known.iter().filter(|named| !named.withdrawn);
            let others =
                known.flat_map(|named| std::iter::once(&named.advisory_id).chain(&named.aliases));
            let names = std::iter::once(id).chain(&reported.aliases).chain(others);
            let names = names.map(|name| advisory_key(name)).collect();
            self.vulnerabilities.push(Vulnerability::reported(reported, component, names));
        }
    }

    /// Leaves the most severe ones where there are more than can be kept.
    fn bound(&mut self) {
        let all = self.vulnerabilities.len();
        let mut room = MOST_NAMES;
        self.vulnerabilities.sort_by_key(|found| std::cmp::Reverse(found.severity));
        self.vulnerabilities.retain(|found| {
            let left = room.checked_sub(found.names.len());
            room = left.unwrap_or(room);
            left.is_some()
        });
        self.vulnerabilities.sort_by(|a, b| a.entry.advisory_id.cmp(&b.entry.advisory_id));
        let kept = self.vulnerabilities.len();
        if kept < all {
            self.limitations.insert(format!(
                "This package has {all} vulnerabilities; the {kept} most severe are listed."
            ));
        }
    }
}

/// Brings together what has a name in common; the best reason speaks for it.
fn merged(found: Vec<Vulnerability>) -> Vec<Vulnerability> {
    let mut groups: Vec<Option<Vulnerability>> = Vec::new();
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for mut vulnerability in found {
        let same = vulnerability.names.iter().filter_map(|name| by_name.get(name).copied());
        for at in same.collect::<BTreeSet<usize>>() {
            if let Some(group) = groups[at].take() {
                vulnerability = vulnerability.merge(group);
            }
        }
        by_name.extend(vulnerability.names.iter().map(|name| (name.clone(), groups.len())));
        groups.push(Some(vulnerability));
    }
    let mut groups: Vec<Vulnerability> = groups.into_iter().flatten().collect();
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

/// The advisories that have the names that were reported.
fn advisory_names(
    scope: &Scope,
    components: &[&StoredComponent],
    opinions: &[Opinions],
) -> Result<BTreeMap<String, AdvisoryName>, DocumentError> {
    let reported = components.iter().flat_map(|component| &component.reported);
    let reported = reported.map(|reported| &reported.advisory_id);
    let added = opinions.iter().flat_map(Opinions::added_ids);
    let keys: BTreeSet<String> = reported.chain(added).map(|id| advisory_key(id)).collect();
    let found = scope.documents::<AdvisoryName>().get_many(keys)?;
    Ok(found.into_iter().map(|name| (name.id, name.value)).collect())
}
