//! Restores the timers that users cancel in the queue.

use area_sdk::EventDelivery;
use area_sdk::prelude::*;
use area_shared::queue::JobCancelled;

use crate::audits::run::{self, EndOverdueAuditJob};
use crate::schedules::dispatch::{self, DispatchScheduleJob};

/// Name of this area in the event `job.cancelled`.
const AREA: &str = "schedules";

pub(crate) fn job_cancelled(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let job: JobCancelled = event.data()?;
    if let Some(id) = job.resource_of::<DispatchScheduleJob>(AREA) {
        dispatch::skip_cancelled(ctx, id, job.job_id)?;
    }
    if let Some(id) = job.resource_of::<EndOverdueAuditJob>(AREA) {
        run::restore_deadline(ctx, id)?;
    }
    Ok(Outcome::Done)
}
