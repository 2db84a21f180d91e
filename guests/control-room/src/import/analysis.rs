//! Analyses: one tool, in one category or artifact stream, on one branch of a repository. Runs of
//! an analysis are numbered, so that a finding knows the last run that showed it.
//!
//! Before artifact streams existed, runs without a category had one analysis for each tool. Its id
//! is now the id of the group of the tool's streams. A finding of it moves to the next stream that
//! shows it, and is gone only if a run covers its files.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::key::AnalysisKey;
use super::part::Part;
use super::{AuditInput, ImportFindings};
use crate::identity::named_by;

/// A stored analysis.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Analysis {
    repository_id: Uuid,
    pub(super) tool: String,
    pub(super) category: String,
    /// The artifact stream of runs without a category.
    #[serde(default)]
    pub(super) stream: Option<String>,
    /// Group id shared by the streams of a tool; `None` for other analyses.
    #[serde(default)]
    pub(super) group_id: Option<String>,
    branch_ref: String,
    /// Number of the latest run.
    run: i64,
    /// Number of the latest successful run. Findings that it did not show are gone.
    pub(super) good_run: i64,
    last_audit_id: Uuid,
    last_run_at: Timestamp,
    /// Times at which the newest file and the one before became ready.
    #[serde(default)]
    file_ready_at: Option<Timestamp>,
    #[serde(default)]
    earlier_file_ready_at: Option<Timestamp>,
    /// Whether it had no present finding in the latest audit without a run of it.
    #[serde(default)]
    pub(super) idle: bool,
}

impl Document for Analysis {
    const COLLECTION: &'static str = "analyses";
}

impl Analysis {
    /// Returns the group of an analysis with this id.
    pub(super) fn group<'a>(&'a self, id: &'a str) -> &'a str {
        self.group_id.as_deref().unwrap_or(id)
    }

    /// Stores the newest file of a run. Older files up to the returned time were imported or
    /// reported by earlier audits.
    fn note_file(&mut self, ready_at: Timestamp) -> Option<Timestamp> {
        // Analyses stored by older versions only know their last run.
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

/// Returns the id: half of a digest, because every finding stores it.
fn id_of(parts: &impl Serialize) -> String {
    let mut id = named_by(parts);
    id.truncate(32);
    id
}

/// Ids of an analysis and its group.
struct Ids {
    analysis: String,
    group: String,
}

impl Ids {
    fn of(repository_id: Uuid, key: &AnalysisKey, branch_ref: &str) -> Self {
        let AnalysisKey { tool, category, stream } = key;
        let group = id_of(&(repository_id, tool, category, branch_ref));
        let in_stream = |stream| id_of(&(repository_id, tool, category, branch_ref, stream));
        Self { analysis: stream.as_ref().map_or_else(|| group.clone(), in_stream), group }
    }
}

/// Starts a run of an analysis and returns the audit's part for it. Evidence records have no file.
pub(super) fn begin(
    ctx: &JobCtx,
    job: &mut ImportFindings,
    key: &AnalysisKey,
    file: Option<&AuditInput>,
) -> Result<usize, JobError> {
    if let Some(at) = job.part_of(key) {
        return Ok(at);
    }
    let branch_ref = job.branch()?;
    let ids = Ids::of(job.audit.repository_id, key, &branch_ref);
    let found = ctx.documents::<Analysis>().find(&ids.analysis)?;
    let mut analysis = match &found {
        Some(found) => found.value.clone(),
        None => Analysis::new(ctx, job, key, &ids, branch_ref)?,
    };
    let reported_until = file.and_then(|file| analysis.note_file(file.ready_at));
    analysis.run += 1;
    analysis.idle = false;
    analysis.last_audit_id = job.audit.audit_id;
    analysis.last_run_at = job.audit.started_at;
    job.parts.push(Part::new(key, ids.analysis.clone(), ids.group, analysis.run, reported_until));
    match found {
        None => ctx.documents().create(&ids.analysis, &analysis)?,
        Some(mut found) => {
            found.value = analysis;
            ctx.documents().replace(&mut found)?;
        }
    }
    Ok(job.parts.len() - 1)
}

impl Analysis {
    /// Creates an analysis without a run. Files up to the last run of the tool's former analysis
    /// were imported by that analysis.
    fn new(
        ctx: &JobCtx,
        job: &ImportFindings,
        key: &AnalysisKey,
        ids: &Ids,
        branch_ref: String,
    ) -> Result<Self, JobError> {
        let former = match key.stream {
            Some(_) => ctx.documents::<Self>().find(&ids.group)?,
            None => None,
        };
        Ok(Self {
            repository_id: job.audit.repository_id,
            tool: key.tool.clone(),
            category: key.category.clone(),
            stream: key.stream.clone(),
            group_id: key.stream.as_ref().map(|_| ids.group.clone()),
            branch_ref,
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

/// Stores that a run was successful and that its findings were checked.
pub(super) fn settle(ctx: &JobCtx, part: &Part) -> Result<(), JobError> {
    let Some(mut known) = ctx.documents::<Analysis>().find(&part.analysis_id)? else {
        return Ok(());
    };
    known.good_run = known.good_run.max(part.run);
    Ok(ctx.documents().replace(&mut known)?)
}
