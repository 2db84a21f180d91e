//! Assigns owners to findings after a preview of the area `ownership` was applied.

use area_sdk::EventDelivery;
use area_sdk::prelude::*;

use crate::finding::Finding;

/// Maximum number of findings to which one job step assigns owners.
const STEP: usize = 500;

/// A finding, and its new owner by a preview of the area `ownership`; `None` for no owner.
#[derive(Clone, Serialize, Deserialize)]
struct FindingOwnerChange {
    finding_id: Uuid,
    assignee_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct OwnershipApplied {
    assignments: Vec<FindingOwnerChange>,
}

/// Job that assigns owners to findings, after a preview of the area `ownership` was applied.
#[derive(Serialize, Deserialize)]
pub(crate) struct AssignOwnersJob {
    assignments: Vec<FindingOwnerChange>,
}

job!(AssignOwnersJob, "assign_owners");

pub(crate) fn applied(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let OwnershipApplied { assignments } = event.data()?;
    if !assignments.is_empty() {
        ctx.enqueue(&AssignOwnersJob { assignments });
    }
    Ok(Outcome::Done)
}

pub(crate) fn assign(ctx: &JobCtx, mut job: AssignOwnersJob) -> JobResult<AssignOwnersJob> {
    let rest = job.assignments.split_off(job.assignments.len().min(STEP));
    let ids = job.assignments.iter().map(|assignment| assignment.finding_id);
    for mut finding in ctx.documents::<Finding>().get_many(ids)? {
        let id = finding.uuid();
        let wanted = job.assignments.iter().rev().find(|wanted| wanted.finding_id == id);
        let owner = wanted.and_then(|wanted| wanted.assignee_id);
        if finding.owner_id != owner {
            finding.owner_id = owner;
            ctx.documents().replace(&mut finding)?;
        }
    }
    if rest.is_empty() {
        return Ok(Outcome::Done);
    }
    Ok(Outcome::Continue(AssignOwnersJob { assignments: rest }))
}
