//! Batches of components that are matched with advisories and stored together. The size of a batch
//! is limited by the limits of a call, because a package may have many advisories.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::ImportCounts;
use super::former::FormerInventoryAudit;
use crate::budget::StepBudget;
use crate::inventory::alerts::NewVulnerabilityEvents;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches;
use crate::large::AssessmentInSteps;
use crate::matching::{self, BatchAssessmentOutcome, ComponentAssessment, Vulnerability};
use crate::text::{advisory_id_of, advisory_key};

/// Components of one SBOM that are matched with advisories and stored together.
pub(super) struct Batch {
    members: Vec<BatchComponent>,
}

/// Result of matching the next components of an SBOM with advisories.
pub(super) enum BatchMatchOutcome {
    /// One or more components, from the first one on, matched with advisories. Those after them
    /// are for the next call.
    Batch(Batch),
    /// The first component, whose assessment needs several steps.
    Large(Box<BatchComponent>),
    /// The advisories need too much memory; the caller tries again with fewer components.
    TooMany,
}

/// A component of a batch, with the result of its assessment against advisories.
pub(super) struct BatchComponent {
    id: String,
    /// The same component as stored from another SBOM of the audit; `None` if it is new.
    known: Option<Stored<StoredComponent>>,
    component: StoredComponent,
    assessment: ComponentAssessment,
    /// Names of the vulnerabilities that the stored component matches; empty if it is new.
    before: Vec<String>,
}

impl Batch {
    /// Matches as many of the first components as fit with advisories. `new` has the components
    /// with their document ids. With `others_before`, merges components that another SBOM of the
    /// audit stored.
    pub(super) fn assess(
        scope: &Scope,
        new: Vec<(String, StoredComponent)>,
        others_before: bool,
        budget: &mut StepBudget,
    ) -> Result<BatchMatchOutcome, DocumentError> {
        let known = if others_before {
            scope.documents::<StoredComponent>().get_many(new.iter().map(|(id, _)| id))?
        } else {
            Vec::new()
        };
        budget.spend(known.len());
        let mut known: BTreeMap<String, _> =
            known.into_iter().map(|stored| (stored.id.clone(), stored)).collect();
        let members =
            new.into_iter().map(|(id, new)| BatchComponent::of(known.remove(&id), id, new));
        let mut members: Vec<BatchComponent> = members.collect();
        let components: Vec<_> = members.iter().map(|member| &member.component).collect();
        let assessments = match matching::assess(scope, &components, budget)? {
            BatchAssessmentOutcome::Some(assessments) => assessments,
            BatchAssessmentOutcome::TooMany => return Ok(BatchMatchOutcome::TooMany),
            BatchAssessmentOutcome::Large(_) => {
                return Ok(BatchMatchOutcome::Large(Box::new(members.swap_remove(0))));
            }
        };
        members.truncate(assessments.len());
        for (member, assessment) in members.iter_mut().zip(assessments) {
            member.take(scope, assessment, budget)?;
        }
        Ok(BatchMatchOutcome::Batch(Self { members }))
    }

    /// Removes the components of the batch that do not fit into `budget`, and subtracts the others
    /// from it. If not even the first component fits, returns it as an error.
    pub(super) fn fit(&mut self, budget: &mut StepBudget) -> Result<(), Box<BatchComponent>> {
        let fits = self.members.iter().take_while(|member| budget.take(member.cost())).count();
        if fits == 0 && !self.members.is_empty() {
            return Err(Box::new(self.members.swap_remove(0)));
        }
        self.members.truncate(fits);
        Ok(())
    }

    /// Stores the batch's components and their matches, counts them, and adds alerts for
    /// vulnerabilities that are new to the branch. Returns the number of stored components.
    pub(super) fn keep(
        self,
        scope: &Scope,
        former: Option<&FormerInventoryAudit>,
        tally: &mut ImportCounts,
        alerts: &mut NewVulnerabilityEvents,
    ) -> Result<usize, DocumentError> {
        let kept = self.members.len();
        let (again, new): (Vec<BatchComponent>, Vec<BatchComponent>) =
            self.members.into_iter().partition(|member| member.known.is_some());
        alert(scope, &new, former, alerts)?;
        scope.documents().create_all(new.iter().map(|new| (&new.id, &new.component)))?;
        for BatchComponent { component, assessment, .. } in &new {
            tally.add(component);
            tally.add_advisories(&assessment.vulnerabilities);
        }
        let matched = new.iter().map(|BatchComponent { id, component, assessment, .. }| {
            (id.as_str(), component, &assessment.vulnerabilities[..])
        });
        matches::create(scope, matched)?;
        let mut changed = Vec::new();
        for BatchComponent { known, component, assessment, before, .. } in again {
            let Some(known) = known else { continue };
            tally.remove(&known);
            tally.add(&component);
            tally.add_advisories(&assessment.vulnerabilities);
            let stored = Stored { value: component, ..known };
            matches::renew(scope, &stored, &before, &assessment)?;
            changed.push(stored);
        }
        scope.documents().replace_all(&changed)?;
        Ok(kept)
    }
}

impl BatchComponent {
    fn of(known: Option<Stored<StoredComponent>>, id: String, new: StoredComponent) -> Self {
        let component = match &known {
            Some(known) => {
                let mut component = known.value.clone();
                component.merge(new);
                component
            }
            None => new,
        };
        Self {
            id,
            known,
            component,
            assessment: ComponentAssessment::default(),
            before: Vec::new(),
        }
    }

    fn take(
        &mut self,
        scope: &Scope,
        assessment: ComponentAssessment,
        budget: &mut StepBudget,
    ) -> Result<(), DocumentError> {
        matches::apply(&mut self.component, &assessment);
        self.assessment = assessment;
        if let Some(known) = &self.known {
            budget.spend(matches::keys_cost(scope, known)?);
            self.before = matches::keys(scope, known)?;
        }
        Ok(())
    }

    /// Stores the component without its advisories, which later steps of the job add.
    pub(super) fn begin(
        self,
        scope: &Scope,
        tally: &mut ImportCounts,
        budget: &mut StepBudget,
    ) -> Result<AssessmentInSteps, DocumentError> {
        let mut component = self.component;
        component.unfinished = true;
        budget.spend(1);
        let is_new = self.known.is_none();
        match self.known {
            Some(known) => {
                tally.remove(&known);
                scope.documents().replace(&mut Stored { value: component, ..known })?;
            }
            None => {
                matches::apply(&mut component, &ComponentAssessment::default());
                scope.documents().create(&self.id, &component)?;
            }
        }
        Ok(AssessmentInSteps::new(self.id, is_new))
    }

    /// Whether the component causes alerts: it is new, affected, and belongs to the latest audit.
    fn is_told_of(&self) -> bool {
        let affected = !self.assessment.vulnerabilities.is_empty();
        affected && self.component.latest && self.known.is_none()
    }

    /// Returns the number of documents that storing this component reads and writes: the component,
    /// its matches, and matches of the former inventory with the same names.
    fn cost(&self) -> usize {
        match &self.known {
            Some(_) => 1 + matches::renewal_cost(&self.component, &self.before, &self.assessment),
            None => {
                let names: usize =
                    self.assessment.vulnerabilities.iter().map(|found| found.names.len()).sum();
                1 + names * if self.is_told_of() { 2 } else { 1 }
            }
        }
    }
}

fn alert(
    scope: &Scope,
    new: &[BatchComponent],
    former: Option<&FormerInventoryAudit>,
    alerts: &mut NewVulnerabilityEvents,
) -> Result<(), DocumentError> {
    let told: Vec<&BatchComponent> = new.iter().filter(|new| new.is_told_of()).collect();
    let components = told.iter().map(|new| (&new.component, &new.assessment.vulnerabilities[..]));
    let fresh = match former {
        Some(former) => former.unknown(scope, components.collect())?,
        None => components.map(|(_, found)| found.iter().collect()).collect(),
    };
    for (member, fresh) in told.into_iter().zip(fresh) {
        for vulnerability in fresh {
            alerts.add(&member.id, &member.component, vulnerability);
        }
    }
    Ok(())
}

/// Maximum number of ids and aliases of advisories in an audit's facts. An event has at most 1 MiB.
const MOST_ADVISORIES: usize = 15_000;
/// Maximum size of all ids and aliases of advisories in an audit's facts, in bytes.
const MAX_ADVISORY_BYTES: usize = 384 * 1024;

impl ImportCounts {
    /// Adds a component to the counts of the import, but not its advisories.
    pub(super) fn add(&mut self, component: &StoredComponent) {
        self.total += 1;
        self.direct += usize::from(component.direct);
        self.vulnerable += usize::from(component.count_advisories() > 0);
        self.is_reported |= !component.reported.is_empty();
    }

    /// Adds a component that an earlier audit stored, and its advisories, to the counts of the
    /// import.
    pub(super) fn add_known(&mut self, component: &StoredComponent) {
        self.add(component);
        self.lacks_advisories |= component.advisory_count.is_some();
        let ids = component.advisories.iter().map(|found| found.advisory_id.as_str());
        self.add_named(ids, &component.advisory_keys);
    }

    /// Adds the advisories that affect a component to the counts of the import.
    pub(super) fn add_advisories(&mut self, found: &[Vulnerability]) {
        for found in found {
            self.add_named(std::iter::once(found.entry.advisory_id.as_str()), &found.names);
        }
    }

    /// Adds advisories to the facts of the audit. `keys` has the keys of all their ids and aliases.
    fn add_named<'a>(
        &mut self,
        ids: impl Iterator<Item = &'a str>,
        keys: impl IntoIterator<Item = &'a String>,
    ) {
        let mut own = BTreeSet::new();
        for id in ids {
            self.add_advisory(id);
            own.insert(advisory_key(id));
        }
        self.add_aliases(keys.into_iter().filter(|key| !own.contains(*key)));
    }

    fn add_advisory(&mut self, id: &str) {
        if !self.advisories.contains(id) && self.reserve(id) {
            self.advisories.insert(id.to_owned());
        }
    }

    /// Adds further names of advisories, given by their keys, to the facts of the audit.
    pub(super) fn add_aliases<'a>(&mut self, keys: impl IntoIterator<Item = &'a String>) {
        for name in keys.into_iter().map(|key| advisory_id_of(key)) {
            let is_known = self.advisories.contains(&name) || self.aliases.contains(&name);
            if !is_known && self.reserve(&name) {
                self.aliases.insert(name);
            }
        }
    }

    /// Reserves space for an advisory name in the facts of the audit. If the name does not fit,
    /// returns false and notes that the facts lack names.
    fn reserve(&mut self, name: &str) -> bool {
        let bytes = self.advisory_bytes + name.len();
        let names = self.advisories.len() + self.aliases.len();
        let fits = names < MOST_ADVISORIES && bytes <= MAX_ADVISORY_BYTES;
        if fits {
            self.advisory_bytes = bytes;
        } else {
            self.lacks_advisories = true;
        }
        fits
    }

    /// Subtracts a component from the counts of the import, because it changed and is counted
    /// again.
    pub(super) fn remove(&mut self, component: &StoredComponent) {
        self.total -= 1;
        self.direct -= usize::from(component.direct);
        self.vulnerable -= usize::from(component.count_advisories() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisory_ids_in_the_facts_have_limits() {
        for (count, length) in [(MOST_ADVISORIES + 1, 5), (1_000, 500)] {
            let mut tally = ImportCounts::default();
            (0..count).for_each(|at| tally.add_advisory(&format!("{at:0length$}")));
            assert!(tally.advisories.len() < count && tally.lacks_advisories);
            assert!(tally.advisory_bytes <= MAX_ADVISORY_BYTES);
            tally.lacks_advisories = false;
            tally.add_advisory(&format!("{:0length$}", 0));
            assert!(!tally.lacks_advisories, "it is in the facts");
            tally.add_aliases(&["CVE-2026-1".repeat(50)]);
            assert!(tally.lacks_advisories && tally.aliases.is_empty());
        }
    }
}
