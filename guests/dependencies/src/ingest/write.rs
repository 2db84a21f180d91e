//! Stores the components of SBOMs with their advisories, some components in each step.

use area_sdk::prelude::*;
use area_sdk::{JobError, Scope};

use super::batch::{Batch, BatchComponent, BatchMatchOutcome};
use super::former::FormerInventoryAudit;
use super::{AuditInputFile, AuditStarted, ImportCounts, ImportStage, derived_id};
use crate::artifacts;
use crate::budget::StepBudget;
use crate::inventory::alerts::NewVulnerabilityEvents;
use crate::inventory::component::{SbomImportProperties, SourceSbom, StoredComponent};
use crate::large::{self, AdvisoryScan, AssessmentInSteps};
use crate::matching::Vulnerability;
use crate::sbom::{Component, GraphCompleteness, Sbom, identify};

/// Maximum number of components of an SBOM that are matched with advisories together.
const BATCH: usize = 500;

/// Progress of storing the components of an import's SBOMs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WriteProgress {
    /// Number of components that are matched together; `None` for the maximum. It is smaller if the
    /// maximum needs too much memory.
    width: Option<usize>,
    /// Assessment of the next component against advisories, if that needs several steps.
    large: Option<AssessmentInSteps>,
    /// Scan of the advisories for the last component that needed several steps; reused if the next
    /// such component has the same package and version.
    scan: Option<AdvisoryScan>,
    /// Number of components in the SBOMs of the import that are completely stored.
    finished: usize,
    /// Whether the import of the current SBOM has begun. It may not have stored a component yet.
    begun: bool,
}

impl WriteProgress {
    /// Returns the number of components that are matched together. It is smaller after failed
    /// attempts of the job.
    fn width(&self, ctx: &JobCtx) -> usize {
        let careful = BATCH >> (2 * ctx.attempt().saturating_sub(1)).min(8);
        self.width.unwrap_or(BATCH).min(careful).max(1)
    }
}

/// Stores the next components of the first of these SBOMs (`inputs` has indexes in the audit's
/// inputs). Returns the next stage of the import.
pub(super) fn some(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    mut inputs: Vec<usize>,
    (offset, mut writing): (usize, WriteProgress),
) -> Result<ImportStage, JobError> {
    let Some(input) = inputs.first().and_then(|at| audit.inputs.get(*at)) else {
        if let Some(scan) = writing.scan {
            scan.discard(ctx)?;
        }
        return Ok(ImportStage::Switch);
    };
    let content = artifacts::sbom_content(ctx, &input.blob)?;
    let sbom = match artifacts::sbom(&content) {
        Ok(sbom) => sbom,
        Err(error) => {
            tally.fail(input, error);
            inputs.remove(0);
            writing.begun = false;
            return Ok(ImportStage::Write { inputs, offset: 0, writing });
        }
    };
    let is_first = offset == 0 && writing.large.is_none() && !writing.begun;
    writing.begun = true;
    if is_first {
        begin(ctx, audit, tally, input, &sbom)?;
    }
    let run = run(ctx, audit, tally, input, &sbom)?;
    if let Some(commit_sha) = run.commit_sha.as_deref().filter(|_| is_first) {
        audit.note_commit(ctx, commit_sha)?;
    }
    let mut writer = ComponentWriter::new(ctx, audit, &run, &mut writing)?;
    let end = writer.write(tally, (&sbom, offset))?;
    writer.alerts.publish(ctx);
    // Each of the other files counts as one component until it is read.
    let known = writing.finished + sbom.len() + inputs.len() - 1;
    ctx.report_progress((writing.finished + end) as u64, known as u64);
    if end < sbom.len() {
        return Ok(ImportStage::Write { inputs, offset: end, writing });
    }
    inputs.remove(0);
    writing.begun = false;
    writing.finished += sbom.len();
    Ok(ImportStage::Write { inputs, offset: 0, writing })
}

/// Begins the import of an SBOM: counts the SBOM and adds its warnings.
fn begin(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    input: &AuditInputFile,
    sbom: &Sbom<'_>,
) -> Result<(), JobError> {
    audit.open_import(ctx)?;
    tally.sboms += 1;
    let further = [graph_limitation(sbom.graph), sbom.unmatchable_warning()];
    for warning in sbom.warnings.iter().chain(further.iter().flatten()) {
        tally.warn(format!("{}: {warning}", input.filename));
    }
    Ok(())
}

/// Returns the limitation of an SBOM whose dependency graph is missing or incomplete; `None` for a
/// complete one.
fn graph_limitation(graph: GraphCompleteness) -> Option<String> {
    match graph {
        GraphCompleteness::Rooted => None,
        GraphCompleteness::Absent => Some(
            "The SBOM has no dependency graph, so it is not known whether this is a direct \
             dependency.",
        ),
        GraphCompleteness::Rootless => Some(
            "The SBOM's dependency graph does not say what its subject itself depends on, so it \
             is not known whether this is a direct dependency.",
        ),
    }
    .map(ToOwned::to_owned)
}

fn run(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &ImportCounts,
    input: &AuditInputFile,
    sbom: &Sbom<'_>,
) -> Result<SbomImportProperties, JobError> {
    let subject = sbom.subject.as_ref();
    Ok(SbomImportProperties {
        latest: audit.may_become_head(ctx)?,
        repository_id: audit.repository_id,
        branch_ref: audit.branch_ref.clone(),
        commit_sha: audit.commit_sha.clone().or_else(|| input.commit_sha.clone()),
        audit_id: audit.audit_id,
        scanner_run_id: audit.derived_id(ctx, &format!("run\n{}", input.content_sha256)),
        artifact_sha256: input.content_sha256.clone(),
        subject_digest: subject.and_then(|subject| subject.digest.clone()),
        observed_at: sbom.created_at.filter(|at| *at <= input.ready_at).unwrap_or(input.ready_at),
        source_scope: SourceSbom {
            format: sbom.format,
            spec_version: sbom.spec_version.clone(),
            subject: subject.map(|subject| subject.key.clone()),
            tool: sbom.tool.clone(),
            filename: input.filename.clone(),
            upload_id: input.upload_id,
        },
        case_known: sbom.case_known,
        limitations: graph_limitation(sbom.graph).into_iter().chain(tally.limits(input)).collect(),
    })
}

impl AuditStarted {
    /// Returns an id derived from the audit and a text (UUIDv7), so that a repeated run of the
    /// import creates the same id.
    fn derived_id(&self, scope: &Scope, what: &str) -> Uuid {
        derived_id(scope, self.started_at, &format!("{}\n{what}", self.audit_id))
    }
}

/// Stores components of an SBOM in one step of the import.
struct ComponentWriter<'a> {
    ctx: &'a JobCtx,
    audit: &'a AuditStarted,
    run: &'a SbomImportProperties,
    writing: &'a mut WriteProgress,
    former: Option<FormerInventoryAudit>,
    budget: StepBudget,
    alerts: NewVulnerabilityEvents,
}

impl<'a> ComponentWriter<'a> {
    fn new(
        ctx: &'a JobCtx,
        audit: &'a AuditStarted,
        run: &'a SbomImportProperties,
        writing: &'a mut WriteProgress,
    ) -> Result<Self, JobError> {
        let former = FormerInventoryAudit::of(ctx, audit)?;
        let (budget, alerts) = (StepBudget::default(), NewVulnerabilityEvents::default());
        Ok(Self { ctx, audit, run, writing, former, budget, alerts })
    }

    /// Stores components of the SBOM until the budget of the step is used. Returns the index of the
    /// next component.
    fn write(
        &mut self,
        tally: &mut ImportCounts,
        (sbom, offset): (&Sbom<'_>, usize),
    ) -> Result<usize, JobError> {
        let mut at = offset;
        while at < sbom.len() && self.budget.is_ample() {
            if self.writing.large.is_some() {
                at += usize::from(self.write_large(tally)?);
                continue;
            }
            let width = self.writing.width(self.ctx);
            let components = sbom.components(at..at + width).into_iter();
            let named =
                components.map(|component| named(self.ctx, self.audit, self.run, component));
            let named = named.collect();
            match Batch::assess(self.ctx, named, tally.sboms > 1, &mut self.budget)? {
                BatchMatchOutcome::Batch(batch) => match self.write_batch(tally, batch)? {
                    Ok(kept) => at += kept,
                    // The next step has the budget for this component, unless it is the first one
                    // of this step.
                    Err(_) if at > offset => break,
                    Err(first) => self.begin_large(tally, *first)?,
                },
                BatchMatchOutcome::Large(member) => self.begin_large(tally, *member)?,
                BatchMatchOutcome::TooMany => {
                    self.writing.width = Some((width / 8).max(1));
                    break;
                }
            }
        }
        Ok(at)
    }

    /// Stores those components of a batch that fit into the step's budget. Returns their number; if
    /// not even the first fits, that component as inner error.
    fn write_batch(
        &mut self,
        tally: &mut ImportCounts,
        mut batch: Batch,
    ) -> Result<Result<usize, Box<BatchComponent>>, JobError> {
        if let Err(first) = batch.fit(&mut self.budget) {
            return Ok(Err(first));
        }
        Ok(Ok(batch.keep(self.ctx, self.former.as_ref(), tally, &mut self.alerts)?))
    }

    fn begin_large(
        &mut self,
        tally: &mut ImportCounts,
        member: BatchComponent,
    ) -> Result<(), JobError> {
        self.writing.large = Some(member.begin(self.ctx, tally, &mut self.budget)?);
        Ok(())
    }

    /// Continues the assessment of a component that needs several steps. Returns true when the
    /// component is finished.
    fn write_large(&mut self, tally: &mut ImportCounts) -> Result<bool, JobError> {
        let Some(mut large) = self.writing.large.take() else { return Ok(true) };
        let owner = self.audit.audit_id.to_string();
        match large.step(self.ctx, &owner, &mut self.writing.scan, &mut self.budget)? {
            large::AssessmentStepResult::GoOn => {}
            large::AssessmentStepResult::PartlyAssessed(kept) => {
                tally.add_advisories(&kept.vulnerabilities);
                self.alert(&kept)?;
            }
            large::AssessmentStepResult::Finished(component) => {
                if let Some(component) = component {
                    tally.add(&component);
                }
                return Ok(true);
            }
        }
        self.writing.large = Some(large);
        Ok(false)
    }

    /// Adds alerts for vulnerabilities that are neither in the former inventory nor in another SBOM
    /// of the audit.
    fn alert(&mut self, kept: &large::PartlyAssessedComponent) -> Result<(), JobError> {
        if !kept.component.latest {
            return Ok(());
        }
        let component = &kept.component;
        let mut fresh: Vec<&Vulnerability> = match &self.former {
            Some(former) => {
                let all = (&component.value, &kept.vulnerabilities[..]);
                former.unknown(self.ctx, vec![all])?.into_iter().flatten().collect()
            }
            None => kept.vulnerabilities.iter().collect(),
        };
        fresh.retain(|found| found.names.is_disjoint(&kept.known));
        for found in fresh {
            self.alerts.add(&component.id, component, found);
        }
        Ok(())
    }
}

/// Returns a component of an SBOM in its stored form, with its document id.
fn named(
    ctx: &JobCtx,
    audit: &AuditStarted,
    run: &SbomImportProperties,
    component: Component,
) -> (String, StoredComponent) {
    let who = identify(component.purl.as_ref(), &component.name, component.version.as_deref());
    let branch = run.branch_ref.as_deref().unwrap_or_default();
    let identity = ctx.sha256_hex(format!("{}\n{branch}\n{who}", run.repository_id).as_bytes());
    let id = audit.derived_id(ctx, &identity).to_string();
    (id, StoredComponent::new(run, component, identity))
}
