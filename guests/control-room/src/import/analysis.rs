//! Analyses: one tool, in one category or artifact stream, on one branch of a repository. The runs
//! of an analysis are numbered, and a finding stores the last run that reported it.
//!
//! Before artifact streams existed, all runs of a tool without a category were one analysis. Its id
//! is now the id of the group of the tool's streams. A finding of that analysis moves to the next
//! stream that reports it, and counts as no longer reported only if a run covers its files.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::key::AnalysisKey;
use super::part::PresentAnalysis;
use super::{AuditInput, FindingImportJob};
use crate::identity::named_by;

/// One tool, in one category or artifact stream, on one branch of a repository, as stored with the
/// number of its latest run.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Analysis")]
pub(crate) struct AnalysisSeries {
    repository_id: Uuid,
    pub(super) tool: String,
    pub(super) category: String,
    /// Artifact stream of an analysis whose runs have no category; `None` for an analysis with a
    /// category.
    #[serde(default)]
    pub(super) stream: Option<String>,
    /// Id of the group that all streams of a tool without a category share; `None` for an analysis
    /// with a category.
    #[serde(default)]
    pub(super) group_id: Option<String>,
    branch_ref: String,
    /// Number of the analysis's latest run, from 1.
    run: i64,
    /// Number of the analysis's latest successful run after which missing findings were checked.
    /// The analysis no longer reports a finding if the last run that reported the finding is older.
    pub(super) good_run: i64,
    last_audit_id: Uuid,
    last_run_at: Timestamp,
    /// Time at which the analysis's newest imported file became ready; `earlier_file_ready_at` has
    /// the time of the file before that.
    #[serde(default)]
    file_ready_at: Option<Timestamp>,
    #[serde(default)]
    earlier_file_ready_at: Option<Timestamp>,
    /// Whether later audits skip the analysis when they have no run of it, because it has no
    /// present findings.
    #[serde(default)]
    pub(super) idle: bool,
}

document!(AnalysisSeries, "analyses");

impl AnalysisSeries {
    /// Returns the id of the analysis's group; for an analysis that is no stream, its own id
    /// (`id`).
    pub(super) fn group<'a>(&'a self, id: &'a str) -> &'a str {
        self.group_id.as_deref().unwrap_or(id)
    }

    /// Returns the time at which the analysis's newest imported file became ready; if no such time
    /// is stored, the time of its last run.
    pub(super) fn newest_file_at(&self) -> Timestamp {
        self.file_ready_at.unwrap_or(self.last_run_at)
    }

    /// Stores the time at which the file of a run became ready. Returns the time up to which
    /// earlier audits imported or reported the files of this analysis.
    fn note_file(&mut self, ready_at: Timestamp) -> Option<Timestamp> {
        // Analyses stored by older versions only have the time of their last run.
        let known = self.file_ready_at.or((self.run > 0).then_some(self.last_run_at));
        match known {
            Some(known) if ready_at == known => self.earlier_file_ready_at,
            Some(known) if ready_at < known => Some(known),
            known => {
                (self.file_ready_at, self.earlier_file_ready_at) = (Some(ready_at), known);
                known
            }
        }
    }
}

/// Returns an id of 32 hexadecimal digits derived from a value: half of a digest, because every
/// finding stores the id.
pub(super) fn id_of(parts: &impl Serialize) -> String {
    let mut id = named_by(parts);
    id.truncate(32);
    id
}

/// Returns the index, in the job's `parts`, of an analysis with a run in this audit. Adds the
/// analysis if it is missing; [`begin`] starts its run.
pub(super) fn part(job: &mut FindingImportJob, key: &AnalysisKey) -> Result<usize, JobError> {
    if let Some(at) = job.part_of(key) {
        return Ok(at);
    }
    let (repository_id, branch_ref) = (job.audit.repository_id, job.branch()?);
    let AnalysisKey { tool, category, stream } = key;
    let group_id = id_of(&(repository_id, tool, category, &branch_ref));
    let in_stream = |stream| id_of(&(repository_id, tool, category, &branch_ref, stream));
    let analysis_id = stream.as_ref().map_or_else(|| group_id.clone(), in_stream);
    let key = key.clone();
    job.parts.push(PresentAnalysis { analysis_id, group_id, key, ..PresentAnalysis::default() });
    Ok(job.parts.len() - 1)
}

/// Starts a run of each analysis in the job's `parts` from this index on. `file` is the file with
/// the run; `None` for evidence records.
pub(super) fn begin(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    from: usize,
    file: Option<&AuditInput>,
) -> Result<(), JobError> {
    (from..job.parts.len()).try_for_each(|part| begin_run(ctx, job, part, file))
}

fn begin_run(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    part: usize,
    file: Option<&AuditInput>,
) -> Result<(), JobError> {
    let id = job.parts[part].analysis_id.clone();
    let found = ctx.documents::<AnalysisSeries>().find(&id)?;
    let mut analysis = match &found {
        Some(found) => found.value.clone(),
        None => AnalysisSeries::new(ctx, job, &job.parts[part])?,
    };
    let reported_until = file.and_then(|file| analysis.note_file(file.ready_at));
    analysis.run += 1;
    analysis.idle = false;
    analysis.last_audit_id = job.audit.audit_id;
    analysis.last_run_at = job.audit.started_at;
    let part = &mut job.parts[part];
    (part.run, part.reported_until) = (analysis.run, reported_until);
    match found {
        None => ctx.documents().create(&id, &analysis)?,
        Some(mut found) => {
            found.value = analysis;
            ctx.documents().replace(&mut found)?;
        }
    }
    Ok(())
}

impl AnalysisSeries {
    /// Creates an analysis without a run. Files up to the last run of the tool's former analysis,
    /// from before artifact streams existed, count as imported.
    fn new(ctx: &JobCtx, job: &FindingImportJob, part: &PresentAnalysis) -> Result<Self, JobError> {
        let AnalysisKey { tool, category, stream } = part.key.clone();
        let former = match stream {
            Some(_) => ctx.documents::<Self>().find(&part.group_id)?,
            None => None,
        };
        Ok(Self {
            repository_id: job.audit.repository_id,
            tool,
            category,
            group_id: stream.as_ref().map(|_| part.group_id.clone()),
            stream,
            branch_ref: job.branch()?,
            run: 0,
            good_run: 0,
            last_audit_id: job.audit.audit_id,
            last_run_at: job.audit.started_at,
            file_ready_at: former.map(|former| former.last_run_at),
            earlier_file_ready_at: None,
            idle: false,
        })
    }
}

/// Stores that the run of an analysis was successful and that its missing findings were checked.
pub(super) fn settle(ctx: &JobCtx, part: &PresentAnalysis) -> Result<(), JobError> {
    let Some(mut known) = ctx.documents::<AnalysisSeries>().find(&part.analysis_id)? else {
        return Ok(());
    };
    known.good_run = known.good_run.max(part.run);
    Ok(ctx.documents().replace(&mut known)?)
}
