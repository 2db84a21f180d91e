//! Renewal of the snapshot. The host merges the events of a workspace: one job renews the snapshot
//! after all events until then. Three events are named, because their data is needed; they request
//! a renewal one to two seconds later, and requests for the same full second are merged.

use area_sdk::prelude::*;
use area_sdk::{EventDelivery, JobOptions, MERGED_EVENTS, Scope};

use crate::{ingestions, repositories, snapshots};

/// Maximum number of repositories whose audits one step reads.
const STEP: usize = 100;

/// Job that computes the workspace context and stores it as a snapshot if it has changed.
#[derive(Serialize, Deserialize)]
pub(crate) struct RenewSnapshotJob {}

job!(RenewSnapshotJob, "renew_context");

/// Job that renews the snapshot of the workspace context after events whose data this area does not
/// read.
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
    ask(ctx);
    Ok(Outcome::Done)
}

/// Requests a renewal at the second full second from now. At the next one, this call may not have
/// committed yet. Its request would then be merged with a renewal that runs already, without its
/// data.
fn ask(scope: &Scope) {
    let second = scope.now().unix_seconds() + 2;
    let at = Timestamp(second.saturating_mul(1_000_000));
    let later = JobOptions { at: Some(at), resource: None, dedupe_key: Some(second.to_string()) };
    scope.enqueue_with(&RenewSnapshotJob {}, later);
}

pub(crate) fn run<J>(ctx: &JobCtx, job: J) -> JobResult<J> {
    ingestions::catch_up(ctx)?;
    if !repositories::catch_up(ctx, STEP)? {
        return Ok(Outcome::Continue(job));
    }
    snapshots::renew(ctx)?;
    Ok(Outcome::Done)
}
