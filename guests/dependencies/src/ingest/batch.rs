//! Components that are assessed and kept together: as many as a call has room
//! for, since what is known of a package may be much.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::Tally;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, Alerts};
use crate::matching::{self, Assessment};

/// Components of a bill, each assessed, and what that read.
pub(super) struct Batch {
    members: Vec<Member>,
    read: usize,
}

/// A component, assessed.
struct Member {
    id: String,
    /// As another bill of the audit brought it.
    known: Option<Stored<StoredComponent>>,
    component: StoredComponent,
    assessment: Assessment,
    /// Matches that the branch has of the same package.
    former: usize,
}

impl Batch {
    /// Assesses the first of these components, by id. Where others of the
    /// audit's bills came before, they may have brought some of them, to which
    /// is added what this one says.
    pub(super) fn assess(
        scope: &Scope,
        new: Vec<(String, StoredComponent)>,
        others_before: bool,
    ) -> Result<Self, DocumentError> {
        let known = if others_before {
            scope.documents::<StoredComponent>().get_many(new.iter().map(|(id, _)| id))?
        } else {
            Vec::new()
        };
        let read = known.len();
        let mut known: BTreeMap<String, _> =
            known.into_iter().map(|stored| (stored.id.clone(), stored)).collect();
        let members = new.into_iter().map(|(id, new)| Member::of(known.remove(&id), id, new));
        let mut members: Vec<Member> = members.collect();
        let components: Vec<_> = members.iter().map(|member| &member.component).collect();
        let assessed = matching::assess(scope, &components)?;
        members.truncate(assessed.assessments.len());
        for (member, assessment) in members.iter_mut().zip(assessed.assessments) {
            matches::apply(&mut member.component, &assessment);
            member.assessment = assessment;
        }
        let mut former = matches::known_counts(scope, &identities(&members))?;
        for member in &mut members {
            member.former = former.remove(&member.component.identity).unwrap_or_default();
        }
        Ok(Self { members, read: read + assessed.read })
    }

    /// Leaves what fits into a room of so many documents, or `at_least` so many
    /// components, and takes the room; how many components that are.
    pub(super) fn fit(&mut self, room: &mut usize, at_least: usize) -> usize {
        *room = room.saturating_sub(self.read);
        let fits = self.members.iter().take_while(|member| {
            let left = room.checked_sub(member.cost());
            *room = left.unwrap_or_default();
            left.is_some()
        });
        let fits = fits.count().max(at_least);
        self.members.truncate(fits);
        self.members.len()
    }

    /// Keeps the components and their matches, counts them, and notes the
    /// vulnerabilities that the branch did not have before.
    pub(super) fn keep(
        self,
        scope: &Scope,
        tally: &mut Tally,
        alerts: &mut Alerts,
    ) -> Result<(), DocumentError> {
        let (again, new): (Vec<Member>, Vec<Member>) =
            self.members.into_iter().partition(|member| member.known.is_some());
        alert(scope, &new, alerts)?;
        for member in &new {
            tally.add(&member.component);
        }
        scope.documents().create_all(new.iter().map(|new| (&new.id, &new.component)))?;
        matches::create(scope, new.iter().map(|new| (new.id.as_str(), &new.component)))?;
        let again = again.into_iter().filter_map(|member| Some((member.known?, member.component)));
        let mut changed = Vec::new();
        for (known, component) in again {
            tally.remove(&known);
            tally.add(&component);
            let before = known.value.advisory_keys.clone();
            let stored = Stored { value: component, ..known };
            matches::renew(scope, &stored, &before)?;
            changed.push(stored);
        }
        scope.documents().replace_all(&changed)
    }
}

impl Member {
    fn of(known: Option<Stored<StoredComponent>>, id: String, new: StoredComponent) -> Self {
        let component = match &known {
            Some(known) => {
                let mut component = known.value.clone();
                component.merge(new);
                component
            }
            None => new,
        };
        Self { id, known, component, assessment: Assessment::default(), former: 0 }
    }

    /// Whether it may tell the branch of vulnerabilities.
    fn is_told_of(&self) -> bool {
        let affected = !self.assessment.vulnerabilities.is_empty();
        affected && self.component.latest && self.known.is_none()
    }

    /// Documents that keeping it reads and writes: of a new one itself, its
    /// matches, and those that the branch has.
    fn cost(&self) -> usize {
        let names = &self.component.advisory_keys;
        match &self.known {
            Some(known) => 1 + matches::renewal_cost(names, &known.advisory_keys),
            None => 1 + names.len() + self.former,
        }
    }
}

/// The packages that may tell the branch of vulnerabilities.
fn identities(members: &[Member]) -> Vec<&str> {
    let told = members.iter().filter(|member| member.is_told_of());
    told.map(|member| member.component.identity.as_str()).collect()
}

fn alert(scope: &Scope, new: &[Member], alerts: &mut Alerts) -> Result<(), DocumentError> {
    let before = matches::known(scope, &identities(new))?;
    for Member { id, component, assessment, .. } in new.iter().filter(|new| new.is_told_of()) {
        for vulnerability in &assessment.vulnerabilities {
            let mut pairs =
                vulnerability.names.iter().map(|name| (component.identity.clone(), name.clone()));
            if !pairs.any(|pair| before.contains(&pair)) {
                alerts.add(id, component, vulnerability);
            }
        }
    }
    Ok(())
}

impl Tally {
    pub(super) fn add(&mut self, component: &StoredComponent) {
        self.total += 1;
        self.direct += usize::from(component.direct);
        self.vulnerable += usize::from(!component.advisories.is_empty());
        let ids = component.advisories.iter().map(|found| found.advisory_id.clone());
        self.advisories.extend(ids);
    }

    /// Takes a component out, to be added again.
    fn remove(&mut self, component: &StoredComponent) {
        self.total -= 1;
        self.direct -= usize::from(component.direct);
        self.vulnerable -= usize::from(!component.advisories.is_empty());
    }
}
