//! Chunks of observations between parsing and matching. A chunk is a blob with up to 200
//! observations, or more if these are equal results, so that each file is parsed once and each step
//! is short.

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::FindingImportJob;
use crate::observation::ResultObservation;

/// Number of observations in a chunk, which one job step matches with stored findings.
pub(super) const CHUNK: usize = 200;

/// Maximum number of observations in a chunk that ends with equal results. One query has at most
/// 1,000 identities.
const MOST: usize = 5 * CHUNK;

/// Maximum size of a stored chunk in bytes; a larger one would exceed the memory of this area.
const MOST_BYTES: u64 = 64 << 20;

/// Observations of one analysis, from one file or from some evidence records, that one job step
/// matches.
#[derive(Serialize, Deserialize)]
pub(super) struct ObservationChunk {
    /// Index of the analysis in [`FindingImportJob::parts`](super::FindingImportJob).
    pub(super) part: usize,
    /// Time at which the chunk's file became ready, or at which its newest evidence record was
    /// observed.
    pub(super) ready_at: Timestamp,
    pub(super) commit_sha: Option<String>,
    pub(super) evidence_ids: Vec<Uuid>,
    pub(super) observations: Vec<ResultObservation>,
}

impl ObservationChunk {
    /// Whether the chunk must be stored before this observation is added. Equal results stay in one
    /// chunk.
    pub(super) fn is_full_before(&self, next: &ResultObservation) -> bool {
        let goes_on = || self.observations.last().is_some_and(|last| last.is_equal_to(next));
        self.observations.len() >= MOST || self.observations.len() >= CHUNK && !goes_on()
    }
}

fn name(audit_id: Uuid, chunk: u32) -> String {
    format!("imports/{audit_id}/{chunk}")
}

/// Stores a chunk of observations as the audit's next one and empties it. An empty chunk is not
/// stored.
pub(super) fn keep(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    chunk: &mut ObservationChunk,
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

/// Reads a stored chunk of observations and deletes its blob.
pub(super) fn take(ctx: &JobCtx, audit_id: Uuid, chunk: u32) -> Result<ObservationChunk, JobError> {
    let name = name(audit_id, chunk);
    let away = |error| JobError::Retry(format!("blobs: {error:?}"));
    let content = ctx.blobs().read_all(&name, MOST_BYTES).map_err(away)?;
    ctx.blobs().delete(&name).map_err(away)?;
    serde_json::from_slice(&content).map_err(|error| JobError::Fail(format!("{name}: {error}")))
}
