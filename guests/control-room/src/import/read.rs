//! Reads SARIF files. For each analysis, the newest file with a successful run is imported; older
//! files are skipped.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::JobError;
use area_sdk::prelude::*;

use super::chunk::{self, CHUNK, ObservationChunk};
use super::content::{self, ContentReadError};
use super::events::ImportError;
use super::key::AnalysisKey;
use super::part::UploadReference;
use super::{AuditInput, FindingImportJob, ImportCounts, ImportStep, analysis, coverage};
use crate::identity::FindingIdentityGenerator;
use crate::sarif::{self, SarifRefusal, ScanCoverage, ScanRun, ToolAndCategory};

/// Maximum number of analyses of one audit. The job's checkpoint has each of them, and every step
/// stores the checkpoint.
const MOST_ANALYSES: usize = if cfg!(test) { 50 } else { 1_000 };

/// Reads one SARIF file and converts its results to chunks of observations. Returns the next step
/// of the job.
pub(super) fn step(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    input: usize,
) -> Result<ImportStep, JobError> {
    let Some(artifact) = job.audit.inputs.get(input).cloned() else {
        return Ok(ImportStep::Records { from: 0 });
    };
    let ImportCounts { refused, more_errors, .. } = job.tally;
    let errors = job.tally.errors.len();
    match content::read(ctx, &artifact.blob, artifact.bytes) {
        Ok(bytes) => take_in(ctx, job, &artifact, &bytes)?,
        Err(ContentReadError::ForGood(code, detail)) => {
            refuse(job, &artifact, SarifRefusal { code, detail });
        }
        Err(ContentReadError::Now(why)) => return Err(JobError::Retry(why)),
    }
    if job.tally.refused > refused && is_replaced(job, &artifact) {
        // Uploads cannot be deleted, so each later audit would report the file.
        (job.tally.refused, job.tally.more_errors) = (refused, more_errors);
        job.tally.errors.truncate(errors);
    }
    Ok(ImportStep::Read { input: input + 1 })
}

/// Whether newer files of the artifact streams of this file were read without a refusal.
fn is_replaced(job: &FindingImportJob, artifact: &AuditInput) -> bool {
    let is_refused = |one: &AuditInput| {
        job.tally.errors.iter().any(|error| error.upload_id == Some(one.upload_id))
    };
    let newer = job.audit.inputs.iter().take_while(|one| one.upload_id != artifact.upload_id);
    let read = newer.filter(|one| !is_refused(one)).flat_map(AuditInput::streams);
    let read: BTreeSet<String> = read.collect();
    artifact.streams().iter().all(|stream| read.contains(stream))
}

fn refuse(job: &mut FindingImportJob, artifact: &AuditInput, refusal: SarifRefusal) {
    let SarifRefusal { code, detail } = refusal;
    job.tally.refused += 1;
    let upload_id = Some(artifact.upload_id);
    job.tally.fail(ImportError { upload_id, code: code.to_owned(), detail });
}

/// A SARIF file whose runs are being imported.
struct SarifFileImport<'a> {
    artifact: &'a AuditInput,
    /// Identities of results by analysis, shared by all runs of an analysis in the file.
    identities: BTreeMap<AnalysisKey, FindingIdentityGenerator>,
    /// Keys of the analyses with a failed run in this file.
    failed: BTreeSet<AnalysisKey>,
    /// Whether any run of the SARIF file was refused.
    refused: bool,
}

fn take_in(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
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
        job.tally.warn(format!("Upload {} has no runs.", artifact.upload_id));
    }
    let known = job.parts.len();
    let mut file = SarifFileImport {
        artifact,
        identities: BTreeMap::new(),
        failed: BTreeSet::new(),
        refused: false,
    };
    for run in runs.iter() {
        match run.and_then(|run| Ok((run.check()?, run))) {
            Ok((covered, run)) => take_run(ctx, job, &mut file, &run, &covered)?,
            Err(refusal) => {
                file.refused = true;
                refuse(job, artifact, refusal);
            }
        }
    }
    for part in job.parts.iter_mut().filter(|part| part.is_of(artifact.upload_id)) {
        part.partial = file.refused || file.failed.contains(&part.key);
    }
    // Documents are used only now, because from then on this call may keep others from writing.
    analysis::begin(ctx, job, known, Some(artifact))
}

/// Imports a run of a file for each analysis to which it belongs, unless a newer file has a
/// successful run of that analysis.
fn take_run(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    file: &mut SarifFileImport<'_>,
    run: &ScanRun<'_>,
    covered: &ScanCoverage,
) -> Result<(), JobError> {
    let mut unsettled = Vec::new();
    for key in AnalysisKey::of_run(&run.subject, file.artifact) {
        let part = job.part_of(&key).map(|at| &mut job.parts[at]);
        match part.filter(|part| part.successful && !part.is_of(file.artifact.upload_id)) {
            Some(settled) => {
                settled.set_aside(file.artifact);
                job.tally.superseded += 1;
            }
            None => unsettled.push(key),
        }
    }
    let new = unsettled.iter().filter(|key| job.part_of(key).is_none()).count();
    if new > 0 && job.parts.len() + new > MOST_ANALYSES {
        file.refused = true;
        refuse(job, file.artifact, too_many_analyses(&run.subject));
        return Ok(());
    }
    if !unsettled.is_empty() {
        warn_of_failure(job, file, run);
    }
    unsettled.into_iter().try_for_each(|key| observe(ctx, job, file, run, key, covered))
}

fn too_many_analyses(subject: &ToolAndCategory) -> SarifRefusal {
    let ToolAndCategory { tool, category } = subject;
    let detail = format!(
        "A run of {tool} in category {category:?} is one analysis more than an audit reads; the \
         maximum is {MOST_ANALYSES}. Give runs of one analysis the same category \
         (automationDetails.id) and filename."
    );
    SarifRefusal { code: "sarif_too_many_analyses", detail }
}

/// Counts a failed run and warns of it.
fn warn_of_failure(job: &mut FindingImportJob, file: &SarifFileImport<'_>, run: &ScanRun<'_>) {
    if !run.successful {
        job.tally.failed += 1;
        let how = if run.has_results() { "failed" } else { "has no list of results" };
        let (tool, upload) = (&run.subject.tool, UploadReference::from(file.artifact));
        let warning = format!("A run of {tool} in {upload} {how}, so it marks no finding as gone.");
        job.tally.warn(warning);
    }
}

/// Converts the results of a run to observations of one analysis and stores them in chunks.
fn observe(
    ctx: &JobCtx,
    job: &mut FindingImportJob,
    file: &mut SarifFileImport<'_>,
    run: &ScanRun<'_>,
    key: AnalysisKey,
    covered: &ScanCoverage,
) -> Result<(), JobError> {
    if !run.successful {
        file.failed.insert(key.clone());
    }
    let fresh = || FindingIdentityGenerator::new(ctx.workspace_id(), job.audit.repository_id);
    let counted = file.identities.remove(&key).unwrap_or_else(fresh);
    let Some(mut results) = run.results(counted) else { return Ok(()) };
    job.tally.imported += 1;
    let artifact = file.artifact;
    let part = analysis::part(job, &key)?;
    if run.successful {
        let number = coverage::keep(ctx, job, covered)?;
        job.parts[part].note_success(artifact, number);
    }
    let mut chunk = ObservationChunk {
        part,
        ready_at: artifact.ready_at,
        commit_sha: artifact.commit_sha.clone().or_else(|| job.audit.commit_sha.clone()),
        evidence_ids: artifact.evidence_ids.clone(),
        observations: Vec::with_capacity(CHUNK),
    };
    // `check` has parsed every result before, so no observation is an error here.
    for observation in results.by_ref().flatten() {
        if chunk.is_full_before(&observation) {
            chunk::keep(ctx, job, &mut chunk)?;
        }
        job.tally.absolute_paths += u64::from(observation.is_outside());
        chunk.observations.push(observation);
    }
    file.identities.insert(key, results.into_identities());
    chunk::keep(ctx, job, &mut chunk)
}
