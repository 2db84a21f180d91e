//! Analyses: one tool, in one category, over one branch of a repository. The
//! runs of an analysis are counted, so that a finding knows the last one that
//! showed it.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError};

use super::{ImportFindings, Part};
use crate::identity::named_by;
use crate::sarif::Subject;

/// An analysis as it is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Analysis {
    repository_id: Uuid,
    tool: String,
    category: String,
    branch_ref: String,
    /// The latest run.
    run: i64,
    /// The latest that ended well: what it did not show is gone.
    pub(super) good_run: i64,
    last_audit_id: Uuid,
    last_run_at: Timestamp,
}

impl Document for Analysis {
    const COLLECTION: &'static str = "analyses";
}

/// The audit's part for a subject, with a run of its own.
pub(super) fn begin(
    ctx: &JobCtx,
    job: &mut ImportFindings,
    subject: &Subject,
    successful: bool,
) -> Result<usize, JobError> {
    if let Some(at) = job.part_of(subject) {
        job.parts[at].successful |= successful;
        return Ok(at);
    }
    let branch_ref = job.surroundings()?.branch(job.audit.branch_ref.as_deref());
    let repository_id = job.audit.repository_id;
    let Subject { tool, category } = subject;
    let mut analysis_id = named_by(&(repository_id, tool, category, &branch_ref));
    // Half of a digest is as good a name, and every finding has it.
    analysis_id.truncate(32);
    let run = count_run(ctx, &analysis_id, || Analysis {
        repository_id,
        tool: tool.clone(),
        category: category.clone(),
        branch_ref,
        run: 1,
        good_run: 0,
        last_audit_id: job.audit.audit_id,
        last_run_at: job.audit.started_at,
    })?;
    let (tool, category) = (tool.clone(), category.clone());
    job.parts.push(Part { analysis_id, tool, category, run, successful });
    Ok(job.parts.len() - 1)
}

/// The number of the next run of an analysis.
fn count_run(
    ctx: &JobCtx,
    id: &str,
    first: impl FnOnce() -> Analysis,
) -> Result<i64, DocumentError> {
    let latest = first();
    let Some(mut known) = ctx.documents::<Analysis>().find(id)? else {
        ctx.documents().create(id, &latest)?;
        return Ok(latest.run);
    };
    known.run += 1;
    known.last_audit_id = latest.last_audit_id;
    known.last_run_at = latest.last_run_at;
    ctx.documents().replace(&mut known)?;
    Ok(known.run)
}

/// Notes that a run ended well and was looked through.
pub(super) fn settle(ctx: &JobCtx, part: &Part) -> Result<(), DocumentError> {
    let Some(mut known) = ctx.documents::<Analysis>().find(&part.analysis_id)? else {
        return Ok(());
    };
    known.good_run = known.good_run.max(part.run);
    ctx.documents().replace(&mut known)
}
