//! Relationships from evidence: records of kind `relationship` between two
//! groups make the dependency, or support the one there is.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, Later, Scope};

use crate::content::{self, UploadReady};
use crate::dependencies::{self, Dependency};
use crate::groups::{self, Group};

/// How many records a step takes in.
const STEP: u32 = 100;

/// How many records are looked through for a declared dependency.
const LOOKED_THROUGH: u32 = 200;

/// Takes in the relationships of an envelope, or of a content that is there
/// now; a page of records a step.
#[derive(Serialize, Deserialize)]
pub(crate) struct ImportRelationships {
    of: Records,
    cursor: Option<String>,
}

/// Which records.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Records {
    Envelope(Uuid),
    Content(String),
}

impl Job for ImportRelationships {
    const KIND: &'static str = "import_relationships";
}

/// What is needed of `evidence_envelope.accepted`.
#[derive(Deserialize)]
struct Accepted {
    envelope_id: Uuid,
    kinds: BTreeSet<String>,
}

/// What is needed of an evidence record.
#[derive(Serialize, Deserialize)]
struct Record {
    subject_key: String,
    summary: String,
    content_sha256: String,
}

impl Document for Record {
    const COLLECTION: &'static str = "evidence.records";
}

/// What is said of a relationship.
#[derive(Deserialize)]
struct Said {
    #[serde(alias = "target_group", alias = "target_group_id")]
    target: String,
    relationship_kind: String,
}

/// A relationship between two things that may be groups.
struct Statement {
    evidence_id: Uuid,
    source: String,
    target: String,
    kind: String,
}

fn without_prefix(reference: &str) -> &str {
    reference.strip_prefix("group:").unwrap_or(reference)
}

/// What records say, those that say it in the form that is understood.
fn read_all(scope: &Scope, records: &[Stored<Record>]) -> Result<Vec<Statement>, JobError> {
    let digests = records.iter().map(|record| record.content_sha256.as_str());
    let contents = content::by_digest(scope, digests)?;
    let content = |record: &Record| contents.get(&record.content_sha256).map(String::as_str);
    Ok(records.iter().filter_map(|record| read(record, content(record))).collect())
}

fn read(record: &Stored<Record>, content: Option<&str>) -> Option<Statement> {
    let said = content.and_then(|content| serde_json::from_str(content).ok());
    let said: Said = said.or_else(|| serde_json::from_str(&record.summary).ok())?;
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_word = (1..=100).contains(&said.relationship_kind.len())
        && said.relationship_kind.starts_with(|first: char| first.is_ascii_lowercase())
        && said.relationship_kind.bytes().all(letters);
    is_word.then(|| Statement {
        evidence_id: record.uuid(),
        source: without_prefix(&record.subject_key).to_owned(),
        target: without_prefix(&said.target).to_owned(),
        kind: said.relationship_kind,
    })
}

/// The records that speak of a dependency, newest first.
pub(crate) fn about(
    ctx: &Ctx,
    source: &Stored<Group>,
    target: &Stored<Group>,
    kind: &str,
) -> Result<Vec<Uuid>> {
    let (id, name) = (&source.id, &source.name);
    let keys = [id.clone(), name.clone(), format!("group:{id}"), format!("group:{name}")];
    let records = ctx.documents::<Record>().query().one_of("subject_key", keys);
    let records = records.equals("kind", "relationship").descending("observed_at");
    let statements = read_all(ctx, &records.limit(LOOKED_THROUGH).list()?)
        .map_err(|_| Problem::unavailable("The evidence cannot be read now."))?;
    let fits = |said: &&Statement| {
        said.kind == kind && (said.target == target.id || said.target == target.name)
    };
    Ok(statements.iter().filter(fits).map(|said| said.evidence_id).collect())
}

pub(crate) fn accepted(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let accepted: Accepted = event.data()?;
    if accepted.kinds.contains("relationship") {
        let id = accepted.envelope_id;
        let later = Later { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
        ctx.enqueue_with(&ImportRelationships { of: Records::Envelope(id), cursor: None }, later);
    }
    Ok(Outcome::Done)
}

pub(crate) fn ready(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let ready: UploadReady = event.data()?;
    let Some(digest) = ready.content_sha256 else { return Ok(Outcome::Done) };
    let records = ctx.documents::<Record>().query().equals("content_sha256", &digest);
    if records.equals("kind", "relationship").first()?.is_some() {
        let later = Later { dedupe_key: Some(digest.clone()), ..Later::default() };
        ctx.enqueue_with(
            &ImportRelationships { of: Records::Content(digest), cursor: None },
            later,
        );
    }
    Ok(Outcome::Done)
}

pub(crate) fn run(ctx: &JobCtx, job: ImportRelationships) -> JobResult<ImportRelationships> {
    let records = ctx.documents::<Record>().query().equals("kind", "relationship");
    let records = match &job.of {
        Records::Envelope(id) => records.equals("envelope_id", *id),
        Records::Content(digest) => records.equals("content_sha256", digest),
    };
    let page = records.ascending("observed_at").cursor(job.cursor).limit(STEP).page()?;
    let statements = read_all(ctx, &page.items)?;
    let named = statements.iter().flat_map(|said| [said.source.as_str(), said.target.as_str()]);
    let groups = groups::referred(ctx, &named.collect())?;
    for statement in statements {
        keep(ctx, &groups, statement)?;
    }
    Ok(match page.next_cursor {
        None => Outcome::Done,
        cursor => Outcome::Continue(ImportRelationships { cursor, ..job }),
    })
}

/// Makes or supports the dependency a statement is about, if it is between two
/// groups of the workspace.
fn keep(
    ctx: &JobCtx,
    groups: &BTreeMap<String, Stored<Group>>,
    statement: Statement,
) -> Result<(), JobError> {
    let ends = (groups.get(&statement.source), groups.get(&statement.target));
    let (Some(source), Some(target)) = ends else { return Ok(()) };
    if source.id == target.id {
        return Ok(());
    }
    let same = ctx.documents::<Dependency>().query().equals("source_group_id", &source.id);
    let same = same.equals("target_group_id", &target.id);
    match same.equals("relationship_kind", &statement.kind).first()? {
        Some(mut dependency) => {
            if dependency.add_evidence(statement.evidence_id) {
                ctx.documents().replace(&mut dependency)?;
            }
        }
        None => {
            let evidence = vec![statement.evidence_id];
            let dependency = Dependency::between(source, target, statement.kind, evidence);
            dependencies::keep(ctx, &dependency)?;
        }
    }
    Ok(())
}
