//! What is heard of audits.
//!
//! Rules are held against the audit's path list. Without one the paths are
//! those of the findings, and the import waits until the findings are in.
//! Events come in any order: findings that come before their audit are noted,
//! however long the audit's beginning takes (a lost node's jobs come back only
//! after their lease).

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobError, Later, Scope};

use super::choice::{self, AuditInput};
use super::import::ImportOwnership;
use super::{Source, SourceState, SourceStatus};
use crate::catalog::Repository;

/// How long findings are waited for: longer than a lost node's jobs take to
/// come back, and shorter than the audit waits for this area.
pub(super) const PATIENCE_SECONDS: i64 = 240;

/// Notes that an audit's findings came before its beginning; the id is the
/// audit's.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct EarlyFindings {
    arrived_at: Timestamp,
}

impl Document for EarlyFindings {
    const COLLECTION: &'static str = "early_findings";
}

/// What is needed of `audit.started`.
#[derive(Deserialize)]
struct AuditStarted {
    audit_id: Uuid,
    repository_id: Uuid,
    branch_ref: Option<String>,
    commit_sha: Option<String>,
    inputs: Vec<AuditInput>,
}

pub(crate) fn audit_started(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let audit: AuditStarted = event.data()?;
    let audit_id = audit.audit_id;
    if ctx.documents::<Source>().find(audit_id)?.is_some() {
        return Ok(Outcome::Done);
    }
    let early = ctx.documents::<EarlyFindings>().find(audit_id)?;
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

fn begin(scope: &Scope, audit: AuditStarted) -> Result<Source, JobError> {
    let repository = scope.documents::<Repository>().find(audit.repository_id)?;
    let host = repository.and_then(|repository| repository.dialect());
    let choice = choice::choose(audit.inputs, host);
    Ok(Source {
        repository_id: audit.repository_id,
        branch_ref: audit.branch_ref,
        commit_sha: audit.commit_sha,
        state: SourceState::Importing,
        source_status: SourceStatus::Missing,
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

/// Puts the import into the queue, now or at a moment; a later one finds the
/// work done.
fn enqueue(scope: &Scope, audit_id: Uuid, at: Option<Timestamp>) {
    let key = if at.is_some() { format!("{audit_id}/late") } else { audit_id.to_string() };
    let later = Later { at, resource: Some(audit_id), dedupe_key: Some(key) };
    scope.enqueue_with(&ImportOwnership::of(audit_id), later);
}

/// What is needed of `audit.findings_imported`.
#[derive(Deserialize)]
struct FindingsImported {
    audit_id: Uuid,
}

pub(crate) fn findings_imported(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let FindingsImported { audit_id } = event.data()?;
    match ctx.documents::<Source>().find(audit_id)? {
        Some(mut source)
            if source.path_list.is_none() && source.state == SourceState::Importing =>
        {
            source.findings_imported = true;
            ctx.documents().replace(&mut source)?;
            enqueue(ctx, audit_id, None);
        }
        Some(_) => {}
        None if ctx.documents::<EarlyFindings>().find(audit_id)?.is_some() => {}
        None => ctx.documents().create(audit_id, &EarlyFindings { arrived_at: ctx.now() })?,
    }
    Ok(Outcome::Done)
}
