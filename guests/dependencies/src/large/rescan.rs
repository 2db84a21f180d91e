//! Assesses components again in several steps, after advisories changed. Changes that arrive while
//! such a job waits are handled by the same job.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::revision::{self, ReassessmentTarget};
use super::{AdvisoryScan, AssessmentInSteps, AssessmentStepResult};
use crate::budget::StepBudget;
use crate::ingest;
use crate::inventory::alerts::NewVulnerabilityEvents;
use crate::inventory::component::StoredComponent;

/// Number of components that the job reads at a time; some are large.
const PAGE: u32 = 10;

/// Job that assesses one component with many advisories, or all latest components of a package,
/// again in several steps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LargeReassessmentJob {
    subject: ReassessmentTarget,
    /// Revision of the component or package (`subject`) when the job began; `None` before its first
    /// step.
    revision: Option<u64>,
    /// Ids of components of the current page that are not assessed yet.
    components: Vec<String>,
    /// Cursor of the package's next page of components; `None` before the first page.
    cursor: Option<String>,
    has_all: bool,
    current: Option<AssessmentInSteps>,
    scan: Option<AdvisoryScan>,
}

job!(LargeReassessmentJob, "rescan");

impl LargeReassessmentJob {
    pub(super) fn new(subject: ReassessmentTarget) -> Self {
        Self {
            subject,
            revision: None,
            components: Vec::new(),
            cursor: None,
            has_all: false,
            current: None,
            scan: None,
        }
    }

    /// Reads the ids of the next components to assess. Returns whether there are any.
    fn find(&mut self, ctx: &JobCtx, budget: &mut StepBudget) -> Result<bool, JobError> {
        while self.components.is_empty() && !self.has_all {
            budget.spend(PAGE as usize);
            match &self.subject {
                ReassessmentTarget::Component(id) => {
                    let found = ctx.documents::<StoredComponent>().find(id)?;
                    let ready = found.filter(|component| !component.unfinished);
                    self.components.extend(ready.map(|component| component.id));
                    self.has_all = true;
                }
                ReassessmentTarget::Package(key) => {
                    let found = ctx.documents::<StoredComponent>().query();
                    let found = found.equals("latest", true).equals("package_key", key);
                    let found = found.ascending("package_key").cursor(self.cursor.take());
                    let page = found.limit(PAGE).page()?;
                    // A component whose import has not ended is omitted: the import checks the
                    // revision itself.
                    let ready = page.items.into_iter().filter(|component| !component.unfinished);
                    self.components.extend(ready.map(|component| component.id));
                    self.has_all = page.next_cursor.is_none();
                    self.cursor = page.next_cursor;
                }
            }
        }
        Ok(!self.components.is_empty())
    }

    /// Continues the assessment of the current component, or begins the next one.
    fn assess(
        &mut self,
        ctx: &JobCtx,
        budget: &mut StepBudget,
        alerts: &mut NewVulnerabilityEvents,
    ) -> Result<(), JobError> {
        let owner = format!("rescan/{}", ctx.job_id());
        let mut current = match self.current.take() {
            Some(current) => current,
            None => AssessmentInSteps::new(self.components.remove(0), false),
        };
        match current.step(ctx, &owner, &mut self.scan, budget)? {
            AssessmentStepResult::GoOn => self.current = Some(current),
            AssessmentStepResult::PartlyAssessed(kept) => {
                let causes_alert =
                    kept.component.latest && ingest::causes_alert(ctx, &kept.component)?;
                for found in &kept.vulnerabilities {
                    if causes_alert && found.names.is_disjoint(&kept.known) {
                        alerts.add(&kept.component.id, &kept.component, found);
                    }
                }
                self.current = Some(current);
            }
            AssessmentStepResult::Finished(_) => {}
        }
        Ok(())
    }
}

pub(crate) fn run(ctx: &JobCtx, mut job: LargeReassessmentJob) -> JobResult<LargeReassessmentJob> {
    let mut budget = StepBudget::default();
    let mut alerts = NewVulnerabilityEvents::default();
    if job.revision.is_none() {
        job.revision = Some(revision::of(ctx, &job.subject)?);
    }
    while budget.is_ample() {
        if job.current.is_some() || job.find(ctx, &mut budget)? {
            job.assess(ctx, &mut budget, &mut alerts)?;
        } else {
            alerts.publish(ctx);
            return end(ctx, job);
        }
    }
    alerts.publish(ctx);
    Ok(Outcome::Continue(job))
}

fn end(ctx: &JobCtx, job: LargeReassessmentJob) -> JobResult<LargeReassessmentJob> {
    if let Some(scan) = job.scan {
        scan.discard(ctx)?;
    }
    if revision::hold(ctx, &job.subject, job.revision.unwrap_or_default())? {
        return Ok(Outcome::Done);
    }
    Ok(Outcome::Continue(LargeReassessmentJob::new(job.subject)))
}
