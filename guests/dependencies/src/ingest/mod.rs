//! An audit's part of this area: advisories and bills of materials among its
//! inputs become advisories and components.
//!
//! A job in bounded steps: advisories first, then a look at each document that
//! is not known yet, the statements of the newest of each subject, their
//! components, some a step. When all are written, one small transaction makes
//! them the branch's inventory; until then the one before answers, and lists
//! report the import. Then the components of the audit before are marked as no
//! longer latest, and the components that statements refer to are looked up.

mod batch;
mod claim;
mod former;
mod imports;
mod prepare;
mod retire;
mod select;
mod statements;
mod tell;
mod walk;
mod write;

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, Later, Scope};

use crate::advisories::{file, mentions};
use crate::artifacts::{Artifact, ArtifactError};

pub(crate) use claim::{Head, head_id};
pub(crate) use imports::{StoredImport, limitations};
pub(crate) use retire::Retiring;
pub(crate) use tell::DependenciesImported;
pub(crate) use walk::Walking;

/// The audit, as its area tells of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Audit {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    started_at: Timestamp,
    inputs: Vec<Input>,
}

/// An artifact of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Input {
    upload_id: Uuid,
    blob: String,
    format: String,
    filename: String,
    content_sha256: String,
    ready_at: Timestamp,
    commit_sha: Option<String>,
}

/// Imports an audit's artifacts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImportDependencies {
    audit: Audit,
    stage: Stage,
    tally: Tally,
}

impl Job for ImportDependencies {
    const KIND: &'static str = "import_dependencies";
}

/// How far the import is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// Advisories of this input, from this record on.
    Advisories { input: usize, offset: usize, artifact: Option<Artifact> },
    /// A look at the documents that are not known.
    Look,
    /// The statements of these inputs; then the components of others.
    Statements { statements: Vec<usize>, inputs: Vec<usize> },
    /// Components of these inputs, of the first from this one on.
    Write {
        inputs: Vec<usize>,
        offset: usize,
        #[serde(default)]
        writing: write::Writing,
    },
    /// All is written and becomes the inventory.
    Switch,
    /// Components of the audits before.
    Retire(Retiring),
    /// The components that statements refer to.
    Walk(Walking),
    /// The audit receives the result.
    Tell,
}

/// What came of the import so far.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Tally {
    sboms: usize,
    total: usize,
    direct: usize,
    vulnerable: usize,
    advisories: BTreeSet<String>,
    imported_advisories: usize,
    /// How many inputs of this area's formats there were.
    readable: usize,
    warnings: Vec<String>,
    errors: Vec<InputError>,
    /// What is left open for all components of a content, by its SHA-256.
    #[serde(default)]
    limitations: Vec<(String, String)>,
    #[serde(default)]
    vex_documents: usize,
    #[serde(default)]
    statements: usize,
    #[serde(default)]
    unmatched_statements: usize,
}

/// What keeps an artifact from being imported.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct InputError {
    upload_id: Uuid,
    code: String,
    detail: String,
}

/// Warnings and errors that are kept of each kind.
const MOST_TOLD: usize = 100;

impl Input {
    fn is_sbom(&self) -> bool {
        self.format != "osv"
    }
}

impl Tally {
    /// Why SBOMs of the audit are not in the inventory, each with its name.
    fn refused_sboms(&self, audit: &Audit) -> Vec<String> {
        let refused = self.errors.iter().filter_map(|error| {
            let mut inputs = audit.inputs.iter().filter(|input| input.is_sbom());
            let input = inputs.find(|input| input.upload_id == error.upload_id)?;
            Some(format!("{}: {}", input.filename, error.detail))
        });
        refused.collect()
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MOST_TOLD && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Notes what is left open for all components of an input.
    fn limit(&mut self, input: &Input, limitation: String) {
        self.limitations.push((input.content_sha256.clone(), limitation));
    }

    fn limits(&self, input: &Input) -> impl Iterator<Item = String> {
        let of_input = self.limitations.iter().filter(|(of, _)| *of == input.content_sha256);
        of_input.map(|(_, limitation)| limitation.clone())
    }

    fn fail(&mut self, input: &Input, error: ArtifactError) {
        if self.errors.len() < MOST_TOLD {
            let ArtifactError { code, detail } = error;
            self.errors.push(InputError { upload_id: input.upload_id, code, detail });
        }
    }
}

/// On `audit.started`.
pub(crate) fn take(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let mut audit: Audit = event.data()?;
    let ours = |input: &Input| matches!(input.format.as_str(), "cyclonedx" | "spdx" | "osv");
    audit.inputs.retain(ours);
    let id = audit.audit_id;
    mentions::ensure(ctx)?;
    // An event may be delivered again.
    if audit.head(ctx)?.is_some_and(|head| head.audit_id() == id) {
        return Ok(Outcome::Done);
    }
    if audit.inputs.iter().any(Input::is_sbom) {
        audit.open_import(ctx)?;
    }
    let tally = Tally { readable: audit.inputs.len(), ..Tally::default() };
    let stage = Stage::Advisories { input: 0, offset: 0, artifact: None };
    let later = Later { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
    ctx.enqueue_with(&ImportDependencies { audit, stage, tally }, later);
    Ok(Outcome::Done)
}

/// Attempts of an import; the last one only reports that the others failed.
pub(crate) const ATTEMPTS: u32 = 10;
/// The code of the error that it reports.
const GIVEN_UP: &str = "import_failed";

/// One step.
pub(crate) fn run(ctx: &JobCtx, mut job: ImportDependencies) -> JobResult<ImportDependencies> {
    if ctx.attempt() >= ATTEMPTS {
        give_up(&mut job);
    }
    let (audit, tally) = (&job.audit, &mut job.tally);
    job.stage = match job.stage {
        Stage::Advisories { input, offset, artifact } => {
            advisories(ctx, audit, tally, (input, offset, artifact))?
        }
        Stage::Look => match select::look(ctx, audit, tally)? {
            Some(selection) => {
                let prepared = prepare::prepare(ctx, audit, tally, selection)?;
                Stage::Statements { statements: prepared.statements, inputs: prepared.inputs }
            }
            None => Stage::Look,
        },
        Stage::Statements { mut statements, inputs } => match statements.pop() {
            Some(at) => {
                let input = audit.inputs.get(at);
                input.map(|input| statements::store(ctx, audit, tally, input)).transpose()?;
                Stage::Statements { statements, inputs }
            }
            None => Stage::Write { inputs, offset: 0, writing: write::Writing::default() },
        },
        Stage::Write { inputs, offset, writing } => {
            write::some(ctx, audit, tally, inputs, (offset, writing))?
        }
        Stage::Switch => switch(ctx, audit, tally)?,
        Stage::Retire(retiring) => match retire::some(ctx, audit, retiring)? {
            Some(rest) => Stage::Retire(rest),
            None => Stage::Walk(Walking::begin(ctx, audit)?),
        },
        Stage::Walk(walking) => match walk::some(ctx, audit, tally, walking)? {
            Some(rest) => Stage::Walk(rest),
            None => Stage::Tell,
        },
        Stage::Tell => {
            tell::tell(ctx, job.audit, job.tally);
            return Ok(Outcome::Done);
        }
    };
    Ok(Outcome::Continue(job))
}

/// Ends an import that never got through: what it wrote is not listed.
fn give_up(job: &mut ImportDependencies) {
    let is_written =
        matches!(job.stage, Stage::Switch | Stage::Retire(_) | Stage::Walk(_) | Stage::Tell);
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
    let error = InputError { upload_id, code: GIVEN_UP.to_owned(), detail };
    job.tally = Tally { readable: job.tally.readable, errors: vec![error], ..Tally::default() };
    job.stage = Stage::Switch;
}

/// Makes what was written the inventory, in one small transaction.
fn switch(ctx: &JobCtx, audit: &Audit, tally: &Tally) -> Result<Stage, area_sdk::JobError> {
    let brought_inventory = tally.sboms > 0;
    if brought_inventory {
        audit.become_head(ctx, tally.total)?;
    }
    audit.close_import(ctx, brought_inventory, tally.refused_sboms(audit))?;
    let has_given_up = tally.errors.iter().any(|error| error.code == GIVEN_UP);
    Ok(if has_given_up { Stage::Tell } else { Stage::Retire(Retiring::default()) })
}

/// Takes in some advisories of an input, unless the file is known.
fn advisories(
    ctx: &JobCtx,
    audit: &Audit,
    tally: &mut Tally,
    (at, offset, artifact): (usize, usize, Option<Artifact>),
) -> Result<Stage, area_sdk::JobError> {
    let is_osv = |input: &&Input| input.format == "osv";
    let Some(input) = audit.inputs.iter().filter(is_osv).nth(at) else { return Ok(Stage::Look) };
    let next = |input| Stage::Advisories { input, offset: 0, artifact: None };
    let mut artifact = match artifact {
        Some(artifact) => artifact,
        None => match Artifact::known(ctx, &input.content_sha256)? {
            Some(known) => {
                note(tally, input, known);
                return Ok(next(at + 1));
            }
            None => Artifact::new(Vec::new()),
        },
    };
    let more = file::import_some(ctx, &input.blob, &input.content_sha256, offset, &mut artifact)?;
    if let Some(offset) = more {
        return Ok(Stage::Advisories { input: at, offset, artifact: Some(artifact) });
    }
    artifact.keep(ctx, &input.content_sha256)?;
    note(tally, input, artifact);
    Ok(next(at + 1))
}

/// An id that a second run makes again: UUIDv7 of a moment, and of what it is
/// for.
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

fn note(tally: &mut Tally, input: &Input, artifact: Artifact) {
    tally.imported_advisories += artifact.advisories;
    for error in artifact.errors {
        tally.fail(input, error);
    }
}
