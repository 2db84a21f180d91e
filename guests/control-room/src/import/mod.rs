//! Imports the findings of an audit from its SARIF files and evidence records, matches them with
//! stored findings, and reports the results to the audit.
//!
//! The job runs in steps of one transaction each. `read` converts a file to chunks of observations,
//! stored as blobs. `records` does the same for evidence records. `apply` matches a chunk. `gone`
//! checks findings that an analysis reported before and does not report now. `duplicates` reopens
//! duplicates of verified findings. `finish` counts and publishes. `limits` collects skipped files
//! and unchecked analyses.

mod absent;
mod analysis;
mod apply;
mod chunk;
mod content;
mod coverage;
mod duplicates;
mod equals;
pub(crate) mod events;
mod finish;
mod former;
mod gone;
mod key;
pub(crate) mod limits;
mod part;
mod read;
mod records;
mod similar;
mod suppression;

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobOptions};

use crate::architecture::RepositoryArchitectureContext;
use absent::AbsentAnalysis;
pub(crate) use absent::set_idle;
pub(crate) use analysis::AnalysisSeries;
use events::ImportError;
pub(crate) use limits::BranchScanLimitations;
use part::PresentAnalysis;

/// An uploaded file that an audit imports.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AuditInput {
    upload_id: Uuid,
    blob: String,
    format: Option<String>,
    #[serde(default)]
    filename: String,
    /// Streams to which the file belongs: names under which uploads replace older ones. If empty,
    /// the file belongs to the stream of its filename.
    #[serde(default)]
    streams: Vec<String>,
    bytes: u64,
    ready_at: Timestamp,
    commit_sha: Option<String>,
    #[serde(default)]
    evidence_ids: Vec<Uuid>,
}

/// Data of the event `audit.started`, as this area reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AuditStarted {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    started_at: Timestamp,
    /// SARIF files of the audit, newest first.
    #[serde(default)]
    inputs: Vec<AuditInput>,
    #[serde(default)]
    records: Vec<Uuid>,
}

/// Document that exists once the import of an audit was started, so that a repeated event starts no
/// second one. The document's id is the audit's.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Import")]
pub(crate) struct AuditImportMarker {
    repository_id: Uuid,
    started_at: Timestamp,
    /// Time at which the import of the audit's findings ended; null while it runs.
    finished_at: Option<Timestamp>,
}

document!(AuditImportMarker, "imports");

/// Counts, warnings and errors of the import of an audit's findings so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ImportCounts {
    /// Number of SARIF runs that were imported.
    imported: i64,
    /// Number of SARIF files and runs that were refused.
    refused: i64,
    /// Number of SARIF runs that failed or have no list of results.
    #[serde(default)]
    failed: i64,
    /// Number of SARIF runs that were skipped, because a newer file has a run of the same analysis.
    superseded: i64,
    /// Number of findings that the audit reported so far.
    seen: i64,
    new: i64,
    reopened: i64,
    gone: i64,
    /// Number of results that changed nothing, because a newer run checked for the finding and did
    /// not report it.
    #[serde(default)]
    outdated: i64,
    /// Number of results whose path is absolute, because their run does not name a root that
    /// contains it.
    #[serde(default)]
    absolute_paths: u64,
    /// Number of match suggestions that the import made, by rule family.
    suggestions: BTreeMap<String, usize>,
    warnings: Vec<String>,
    errors: Vec<ImportError>,
    /// Number of warnings about the import that are not stored; see [`MOST_REPORTED`].
    #[serde(default)]
    more_warnings: usize,
    /// Number of errors of the import that are not stored; see [`MOST_REPORTED`].
    #[serde(default)]
    more_errors: usize,
}

/// Maximum number of warnings, and of errors, that an import stores and reports. An audit stores
/// 200; the others are counted in further warnings.
const MOST_REPORTED: usize = 190;

impl ImportCounts {
    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MOST_REPORTED {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    fn fail(&mut self, error: ImportError) {
        if self.errors.len() < MOST_REPORTED {
            self.errors.push(error);
        } else {
            self.more_errors += 1;
        }
    }
}

/// Next step of the job that imports an audit's findings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImportStep {
    Begin,
    Read {
        input: usize,
    },
    Records {
        from: usize,
    },
    Apply {
        chunk: u32,
    },
    /// Check the findings of one analysis that this audit did not report. `part` counts the
    /// analyses with a run in this audit, then the absent ones.
    Gone {
        part: usize,
        #[serde(default)]
        cursor: Option<String>,
        /// Number of findings of the analysis that stay present although this audit did not report
        /// them.
        #[serde(default)]
        left: u64,
    },
    Duplicates {
        cursor: Option<String>,
    },
    Finish,
}

/// Job that imports an audit's findings, with its progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FindingImportJob {
    audit: AuditStarted,
    step: ImportStep,
    surroundings: Option<RepositoryArchitectureContext>,
    parts: Vec<PresentAnalysis>,
    /// Analyses of the branch that have no run in this audit; `None` before they were read.
    #[serde(default)]
    absent: Option<Vec<AbsentAnalysis>>,
    chunks: u32,
    #[serde(default)]
    coverages: u32,
    tally: ImportCounts,
}

job!(FindingImportJob, "import_findings");

/// Handles `audit.started`: enqueues the import of the audit's findings, once.
pub(crate) fn audit_started(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let mut audit: AuditStarted = event.data()?;
    audit.inputs.retain(|input| input.format.as_deref() == Some("sarif"));
    let (audit_id, repository_id) = (audit.audit_id, audit.repository_id);
    if ctx.documents::<AuditImportMarker>().find(audit_id)?.is_some() {
        return Ok(Outcome::Done);
    }
    let import = AuditImportMarker { repository_id, started_at: ctx.now(), finished_at: None };
    ctx.documents().create(audit_id, &import)?;
    let job = FindingImportJob {
        audit,
        step: ImportStep::Begin,
        surroundings: None,
        parts: Vec::new(),
        absent: None,
        chunks: 0,
        coverages: 0,
        tally: ImportCounts::default(),
    };
    let later = JobOptions {
        resource: Some(audit_id),
        dedupe_key: Some(audit_id.to_string()),
        ..JobOptions::default()
    };
    ctx.enqueue_with(&job, later);
    Ok(Outcome::Done)
}

/// Runs one step of the import of an audit's findings.
pub(crate) fn run(ctx: &JobCtx, mut job: FindingImportJob) -> JobResult<FindingImportJob> {
    job.step = match job.step.clone() {
        ImportStep::Begin => {
            job.surroundings =
                Some(RepositoryArchitectureContext::of(ctx, job.audit.repository_id)?);
            ImportStep::Read { input: 0 }
        }
        ImportStep::Read { input } => read::step(ctx, &mut job, input)?,
        ImportStep::Records { from } => records::step(ctx, &mut job, from)?,
        ImportStep::Apply { chunk } => apply::step(ctx, &mut job, chunk)?,
        ImportStep::Gone { part, cursor, left } => gone::step(ctx, &mut job, part, cursor, left)?,
        ImportStep::Duplicates { cursor } => duplicates::step(ctx, &mut job, cursor)?,
        ImportStep::Finish => {
            finish::step(ctx, &job)?;
            return Ok(Outcome::Done);
        }
    };
    let (done, total) = job.progress();
    ctx.report_progress(done, total);
    Ok(Outcome::Continue(job))
}

impl FindingImportJob {
    /// Returns the number of finished steps of the import, and of all steps that are known so far.
    /// The files are read first; only then is the number of chunks known.
    fn progress(&self) -> (u64, u64) {
        let files = self.audit.inputs.len();
        let chunks = self.chunks as usize;
        let analyses = self.parts.len() + self.absent.as_ref().map_or(0, Vec::len);
        let done = match self.step {
            ImportStep::Begin => 0,
            ImportStep::Read { input } => 1 + input,
            ImportStep::Records { .. } => 1 + files,
            ImportStep::Apply { chunk } => 2 + files + chunk as usize,
            ImportStep::Gone { part, .. } => 2 + files + chunks + part,
            ImportStep::Duplicates { .. } | ImportStep::Finish => 2 + files + chunks + analyses,
        };
        let total = 3 + files + chunks + analyses;
        (done.min(total) as u64, total as u64)
    }

    fn surroundings(&self) -> Result<&RepositoryArchitectureContext, area_sdk::JobError> {
        let missing = || area_sdk::JobError::Fail("an import that did not begin".to_owned());
        self.surroundings.as_ref().ok_or_else(missing)
    }

    /// Returns the short name of the branch that the audit checks.
    fn branch(&self) -> Result<String, area_sdk::JobError> {
        Ok(self.surroundings()?.branch(self.audit.branch_ref.as_deref()))
    }
}
