//! Runs an audit: collects its inputs, publishes them for other areas, and limits the time to wait
//! for their results.

use area_sdk::JobOptions;
use area_sdk::prelude::*;
use area_shared::catalog::Repository;

use super::document::{AuditState, ImportError, PartStatus, StoredAudit};
use super::events::AuditStarted;
use super::{inputs, parts};

/// Maximum time to wait for the parts of an audit, in seconds.
pub(crate) const PATIENCE_SECONDS: i64 = 5 * 60;

/// Job that collects the inputs of an audit and publishes its start.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunAudit {
    pub(crate) audit_id: Uuid,
}

job!(RunAudit, "audit");

/// Job that ends an audit if parts are still missing after the maximum time.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndOverdueAudit {
    audit_id: Uuid,
}

job!(EndOverdueAudit, "audit_deadline");

pub(crate) fn run(ctx: &JobCtx, job: RunAudit) -> JobResult<RunAudit> {
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
    ctx.enqueue_with(
        &EndOverdueAudit { audit_id: job.audit_id },
        JobOptions {
            at: Some(ctx.now().plus_seconds(PATIENCE_SECONDS)),
            resource: Some(job.audit_id),
            ..JobOptions::default()
        },
    );
    Ok(Outcome::Done)
}

pub(crate) fn deadline(ctx: &JobCtx, job: EndOverdueAudit) -> JobResult<EndOverdueAudit> {
    let Some(mut audit) = ctx.documents::<StoredAudit>().find(job.audit_id)? else {
        return Ok(Outcome::Done);
    };
    if audit.state.is_final() {
        return Ok(Outcome::Done);
    }
    for part in audit.parts.each_mut() {
        if part.status == PartStatus::Pending {
            part.status = PartStatus::Missing;
            part.errors = vec![not_imported(job.audit_id)];
        }
    }
    parts::finish(ctx, &mut audit)?;
    ctx.documents().replace(&mut audit)?;
    Ok(Outcome::Done)
}

/// Returns the error of a part whose area did not report its result in time.
fn not_imported(audit_id: Uuid) -> ImportError {
    ImportError {
        upload_id: None,
        code: "not_imported_in_time".to_owned(),
        detail: format!(
            "This part had no result within {PATIENCE_SECONDS} s: its import is still waiting or \
            running, has failed, or its area is not live. Lists show the previous import. \
            `queue/jobs?resource_id={audit_id}` lists the import's jobs with their last error; \
            start another audit when they are done."
        ),
    }
}
