//! Imports the advisories and SBOMs of an audit.
//!
//! The job runs in bounded steps. It imports advisories, reads each new document, stores the VEX
//! statements of the newest document of each subject, and stores components. When all components
//! are stored, one small transaction makes them the branch's inventory; until then, lists show the
//! former inventory and report the import. Finally, the job marks the former audit's components as
//! no longer latest, and matches components with the statements that refer to them.

mod batch;
mod claim;
mod former;
mod imports;
mod mentioned;
mod prepare;
mod retire;
mod select;
mod statements;
mod tell;
mod walk;
mod write;

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::text::truncate_bytes;
use area_sdk::{EventDelivery, JobOptions, Scope};

use crate::advisories::{file, mentions};
use crate::artifacts::{FileImportError, StoredFileSummary};

pub(crate) use claim::{BranchInventoryHead, head_id};
pub(crate) use former::causes_alert;
pub(crate) use imports::{StoredImport, limitations};
pub(crate) use retire::LatestFlagClearingProgress;
pub(crate) use tell::DependenciesImportedEvent;
pub(crate) use walk::VexComponentMatchProgress;

/// Data of the event `audit.started`, as this area reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AuditStarted {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    started_at: Timestamp,
    inputs: Vec<AuditInputFile>,
}

/// A file of the audit: an SBOM, a VEX document or an OSV file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AuditInputFile {
    upload_id: Uuid,
    blob: String,
    format: String,
    filename: String,
    content_sha256: String,
    ready_at: Timestamp,
    commit_sha: Option<String>,
}

/// Job that imports the SBOMs, VEX documents and OSV files of an audit, with its progress.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DependencyImportJob {
    audit: AuditStarted,
    stage: ImportStage,
    tally: ImportCounts,
}

job!(DependencyImportJob, "import_dependencies");

/// Next stage of the import of an audit's files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImportStage {
    /// Import advisories of the OSV file with this index, from the record `offset` on.
    Advisories { input: usize, offset: usize, artifact: Option<StoredFileSummary> },
    /// Read SBOM and VEX files that were not read before, and select those to import.
    Look,
    /// Store the VEX statements of the inputs `statements`; then continue with the components of
    /// `inputs`.
    Statements { statements: Vec<usize>, inputs: Vec<usize> },
    /// Store the components of these inputs; those of the first one from the index `offset` on.
    Write {
        inputs: Vec<usize>,
        offset: usize,
        #[serde(default)]
        writing: write::WriteProgress,
    },
    /// Make the stored components the inventory of the branch.
    Switch,
    /// Mark the components of former audits as no longer latest.
    Retire(LatestFlagClearingProgress),
    /// Match components with the VEX statements that refer to them.
    Walk(VexComponentMatchProgress),
    /// Add to the facts the ids that the audit's advisories mention. `after` is the id of the last
    /// advisory whose mentions were added.
    Mentioned { after: Option<String> },
    /// Publish the result of the import, for which the audit waits.
    Tell,
}

/// Counts, warnings and errors of the import of an audit so far.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ImportCounts {
    sboms: usize,
    total: usize,
    direct: usize,
    vulnerable: usize,
    /// Whether a scanner or a VEX statement in an SBOM reports a vulnerability of a component, or
    /// did in an earlier audit of the branch.
    is_reported: bool,
    /// Ids of the advisories that affect the audit's components.
    advisories: BTreeSet<String>,
    /// Other names of the advisories that affect the components: aliases, and ids that they
    /// mention.
    aliases: BTreeSet<String>,
    /// Size of the advisory ids in `advisories` and `aliases` together, in bytes.
    advisory_bytes: usize,
    /// Whether `advisories` and `aliases` lack a name of an advisory that affects the components.
    lacks_advisories: bool,
    /// Number of SBOMs and VEX documents of the audit that were refused.
    refused: usize,
    imported_advisories: usize,
    /// Number of files of the audit in the formats that this area imports.
    readable: usize,
    warnings: Vec<String>,
    errors: Vec<InputFileError>,
    /// Number of warnings about the import beyond those stored in `warnings`.
    more_warnings: usize,
    /// Number of errors of the import beyond those stored in `errors`.
    more_errors: usize,
    /// Limitations that all components of an SBOM get, each with the SHA-256 of the SBOM's content.
    limitations: Vec<(String, String)>,
    vex_documents: usize,
    statements: usize,
    unmatched_statements: usize,
}

/// Reason why a file of the audit was not imported.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "InputError")]
struct InputFileError {
    upload_id: Uuid,
    code: String,
    detail: String,
}

/// Maximum number of warnings, and of errors, that an import stores; further ones are counted.
const MOST_TOLD: usize = 100;
/// Maximum size of a warning about an import, in bytes.
const MAX_WARNING: usize = 2_000;

impl AuditInputFile {
    fn is_sbom(&self) -> bool {
        self.format != "osv"
    }
}

impl ImportCounts {
    /// Returns filename and error of each SBOM or VEX document of the audit that was refused.
    fn refused_sboms(&self, audit: &AuditStarted) -> Vec<String> {
        let refused = self.errors.iter().filter_map(|error| {
            let mut inputs = audit.inputs.iter().filter(|input| input.is_sbom());
            let input = inputs.find(|input| input.upload_id == error.upload_id)?;
            Some(format!("{}: {}", input.filename, error.detail))
        });
        refused.collect()
    }

    fn warn(&mut self, mut warning: String) {
        warning.truncate(truncate_bytes(&warning, MAX_WARNING).len());
        if self.warnings.contains(&warning) {
            return;
        }
        if self.warnings.len() < MOST_TOLD {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    /// Adds a limitation that all components of the SBOM `input` get.
    fn limit(&mut self, input: &AuditInputFile, limitation: String) {
        self.limitations.push((input.content_sha256.clone(), limitation));
    }

    fn limits(&self, input: &AuditInputFile) -> impl Iterator<Item = String> {
        let of_input = self.limitations.iter().filter(|(of, _)| *of == input.content_sha256);
        of_input.map(|(_, limitation)| limitation.clone())
    }

    fn fail(&mut self, input: &AuditInputFile, error: FileImportError) {
        self.refused += usize::from(input.is_sbom());
        if self.errors.len() < MOST_TOLD {
            let FileImportError { code, detail } = error;
            self.errors.push(InputFileError { upload_id: input.upload_id, code, detail });
        } else {
            self.more_errors += 1;
        }
    }
}

/// Handles `audit.started`: enqueues the import of the audit's files.
pub(crate) fn take(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let mut audit: AuditStarted = event.data()?;
    let ours =
        |input: &AuditInputFile| matches!(input.format.as_str(), "cyclonedx" | "spdx" | "osv");
    audit.inputs.retain(ours);
    let id = audit.audit_id;
    mentions::ensure(ctx)?;
    // The event may be delivered more than once.
    if audit.head(ctx)?.is_some_and(|head| head.audit_id == id) {
        return Ok(Outcome::Done);
    }
    if audit.inputs.iter().any(AuditInputFile::is_sbom) {
        audit.open_import(ctx)?;
    }
    let tally = ImportCounts { readable: audit.inputs.len(), ..ImportCounts::default() };
    let stage = ImportStage::Advisories { input: 0, offset: 0, artifact: None };
    let later = JobOptions { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
    ctx.enqueue_with(&DependencyImportJob { audit, stage, tally }, later);
    Ok(Outcome::Done)
}

/// Maximum number of attempts of the job that imports an audit's files. The last attempt only
/// reports the failure.
pub(crate) const ATTEMPTS: u32 = 10;
/// Code of the error with which the last attempt reports a failed import.
const GIVEN_UP: &str = "import_failed";

/// Runs one step of the import of an audit's files.
pub(crate) fn run(ctx: &JobCtx, mut job: DependencyImportJob) -> JobResult<DependencyImportJob> {
    if ctx.attempt() >= ATTEMPTS {
        give_up(&mut job);
    }
    let (audit, tally) = (&job.audit, &mut job.tally);
    job.stage = match job.stage {
        ImportStage::Advisories { input, offset, artifact } => {
            advisories(ctx, audit, tally, (input, offset, artifact))?
        }
        ImportStage::Look => match select::look(ctx, audit, tally)? {
            Some(selection) => prepare::prepare(ctx, audit, tally, selection)?,
            None => ImportStage::Look,
        },
        ImportStage::Statements { mut statements, inputs } => match statements.pop() {
            Some(at) => {
                let input = audit.inputs.get(at);
                input.map(|input| statements::store(ctx, audit, tally, input)).transpose()?;
                ImportStage::Statements { statements, inputs }
            }
            None => {
                ImportStage::Write { inputs, offset: 0, writing: write::WriteProgress::default() }
            }
        },
        ImportStage::Write { inputs, offset, writing } => {
            write::some(ctx, audit, tally, inputs, (offset, writing))?
        }
        ImportStage::Switch => switch(ctx, audit, tally)?,
        ImportStage::Retire(retiring) => match retire::some(ctx, audit, retiring)? {
            Some(rest) => ImportStage::Retire(rest),
            None => ImportStage::Walk(VexComponentMatchProgress::begin(ctx, audit)?),
        },
        ImportStage::Walk(walking) => match walk::some(ctx, audit, tally, walking)? {
            Some(rest) => ImportStage::Walk(rest),
            None => ImportStage::Mentioned { after: None },
        },
        ImportStage::Mentioned { after } => match mentioned::some(ctx, tally, after)? {
            Some(after) => ImportStage::Mentioned { after: Some(after) },
            None => ImportStage::Tell,
        },
        ImportStage::Tell => {
            tell::tell(ctx, job.audit, job.tally)?;
            return Ok(Outcome::Done);
        }
    };
    Ok(Outcome::Continue(job))
}

/// Ends an import that failed in all attempts, with an error. Lists do not show the components that
/// it stored.
fn give_up(job: &mut DependencyImportJob) {
    let is_written = matches!(
        job.stage,
        ImportStage::Switch
            | ImportStage::Retire(_)
            | ImportStage::Walk(_)
            | ImportStage::Mentioned { .. }
            | ImportStage::Tell
    );
    if is_written {
        return;
    }
    let detail = format!(
        "The import was tried {} times without success; the operator's log has the errors. The \
         next audit tries again.",
        ATTEMPTS - 1
    );
    let sbom = job.audit.inputs.iter().find(|input| input.is_sbom()).or(job.audit.inputs.first());
    let upload_id = sbom.map(|input| input.upload_id).unwrap_or_default();
    let error = InputFileError { upload_id, code: GIVEN_UP.to_owned(), detail };
    job.tally = ImportCounts {
        readable: job.tally.readable,
        errors: vec![error],
        ..ImportCounts::default()
    };
    job.stage = ImportStage::Switch;
}

/// Makes the stored components the inventory of the branch, in one small transaction.
fn switch(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &ImportCounts,
) -> Result<ImportStage, area_sdk::JobError> {
    let brought_inventory = tally.sboms > 0;
    if brought_inventory {
        audit.become_head(ctx, tally)?;
    }
    audit.close_import(ctx, brought_inventory, tally.refused_sboms(audit))?;
    let has_given_up = tally.errors.iter().any(|error| error.code == GIVEN_UP);
    Ok(if has_given_up {
        ImportStage::Tell
    } else {
        ImportStage::Retire(LatestFlagClearingProgress::default())
    })
}

/// Imports the next records of an OSV file of the audit, unless the file was imported before.
/// Returns the next stage of the import.
fn advisories(
    ctx: &JobCtx,
    audit: &AuditStarted,
    tally: &mut ImportCounts,
    (at, offset, artifact): (usize, usize, Option<StoredFileSummary>),
) -> Result<ImportStage, area_sdk::JobError> {
    let is_osv = |input: &&AuditInputFile| input.format == "osv";
    let Some(input) = audit.inputs.iter().filter(is_osv).nth(at) else {
        return Ok(ImportStage::Look);
    };
    let file = (input.blob.as_str(), input.content_sha256.as_str());
    let (artifact, next) = file::import_step(ctx, file, offset, artifact)?;
    if let Some(offset) = next {
        return Ok(ImportStage::Advisories { input: at, offset, artifact: Some(artifact) });
    }
    note(tally, input, artifact);
    Ok(ImportStage::Advisories { input: at + 1, offset: 0, artifact: None })
}

/// Returns an id (UUIDv7) derived from a time and a text, so that a repeated run of the import
/// creates the same id.
fn derived_id(scope: &Scope, moment: Timestamp, what: &str) -> Uuid {
    let digest = scope.sha256(what.as_bytes());
    let ms = u64::try_from(moment.0 / 1000).unwrap_or_default();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    for (byte, from) in bytes[6..].iter_mut().zip(digest) {
        *byte = from;
    }
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    Uuid::from_bytes(bytes)
}

fn note(tally: &mut ImportCounts, input: &AuditInputFile, artifact: StoredFileSummary) {
    tally.imported_advisories += artifact.advisories;
    tally.more_errors += artifact.more_errors;
    for error in artifact.errors {
        tally.fail(input, error);
    }
}
