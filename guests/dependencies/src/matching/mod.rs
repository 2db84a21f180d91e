//! Finds the advisories that affect a component: by their `affected` entries, and by reports of
//! scanners. Each vulnerability is listed once, with all its names.

mod by_version;
mod doubts;

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::advisories::document::AdvisoriesWithName;
use crate::budget::StepBudget;
use crate::inventory::component::{ReportedAdvisory, StoredComponent};
use crate::osv::SeverityBand;
use crate::text::{advisory_key, listed};
use crate::vex::{self, MatchedStatements};

pub(crate) use by_version::AdvisoryEntryPages;
use doubts::{EXAMPLES, UndecidedAdvisories};

/// Reason why a component counts as affected by an advisory, least certain first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatchBasis {
    /// A scanner reported the vulnerability, in the SBOM or as evidence.
    ScannerReported,
    /// The component's version is in a range of the advisory.
    VersionRange,
    /// The advisory lists the component's version.
    PurlExact,
}

/// An advisory that affects a dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Advisory")]
pub(crate) struct AdvisoryMatch {
    pub(crate) advisory_id: String,
    /// SHA-256 of the document from which the match comes: the advisory's OSV record, or the SBOM
    /// that reports the vulnerability.
    pub(crate) artifact_sha256: String,
    pub(crate) match_basis: MatchBasis,
    /// Id of the SBOM's import that stored the dependency.
    pub(crate) scanner_run_id: Uuid,
    /// `osv` if the service compared versions, otherwise the scanner that reported the
    /// vulnerability.
    pub(crate) source_tool: String,
}

/// A vulnerability that affects a component, with all its names (ids and aliases).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Vulnerability {
    pub(crate) entry: AdvisoryMatch,
    pub(crate) severity: Option<SeverityBand>,
    pub(crate) names: BTreeSet<String>,
}

/// Limitation of a package whose source package is unknown, while advisories for its distribution
/// name source packages.
const SOURCE_UNKNOWN: &str = "The SBOM names no source packages, but advisories for this \
                              distribution do, so advisories for this package may be missing.";

/// Result of assessing a component against advisories: its vulnerabilities and limitations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ComponentAssessment {
    /// Vulnerabilities that affect the component, ordered by advisory id.
    pub(crate) vulnerabilities: Vec<Vulnerability>,
    /// Limitations about advisories that could not be compared with the component.
    pub(crate) limitations: BTreeSet<String>,
    doubts: UndecidedAdvisories,
    /// Whether there are advisory entries for the component's package.
    #[serde(default)]
    has_entries: bool,
    /// Ids of advisories that do not affect the component according to a VEX statement.
    pub(crate) ended: BTreeSet<String>,
}

/// Result of assessing a batch of components against advisories.
#[derive(Debug)]
pub(crate) enum BatchAssessmentOutcome {
    /// Assessments of the first components of the batch, in their order.
    Some(Vec<ComponentAssessment>),
    /// The assessment of the first component needs several steps. Contains the key of its package
    /// if that has too many advisory entries.
    Large(Option<String>),
    /// The advisory entries of the packages need too much memory; the caller tries again with fewer
    /// components.
    TooMany,
}

/// Assesses as many of the first components as fit into one batch against advisories and VEX
/// statements.
pub(crate) fn assess(
    scope: &Scope,
    components: &[&StoredComponent],
    budget: &mut StepBudget,
) -> Result<BatchAssessmentOutcome, DocumentError> {
    if components.is_empty() {
        return Ok(BatchAssessmentOutcome::Some(Vec::new()));
    }
    let (context, fits) = vex::VexStatementIndex::load(scope, components)?;
    budget.spend(context.read);
    let mut assessments = match by_version::assess(scope, &components[..fits], budget)? {
        BatchAssessmentOutcome::Some(assessments) => assessments,
        other => return Ok(other),
    };
    let components = &components[..assessments.len()];
    let statements: Vec<MatchedStatements> =
        components.iter().map(|component| MatchedStatements::on(component, &context)).collect();
    let names = advisory_names(scope, components, &statements)?;
    budget.spend(names.len());
    for ((component, assessment), statements) in
        components.iter().zip(&mut assessments).zip(&statements)
    {
        assessment.complete(component, statements, &names);
    }
    Ok(BatchAssessmentOutcome::Some(assessments))
}

/// Completes the assessment of a component whose advisory entries were compared in earlier steps:
/// adds reported vulnerabilities and applies VEX statements.
pub(crate) fn complete(
    scope: &Scope,
    component: &StoredComponent,
    mut assessment: ComponentAssessment,
    budget: &mut StepBudget,
) -> Result<ComponentAssessment, DocumentError> {
    let (context, _) = vex::VexStatementIndex::load(scope, &[component])?;
    let statements = MatchedStatements::on(component, &context);
    let names = advisory_names(scope, &[component], std::slice::from_ref(&statements))?;
    budget.spend(context.read + names.len());
    assessment.complete(component, &statements, &names);
    Ok(assessment)
}

impl ComponentAssessment {
    /// Returns the names of all vulnerabilities that affect the component, sorted.
    pub(crate) fn names(&self) -> BTreeSet<&String> {
        self.vulnerabilities.iter().flat_map(|found| &found.names).collect()
    }

    /// Returns the maximum number of documents that an update of the component's matches reads and
    /// writes.
    pub(crate) fn cost(&self) -> usize {
        1 + 3 * self.vulnerabilities.iter().map(|found| found.names.len()).sum::<usize>()
    }

    /// Adds vulnerabilities that scanners or VEX statements report for the component, with all
    /// their names in known advisories. If all of these are withdrawn, adds a limitation instead.
    fn take_reported<'a>(
        &mut self,
        component: &StoredComponent,
        reported: impl Iterator<Item = &'a ReportedAdvisory>,
        names: &BTreeMap<String, AdvisoriesWithName>,
    ) {
        let mut withdrawn = BTreeSet::new();
        for reported in reported.filter(|reported| reported.is_open()) {
            let id = &reported.advisory_id;
            let known = names.get(&advisory_key(id)).map(|name| name.advisories.as_slice());
            let known = known.unwrap_or_default();
            if let [first, ..] = known
                && known.iter().all(|named| named.withdrawn)
            {
                withdrawn.insert(format!("{id} ({})", first.advisory_id));
                continue;
            }
            let known = known.iter().filter(|named| !named.withdrawn);
            let others =
                known.flat_map(|named| std::iter::once(&named.advisory_id).chain(&named.aliases));
            let names = std::iter::once(id).chain(&reported.aliases).chain(others);
            let names = names.map(|name| advisory_key(name)).collect();
            self.vulnerabilities.push(Vulnerability::reported(reported, component, names));
        }
        if !withdrawn.is_empty() {
            let listed = listed(withdrawn.iter(), EXAMPLES);
            let limitation = format!("Not listed, since the advisory is withdrawn: {listed}.");
            self.limitations.insert(limitation);
        }
    }

    /// Adds vulnerabilities that scanners and VEX statements report, merges vulnerabilities with a
    /// common name, and applies VEX statements that end a match.
    fn complete(
        &mut self,
        component: &StoredComponent,
        statements: &MatchedStatements,
        names: &BTreeMap<String, AdvisoriesWithName>,
    ) {
        if let Some(package) = component.package() {
            let doubts = std::mem::take(&mut self.doubts);
            self.limitations.extend(doubts.limitations(&package));
        }
        if component.source_unknown && !self.has_entries {
            self.limitations.insert(SOURCE_UNKNOWN.to_owned());
        }
        let added = statements.added(component);
        self.take_reported(component, component.reported.iter().chain(&added), names);
        self.vulnerabilities = merged(std::mem::take(&mut self.vulnerabilities));
        self.apply(statements);
    }
}

/// Merges vulnerabilities with a common name. The most certain match remains.
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

/// Returns the sort key by which the advisory of merged vulnerabilities is chosen: a database's own
/// id is preferred to a CVE id.
fn preference(entry: &AdvisoryMatch) -> (bool, bool, String) {
    let id = &entry.advisory_id;
    (id.starts_with("CVE-"), !id.starts_with("GHSA-"), id.clone())
}

/// Returns the known advisories by name, for the names that scanners report or VEX statements add
/// for these components.
fn advisory_names(
    scope: &Scope,
    components: &[&StoredComponent],
    statements: &[MatchedStatements],
) -> Result<BTreeMap<String, AdvisoriesWithName>, DocumentError> {
    let reported = components.iter().flat_map(|component| &component.reported);
    let reported = reported.map(|reported| &reported.advisory_id);
    let added = statements.iter().flat_map(MatchedStatements::added_ids);
    let keys: BTreeSet<String> = reported.chain(added).map(|id| advisory_key(id)).collect();
    let keys: Vec<String> = keys.into_iter().collect();
    let mut names = BTreeMap::new();
    for keys in keys.chunks(1_000) {
        let found = scope.documents::<AdvisoriesWithName>().get_many(keys)?.into_iter();
        names.extend(found.map(|name| (name.id, name.value.at(scope.now()))));
    }
    Ok(names)
}
