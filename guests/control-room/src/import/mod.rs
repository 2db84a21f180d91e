//! The findings of an audit: read from its SARIF files and evidence records,
//! matched with those that are kept, and told to the audit.
//!
//! A job in steps, each a transaction: `read` turns a file into chunks of
//! observations, kept as blobs; `records` does so with evidence records; `apply`
//! matches a chunk; `gone` looks for what an analysis showed before and does not
//! show now; `finish` counts and tells. `limits` collects what was set aside or
//! not looked at.

mod absent;
mod analysis;
mod apply;
mod chunk;
mod content;
mod coverage;
pub(crate) mod events;
mod finish;
mod gone;
mod key;
pub(crate) mod limits;
mod part;
mod read;
mod records;

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, Later};

use crate::architecture::Surroundings;
use absent::Absent;
pub(crate) use analysis::Analysis;
use events::ImportError;
pub(crate) use limits::ScanLimitations;
use part::Part;

/// An artifact that an audit takes in.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AuditInput {
    upload_id: Uuid,
    blob: String,
    format: Option<String>,
    #[serde(default)]
    filename: String,
    /// Artifact streams it belongs to; empty means that of its filename.
    #[serde(default)]
    streams: Vec<String>,
    bytes: u64,
    ready_at: Timestamp,
    commit_sha: Option<String>,
    #[serde(default)]
    evidence_ids: Vec<Uuid>,
}

/// An audit, as `audit.started` tells of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AuditStarted {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    started_at: Timestamp,
    /// Newest first.
    #[serde(default)]
    inputs: Vec<AuditInput>,
    #[serde(default)]
    records: Vec<Uuid>,
}

/// One import for each audit: an event that comes again starts none.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Import {
    repository_id: Uuid,
    started_at: Timestamp,
    /// Null while it goes on.
    finished_at: Option<Timestamp>,
}

impl Document for Import {
    const COLLECTION: &'static str = "imports";
}

/// What an import has come to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Tally {
    /// Files read, refused, and not looked at because newer ones say the same.
    imported: i64,
    refused: i64,
    superseded: i64,
    /// Findings the audit saw.
    seen: i64,
    new: i64,
    reopened: i64,
    gone: i64,
    /// Results of files older than the run without them, which change nothing.
    #[serde(default)]
    outdated: i64,
    /// Match suggestions, by rule family.
    suggestions: BTreeMap<String, usize>,
    warnings: Vec<String>,
    errors: Vec<ImportError>,
}

/// What is to be done next.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
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
    /// The audit's parts come first, then the absent analyses.
    Gone {
        part: usize,
        #[serde(default)]
        cursor: Option<String>,
        /// Findings of it that stay although this audit did not show them.
        #[serde(default)]
        left: u64,
    },
    Finish,
}

/// The job: an audit, how far its import has come, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ImportFindings {
    audit: AuditStarted,
    step: Step,
    surroundings: Option<Surroundings>,
    parts: Vec<Part>,
    /// Analyses of the branch that are not in this audit; `None` until they
    /// are looked up.
    #[serde(default)]
    absent: Option<Vec<Absent>>,
    chunks: u32,
    #[serde(default)]
    coverages: u32,
    tally: Tally,
}

impl Job for ImportFindings {
    const KIND: &'static str = "import_findings";
}

/// Has an audit's findings imported, once.
pub(crate) fn audit_started(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let mut audit: AuditStarted = event.data()?;
    audit.inputs.retain(|input| input.format.as_deref() == Some("sarif"));
    let (audit_id, repository_id) = (audit.audit_id, audit.repository_id);
    if ctx.documents::<Import>().find(audit_id)?.is_some() {
        return Ok(Outcome::Done);
    }
    let import = Import { repository_id, started_at: ctx.now(), finished_at: None };
    ctx.documents().create(audit_id, &import)?;
    let job = ImportFindings {
        audit,
        step: Step::Begin,
        surroundings: None,
        parts: Vec::new(),
        absent: None,
        chunks: 0,
        coverages: 0,
        tally: Tally::default(),
    };
    let later = Later {
        resource: Some(audit_id),
        dedupe_key: Some(audit_id.to_string()),
        ..Later::default()
    };
    ctx.enqueue_with(&job, later);
    Ok(Outcome::Done)
}

/// Does one step.
pub(crate) fn run(ctx: &JobCtx, mut job: ImportFindings) -> JobResult<ImportFindings> {
    job.step = match job.step.clone() {
        Step::Begin => {
            job.surroundings = Some(Surroundings::of(ctx, job.audit.repository_id)?);
            Step::Read { input: 0 }
        }
        Step::Read { input } => read::step(ctx, &mut job, input)?,
        Step::Records { from } => records::step(ctx, &mut job, from)?,
        Step::Apply { chunk } => apply::step(ctx, &mut job, chunk)?,
        Step::Gone { part, cursor, left } => gone::step(ctx, &mut job, part, cursor, left)?,
        Step::Finish => {
            finish::step(ctx, &job)?;
            return Ok(Outcome::Done);
        }
    };
    Ok(Outcome::Continue(job))
}

impl ImportFindings {
    fn surroundings(&self) -> Result<&Surroundings, area_sdk::JobError> {
        let missing = || area_sdk::JobError::Fail("an import that did not begin".to_owned());
        self.surroundings.as_ref().ok_or_else(missing)
    }

    /// The branch that the audit looks at, by its short name.
    fn branch(&self) -> Result<String, area_sdk::JobError> {
        Ok(self.surroundings()?.branch(self.audit.branch_ref.as_deref()))
    }
}
