//! After advisories changed: assesses again the latest components of the affected packages, and
//! those with matches under names of the advisories, some pages in each step.

use std::collections::BTreeSet;

use area_sdk::JobError;
use area_sdk::prelude::*;

use crate::budget::{AdaptiveBatchSize, StepBudget};
use crate::ingest;
use crate::inventory::alerts::NewVulnerabilityEvents;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, StoredMatch};
use crate::large::{self, ReassessmentTarget};
use crate::matching::{self, BatchAssessmentOutcome, ComponentAssessment};

/// Estimated cost of a query, counted in documents of a step's budget.
const QUESTION: usize = 100;

/// Maximum number of documents that are read to decide whether a component causes alerts.
const ALERT_COST: usize = 3;

/// Job that assesses components again after advisories for their packages, or with names that they
/// match, changed.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReevaluationJob {
    /// Keys of the packages whose components remain; the first one is the current one.
    packages: Vec<String>,
    /// Advisory names whose matching components remain; searched after all packages.
    names: Vec<String>,
    cursor: Option<String>,
    /// Ids of components that were read and not assessed yet.
    #[serde(default)]
    components: Vec<String>,
    /// Keys of packages whose components were assessed; these components are skipped when they are
    /// found by name.
    #[serde(default)]
    looked_at: BTreeSet<String>,
}

job!(ReevaluationJob, "reevaluate");

impl ReevaluationJob {
    pub(crate) fn new(packages: BTreeSet<String>, names: BTreeSet<String>) -> Self {
        let (packages, names) = (packages.into_iter().collect(), names.into_iter().collect());
        Self { packages, names, cursor: None, components: Vec::new(), looked_at: BTreeSet::new() }
    }

    /// Returns the next components to assess; `None` if no component is left.
    fn next(
        &mut self,
        ctx: &JobCtx,
        (budget, size): (&mut StepBudget, &mut AdaptiveBatchSize),
    ) -> Result<Option<Vec<Stored<StoredComponent>>>, JobError> {
        if !self.components.is_empty() {
            let mut left = std::mem::take(&mut self.components);
            self.components = left.split_off(left.len().min(size.limit() as usize));
            let components = ctx.documents::<StoredComponent>().get_many(left)?;
            size.learn(&components, budget);
            return Ok(Some(components));
        }
        let cursor = self.cursor.take();
        let (mut components, next) = match (self.packages.first(), self.names.first()) {
            (Some(package), _) => of_package(ctx, package, cursor, size)?,
            (None, Some(name)) => under_name(ctx, name, cursor, size)?,
            (None, None) => return Ok(None),
        };
        // Add the cost of the query, and of the matches by which components were found.
        budget.spend(components.len() + QUESTION);
        size.learn(&components, budget);
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

pub(crate) fn run(ctx: &JobCtx, mut job: ReevaluationJob) -> JobResult<ReevaluationJob> {
    let (mut budget, mut size) = (StepBudget::default(), AdaptiveBatchSize::of(ctx));
    let mut alerts = NewVulnerabilityEvents::default();
    let mut done = false;
    while !done && budget.is_ample() {
        match job.next(ctx, (&mut budget, &mut size))? {
            Some(components) => {
                let left = look_again(ctx, components, &mut budget, &mut alerts)?;
                job.components.splice(0..0, left);
            }
            None => done = true,
        }
    }
    alerts.publish(ctx);
    Ok(if done { Outcome::Done } else { Outcome::Continue(job) })
}

/// Components on one page of a query, and the cursor of the next page.
type ComponentPage = (Vec<Stored<StoredComponent>>, Option<String>);

fn of_package(
    ctx: &JobCtx,
    package: &str,
    cursor: Option<String>,
    size: &AdaptiveBatchSize,
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
    size: &AdaptiveBatchSize,
) -> Result<ComponentPage, JobError> {
    let found = ctx.documents::<StoredMatch>().query().equals("advisory_key", name);
    let found = found.equals("latest", true).ascending("name");
    let page = found.cursor(cursor).limit(size.limit()).page()?;
    let ids = page.items.iter().map(|found| &found.component_id);
    Ok((ctx.documents::<StoredComponent>().get_many(ids)?, page.next_cursor))
}

/// Assesses components against advisories again as far as the budget permits, and stores changes.
/// Returns the ids of the components that are left. Large components are left to a separate job.
pub(crate) fn look_again(
    ctx: &JobCtx,
    mut components: Vec<Stored<StoredComponent>>,
    budget: &mut StepBudget,
    alerts: &mut NewVulnerabilityEvents,
) -> Result<Vec<String>, JobError> {
    let mut together = components.len();
    let looked = loop {
        let found: Vec<&StoredComponent> =
            components.iter().take(together).map(|stored| &stored.value).collect();
        match matching::assess(ctx, &found, budget)? {
            BatchAssessmentOutcome::Some(assessments) => {
                break keep_changes(ctx, &mut components, &assessments, (budget, alerts))?;
            }
            BatchAssessmentOutcome::Large(package) => {
                break leave_large(ctx, &mut components, package)?;
            }
            BatchAssessmentOutcome::TooMany => together = (together / 8).max(1),
        }
    };
    Ok(components.split_off(looked).into_iter().map(|left| left.id).collect())
}

/// Stores the changed assessments of the first components. Returns the number of components that
/// are finished.
fn keep_changes(
    ctx: &JobCtx,
    components: &mut [Stored<StoredComponent>],
    assessments: &[ComponentAssessment],
    (budget, alerts): (&mut StepBudget, &mut NewVulnerabilityEvents),
) -> Result<usize, JobError> {
    let mut looked = 0;
    for (component, assessment) in components.iter_mut().zip(assessments) {
        let cost = 2 * matches::keys_cost(ctx, component)? + assessment.cost();
        let fits = budget.take(cost);
        if !fits && looked > 0 {
            break;
        }
        if fits && !component.unfinished {
            keep_change(ctx, component, assessment, (&mut *budget, &mut *alerts))?;
        } else {
            large::raise(ctx, ReassessmentTarget::Component(component.id.clone()))?;
        }
        looked += 1;
    }
    Ok(looked)
}

fn keep_change(
    ctx: &JobCtx,
    component: &mut Stored<StoredComponent>,
    assessment: &ComponentAssessment,
    (budget, alerts): (&mut StepBudget, &mut NewVulnerabilityEvents),
) -> Result<(), JobError> {
    let before = matches::keys(ctx, component)?;
    // A component with many advisories stores only some, so others may have changed.
    if !matches::apply(component, assessment) && component.advisory_count.is_none() {
        return Ok(());
    }
    let is_known = |name: &String| before.binary_search(name).is_ok();
    let mut new = assessment.vulnerabilities.iter().collect::<Vec<_>>();
    new.retain(|found| !found.names.iter().any(is_known));
    if !new.is_empty() {
        budget.spend(ALERT_COST);
        if ingest::causes_alert(ctx, component)? {
            for found in new {
                alerts.add(&component.id, component, found);
            }
        }
    }
    matches::renew(ctx, component, &before, assessment)?;
    Ok(ctx.documents().replace(component)?)
}

/// Enqueues the job that assesses a large first component again in several steps; if its package is
/// large, for all components of the package. Returns the number of components that are finished.
fn leave_large(
    ctx: &JobCtx,
    components: &mut Vec<Stored<StoredComponent>>,
    package: Option<String>,
) -> Result<usize, JobError> {
    let Some(package) = package else {
        if let Some(first) = components.first() {
            large::raise(ctx, ReassessmentTarget::Component(first.id.clone()))?;
        }
        return Ok(components.len().min(1));
    };
    components.retain(|component| component.package_key.as_ref() != Some(&package));
    large::raise(ctx, ReassessmentTarget::Package(package))?;
    Ok(0)
}
