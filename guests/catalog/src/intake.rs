//! Services from evidence: a record of kind `service` registers or renews the
//! service it is about. What a record refers to is looked up in `known`.

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, Later, Scope};

use crate::content::{self, UploadReady};
use crate::known::Known;
use crate::resource::assign;
use crate::services::{Service, ServiceCreated, ServiceUpdated};

/// The rules, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
Services also come from evidence. A record of kind `service` is about the service its \
`subject_key` names (a leading `service:` is dropped). What it says is a JSON object, the content \
of the upload whose SHA-256 is the record's `content_sha256`, else the record's `summary`: `name`, \
`description`, `repositories` (ids or names), `group` (id or name), `owner` (user id or e-mail), \
`environment`, `tier`. A `summary` that is no such object is the description. What a record does \
not speak of stays, what the workspace does not know is passed over, and a record older than the \
last one changes nothing. Content that is uploaded after the record is taken in when it is \
ready.";

/// How many records a step takes in.
const STEP: u32 = 100;

/// How many repositories a record may name; further ones are passed over.
const MOST_REPOSITORIES: usize = 100;

/// Takes in the services of an envelope, or of a content that is there now; a
/// page of records a step.
#[derive(Serialize, Deserialize)]
pub(crate) struct ImportServices {
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

impl Job for ImportServices {
    const KIND: &'static str = "import_services";
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
    evidence_id: Uuid,
    subject_key: String,
    summary: String,
    content_sha256: String,
    observed_at: Timestamp,
}

impl Document for Record {
    const COLLECTION: &'static str = "evidence.records";
}

/// What a record says of a service.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    name: Option<String>,
    description: Option<String>,
    #[serde(alias = "repository_ids")]
    repositories: Option<Vec<String>>,
    #[serde(alias = "group_id")]
    group: Option<String>,
    #[serde(alias = "owner_id")]
    owner: Option<String>,
    environment: Option<String>,
    tier: Option<String>,
}

/// A record and what it says.
struct Statement {
    evidence_id: Uuid,
    observed_at: Timestamp,
    name: String,
    said: Said,
}

pub(crate) fn accepted(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let accepted: Accepted = event.data()?;
    if accepted.kinds.contains("service") {
        let id = accepted.envelope_id;
        let later = Later { at: None, resource: Some(id), dedupe_key: Some(id.to_string()) };
        ctx.enqueue_with(&ImportServices { of: Records::Envelope(id), cursor: None }, later);
    }
    Ok(Outcome::Done)
}

pub(crate) fn ready(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let ready: UploadReady = event.data()?;
    let Some(digest) = ready.content_sha256 else { return Ok(Outcome::Done) };
    let records = ctx.documents::<Record>().query().equals("content_sha256", &digest);
    if records.equals("kind", "service").first()?.is_some() {
        let later = Later { dedupe_key: Some(digest.clone()), ..Later::default() };
        ctx.enqueue_with(&ImportServices { of: Records::Content(digest), cursor: None }, later);
    }
    Ok(Outcome::Done)
}

pub(crate) fn run(ctx: &JobCtx, job: ImportServices) -> JobResult<ImportServices> {
    let records = ctx.documents::<Record>().query().equals("kind", "service");
    let records = match &job.of {
        Records::Envelope(id) => records.equals("envelope_id", *id),
        Records::Content(digest) => records.equals("content_sha256", digest),
    };
    let page = records.ascending("observed_at").cursor(job.cursor).limit(STEP).page()?;
    let digests = page.items.iter().map(|record| record.content_sha256.as_str());
    let contents = content::by_digest(ctx, digests)?;
    let statements: Vec<Statement> =
        page.items.into_iter().filter_map(|record| read(ctx, record.value, &contents)).collect();
    let mut known = look_up(ctx, &statements)?;
    for statement in statements {
        keep(ctx, &mut known, statement)?;
    }
    Ok(match page.next_cursor {
        None => Outcome::Done,
        cursor => Outcome::Continue(ImportServices { cursor, ..job }),
    })
}

/// What a record says; nothing where it does not say of what.
fn read(scope: &Scope, record: Record, contents: &BTreeMap<String, String>) -> Option<Statement> {
    let content = contents.get(&record.content_sha256).and_then(|content| object(content));
    let said = content.or_else(|| object(&record.summary)).unwrap_or_else(|| Said {
        description: (!record.summary.trim_start().starts_with('{')).then_some(record.summary),
        ..Said::default()
    });
    let subject = record.subject_key.strip_prefix("service:").unwrap_or(&record.subject_key);
    let name = said.name.as_deref().unwrap_or(subject).trim();
    if !(1..=200).contains(&name.chars().count()) {
        area_sdk::warn!(scope, "evidence {} names no service", record.evidence_id);
        return None;
    }
    Some(Statement {
        evidence_id: record.evidence_id,
        observed_at: record.observed_at,
        name: name.to_owned(),
        said,
    })
}

/// What a JSON object says.
fn object(text: &str) -> Option<Said> {
    text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

fn look_up(scope: &Scope, statements: &[Statement]) -> Result<Known, JobError> {
    let names = statements.iter().map(|statement| statement.name.as_str());
    let repositories =
        statements.iter().filter_map(|statement| statement.said.repositories.as_ref());
    let repositories = repositories.flat_map(|names| names.iter().take(MOST_REPOSITORIES));
    let groups = statements.iter().filter_map(|statement| statement.said.group.as_deref());
    Ok(Known::load(
        scope,
        names.collect(),
        repositories.map(String::as_str).collect(),
        groups.collect(),
    )?)
}

/// Registers or renews the service a statement is about.
fn keep(scope: &Scope, known: &mut Known, statement: Statement) -> Result<(), JobError> {
    let latest = (Some(statement.observed_at), Some(statement.evidence_id));
    let Some(mut service) = known.services.remove(&statement.name) else {
        let mut service = Service::named(statement.name.clone());
        renew(&mut service, known, statement);
        let stored = register(scope, service)?;
        known.services.insert(stored.name.clone(), stored);
        return Ok(());
    };
    let before = service.value.clone();
    if (service.observed_at, service.evidence_id) <= latest {
        renew(&mut service, known, statement);
    }
    if service.value != before {
        scope.documents().replace(&mut service)?;
        scope.publish(ServiceUpdated { service_id: service.uuid(), name: service.name.clone() });
    }
    known.services.insert(service.name.clone(), service);
    Ok(())
}

fn register(scope: &Scope, value: Service) -> Result<Stored<Service>, JobError> {
    let (id, now) = (scope.new_id(), scope.now());
    scope.documents().create(id, &value)?;
    scope.publish(ServiceCreated { service_id: id, name: value.name.clone() });
    let id = id.to_string();
    Ok(Stored { id, version: 1, created_at: now, updated_at: now, value })
}

/// Takes over what a statement speaks of and the workspace knows.
fn renew(service: &mut Service, known: &Known, statement: Statement) {
    let said = statement.said;
    let short = |text: Option<String>, most: usize| {
        text.filter(|text| (1..=most).contains(&text.chars().count())).map(Some)
    };
    assign(&mut service.description, short(said.description, 4000));
    assign(&mut service.environment, short(said.environment, 100));
    assign(&mut service.tier, short(said.tier, 50));
    assign(&mut service.group_id, said.group.and_then(|name| known.group(&name)).map(Some));
    assign(&mut service.owner_id, said.owner.and_then(|name| known.person(&name)).map(Some));
    let repositories = said.repositories.map(|names| known.repositories(&names));
    assign(&mut service.repository_ids, repositories);
    service.evidence_id = Some(statement.evidence_id);
    service.observed_at = Some(statement.observed_at);
}
