//! Runs an audit: collects its inputs, publishes them for other areas, and limits the time to wait
//! for its start and for their results.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobOptions, Scope};
use area_shared::catalog::Repository;

use super::document::{AuditState, ImportError, PartStatus, StoredAudit};
use super::events::AuditStarted;
use super::{inputs, parts};

/// Maximum time to wait for the results of an audit's parts, in seconds.
const PATIENCE_SECONDS: i64 = 5 * 60;

/// Maximum time that an audit is queued, in hours. A long queue alone should not end an audit.
const MAX_QUEUED_HOURS: i64 = 24;

/// Number of attempts to end an overdue audit. Later attempts only put the job off.
const MOST_ATTEMPTS: u32 = 7;

/// Delay after the last attempt to end an overdue audit, in seconds.
const PUT_OFF_SECONDS: i64 = 24 * 3600;

/// Job that collects the inputs of an audit and publishes its start.
#[derive(Serialize, Deserialize)]
pub(crate) struct StartAuditJob {
    pub(crate) audit_id: Uuid,
}

job!(StartAuditJob, "audit");

/// Job that ends an audit that has not started, or whose parts are missing, after the maximum time.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndOverdueAuditJob {
    audit_id: Uuid,
}

job!(EndOverdueAuditJob, "audit_deadline");

pub(crate) fn run(ctx: &JobCtx, job: StartAuditJob) -> JobResult<StartAuditJob> {
    let Some(mut audit) = ctx.documents::<StoredAudit>().find(job.audit_id)? else {
        return Ok(Outcome::Done);
    };
    if audit.state != AuditState::Queued {
        return Ok(Outcome::Done);
    }
    let repository = ctx.documents::<Repository>().find(audit.target.repository_id)?;
    let name = repository.map(|repository| repository.value.name);
    let gathered = inputs::gather(ctx, &audit.target, name)?;
    audit.inputs = gathered.inputs;
    audit.records = gathered.records;
    audit.warnings = gathered.warnings;
    audit.state = AuditState::Running;
    audit.started_at = Some(ctx.now());
    ctx.documents().replace(&mut audit)?;
    ctx.publish(AuditStarted::of(&audit, ctx.now()));
    plan_end(ctx, &audit);
    Ok(Outcome::Done)
}

/// Enqueues the job that ends the audit, for the time from which the audit is overdue.
pub(super) fn plan_end(scope: &Scope, audit: &Stored<StoredAudit>) {
    enqueue_end(scope, audit.uuid(), overdue_at(audit));
}

fn enqueue_end(scope: &Scope, audit_id: Uuid, at: Timestamp) {
    let options = JobOptions { at: Some(at), resource: Some(audit_id), ..JobOptions::default() };
    scope.enqueue_with(&EndOverdueAuditJob { audit_id }, options);
}

/// Enqueues the job that ends an overdue audit again, because a user cancelled it.
pub(crate) fn restore_deadline(ctx: &JobCtx, audit_id: Uuid) -> Result<(), DocumentError> {
    let audit = ctx.documents::<StoredAudit>().find(audit_id)?;
    if let Some(audit) = audit.filter(|audit| !audit.state.is_final()) {
        plan_end(ctx, &audit);
    }
    Ok(())
}

/// Returns the time from which an audit that has not ended is overdue.
fn overdue_at(audit: &Stored<StoredAudit>) -> Timestamp {
    match audit.started_at {
        Some(started_at) => started_at.plus_seconds(PATIENCE_SECONDS),
        None => audit.created_at.plus_seconds(MAX_QUEUED_HOURS * 3600),
    }
}

pub(crate) fn deadline(ctx: &JobCtx, job: EndOverdueAuditJob) -> JobResult<EndOverdueAuditJob> {
    if ctx.attempt() > MOST_ATTEMPTS {
        enqueue_end(ctx, job.audit_id, ctx.now().plus_seconds(PUT_OFF_SECONDS));
        return Ok(Outcome::Done);
    }
    let Some(mut audit) = ctx.documents::<StoredAudit>().find(job.audit_id)? else {
        return Ok(Outcome::Done);
    };
    if audit.state.is_final() {
        return Ok(Outcome::Done);
    }
    if ctx.now() < overdue_at(&audit) {
        // The audit started after this job was enqueued.
        plan_end(ctx, &audit);
        return Ok(Outcome::Done);
    }
    give_up_parts(&mut audit);
    parts::finish(ctx, &mut audit)?;
    ctx.documents().replace(&mut audit)?;
    Ok(Outcome::Done)
}

/// Marks the parts of an audit without a result as missing.
fn give_up_parts(audit: &mut Stored<StoredAudit>) {
    let reason = overdue_error(audit);
    for part in audit.parts.each_mut() {
        if part.status == PartStatus::Pending {
            part.status = PartStatus::Missing;
            part.errors = vec![reason.clone()];
        }
    }
}

/// Returns the error of a part without a result: its area did not report one in time, or the audit
/// did not start in time.
fn overdue_error(audit: &Stored<StoredAudit>) -> ImportError {
    let id = audit.uuid();
    let (code, detail) = match audit.started_at {
        Some(_) => (
            "not_imported_in_time",
            format!(
                "This part had no result within {PATIENCE_SECONDS} s: its import is still waiting \
                or running, has failed, or its area is not live. Lists show the previous import. \
                `queue/jobs?resource_id={id}` lists the import's jobs with their last error; start \
                another audit when they are done."
            ),
        ),
        None => (
            "not_started_in_time",
            format!(
                "The audit did not start within {MAX_QUEUED_HOURS} h: its job is still waiting, \
                has failed or was cancelled. `queue/jobs?resource_id={id}` lists the job with its \
                last error; fix the cause, then start another audit."
            ),
        ),
    };
    ImportError { upload_id: None, code: code.to_owned(), detail }
}
