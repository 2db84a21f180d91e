//! Starts the audits of schedules. A job waits for each due time, handles it, and enqueues a job
//! for the next one. A job whose due time is no longer the schedule's next due time does nothing.
//!
//! Invariant: an active schedule has a waiting job. So a job that fails again and again enqueues
//! itself for the next day, and the next due time is planned when a user cancels a job.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, JobError, JobOptions, Scope};
use area_shared::catalog::Repository;

use super::document::{PendingDispatchJob, ScheduleState, ScheduledRunError, StoredSchedule};
use super::recurrence::Occurrence;
use crate::audits::document::{RepositoryRevision, Trigger};
use crate::audits::{self, AuditStartCause};
use crate::repositories;

/// Maximum delay after a due time at which its audit is still started, in seconds.
const CATCH_UP_SECONDS: i64 = 24 * 3600;

/// Number of attempts to handle a due time. Later attempts only put the job off.
const MOST_ATTEMPTS: u32 = 20;

/// Delay after the last attempt to handle a due time, in seconds.
const PUT_OFF_SECONDS: i64 = 24 * 3600;

/// Job that handles one due time of a schedule.
#[derive(Serialize, Deserialize)]
pub(crate) struct DispatchScheduleJob {
    schedule_id: Uuid,
    due_at: Timestamp,
}

job!(DispatchScheduleJob, "schedule_dispatch");

/// Published when a schedule started an audit.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScheduleDispatched {
    schedule_id: Uuid,
    audit_id: Uuid,
    repository_id: Uuid,
    due_at: Timestamp,
}

event!(ScheduleDispatched, "schedule.dispatched");

/// Published when a due time of a schedule passed without starting an audit.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScheduleSkipped {
    schedule_id: Uuid,
    repository_id: Uuid,
    /// First due time of the schedule that was skipped.
    due_at: Timestamp,
    /// Last due time that was skipped; equal to `due_at` unless several were skipped.
    last_due_at: Timestamp,
    reason: ScheduledRunError,
}

event!(ScheduleSkipped, "schedule.skipped");

/// Enqueues the job for the next due time of a schedule, if the schedule is active.
pub(crate) fn plan(scope: &Scope, id: Uuid, schedule: &mut StoredSchedule) -> Result<()> {
    schedule.pending = None;
    if schedule.state != ScheduleState::Active {
        return Ok(());
    }
    let slot = schedule.recurrence.next_after(scope, scope.now(), schedule.done_date)?;
    schedule.pending = Some(enqueue(scope, id, slot, slot.due_at));
    Ok(())
}

/// Plans the next due time after a user changed the schedule. A due time of an active schedule that
/// has passed stays planned: its job starts the audit, or publishes why it does not.
pub(crate) fn plan_changed(scope: &Scope, id: Uuid, schedule: &mut StoredSchedule) -> Result<()> {
    let now = scope.now();
    let is_due = schedule.pending.is_some_and(|pending| pending.slot.due_at <= now);
    if is_due && schedule.state == ScheduleState::Active {
        return Ok(());
    }
    plan(scope, id, schedule)
}

/// Enqueues the job for a due time of a schedule, to run at `at`.
fn enqueue(
    scope: &Scope,
    schedule_id: Uuid,
    slot: Occurrence,
    at: Timestamp,
) -> PendingDispatchJob {
    let job_id = scope.enqueue_with(
        &DispatchScheduleJob { schedule_id, due_at: slot.due_at },
        JobOptions { at: Some(at), resource: Some(schedule_id), dedupe_key: None },
    );
    PendingDispatchJob { slot, job_id }
}

pub(crate) fn run(ctx: &JobCtx, job: DispatchScheduleJob) -> JobResult<DispatchScheduleJob> {
    let id = job.schedule_id;
    let Some(mut schedule) = ctx.documents::<StoredSchedule>().find(id)? else {
        return Ok(Outcome::Done);
    };
    let Some(pending) = schedule.pending.filter(|pending| pending.slot.due_at == job.due_at) else {
        return Ok(Outcome::Done);
    };
    if ctx.attempt() > MOST_ATTEMPTS {
        area_sdk::warn!(ctx, "schedule {id} is put off for a day: all attempts failed");
        let tomorrow = ctx.now().plus_seconds(PUT_OFF_SECONDS);
        schedule.pending = Some(enqueue(ctx, id, pending.slot, tomorrow));
    } else {
        let slot = latest(ctx, &schedule, pending.slot).map_err(retried)?;
        deal_with(ctx, id, &mut schedule, slot)?;
        schedule.done_date = Some(slot.date);
        plan(ctx, id, &mut schedule).map_err(retried)?;
    }
    ctx.documents().replace(&mut schedule)?;
    Ok(Outcome::Done)
}

/// Plans the due time after the one whose job a user cancelled.
pub(crate) fn skip_cancelled(ctx: &JobCtx, id: Uuid, job_id: Uuid) -> Result<(), JobError> {
    let Some(mut schedule) = ctx.documents::<StoredSchedule>().find(id)? else { return Ok(()) };
    let Some(pending) = schedule.pending.filter(|pending| pending.job_id == job_id) else {
        return Ok(());
    };
    schedule.done_date = Some(pending.slot.date);
    plan(ctx, id, &mut schedule).map_err(retried)?;
    ctx.documents().replace(&mut schedule)?;
    Ok(())
}

/// Returns the error of a job that is tried again. A job that fails for good would be the
/// schedule's last.
fn retried(problem: Problem) -> JobError {
    JobError::Retry(problem.detail)
}

/// Returns the date and due time of a schedule to handle: the latest one that has passed. Reports
/// earlier ones as skipped.
fn latest(
    ctx: &JobCtx,
    schedule: &Stored<StoredSchedule>,
    planned: Occurrence,
) -> Result<Occurrence> {
    let latest = schedule.recurrence.last_until(ctx, ctx.now())?;
    // The time zone's rules may have changed since this due time was planned.
    if latest.due_at <= planned.due_at || latest.date <= planned.date {
        return Ok(planned);
    }
    let before = Timestamp(latest.due_at.0 - 1);
    let last_skipped = schedule.recurrence.last_until(ctx, before)?;
    let skipped = (planned.due_at, last_skipped.due_at.max(planned.due_at));
    skip(ctx, schedule.uuid(), schedule, skipped, ScheduledRunError::MissedWindow);
    Ok(latest)
}

/// Starts the audit of a schedule's due time, or publishes why that time was skipped.
fn deal_with(
    ctx: &JobCtx,
    id: Uuid,
    schedule: &mut StoredSchedule,
    slot: Occurrence,
) -> Result<(), DocumentError> {
    match startable(ctx, id, schedule, slot)? {
        Ok(repository) => {
            schedule.last_error_code = None;
            schedule.last_dispatched_at = Some(ctx.now());
            start(ctx, id, schedule, slot, repository)
        }
        Err(reason) => {
            schedule.last_error_code = Some(reason);
            skip(ctx, id, schedule, (slot.due_at, slot.due_at), reason);
            Ok(())
        }
    }
}

/// Returns the repository that a schedule audits, or the reason why no audit can start.
fn startable(
    ctx: &JobCtx,
    id: Uuid,
    schedule: &StoredSchedule,
    slot: Occurrence,
) -> Result<Result<Repository, ScheduledRunError>, DocumentError> {
    if ctx.now().seconds_since(slot.due_at) > CATCH_UP_SECONDS {
        return Ok(Err(ScheduledRunError::MissedWindow));
    }
    let Some(repository) = repositories::still_auditable(ctx, schedule.repository_id)? else {
        return Ok(Err(ScheduledRunError::RepositoryUnavailable));
    };
    if super::is_running(ctx, id)? {
        return Ok(Err(ScheduledRunError::Overlap));
    }
    Ok(Ok(repository.value))
}

fn start(
    ctx: &JobCtx,
    id: Uuid,
    schedule: &StoredSchedule,
    slot: Occurrence,
    repository: Repository,
) -> Result<(), DocumentError> {
    let target = RepositoryRevision {
        repository_id: schedule.repository_id,
        branch_ref: repository.default_branch,
        commit_sha: None,
    };
    let cause = AuditStartCause {
        trigger: Trigger::Schedule,
        requested_by: schedule.owner_id,
        due: Some((id, slot.due_at)),
    };
    let audit = audits::begin(ctx, target, &cause)?;
    ctx.publish(ScheduleDispatched {
        schedule_id: id,
        audit_id: audit.uuid(),
        repository_id: schedule.repository_id,
        due_at: slot.due_at,
    });
    Ok(())
}

fn skip(
    ctx: &JobCtx,
    schedule_id: Uuid,
    schedule: &StoredSchedule,
    (due_at, last_due_at): (Timestamp, Timestamp),
    reason: ScheduledRunError,
) {
    let repository_id = schedule.repository_id;
    ctx.publish(ScheduleSkipped { schedule_id, repository_id, due_at, last_due_at, reason });
}
