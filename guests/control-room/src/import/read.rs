//! Files: the newest of each tool and category counts, as far as its run ended
//! well; older ones say nothing new.

use std::collections::BTreeMap;

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::chunk::{self, CHUNK, Chunk};
use super::content::{self, Missing};
use super::events::ImportError;
use super::{AuditInput, ImportFindings, Step, analysis};
use crate::identity::Identities;
use crate::sarif::{self, Refusal, ScanRun, Subject};

/// Reads a file into chunks.
pub(super) fn step(ctx: &JobCtx, job: &mut ImportFindings, input: usize) -> Result<Step, JobError> {
    let Some(artifact) = job.audit.inputs.get(input).cloned() else {
        return Ok(Step::Records { from: 0 });
    };
    match content::read(ctx, &artifact.blob, artifact.bytes) {
        Ok(bytes) => take_in(ctx, job, &artifact, &bytes)?,
        Err(Missing::ForGood(code, detail)) => {
            refuse(job, &artifact, Refusal { code, detail });
        }
        Err(Missing::Now(why)) => return Err(JobError::Retry(why)),
    }
    Ok(Step::Read { input: input + 1 })
}

fn refuse(job: &mut ImportFindings, artifact: &AuditInput, refusal: Refusal) {
    let Refusal { code, detail } = refusal;
    job.tally.refused += 1;
    let upload_id = Some(artifact.upload_id);
    job.tally.errors.push(ImportError { upload_id, code: code.to_owned(), detail });
}

fn take_in(
    ctx: &JobCtx,
    job: &mut ImportFindings,
    artifact: &AuditInput,
    bytes: &[u8],
) -> Result<(), JobError> {
    let runs = match sarif::open(bytes) {
        Ok(runs) => runs,
        Err(refusal) => {
            refuse(job, artifact, refusal);
            return Ok(());
        }
    };
    if runs.len() == 0 {
        job.tally.warnings.push(format!("Upload {} has no runs.", artifact.upload_id));
    }
    // What newer files have settled; runs of this file may share a subject.
    let settled: Vec<Subject> = settled(job);
    let mut identities = BTreeMap::new();
    for run in runs.iter() {
        match run.and_then(|run| run.check().map(|()| run)) {
            Err(refusal) => refuse(job, artifact, refusal),
            Ok(run) if settled.contains(&run.subject) => job.tally.superseded += 1,
            Ok(run) => observe(ctx, job, artifact, &run, &mut identities)?,
        }
    }
    Ok(())
}

fn settled(job: &ImportFindings) -> Vec<Subject> {
    let good = job.parts.iter().filter(|part| part.successful);
    good.map(|part| Subject { tool: part.tool.clone(), category: part.category.clone() }).collect()
}

/// Puts a run's observations into chunks.
fn observe(
    ctx: &JobCtx,
    job: &mut ImportFindings,
    artifact: &AuditInput,
    run: &ScanRun<'_>,
    identities: &mut BTreeMap<Subject, Identities>,
) -> Result<(), JobError> {
    if !run.successful {
        let Subject { tool, .. } = &run.subject;
        let how = if run.has_results() { "did not end well" } else { "has no list of results" };
        let warning = format!("A run of {tool} {how}; nothing is taken for gone.");
        job.tally.warnings.push(warning);
    }
    let fresh = || Identities::new(ctx.workspace_id(), job.audit.repository_id);
    let counted = identities.remove(&run.subject).unwrap_or_else(fresh);
    let Some(mut results) = run.results(counted) else { return Ok(()) };
    job.tally.imported += 1;
    let mut chunk = Chunk {
        part: analysis::begin(ctx, job, &run.subject, run.successful)?,
        ready_at: artifact.ready_at,
        commit_sha: artifact.commit_sha.clone().or_else(|| job.audit.commit_sha.clone()),
        evidence_ids: artifact.evidence_ids.clone(),
        observations: Vec::with_capacity(CHUNK),
    };
    for observation in results.by_ref() {
        // `check` has seen that each can be read.
        chunk.observations.extend(observation);
        if chunk.observations.len() == CHUNK {
            chunk::keep(ctx, job, &mut chunk)?;
        }
    }
    identities.insert(run.subject.clone(), results.into_identities());
    chunk::keep(ctx, job, &mut chunk)
}
