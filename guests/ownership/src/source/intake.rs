//! Handles events of audits.
//!
//! Rules are matched with the paths in the audit's path list. Without a path list, the import uses
//! the paths of the findings, and waits until the findings are imported. Events arrive in any
//! order. If the findings are imported before this area receives the audit's event, a document
//! records that, because the audit's event may be late (jobs of a lost node run again only after
//! their lease expires).

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, JobOptions, Scope};
use area_shared::catalog::Repository;

use super::choice::{self, AuditInputFile};
use super::import::ImportOwnershipJob;
use super::{SourceAvailability, SourceImportPhase, StoredSource};
use crate::catalog;

/// Maximum time that an import waits for findings, in seconds. Longer than the delay of a lost
/// node's jobs, and shorter than the time that an audit waits for this area.
pub(super) const PATIENCE_SECONDS: i64 = 240;

/// Marks an audit whose findings were imported before this area received the audit's event; the
/// document's id is the audit's.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EarlyFindings")]
pub(crate) struct EarlyFindingsMarker {
    arrived_at: Timestamp,
}

document!(EarlyFindingsMarker, "early_findings");

/// Members of the event `audit.started` that this area reads.
#[derive(Deserialize)]
struct AuditStarted {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    inputs: Vec<AuditInputFile>,
}

pub(crate) fn audit_started(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let audit: AuditStarted = event.data()?;
    let audit_id = audit.audit_id;
    if ctx.documents::<StoredSource>().find(audit_id)?.is_some() {
        return Ok(Outcome::Done);
    }
    let early = ctx.documents::<EarlyFindingsMarker>().find(audit_id)?;
    let mut source = begin(ctx, audit)?;
    source.findings_imported = early.is_some();
    ctx.documents().create(audit_id, &source)?;
    if let Some(early) = early {
        ctx.documents().delete(&early)?;
    }
    if source.path_list.is_some() || source.findings_imported {
        enqueue(ctx, audit_id, None);
    } else {
        enqueue(ctx, audit_id, Some(ctx.now().plus_seconds(PATIENCE_SECONDS)));
    }
    Ok(Outcome::Done)
}

fn begin(scope: &Scope, audit: AuditStarted) -> Result<StoredSource, JobError> {
    let repository = scope.documents::<Repository>().find(audit.repository_id)?;
    let host = repository.and_then(|repository| catalog::dialect(&repository));
    let choice = choice::choose(audit.inputs, host);
    Ok(StoredSource {
        repository_id: audit.repository_id,
        branch_ref: audit.branch_ref,
        commit_sha: audit.commit_sha,
        state: SourceImportPhase::Importing,
        source_status: SourceAvailability::Missing,
        findings_imported: false,
        code_owners: choice.code_owners,
        path_list: choice.path_list,
        dialect: choice.dialect,
        rules: 0,
        paths: 0,
        unowned: 0,
        warnings: choice.warnings,
        errors: Vec::new(),
        imported_at: None,
    })
}

/// Enqueues the import of an audit's rules, at once or for a later time. The job does nothing if
/// the rules are imported by then.
fn enqueue(scope: &Scope, audit_id: Uuid, at: Option<Timestamp>) {
    let key = if at.is_some() { format!("{audit_id}/late") } else { audit_id.to_string() };
    let later = JobOptions { at, resource: Some(audit_id), dedupe_key: Some(key) };
    scope.enqueue_with(&ImportOwnershipJob::of(audit_id), later);
}

/// Members of the event `audit.findings_imported` that this area reads.
#[derive(Deserialize)]
struct FindingsImported {
    audit_id: Uuid,
}

pub(crate) fn findings_imported(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let FindingsImported { audit_id } = event.data()?;
    match ctx.documents::<StoredSource>().find(audit_id)? {
        Some(mut source)
            if source.path_list.is_none() && source.state == SourceImportPhase::Importing =>
        {
            source.findings_imported = true;
            ctx.documents().replace(&mut source)?;
            enqueue(ctx, audit_id, None);
        }
        Some(_) => {}
        None if ctx.documents::<EarlyFindingsMarker>().find(audit_id)?.is_some() => {}
        None => ctx.documents().create(audit_id, &EarlyFindingsMarker { arrived_at: ctx.now() })?,
    }
    Ok(Outcome::Done)
}
