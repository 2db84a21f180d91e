//! Compares the versions of components with the `affected` entries of advisories for their
//! packages.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::{
    AdvisoryMatch, BatchAssessmentOutcome, ComponentAssessment, MatchBasis, Vulnerability,
};
use crate::advisories::document::AffectedPackage;
use crate::budget::{AdaptiveBatchSize, StepBudget};
use crate::documents::{KEYS, count_by_key};
use crate::ecosystem::{DistributionRelease, Package, SpellingMatch};
use crate::inventory::component::StoredComponent;
use crate::osv::evaluate::{self, AffectedReason};
use crate::text::advisory_key;

/// Value of `source_tool` in matches that this area found by comparing versions.
const EVALUATOR: &str = "osv";

/// Maximum number of advisory entries and reported vulnerabilities with which a component is
/// assessed in one step. A component with more needs several steps.
const LARGE: usize = 1_000;

/// Limitation of a component to which advisories for a Go module path in another case are applied.
const CASE_UNKNOWN: &str = "The SBOM writes the paths of Go modules in lower case, so advisories \
                            for paths that differ in upper and lower case are applied too.";

/// Maximum number of advisory entries and reported vulnerabilities of a batch of components that
/// are assessed together.
const MOST_ENTRIES: usize = 4_000;

/// Maximum number of pairs of a component and an advisory entry in one batch. Each pair may become
/// a vulnerability in memory.
const MOST_PAIRS: usize = 20_000;

/// Approximate maximum size in memory of the advisory entries read for one batch of components, in
/// bytes.
const MOST_BYTES: usize = 12 << 20;

/// Number of advisory entries in the first page, when their sizes are unknown. Some entries list
/// hundreds of versions.
const FIRST_PAGE: u32 = 50;

/// Maximum number of advisory entries in each later page.
const PAGE: u32 = 500;

/// Approximate maximum size in memory of each later page of advisory entries, in bytes.
const PAGE_BYTES: usize = 4 << 20;

/// Number of advisory entries by package key. Packages without advisory entries are missing.
type EntryCountsByPackage = BTreeMap<String, usize>;

/// Compares as many of the first components with advisory entries as fit into one batch.
pub(super) fn assess(
    scope: &Scope,
    components: &[&StoredComponent],
    budget: &mut StepBudget,
) -> Result<BatchAssessmentOutcome, DocumentError> {
    let keys = components.iter().filter_map(|component| component.package_key.as_deref());
    let counts = count_by_key::<AffectedPackage>(scope, "package_key", keys)?;
    let components = match together(components, &counts) {
        0 => return Ok(large(components, &counts)),
        fit => &components[..fit],
    };
    let mut assessments: Vec<ComponentAssessment> =
        components.iter().map(|_| ComponentAssessment::default()).collect();
    let packages: Vec<_> = components.iter().map(|component| component.package()).collect();
    let of_key = by_key(components, &counts);
    let keys: Vec<&str> = of_key.keys().copied().collect();
    let mut bytes = 0;
    for keys in keys.chunks(KEYS) {
        let mut pages = AdvisoryEntryPages::of_packages(scope, keys, None);
        while let Some(entries) = pages.next(budget)? {
            bytes += pages.bytes;
            if bytes > MOST_BYTES {
                return Ok(if components.len() > 1 {
                    BatchAssessmentOutcome::TooMany
                } else {
                    BatchAssessmentOutcome::Large(None)
                });
            }
            for entry in entries {
                for &at in of_key.get(entry.package_key.as_str()).into_iter().flatten() {
                    if let Some(package) = &packages[at] {
                        assessments[at].look_at(components[at], package, &entry);
                    }
                }
            }
        }
    }
    Ok(BatchAssessmentOutcome::Some(assessments))
}

/// Returns how many of the first components can be assessed as one batch; 0 if the first needs
/// several steps.
fn together(components: &[&StoredComponent], counts: &EntryCountsByPackage) -> usize {
    let (mut entries, mut pairs, mut seen) = (0, 0, BTreeSet::new());
    let fits = components.iter().take_while(|component| {
        let key = component.package_key.as_ref();
        let of_package = key.and_then(|key| counts.get(key)).copied().unwrap_or_default();
        let all = of_package + component.reported.len();
        pairs += all;
        let is_new = key.is_some_and(|key| seen.insert(key));
        entries += component.reported.len() + if is_new { of_package } else { 0 };
        all <= LARGE && pairs <= MOST_PAIRS && entries <= MOST_ENTRIES
    });
    fits.count()
}

/// Returns the result for a first component whose assessment needs several steps. It contains the
/// component's package key if the package has too many advisory entries.
fn large(components: &[&StoredComponent], counts: &EntryCountsByPackage) -> BatchAssessmentOutcome {
    let key = components.first().and_then(|component| component.package_key.as_ref());
    BatchAssessmentOutcome::Large(
        key.filter(|key| counts.get(*key).is_some_and(|all| *all > LARGE)).cloned(),
    )
}

/// Reads the advisory entries of packages page by page. The size of a page in bytes is limited.
pub(crate) struct AdvisoryEntryPages<'a> {
    scope: &'a Scope,
    keys: Vec<String>,
    cursor: Option<String>,
    is_last: bool,
    size: AdaptiveBatchSize,
    /// Approximate size in memory of the last page of advisory entries, in bytes.
    bytes: usize,
}

impl<'a> AdvisoryEntryPages<'a> {
    /// Maximum number of advisory entries in one page.
    pub(crate) const MOST: usize = PAGE as usize;

    fn of_packages(scope: &'a Scope, keys: &[&str], cursor: Option<String>) -> Self {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let size = AdaptiveBatchSize::new(FIRST_PAGE, PAGE, PAGE_BYTES);
        Self { scope, is_last: keys.is_empty(), keys, cursor, size, bytes: 0 }
    }

    /// Starts reading the advisory entries of a component's package, at a cursor.
    pub(crate) fn of(
        scope: &'a Scope,
        component: &StoredComponent,
        cursor: Option<String>,
    ) -> Self {
        let keys: Vec<&str> = component.package_key.as_deref().into_iter().collect();
        Self::of_packages(scope, &keys, cursor)
    }

    /// Returns the next page of advisory entries; `None` after the last page.
    fn next(
        &mut self,
        budget: &mut StepBudget,
    ) -> Result<Option<Vec<AffectedPackage>>, DocumentError> {
        if self.is_last {
            return Ok(None);
        }
        let entries = self.scope.documents::<AffectedPackage>().query();
        // This order keeps the entries of one advisory for a package together.
        let entries = entries.one_of("package_key", &self.keys).descending("package_key");
        let page = entries.cursor(self.cursor.take()).limit(self.size.limit()).page()?;
        self.is_last = page.next_cursor.is_none();
        self.cursor = page.next_cursor;
        let now = self.scope.now();
        let entries: Vec<_> = page.items.into_iter().map(|entry| entry.value.at(now)).collect();
        self.bytes = entries.iter().map(AffectedPackage::bytes).sum();
        self.size.adapt(entries.len(), self.bytes);
        budget.spend(entries.len());
        budget.spend_bytes(self.bytes);
        Ok(Some(entries))
    }

    /// Compares a component with the next page of advisory entries and adds the results to
    /// `assessment`. Returns the cursor of the page after it; `None` after the last page.
    pub(crate) fn look_at(
        &mut self,
        component: &StoredComponent,
        assessment: &mut ComponentAssessment,
        budget: &mut StepBudget,
    ) -> Result<Option<String>, DocumentError> {
        let package = component.package();
        for entry in self.next(budget)?.into_iter().flatten() {
            if let Some(package) = &package {
                assessment.look_at(component, package, &entry);
            }
        }
        Ok(self.cursor.clone())
    }
}

/// Returns the indexes of the components by package key, for packages that have advisory entries.
fn by_key<'a>(
    components: &[&'a StoredComponent],
    entries: &EntryCountsByPackage,
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

impl ComponentAssessment {
    /// Adds the result of comparing an advisory entry with a component. `package` is the
    /// component's package with its version.
    fn look_at(&mut self, component: &StoredComponent, package: &Package, entry: &AffectedPackage) {
        self.has_entries = true;
        if entry.withdrawn || !entry.is_for_release_of(package, &mut self.limitations) {
            return;
        }
        let mut verdict = evaluate::evaluate(&entry.affected, package);
        match entry.spelling(component, package) {
            SpellingMatch::Same => {}
            SpellingMatch::Unknown if verdict.ground.is_some() => {
                self.limitations.insert(CASE_UNKNOWN.to_owned());
            }
            SpellingMatch::Unknown => {}
            SpellingMatch::Different => verdict = verdict.of_other_case(),
        }
        self.doubts.note(&entry.advisory_id, &verdict);
        if let Some(ground) = verdict.ground {
            self.vulnerabilities.push(entry.affects(component, ground));
        }
    }
}

impl AffectedPackage {
    fn spelling(&self, component: &StoredComponent, package: &Package) -> SpellingMatch {
        let theirs = self.affected.package.as_ref().map_or("", |named| named.name.as_str());
        SpellingMatch::of(&package.ecosystem, &component.name, theirs, component.case_known)
    }

    /// Returns the approximate size of the advisory entry in memory, in bytes.
    fn bytes(&self) -> usize {
        let versions = self.affected.versions.iter().map(|version| version.len() + 24);
        let ranges = self.affected.ranges.iter().map(|range| 100 * (1 + range.events.len()));
        1_000 + versions.sum::<usize>() + ranges.sum::<usize>()
    }

    /// Whether the advisory entry is for the release of a distribution to which the package
    /// belongs. Adds a limitation if that is unknown.
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
        if !ours.is_for_build(theirs, &named.name, package.version.as_deref()) {
            return false;
        }
        ours.covers(theirs).unwrap_or_else(|| {
            limitations.insert(undecided_release(&ours, theirs, &package.ecosystem));
            false
        })
    }

    fn affects(&self, component: &StoredComponent, ground: AffectedReason) -> Vulnerability {
        let names = std::iter::once(&self.advisory_id).chain(&self.aliases);
        Vulnerability {
            entry: AdvisoryMatch {
                advisory_id: self.advisory_id.clone(),
                artifact_sha256: self.artifact_sha256.clone(),
                match_basis: match ground {
                    AffectedReason::Listed => MatchBasis::PurlExact,
                    AffectedReason::Range => MatchBasis::VersionRange,
                },
                scanner_run_id: component.scanner_run_id,
                source_tool: EVALUATOR.to_owned(),
            },
            severity: self.severity,
            names: names.map(|name| advisory_key(name)).collect(),
        }
    }
}

/// Returns the limitation of a package of a release for which it cannot be decided whether an
/// advisory for the release `advised` applies.
fn undecided_release(
    advised: &DistributionRelease,
    release: &DistributionRelease,
    ecosystem: &str,
) -> String {
    let text = release.text();
    if advised.is_extended_support() && release.has_number() {
        return format!(
            "Advisories of {ecosystem} for the extended support of a minor release are not \
             applied: {text:?}, the release in the purl, has no minor release."
        );
    }
    if release.has_number() {
        return format!(
            "Advisories of {ecosystem} for minor releases that may be later than {text:?}, the \
             release in the purl, are not applied: it is not known whether they affect it."
        );
    }
    format!(
        "The number of {text:?}, the release of {ecosystem} in the purl, is not known, so \
         advisories for single releases are not applied."
    )
}
