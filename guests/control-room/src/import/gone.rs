//! Determines which findings are gone: an analysis reported them before, and a later successful run
//! that covers them does not. A run covers a finding if it belongs to the same analysis (for a tool
//! without a category: to the same artifact stream), or if it belongs to the same tool and lists
//! all files of the finding.
//!
//! A finding that another analysis (of another category, stream or branch) still reports stays
//! present, and moves to that analysis.

use std::collections::BTreeMap;

use area_sdk::JobError;
use area_sdk::Value;
use area_sdk::prelude::*;

use super::absent::{self, AbsentAnalysis};
use super::analysis::{self, AnalysisSeries};
use super::coverage::AnalysisGroupCoverage;
use super::events::{self, ChangedFinding, FindingsVerified};
use super::{FindingImportJob, ImportStep, PresentAnalysis};
use crate::finding::Finding;
use crate::state::{Actor, FindingState};
use crate::transition::{PendingTransition, StoredTransition, pass};

/// Maximum number of missing findings that one job step checks.
const STEP: u32 = 200;

/// An analysis whose present findings that this audit did not report are checked. It has a run in
/// this audit or is absent from it.
#[derive(Clone, Debug)]
struct AnalysisToCheck {
    analysis_id: String,
    group_id: String,
    /// Text that names the analysis in warnings, for example `Semgrep of category backend`.
    description: String,
    /// Number of the analysis's run in this audit; `None` if it has no run.
    run: Option<i64>,
    /// Time at which the file became ready that covers the whole analysis in this audit; `None` if
    /// no file does.
    whole_since: Option<Timestamp>,
}

/// Checks the next findings of an analysis that this audit did not report. Returns the next step of
/// the job.
pub(super) fn step(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    at: usize,
    cursor: Option<String>,
    left: u64,
) -> Result<ImportStep, JobError> {
    if job.absent.is_none() {
        job.absent = Some(absent::find(ctx, job)?);
    }
    let Some(suspect) = suspect(job, at) else {
        return Ok(ImportStep::Duplicates { cursor: None });
    };
    let covered = job.parts.iter().any(|part| part.group_id == suspect.group_id && part.successful);
    if !covered {
        let left = suspect.not_reported(ctx).count()?;
        return end(ctx, job, at, &suspect, left);
    }
    let missed = suspect.not_reported(ctx).ascending("analysis_run").limit(STEP);
    let missed = missed.cursor(cursor).page()?;
    let next = missed.next_cursor;
    let left = left + look(ctx, job, &suspect, missed.items)?;
    match next {
        Some(_) => Ok(ImportStep::Gone { part: at, cursor: next, left }),
        None => end(ctx, job, at, &suspect, left),
    }
}

/// Returns the analysis at an index of those to check: first those with a run in this audit, then
/// the absent ones.
fn suspect(job: &FindingImportJob, at: usize) -> Option<AnalysisToCheck> {
    let part = |part: &PresentAnalysis| AnalysisToCheck {
        analysis_id: part.analysis_id.clone(),
        group_id: part.group_id.clone(),
        description: part.key.to_string(),
        run: Some(part.run),
        whole_since: part.whole_since(job.audit.started_at),
    };
    let absent = |absent: &AbsentAnalysis| AnalysisToCheck {
        analysis_id: absent.analysis_id.clone(),
        group_id: absent.group_id.clone(),
        description: absent.description.clone(),
        run: None,
        whole_since: None,
    };
    let absents = job.absent.iter().flatten();
    job.parts.iter().map(part).chain(absents.map(absent)).nth(at)
}

impl AnalysisToCheck {
    /// Returns a query for the analysis's present findings that no run of it in this audit
    /// reported.
    fn not_reported<'a>(&self, ctx: &'a JobCtx) -> area_sdk::Query<'a, Finding> {
        let present = ctx.documents::<Finding>().query();
        let present = present.equals("analysis_id", &self.analysis_id).equals("present", true);
        match self.run {
            Some(run) => present.range("analysis_run", None, Some(Value::Integer(run))),
            None => present,
        }
    }
}

/// Decides which of the findings in `missed`, which no run of this audit reported, are gone.
/// Returns the number of findings that stay present because no run checked their files.
fn look(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    suspect: &AnalysisToCheck,
    missed: Vec<Stored<Finding>>,
) -> Result<u64, JobError> {
    if missed.is_empty() {
        return Ok(0);
    }
    let covered = AnalysisGroupCoverage::read(ctx, job, &suspect.group_id)?;
    let others = OtherReportingAnalyses::of(ctx, job, &missed)?;
    let mut outcome = GoneFindingWrites::default();
    for mut finding in missed {
        let Some(look) = CoveringRun::at(suspect, &covered, &finding) else {
            outcome.left += 1;
            continue;
        };
        if let Some(id) = finding.handed_over(&look, suspect, &others) {
            outcome.heirs.push(id);
        } else {
            finding.present = false;
            finding.gone_at = Some(look.ready_at);
            job.tally.gone += 1;
            outcome.verify(ctx, job, suspect, &mut finding);
        }
        outcome.changed.push(finding);
    }
    let left = outcome.left;
    outcome.keep(ctx, job, others)?;
    Ok(left)
}

/// A run of this audit that would have reported a finding if it still existed.
struct CoveringRun {
    ready_at: Timestamp,
    /// Whether the run covers the finding in all streams of the tool, and not only in its own
    /// stream.
    of_group: bool,
}

impl CoveringRun {
    fn at(
        suspect: &AnalysisToCheck,
        covered: &AnalysisGroupCoverage,
        finding: &Finding,
    ) -> Option<Self> {
        let in_group = covered.newer_look(finding);
        let own = suspect.whole_since.filter(|ready_at| finding.was_shown_before(*ready_at));
        let group = in_group.map(|ready_at| Self { ready_at, of_group: true });
        group.or(own.map(|ready_at| Self { ready_at, of_group: false }))
    }
}

/// Other analyses that reported some of the findings that a job step checks.
struct OtherReportingAnalyses {
    analyses: BTreeMap<String, Stored<AnalysisSeries>>,
    /// Number of the analysis's run in this audit, by id of the analysis.
    now: BTreeMap<String, i64>,
}

impl OtherReportingAnalyses {
    fn of(
        ctx: &JobCtx,
        job: &FindingImportJob,
        findings: &[Stored<Finding>],
    ) -> Result<Self, JobError> {
        let mut ids: Vec<&String> = findings.iter().flat_map(|one| one.also_seen.keys()).collect();
        ids.sort_unstable();
        ids.dedup();
        let analyses = ctx.documents::<AnalysisSeries>().get_many(ids)?;
        Ok(Self {
            analyses: analyses.into_iter().map(|one| (one.id.clone(), one)).collect(),
            now: job.parts.iter().map(|part| (part.analysis_id.clone(), part.run)).collect(),
        })
    }

    /// Whether the analysis `id`, whose run with the number `run` reported the finding, still
    /// reports it.
    fn shows(&self, id: &str, run: i64, look: &CoveringRun, suspect: &AnalysisToCheck) -> bool {
        let Some(analysis) = self.analyses.get(id) else { return false };
        let now = self.now.get(id) == Some(&run);
        let looked_at = look.of_group && analysis.group(id) == suspect.group_id;
        now || (run >= analysis.good_run && !looked_at)
    }
}

impl Finding {
    /// Assigns the finding to another analysis that still reports it, and returns the id of that
    /// analysis; `None` if no analysis does.
    fn handed_over(
        &mut self,
        look: &CoveringRun,
        suspect: &AnalysisToCheck,
        others: &OtherReportingAnalyses,
    ) -> Option<String> {
        let all = std::mem::take(&mut self.also_seen).into_iter();
        let mut left: Vec<(String, i64)> =
            all.filter(|(id, run)| others.shows(id, *run, look, suspect)).collect();
        let (id, run) = left.pop()?;
        (self.analysis_id, self.analysis_run) = (id.clone(), run);
        self.also_seen = left.into_iter().collect();
        Some(id)
    }
}

/// Changes of missing findings that a job step collects and writes at its end.
#[derive(Default)]
struct GoneFindingWrites {
    changed: Vec<Stored<Finding>>,
    transitions: Vec<StoredTransition>,
    verified: Vec<ChangedFinding>,
    /// Ids of the analyses to which findings were assigned.
    heirs: Vec<String>,
    left: u64,
}

impl GoneFindingWrites {
    /// Changes the state of a finding that is gone to verified, if it is open. Findings in other
    /// states keep the user's decision.
    fn verify(
        &mut self,
        ctx: &JobCtx,
        job: &FindingImportJob,
        suspect: &AnalysisToCheck,
        finding: &mut Stored<Finding>,
    ) {
        if !finding.state.next(Actor::Service).contains(&FindingState::Verified) {
            return;
        }
        let reason = match suspect.run {
            Some(_) => format!("{} ran without it.", finding.tool),
            None => format!("{} ran over its files without it.", finding.tool),
        };
        let change =
            PendingTransition::by_audit(FindingState::Verified, job.audit.audit_id, &reason, &[]);
        let id = finding.uuid();
        self.transitions.push(pass(ctx, id, finding, change));
        self.verified.push(ChangedFinding::of(id, finding));
    }

    fn keep(
        self,
        ctx: &JobCtx,
        job: &FindingImportJob,
        others: OtherReportingAnalyses,
    ) -> Result<(), JobError> {
        ctx.documents().replace_all(&self.changed)?;
        let records = self.transitions.iter().map(|one| (one.record.id, one));
        ctx.documents::<StoredTransition>().create_all(records)?;
        let idle = |one: &Stored<AnalysisSeries>| one.idle && self.heirs.contains(&one.id);
        for mut analysis in others.analyses.into_values().filter(idle) {
            analysis.idle = false;
            ctx.documents().replace(&mut analysis)?;
        }
        let (audit_id, repository_id) = (job.audit.audit_id, job.audit.repository_id);
        events::publish(ctx, audit_id, repository_id, self.verified, FindingsVerified);
        Ok(())
    }
}

/// Ends the check of an analysis and warns about its findings that no run covered. Returns the next
/// step of the job.
fn end(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    at: usize,
    suspect: &AnalysisToCheck,
    left: u64,
) -> Result<ImportStep, JobError> {
    match job.parts.get(at) {
        Some(part) if part.successful && !part.partial => analysis::settle(ctx, part)?,
        None if left == 0 => absent::set_idle(ctx, &suspect.analysis_id, true)?,
        Some(_) | None => {}
    }
    if left > 0 {
        let (findings, stay) = if left == 1 { ("finding", "stays") } else { ("findings", "stay") };
        job.tally.warn(format!(
            "{left} {findings} of {} {stay} as before: no newer run in this audit looked at the \
             files.",
            suspect.description
        ));
    }
    Ok(ImportStep::Gone { part: at + 1, cursor: None, left: 0 })
}
