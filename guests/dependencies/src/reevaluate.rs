//! After advisories have changed, the latest components of their packages, and
//! those under their names, are looked at again: some pages a step.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use crate::ROOM;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, Alerts, StoredMatch};
use crate::matching::{self, MOST_ENTRIES};

/// How many components are asked for at a time.
const PAGE: u32 = 500;
/// While so many are left, a step goes on: a page, with its matches, and what
/// is known of its packages fit into them.
const LEAST: usize = 2 * PAGE as usize + MOST_ENTRIES;
/// What a question costs, in documents.
const QUESTION: usize = 100;

/// Looks at components again.
#[derive(Serialize, Deserialize)]
pub(crate) struct Reevaluate {
    /// Packages that are left, the one being looked at first.
    packages: Vec<String>,
    /// Names of advisories that are left.
    names: Vec<String>,
    cursor: Option<String>,
    /// Components that were found before the cursor and are left.
    #[serde(default)]
    components: Vec<String>,
    /// Packages whose components have been looked at: under a name they need
    /// no second look.
    #[serde(default)]
    looked_at: BTreeSet<String>,
}

impl Job for Reevaluate {
    const KIND: &'static str = "reevaluate";
}

impl Reevaluate {
    pub(crate) fn new(packages: BTreeSet<String>, names: BTreeSet<String>) -> Self {
        let (packages, names) = (packages.into_iter().collect(), names.into_iter().collect());
        Self { packages, names, cursor: None, components: Vec::new(), looked_at: BTreeSet::new() }
    }

    /// The components whose turn it is; nothing where none are left.
    fn next(
        &mut self,
        ctx: &JobCtx,
        room: &mut usize,
    ) -> Result<Option<Vec<Stored<StoredComponent>>>, JobError> {
        if !self.components.is_empty() {
            let left = std::mem::take(&mut self.components);
            *room = room.saturating_sub(left.len());
            return Ok(Some(ctx.documents::<StoredComponent>().get_many(left)?));
        }
        let cursor = self.cursor.take();
        let (mut components, next) = match (self.packages.first(), self.names.first()) {
            (Some(package), _) => of_package(ctx, package, cursor)?,
            (None, Some(name)) => under_name(ctx, name, cursor)?,
            (None, None) => return Ok(None),
        };
        // Under a name, a match was read for each.
        *room = room.saturating_sub(2 * components.len() + QUESTION);
        if self.packages.is_empty() {
            components.retain(|component| !self.has_looked_at(component));
        }
        match (&next, self.packages.is_empty()) {
            (Some(_), _) => {}
            (None, true) => drop(self.names.remove(0)),
            (None, false) => drop(self.looked_at.insert(self.packages.remove(0))),
        }
        self.cursor = next;
        Ok(Some(components))
    }

    fn has_looked_at(&self, component: &StoredComponent) -> bool {
        component.package_key.as_ref().is_some_and(|key| self.looked_at.contains(key))
    }
}

pub(crate) fn run(ctx: &JobCtx, mut job: Reevaluate) -> JobResult<Reevaluate> {
    let mut room = ROOM;
    let mut alerts = Alerts::default();
    let mut done = false;
    while !done && room > LEAST {
        match job.next(ctx, &mut room)? {
            Some(components) => {
                job.components = look_again(ctx, components, &mut room, &mut alerts)?;
            }
            None => done = true,
        }
    }
    alerts.publish(ctx);
    Ok(if done { Outcome::Done } else { Outcome::Continue(job) })
}

/// A page of components, and where the next begins.
type Found = (Vec<Stored<StoredComponent>>, Option<String>);

fn of_package(ctx: &JobCtx, package: &str, cursor: Option<String>) -> Result<Found, JobError> {
    let components = ctx.documents::<StoredComponent>().query().equals("latest", true);
    let components = components.equals("package_key", package).ascending("package_key");
    let page = components.cursor(cursor).limit(PAGE).page()?;
    Ok((page.items, page.next_cursor))
}

fn under_name(ctx: &JobCtx, name: &str, cursor: Option<String>) -> Result<Found, JobError> {
    let found = ctx.documents::<StoredMatch>().query().equals("advisory_key", name);
    let found = found.equals("latest", true).ascending("name");
    let page = found.cursor(cursor).limit(PAGE).page()?;
    let ids = page.items.iter().map(|found| &found.component_id);
    Ok((ctx.documents::<StoredComponent>().get_many(ids)?, page.next_cursor))
}

/// Assesses components anew, as many as there is room for, and keeps what
/// changed; the ids of those that are left.
pub(crate) fn look_again(
    ctx: &JobCtx,
    mut components: Vec<Stored<StoredComponent>>,
    room: &mut usize,
    alerts: &mut Alerts,
) -> Result<Vec<String>, JobError> {
    let found: Vec<&StoredComponent> = components.iter().map(|stored| &stored.value).collect();
    let assessed = matching::assess(ctx, &found)?;
    *room = room.saturating_sub(assessed.read);
    let (mut looked, mut changed) = (0, Vec::new());
    for (component, assessment) in components.iter_mut().zip(&assessed.assessments) {
        let before = component.advisory_keys.clone();
        if matches::apply(component, assessment) {
            let cost = 1 + matches::renewal_cost(&component.advisory_keys, &before);
            if cost > *room && looked > 0 {
                break;
            }
            *room = room.saturating_sub(cost);
            let fresh = assessment.vulnerabilities.iter();
            for found in fresh.filter(|found| !before.iter().any(|key| found.names.contains(key))) {
                alerts.add(&component.id, component, found);
            }
            matches::renew(ctx, component, &before)?;
            changed.push(component.clone());
        }
        looked += 1;
    }
    ctx.documents().replace_all(&changed)?;
    Ok(components.split_off(looked).into_iter().map(|left| left.id).collect())
}
