//! Operations that import and return advisories.

use area_sdk::prelude::*;
use area_sdk::text::name;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::value::RawValue;

use super::document::{AdvisoriesWithName, StoredAdvisory};
use super::file;
use super::import::{self, ImportEffect, ReevaluationTargets};
use crate::osv::{Affected, Osv, Reference, Severity, SeverityBand};
use crate::text::advisory_key;

/// Maximum number of OSV records in one import request.
const MOST: usize = 200;

/// Text for the OpenAPI document: how advisories are imported.
pub(crate) const DESCRIPTION: &str = "The body is a record of the OSV format (schema 1.0 to 1.7), \
    or an array of at most 200 of them; either all or none are imported. A known record is \
    replaced by one with a later `modified`. The latest components of the affected packages are \
    matched again, so an advisory that is imported today affects components that were imported \
    yesterday. Larger collections can be uploaded: an upload of format `osv` is imported when it \
    is ready.\n\n\
    Evaluation is OSV's own: explicit `versions` first, then ranges by their events in order \
    (`introduced`, `fixed`, `last_affected`, `limit`), versions compared by the rules of their \
    ecosystem. In ecosystems with an unknown order only explicit versions match. Ranges of \
    commits are not evaluated; a component's `limitations` mention it. Aliases are one \
    vulnerability; an advisory matches nothing from its time `withdrawn` on. Names in `upstream` \
    and `related` are not aliases, but the list of dependencies also finds components by them.";

/// Body of an import request: one OSV record, or an array of records.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct OsvBody(Box<RawValue>);

impl JsonSchema for OsvBody {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OsvBody".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let record = serde_json::json!({
            "type": "object",
            "description": "A record of the OSV format.",
            "required": ["id", "modified"],
            "properties": {
                "id": { "type": "string", "minLength": 1, "maxLength": 128 },
                "modified": { "type": "string", "format": "date-time" },
            },
            "additionalProperties": true,
        });
        json_schema!({
            "oneOf": [record, { "type": "array", "minItems": 1, "maxItems": MOST, "items": record }],
        })
    }
}

/// Response to an import of advisories.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Imported")]
pub(crate) struct AdvisoryImportResult {
    created: usize,
    updated: usize,
    unchanged: usize,
    items: Vec<ImportedAdvisory>,
}

#[derive(Serialize, JsonSchema)]
struct ImportedAdvisory {
    id: String,
    change: ImportEffect,
}

pub(crate) fn import(
    ctx: &Ctx,
    Body(body): Body<OsvBody>,
) -> Result<Created<AdvisoryImportResult>> {
    let refuse = |mistake: crate::reading::ImportFailure| {
        Problem::validation(mistake.pointer.clone(), mistake.message)
            .hint("See the OSV schema, https://ossf.github.io/osv-schema/.")
    };
    let text = body.0.get();
    let records = file::records(text.as_bytes()).map_err(refuse)?;
    let alone = !text.trim_start().starts_with('[');
    let (mut changed, mut items) = (ReevaluationTargets::default(), Vec::<ImportedAdvisory>::new());
    for (at, record) in records.iter().enumerate() {
        let pointer = if alone { String::new() } else { format!("/{at}") };
        let osv = Osv::read(record.get()).map_err(|m| refuse(m.within(&pointer)))?;
        if items.iter().any(|other| other.id == osv.id) {
            let message = "Another record of this request has this id.";
            return Err(Problem::validation(format!("{pointer}/id"), message));
        }
        let id = osv.id.clone();
        let before = import::stored(ctx, &id)?;
        let digest = file::digest(ctx, record);
        let change = import::keep(ctx, (osv, before), &digest, &mut changed)?;
        items.push(ImportedAdvisory { id, change });
    }
    changed.settle(ctx)?;
    let count = |change| items.iter().filter(|item| item.change == change).count();
    Ok(Created(AdvisoryImportResult {
        created: count(ImportEffect::Created),
        updated: count(ImportEffect::Updated),
        unchanged: count(ImportEffect::Unchanged),
        items,
    }))
}

/// Summary of an advisory, as the list of advisories returns it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AdvisorySummary {
    id: String,
    aliases: Vec<String>,
    summary: String,
    severity: Option<SeverityBand>,
    cvss_score: Option<String>,
    modified: Timestamp,
    published: Option<Timestamp>,
    withdrawn: Option<Timestamp>,
    /// Affected packages without duplicates, at most 100.
    packages: Vec<AdvisoryPackage>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(PartialEq, Serialize, JsonSchema)]
struct AdvisoryPackage {
    ecosystem: String,
    name: String,
}

impl From<Stored<StoredAdvisory>> for AdvisorySummary {
    fn from(stored: Stored<StoredAdvisory>) -> Self {
        let mut packages: Vec<AdvisoryPackage> = Vec::new();
        for named in stored.affected.iter().filter_map(|affected| affected.package.as_ref()) {
            let package =
                AdvisoryPackage { ecosystem: named.ecosystem.clone(), name: named.name.clone() };
            if packages.len() < 100 && !packages.contains(&package) {
                packages.push(package);
            }
        }
        let value = stored.value;
        Self {
            id: value.advisory_id,
            aliases: value.aliases,
            summary: value.summary,
            severity: value.severity,
            cvss_score: value.cvss_score,
            modified: value.modified,
            published: value.published,
            withdrawn: value.withdrawn,
            packages,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

/// An advisory with its details and all its `affected` entries.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Advisory {
    #[serde(flatten)]
    summary: AdvisorySummary,
    schema_version: Option<String>,
    related: Vec<String>,
    upstream: Vec<String>,
    details: String,
    severities: Vec<Severity>,
    affected: Vec<Affected>,
    references: Vec<Reference>,
    /// Lower-case hex SHA-256 of the OSV record's original text.
    artifact_sha256: String,
}

impl From<Stored<StoredAdvisory>> for Advisory {
    fn from(stored: Stored<StoredAdvisory>) -> Self {
        let value = stored.value.clone();
        Self {
            schema_version: value.schema_version,
            related: value.related,
            upstream: value.upstream,
            details: value.details,
            severities: value.severities,
            affected: value.affected,
            references: value.references,
            artifact_sha256: value.artifact_sha256,
            summary: stored.into(),
        }
    }
}

/// Query parameters that filter the list of advisories.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only advisories with this severity.
    severity: Option<SeverityBand>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging<50, 100, 4000>,
) -> Result<Page<AdvisorySummary>> {
    let all = ctx.documents::<StoredAdvisory>().query().descending("modified");
    let some = all.equals_if("severity", params.severity.as_ref().map(name));
    Ok(some.paging(paging).page()?.map(AdvisorySummary::from))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<String>) -> Result<Advisory> {
    if let Some(found) = ctx.documents::<StoredAdvisory>().find(&id)? {
        return Ok(found.into());
    }
    let name = ctx.documents::<AdvisoriesWithName>().get(advisory_key(&id))?;
    let first = name.advisories.first().ok_or_else(Problem::not_found)?;
    Ok(ctx.documents::<StoredAdvisory>().get(&first.advisory_id)?.into())
}
