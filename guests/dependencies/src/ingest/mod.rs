//! An audit's part of this area: advisories and bills of materials among its
//! inputs become advisories and components.
//!
//! A job in bounded steps: advisories first, then a look at each document that
//! is not known yet, the statements of the newest of each subject, their
//! components, some a step. Then the components of the audit before are marked
//! as no longer latest, and the components that statements refer to are looked
//! up.
//! While that goes on, both audits' components are there: a vulnerable one is
//! rather seen twice than not at all.

mod batch;
mod claim;
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

use crate::advisories::file;
use crate::artifacts::{Artifact, ArtifactError};

pub(crate) use claim::Head;
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
    Write { inputs: Vec<usize>, offset: usize },
    /// Components of the audits before.
    Retire(Retiring),
    /// The components that statements refer to.
    Walk(Walking),
    /// All is there.
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

impl Tally {
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
    let tally = Tally { readable: audit.inputs.len(), ..Tally::default() };
    let stage = Stage::Advisories { input: 0, offset: 0, artifact: None };
    let later = Later { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
    ctx.enqueue_with(&ImportDependencies { audit, stage, tally }, later);
    Ok(Outcome::Done)
}

/// One step.
pub(crate) fn run(ctx: &JobCtx, mut job: ImportDependencies) -> JobResult<ImportDependencies> {
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
            None => Stage::Write { inputs, offset: 0 },
        },
        Stage::Write { inputs, offset } => write::some(ctx, audit, tally, inputs, offset)?,
        Stage::Retire(retiring) => match retire::some(ctx, audit, retiring)? {
            Some(rest) => Stage::Retire(rest),
            None => Stage::Walk(Walking::begin(ctx, audit)?),
        },
        Stage::Walk(walking) => match walk::some(ctx, audit, tally, walking)? {
            Some(rest) => Stage::Walk(rest),
            None => Stage::Tell,
        },
        Stage::Tell => {
            job.audit.note_components(ctx, job.tally.total)?;
            tell::tell(ctx, job.audit, job.tally);
            return Ok(Outcome::Done);
        }
    };
    Ok(Outcome::Continue(job))
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
