//! Observations on their way from the file to the findings: kept as blobs of
//! two hundred, so that a file is read once and each step is a short one.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::ImportFindings;
use crate::observation::Observation;

/// Observations of a chunk: what one step matches.
pub(super) const CHUNK: usize = 200;

/// A larger one would not fit into this area's memory.
const MOST_BYTES: u64 = 64 << 20;

/// Observations of one analysis in one source.
#[derive(Serialize, Deserialize)]
pub(super) struct Chunk {
    /// Which of the audit's parts.
    pub(super) part: usize,
    /// When their evidence came.
    pub(super) ready_at: Timestamp,
    pub(super) commit_sha: Option<String>,
    pub(super) evidence_ids: Vec<Uuid>,
    pub(super) observations: Vec<Observation>,
}

fn name(audit_id: Uuid, chunk: u32) -> String {
    format!("imports/{audit_id}/{chunk}")
}

/// Keeps a chunk as the audit's next, unless there is nothing in it.
pub(super) fn keep(
    ctx: &JobCtx,
    job: &mut ImportFindings,
    chunk: &mut Chunk,
) -> Result<(), JobError> {
    if chunk.observations.is_empty() {
        return Ok(());
    }
    let content = serde_json::to_vec(chunk).map_err(|error| JobError::Fail(error.to_string()))?;
    let written = ctx.blobs().write(&name(job.audit.audit_id, job.chunks), &content);
    written.map_err(|error| JobError::Retry(format!("blobs: {error:?}")))?;
    job.chunks += 1;
    chunk.observations.clear();
    Ok(())
}

/// A chunk, which is not kept any longer.
pub(super) fn take(ctx: &JobCtx, audit_id: Uuid, chunk: u32) -> Result<Chunk, JobError> {
    let name = name(audit_id, chunk);
    let away = |error| JobError::Retry(format!("blobs: {error:?}"));
    let content = ctx.blobs().read_all(&name, MOST_BYTES).map_err(away)?;
    ctx.blobs().delete(&name).map_err(away)?;
    serde_json::from_slice(&content).map_err(|error| JobError::Fail(format!("{name}: {error}")))
}
