//! The coverage of successful runs: the paths and rules that each run checked. Stored as blobs
//! until the import has determined which findings are no longer reported.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::{FindingImportJob, PresentAnalysis};
use crate::finding::Finding;
use crate::sarif::ScanCoverage;

/// Maximum size of a stored run coverage in bytes; a larger one would exceed the memory of this
/// area.
const MOST_BYTES: u64 = 64 << 20;

fn name(audit_id: Uuid, number: u32) -> String {
    format!("imports/{audit_id}/coverage/{number}")
}

fn away(error: impl std::fmt::Debug) -> JobError {
    JobError::Retry(format!("blobs: {error:?}"))
}

/// Stores which paths and rules a successful run checked. Returns the number of this coverage
/// within the audit.
pub(super) fn keep(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    coverage: &ScanCoverage,
) -> Result<u32, JobError> {
    let content =
        serde_json::to_vec(coverage).map_err(|error| JobError::Fail(error.to_string()))?;
    let number = job.coverages;
    ctx.blobs().write(&name(job.audit.audit_id, number), &content).map_err(away)?;
    job.coverages += 1;
    Ok(number)
}

/// Deletes the stored run coverages of an import.
pub(super) fn delete(ctx: &JobCtx, job: &FindingImportJob) -> Result<(), JobError> {
    let mut numbers = 0..job.coverages;
    numbers
        .try_for_each(|number| ctx.blobs().delete(&name(job.audit.audit_id, number)).map_err(away))
}

/// Paths and rules that the successful runs of a group of analyses checked in an audit. The group
/// of a tool without a category includes all its streams.
pub(super) struct AnalysisGroupCoverage(Vec<RunCoverage>);

struct RunCoverage {
    analysis_id: String,
    /// Time at which the file of the run became ready.
    ready_at: Timestamp,
    coverage: ScanCoverage,
}

impl AnalysisGroupCoverage {
    /// Reads the coverages of all runs of a group of analyses in this audit.
    pub(super) fn read(
        ctx: &JobCtx,
        job: &FindingImportJob,
        group: &str,
    ) -> Result<Self, JobError> {
        Self::of(ctx, job, job.parts.iter().filter(|part| part.group_id == group))
    }

    /// Reads the coverages of runs in the other streams of the group to which the analysis `part`
    /// belongs.
    pub(super) fn of_siblings(
        ctx: &JobCtx,
        job: &FindingImportJob,
        part: &PresentAnalysis,
    ) -> Result<Self, JobError> {
        let siblings = job.parts.iter().filter(|other| {
            other.group_id == part.group_id && other.analysis_id != part.analysis_id
        });
        Self::of(ctx, job, siblings)
    }

    fn of<'a>(
        ctx: &JobCtx,
        job: &FindingImportJob,
        parts: impl Iterator<Item = &'a PresentAnalysis>,
    ) -> Result<Self, JobError> {
        let mut runs = Vec::new();
        for part in parts {
            let Some(file) = &part.file else { continue };
            for number in &part.coverages {
                let name = name(job.audit.audit_id, *number);
                let content = ctx.blobs().read_all(&name, MOST_BYTES).map_err(away)?;
                let coverage = serde_json::from_slice(&content)
                    .map_err(|error| JobError::Fail(format!("{name}: {error}")))?;
                let (analysis_id, ready_at) = (part.analysis_id.clone(), file.ready_at);
                runs.push(RunCoverage { analysis_id, ready_at, coverage });
            }
        }
        Ok(Self(runs))
    }

    /// Returns the time at which the newest file became ready whose run checked the finding's files
    /// after the finding was last reported; `None` if there is no such file. Ignores a stream that
    /// did not report the finding while another stream did, because that stream scans other paths
    /// or rules.
    pub(super) fn newer_look(&self, finding: &Finding) -> Option<Timestamp> {
        let looks = self.0.iter().filter(|run| {
            finding.was_shown_before(run.ready_at)
                && !finding.is_overlooked_by(&run.analysis_id)
                && run.coverage.includes(&finding.rule_id, &finding.paths)
        });
        looks.map(|run| run.ready_at).max()
    }

    /// Whether a run checked the finding's files whose own file became ready after this time.
    pub(super) fn looked_after(&self, ready_at: Timestamp, finding: &Finding) -> bool {
        self.0.iter().any(|run| {
            run.ready_at > ready_at && run.coverage.includes(&finding.rule_id, &finding.paths)
        })
    }

    /// Stores in the finding which of these analyses scanned its files without reporting the
    /// finding, while another analysis reported it.
    pub(super) fn note_overlooked(&self, finding: &mut Finding) {
        for run in &self.0 {
            if run.coverage.includes(&finding.rule_id, &finding.paths) {
                finding.overlooked_by(&run.analysis_id);
            }
        }
    }
}
