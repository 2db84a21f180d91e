//! Creates and updates services from evidence records of kind `service`. References of a record are
//! resolved in `known`.

use area_sdk::JobError;
use area_sdk::prelude::*;
use area_shared::evidence::{self, EvidenceConsumer, EvidenceRecord};

use crate::known::EvidenceNameResolver;
use crate::resource::assign;
use crate::services::{Service, ServiceCreated, ServiceUpdated};

/// Text for the OpenAPI document: how evidence creates and changes services.
pub(crate) const DESCRIPTION: &str = "Services also come from evidence. A record of kind \
    `service` is about the service its `subject_key` names (a leading `service:` is dropped). Its \
    description is a JSON object: the content of the upload whose SHA-256 is the record's \
    `content_sha256`, otherwise the record's `summary`. Content above 1,048,576 bytes is not read, \
    and such a record changes nothing. Members: `name`, `description`, \
    `repositories` (ids or names), `group` (id or name), `owner` (user id or e-mail), \
    `environment`, `tier`. A `summary` that is not such an object becomes the `description`. \
    Absent members keep their values, unknown references are ignored, and a record older than the \
    last one changes nothing. Content that is uploaded after the record is imported when it is \
    ready; uploading it again changes nothing.";

/// Maximum number of a service's repositories taken from one evidence record; further ones are
/// ignored.
const MOST_REPOSITORIES: usize = 100;

/// Imports evidence records of kind `service` as services of the catalog.
pub(crate) struct ServiceEvidenceConsumer;

impl EvidenceConsumer for ServiceEvidenceConsumer {
    const JOB: &'static str = "import_services";
    const RECORD_KINDS: &'static [&'static str] = &["service"];
    /// Maximum number of records of one step. Their parsed contents, at most 1 MiB each, are in
    /// memory together.
    const STEP: u32 = 20;

    fn import(ctx: &JobCtx, records: Vec<Stored<EvidenceRecord>>) -> Result<(), JobError> {
        let described = evidence::described(ctx, records, object)?.into_iter();
        let statements: Vec<ServiceEvidenceRecord> =
            described.filter_map(|(record, said)| read(ctx, record.value, said)).collect();
        let mut known = look_up(ctx, &statements)?;
        for statement in statements {
            keep(ctx, &mut known, statement)?;
        }
        Ok(())
    }
}

/// Content of an evidence record about a service.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct ServiceDescription {
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

/// An evidence record about a service, with its parsed content.
struct ServiceEvidenceRecord {
    evidence_id: Uuid,
    observed_at: Timestamp,
    name: String,
    said: ServiceDescription,
}

/// Returns an evidence record with its description, by default its summary; `None` if it names no
/// service.
fn read(
    scope: &Scope,
    record: EvidenceRecord,
    said: Option<ServiceDescription>,
) -> Option<ServiceEvidenceRecord> {
    let said = said.unwrap_or_else(|| ServiceDescription {
        description: (!record.summary.trim_start().starts_with('{')).then_some(record.summary),
        ..ServiceDescription::default()
    });
    let subject = record.subject_key.strip_prefix("service:").unwrap_or(&record.subject_key);
    let name = without_nul(said.name.as_deref().unwrap_or(subject));
    let name = name.trim();
    if !(1..=200).contains(&name.chars().count()) {
        area_sdk::warn!(scope, "evidence {} names no service", record.evidence_id);
        return None;
    }
    Some(ServiceEvidenceRecord {
        evidence_id: record.evidence_id,
        observed_at: record.observed_at,
        name: name.to_owned(),
        said,
    })
}

/// Parses a service description from a JSON object; `None` if the text is not one.
fn object(text: &str) -> Option<ServiceDescription> {
    text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

/// Removes U+0000, which documents cannot store.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

fn look_up(
    scope: &Scope,
    statements: &[ServiceEvidenceRecord],
) -> Result<EvidenceNameResolver, JobError> {
    let names = statements.iter().map(|statement| statement.name.as_str());
    let repositories =
        statements.iter().filter_map(|statement| statement.said.repositories.as_ref());
    let repositories = repositories.flat_map(|names| names.iter().take(MOST_REPOSITORIES));
    let groups = statements.iter().filter_map(|statement| statement.said.group.as_deref());
    Ok(EvidenceNameResolver::load(
        scope,
        names.collect(),
        repositories.map(String::as_str).collect(),
        groups.collect(),
    )?)
}

/// Creates or updates the service that a record describes.
fn keep(
    scope: &Scope,
    known: &mut EvidenceNameResolver,
    statement: ServiceEvidenceRecord,
) -> Result<(), JobError> {
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
    let stored = scope.documents().create_stored(scope.new_id(), value)?;
    scope.publish(ServiceCreated { service_id: stored.uuid(), name: stored.name.clone() });
    Ok(stored)
}

/// Copies the content of an evidence record to a service, without references to unknown
/// repositories, groups or users.
fn renew(service: &mut Service, known: &EvidenceNameResolver, statement: ServiceEvidenceRecord) {
    let said = statement.said;
    let short = |text: Option<String>, most: usize| {
        let text = text.as_deref().map(without_nul);
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
