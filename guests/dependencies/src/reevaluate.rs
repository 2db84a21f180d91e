//! After advisories changed: reassesses the latest components of their packages and those with
//! matches under their names, some pages in each step.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use crate::inventory::alerts::Alerts;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, StoredMatch};
use crate::large::{self, Subject};
use crate::matching::{self, AssessedComponents, Assessment};
use crate::room::{PageSize, Room};

/// Cost of a query, in documents.
const QUESTION: usize = 100;

/// Job that reassesses components.
#[derive(Serialize, Deserialize)]
pub(crate) struct Reevaluate {
    /// Remaining packages; the current one is first.
    packages: Vec<String>,
    /// Remaining names of advisories.
    names: Vec<String>,
    cursor: Option<String>,
    /// Components before the cursor that remain.
    #[serde(default)]
    components: Vec<String>,
    /// Packages whose components are done; they are skipped under a name.
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

    /// Returns the next components; `None` if none are left.
    fn next(
        &mut self,
        ctx: &JobCtx,
        (room, size): (&mut Room, &mut PageSize),
    ) -> Result<Option<Vec<Stored<StoredComponent>>>, JobError> {
        if !self.components.is_empty() {
            let mut left = std::mem::take(&mut self.components);
            self.components = left.split_off(left.len().min(size.limit() as usize));
            let components = ctx.documents::<StoredComponent>().get_many(left)?;
            size.learn(&components, room);
            return Ok(Some(components));
        }
        let cursor = self.cursor.take();
        let (mut components, next) = match (self.packages.first(), self.names.first()) {
            (Some(package), _) => of_package(ctx, package, cursor, size)?,
            (None, Some(name)) => under_name(ctx, name, cursor, size)?,
            (None, None) => return Ok(None),
        };
        // Under a name, a match was read for each component.
        room.spend(components.len() + QUESTION);
        size.learn(&components, room);
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
    let (mut room, mut size) = (Room::default(), PageSize::of(ctx));
    let mut alerts = Alerts::default();
    let mut done = false;
    while !done && room.is_ample() {
        match job.next(ctx, (&mut room, &mut size))? {
            Some(components) => {
                let left = look_again(ctx, components, &mut room, &mut alerts)?;
                job.components.splice(0..0, left);
            }
            None => done = true,
        }
    }
    alerts.publish(ctx);
    Ok(if done { Outcome::Done } else { Outcome::Continue(job) })
}

/// A page of components and the cursor of the next one.
type ComponentPage = (Vec<Stored<StoredComponent>>, Option<String>);

fn of_package(
    ctx: &JobCtx,
    package: &str,
    cursor: Option<String>,
    size: &PageSize,
) -> Result<ComponentPage, JobError> {
    let components = ctx.documents::<StoredComponent>().query().equals("latest", true);
    let components = components.equals("package_key", package).ascending("package_key");
    let page = components.cursor(cursor).limit(size.limit()).page()?;
    Ok((page.items, page.next_cursor))
}

fn under_name(
    ctx: &JobCtx,
    name: &str,
    cursor: Option<String>,
    size: &PageSize,
) -> Result<ComponentPage, JobError> {
    let found = ctx.documents::<StoredMatch>().query().equals("advisory_key", name);
    let found = found.equals("latest", true).ascending("name");
    let page = found.cursor(cursor).limit(size.limit()).page()?;
    let ids = page.items.iter().map(|found| &found.component_id);
    Ok((ctx.documents::<StoredComponent>().get_many(ids)?, page.next_cursor))
}

/// Reassesses components as far as there is room, and stores changes. Returns the ids of those that
/// are left. Large ones are left to a separate job.
pub(crate) fn look_again(
    ctx: &JobCtx,
    mut components: Vec<Stored<StoredComponent>>,
    room: &mut Room,
    alerts: &mut Alerts,
) -> Result<Vec<String>, JobError> {
    let mut together = components.len();
    let looked = loop {
        let found: Vec<&StoredComponent> =
            components.iter().take(together).map(|stored| &stored.value).collect();
        match matching::assess(ctx, &found, room)? {
            AssessedComponents::Some(assessments) => {
                break keep_changes(ctx, &mut components, &assessments, (room, alerts))?;
            }
            AssessedComponents::Large(package) => {
                break leave_large(ctx, &mut components, package)?;
            }
            AssessedComponents::TooMany => together = (together / 8).max(1),
        }
    };
    Ok(components.split_off(looked).into_iter().map(|left| left.id).collect())
}

/// Stores changes of the first components, which are assessed. Returns how many of them are done.
fn keep_changes(
    ctx: &JobCtx,
    components: &mut [Stored<StoredComponent>],
    assessments: &[Assessment],
    (room, alerts): (&mut Room, &mut Alerts),
) -> Result<usize, JobError> {
    let mut looked = 0;
    for (component, assessment) in components.iter_mut().zip(assessments) {
        let cost = 2 * matches::keys_cost(ctx, component)? + assessment.cost();
        let fits = room.take(cost);
        if !fits && looked > 0 {
            break;
        }
        if fits && !component.unfinished {
            keep_change(ctx, component, assessment, alerts)?;
        } else {
            large::raise(ctx, Subject::Component(component.id.clone()))?;
        }
        looked += 1;
    }
    Ok(looked)
}

fn keep_change(
    ctx: &JobCtx,
    component: &mut Stored<StoredComponent>,
    assessment: &Assessment,
    alerts: &mut Alerts,
) -> Result<(), JobError> {
    let before = matches::keys(ctx, component)?;
    // Components with many advisories show only some of them.
    if !matches::apply(component, assessment) && component.advisory_count.is_none() {
        return Ok(());
    }
    for found in &assessment.vulnerabilities {
        if !found.names.iter().any(|name| before.binary_search(name).is_ok()) {
            alerts.add(&component.id, component, found);
        }
    }
    matches::renew(ctx, component, &before, assessment)?;
    Ok(ctx.documents().replace(component)?)
}

/// Leaves a large first component, and others of its package if that is large, to a job with
/// several steps. Returns how many are done.
fn leave_large(
    ctx: &JobCtx,
    components: &mut Vec<Stored<StoredComponent>>,
    package: Option<String>,
) -> Result<usize, JobError> {
    let Some(package) = package else {
        if let Some(first) = components.first() {
            large::raise(ctx, Subject::Component(first.id.clone()))?;
        }
        return Ok(components.len().min(1));
    };
    components.retain(|component| component.package_key.as_ref() != Some(&package));
    large::raise(ctx, Subject::Package(package))?;
    Ok(0)
}
