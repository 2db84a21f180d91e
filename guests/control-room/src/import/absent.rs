//! Analyses of the branch that have no run in an audit. Their findings stay unchanged, unless a run
//! of the same tool covers them.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, Scope};

use super::FindingImportJob;
use super::analysis::AnalysisSeries;
use super::key::AnalysisKey;

/// Maximum number of a branch's analyses that are read, those with the latest runs first.
const MOST: u32 = 500;

/// An analysis of the audited branch that has no run in this audit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AbsentAnalysis {
    pub(super) analysis_id: String,
    pub(super) group_id: String,
    /// Text that names the analysis in warnings, for example `Semgrep of category backend`.
    pub(super) description: String,
}

/// Returns the analyses of the audit's branch that have no run in this audit, except idle ones.
pub(super) fn find(ctx: &JobCtx, job: &FindingImportJob) -> Result<Vec<AbsentAnalysis>, JobError> {
    let all = ctx.documents::<AnalysisSeries>().query();
    let all = all.equals("repository_id", job.audit.repository_id);
    let all = all.equals("branch_ref", job.branch()?).descending("last_run_at").limit(MOST);
    let here = |id: &str| job.parts.iter().any(|part| part.analysis_id == id);
    let absent = all.list()?.into_iter().filter(|one| !one.idle && !here(&one.id));
    let absent = absent.map(|one| {
        let group_id = one.group(&one.id).to_owned();
        let AnalysisSeries { tool, category, stream, .. } = one.value;
        let description = AnalysisKey { tool, category, stream }.to_string();
        AbsentAnalysis { analysis_id: one.id, group_id, description }
    });
    Ok(absent.collect())
}

/// Marks whether an analysis is idle. An idle analysis has no present findings, and later audits
/// without a run of it skip it.
pub(crate) fn set_idle(scope: &Scope, analysis_id: &str, idle: bool) -> Result<(), DocumentError> {
    let analysis = scope.documents::<AnalysisSeries>().find(analysis_id)?;
    if let Some(mut analysis) = analysis.filter(|analysis| analysis.idle != idle) {
        analysis.idle = idle;
        scope.documents().replace(&mut analysis)?;
    }
    Ok(())
}
