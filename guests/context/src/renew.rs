//! Renewal of the snapshot. The host merges the events of a workspace: one job renews the snapshot
//! after all events until then. Three events are named, because their data is needed; their
//! deliveries enqueue the job that the host enqueues for the others, so they are merged with them.

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobOptions, MERGED_EVENTS};

use crate::{ingestions, repositories, snapshots};

/// Maximum number of repositories whose audits one step reads.
const STEP: usize = 100;

/// Job of former versions that renews the snapshot; some may still wait.
#[derive(Serialize, Deserialize)]
pub(crate) struct RenewSnapshotJob {}

job!(RenewSnapshotJob, "renew_context");

/// Job that computes the workspace context and stores it as a snapshot if it has changed.
#[derive(Serialize, Deserialize)]
pub(crate) struct MergedEventsJob {}

job!(MergedEventsJob, MERGED_EVENTS);

#[derive(Deserialize)]
struct AuditCompleted {
    audit_id: Uuid,
}

/// Data of the events of an envelope that was accepted, or of which no record was.
#[derive(Deserialize)]
struct EnvelopeIngested {
    connector_run_id: Uuid,
}

pub(crate) fn heard(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    match event.name.as_str() {
        "audit.completed" => repositories::note(ctx, event.data::<AuditCompleted>()?.audit_id)?,
        "evidence_envelope.accepted" | "evidence_envelope.rejected" => {
            ingestions::note(ctx, event.data::<EnvelopeIngested>()?.connector_run_id)?;
        }
        _ => {}
    }
    // Without a key: a renewal that runs may have read before this call commits, and its key would
    // suppress this job. A run of merged events removes only jobs that were committed before it.
    let second = ctx.now().unix_seconds() + 1;
    let at = Some(Timestamp(second.saturating_mul(1_000_000)));
    ctx.enqueue_with(&MergedEventsJob {}, JobOptions { at, ..JobOptions::default() });
    Ok(Outcome::Done)
}

pub(crate) fn run<J>(ctx: &JobCtx, job: J) -> JobResult<J> {
    ingestions::catch_up(ctx)?;
    if !repositories::catch_up(ctx, STEP)? {
        return Ok(Outcome::Continue(job));
    }
    snapshots::renew(ctx)?;
    Ok(Outcome::Done)
}
