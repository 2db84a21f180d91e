//! Analyses: one tool, in one category or artifact stream, over one branch of a
//! repository. The runs of an analysis are counted, so that a finding knows the
//! last one that showed it.
//!
//! Before there were streams, runs without a category had one analysis for each
//! tool. Its id is that of the group which the tool's streams form now: a
//! finding of it moves to the stream that shows it next, and is gone only if a
//! run covers its files.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::key::AnalysisKey;
use super::part::Part;
use super::{AuditInput, ImportFindings};
use crate::identity::named_by;

/// An analysis as it is kept.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Analysis {
    repository_id: Uuid,
    pub(super) tool: String,
    pub(super) category: String,
    /// The artifact stream of runs without a category.
    #[serde(default)]
    pub(super) stream: Option<String>,
    /// Shared by the streams of a tool; absent from the others.
    #[serde(default)]
    pub(super) group_id: Option<String>,
    branch_ref: String,
    /// The latest run.
    run: i64,
    /// The latest that ended well: what it did not show is gone.
    pub(super) good_run: i64,
    last_audit_id: Uuid,
    last_run_at: Timestamp,
    /// When the newest file became ready, and the newest one before it.
    #[serde(default)]
    file_ready_at: Option<Timestamp>,
    #[serde(default)]
    earlier_file_ready_at: Option<Timestamp>,
    /// No finding of it is present, as of the last audit without it.
    #[serde(default)]
    pub(super) idle: bool,
}

impl Document for Analysis {
    const COLLECTION: &'static str = "analyses";
}

impl Analysis {
    /// The group of an analysis of this id.
    pub(super) fn group<'a>(&'a self, id: &'a str) -> &'a str {
        self.group_id.as_deref().unwrap_or(id)
    }

    /// Notes the newest file of a run. Older ones that came up to the returned
    /// moment were imported or reported by earlier audits.
    fn note_file(&mut self, ready_at: Timestamp) -> Option<Timestamp> {
        // Analyses from before files were noted know their last run.
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

/// Half of a digest is as good a name, and every finding has it.
fn id_of(parts: &impl Serialize) -> String {
    let mut id = named_by(parts);
    id.truncate(32);
    id
}

/// Ids of an analysis and of its group.
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

/// The audit's part for an analysis, with a run of its own; evidence records
/// come without a file.
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
    /// An analysis without a run. Files up to the last run of the tool's
    /// former analysis were looked at by that.
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

/// Notes that a run ended well and was looked through.
pub(super) fn settle(ctx: &JobCtx, part: &Part) -> Result<(), JobError> {
    let Some(mut known) = ctx.documents::<Analysis>().find(&part.analysis_id)? else {
        return Ok(());
    };
    known.good_run = known.good_run.max(part.run);
    Ok(ctx.documents().replace(&mut known)?)
}
