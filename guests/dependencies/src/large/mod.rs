//! Components with more advisories than one call can read and write. They are assessed in several
//! steps: first the package's advisory entries are read page by page (`scan`), then the matches are
//! written in slices. The component is stored in the first step and marked as unfinished.
//!
//! Advisories may change between the steps. A change of the entries of such a package increments
//! its revision (`revision`). An assessment that ends with another revision than it began with
//! starts again.

pub(crate) mod rescan;
mod revision;
mod scan;

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope};

pub(crate) use revision::{PackageAdvisoryRevision, ReassessmentTarget, raise};
pub(crate) use scan::{AdvisoryScan, VulnerabilityChunk};

use crate::budget::StepBudget;
use crate::inventory::component::StoredComponent;
use crate::inventory::matches::{self, StoredMatch};
use crate::matching::{self, ComponentAssessment, Vulnerability};

/// State of assessing one dependency against advisories over several job steps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AssessmentInSteps {
    component_id: String,
    /// Whether the component is new, so that it has only the matches that this assessment stored.
    is_new: bool,
    stage: AssessmentStage,
}

/// Next stage of an assessment that takes several steps.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AssessmentStage {
    /// Read the advisory entries of the component's package.
    Scan,
    /// Write the matches of advisories whose id is after this one; `None` means all.
    Write { after: Option<String> },
    /// Delete matches that only former assessments of the component found, from this cursor on.
    Prune { cursor: Option<String> },
}

/// Result of one step of assessing a component with many advisories.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, and is moved once")]
pub(crate) enum AssessmentStepResult {
    /// The assessment is not finished; this step stored no matches, but former steps may have.
    GoOn,
    /// The assessment is not finished; this step stored the component's matches with some
    /// vulnerabilities.
    PartlyAssessed(PartlyAssessedComponent),
    /// The assessment is finished; `None` if the component was deleted.
    Finished(Option<Box<Stored<StoredComponent>>>),
}

/// A component, and those of its vulnerabilities whose matches a step of the assessment stored.
pub(crate) struct PartlyAssessedComponent {
    pub(crate) component: Stored<StoredComponent>,
    pub(crate) vulnerabilities: Vec<Vulnerability>,
    /// Advisory names in those of the stored matches that existed before the step.
    pub(crate) known: BTreeSet<String>,
}

impl AssessmentInSteps {
    pub(crate) fn new(component_id: String, is_new: bool) -> Self {
        Self { component_id, is_new, stage: AssessmentStage::Scan }
    }

    /// Continues the assessment as far as the budget permits. Uses the given scan of advisories
    /// again if it is of the same package and version.
    pub(crate) fn step(
        &mut self,
        ctx: &JobCtx,
        owner: &str,
        scan: &mut Option<AdvisoryScan>,
        budget: &mut StepBudget,
    ) -> Result<AssessmentStepResult, JobError> {
        let Some(component) = ctx.documents::<StoredComponent>().find(&self.component_id)? else {
            return Ok(AssessmentStepResult::Finished(None));
        };
        let scan = AdvisoryScan::of(ctx, owner, scan, &component)?;
        if !scan.is_complete && !matches!(self.stage, AssessmentStage::Scan) {
            // The package or component changed after the first matches were written.
            self.is_new = false;
            self.stage = AssessmentStage::Scan;
        }
        match std::mem::replace(&mut self.stage, AssessmentStage::Scan) {
            AssessmentStage::Scan => {
                if scan.read_some(ctx, &component, budget)? {
                    self.stage = AssessmentStage::Write { after: None };
                }
                Ok(AssessmentStepResult::GoOn)
            }
            AssessmentStage::Write { after } => self.write(ctx, scan, (component, after), budget),
            AssessmentStage::Prune { cursor } => self.prune(ctx, scan, (component, cursor), budget),
        }
    }

    fn write(
        &mut self,
        ctx: &JobCtx,
        scan: &AdvisoryScan,
        (mut component, after): (Stored<StoredComponent>, Option<String>),
        budget: &mut StepBudget,
    ) -> Result<AssessmentStepResult, JobError> {
        let assessment = assess(ctx, scan, &component, budget)?;
        if after.is_none() {
            matches::apply(&mut component, &assessment);
            ctx.documents().replace(&mut component)?;
            budget.spend(1);
        }
        let all = assessment.vulnerabilities.into_iter();
        let rest =
            all.filter(|found| after.as_ref().is_none_or(|id| found.entry.advisory_id > *id));
        let rest: Vec<Vulnerability> = rest.collect();
        let slice: Vec<Vulnerability> = rest
            .iter()
            .take_while(|found| budget.take(if self.is_new { 2 } else { 3 } * found.names.len()))
            .cloned()
            .collect();
        let known = if self.is_new {
            matches::create(ctx, [(component.id.as_str(), &component.value, &slice[..])])?;
            BTreeSet::new()
        } else {
            matches::put(ctx, &component, &slice)?
        };
        if slice.len() == rest.len() {
            self.stage = AssessmentStage::Prune { cursor: None };
        } else {
            let last = slice.last().map(|found| found.entry.advisory_id.clone());
            self.stage = AssessmentStage::Write { after: last.or(after) };
        }
        Ok(AssessmentStepResult::PartlyAssessed(PartlyAssessedComponent {
            component,
            vulnerabilities: slice,
            known,
        }))
    }

    fn prune(
        &mut self,
        ctx: &JobCtx,
        scan: &AdvisoryScan,
        (component, mut cursor): (Stored<StoredComponent>, Option<String>),
        budget: &mut StepBudget,
    ) -> Result<AssessmentStepResult, JobError> {
        let assessment = assess(ctx, scan, &component, budget)?;
        let names = assessment.names();
        while !self.is_new && budget.take(2 * PRUNED as usize) {
            let found = ctx.documents::<StoredMatch>().query();
            let found = found.equals("component_id", &component.id).ascending("advisory_key");
            let page = found.cursor(cursor).limit(PRUNED).page()?;
            let mut gone = page.items;
            gone.retain(|found| !names.contains(&found.advisory_key));
            ctx.documents().delete_all(&gone)?;
            cursor = page.next_cursor;
            if cursor.is_none() {
                return self.finish(ctx, scan, component, &assessment);
            }
        }
        if self.is_new {
            return self.finish(ctx, scan, component, &assessment);
        }
        self.stage = AssessmentStage::Prune { cursor };
        Ok(AssessmentStepResult::GoOn)
    }

    fn finish(
        &mut self,
        ctx: &JobCtx,
        scan: &AdvisoryScan,
        mut component: Stored<StoredComponent>,
        assessment: &ComponentAssessment,
    ) -> Result<AssessmentStepResult, JobError> {
        if !scan.hold(ctx, &component)? {
            self.is_new = false;
            self.stage = AssessmentStage::Scan;
            return Ok(AssessmentStepResult::GoOn);
        }
        matches::apply(&mut component, assessment);
        component.unfinished = false;
        ctx.documents().replace(&mut component)?;
        Ok(AssessmentStepResult::Finished(Some(Box::new(component))))
    }
}

/// Maximum number of matches that are read, and deleted, in one page of the stage `Prune`.
const PRUNED: u32 = 1_000;

/// Completes the assessment of the component with the results of the scan of its advisories.
fn assess(
    scope: &Scope,
    scan: &AdvisoryScan,
    component: &StoredComponent,
    budget: &mut StepBudget,
) -> Result<ComponentAssessment, DocumentError> {
    let (found, read) = scan.load(scope, component)?;
    budget.spend(read);
    matching::complete(scope, component, found, budget)
}
