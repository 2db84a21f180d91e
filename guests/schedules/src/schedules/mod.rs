//! Schedules (operation 9) start audits at due times. `recurrence` computes due times; `dispatch`
//! starts audits and plans the next due time.

pub(crate) mod dispatch;
pub(crate) mod document;
pub(crate) mod recurrence;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, Scope};

use crate::audits::document::{AuditState, StoredAudit};
use crate::repositories;
use document::{AuditSchedule, MissedRunPolicy, ScheduleState, ScheduledRunError, StoredSchedule};
use recurrence::{Cadence, Recurrence, database_spelling, local_date};

/// Text for the OpenAPI document: rules of due times.
pub(crate) const DESCRIPTION: &str = "\
`timezone` is a name of the IANA database, in upper or lower case; the schedule has the spelling \
of the database. The schedule is due once on each local date of its cadence: where the clocks skip \
`local_hour`:`local_minute`, the offset before the gap counts; where they show it twice, the \
first. A date that the zone skips as a whole has no run.\n\n\
A weekly schedule is due on `weekday`, a monthly one on `day_of_month`, or on the month's last day \
where the month is shorter; where they are not given, they are those of `anchor_date`, the local \
date on which the schedule is made. The first run is the first due time after now.\n\n\
`missed_run_policy` is `run_once`: due times that passed while the service was away are caught up \
with by one run, if the latest of them is not over for more than 24 hours; the others are skipped, \
with `schedule.skipped` and `last_error_code` `missed_window`. A due time at which the schedule's \
audit before it still runs is skipped with `overlap`, one of an archived repository with \
`repository_unavailable`. `last_error_code` is `audit_failed` when the last audit failed.";

/// Names in the IANA time zone database that stand for an unknown or unset zone.
const NO_ZONES: [&str; 2] = ["Etc/Unknown", "Factory"];

/// Time, in seconds, after which an audit that has not ended no longer prevents further audits of
/// its schedule.
const ABANDONED_AFTER_SECONDS: i64 = 6 * 3600;

/// A request to create an audit schedule.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewAuditSchedule {
    cadence: Cadence,
    #[schemars(range(min = 0, max = 23))]
    local_hour: u8,
    #[schemars(range(min = 0, max = 59))]
    local_minute: u8,
    #[schemars(length(min = 1, max = 200))]
    name: String,
    repository_id: Uuid,
    /// Time zone: a name in the IANA time zone database.
    #[schemars(length(min = 1, max = 64))]
    timezone: String,
    /// Day of the week, 1 for Monday to 7 for Sunday; only for weekly schedules.
    #[schemars(range(min = 1, max = 7))]
    weekday: Option<i8>,
    /// Day of the month, 1 to 31; only for monthly schedules.
    #[schemars(range(min = 1, max = 31))]
    day_of_month: Option<i8>,
}

/// Changes of an audit schedule; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ScheduleChange {
    cadence: Option<Cadence>,
    #[schemars(range(min = 0, max = 23))]
    local_hour: Option<u8>,
    #[schemars(range(min = 0, max = 59))]
    local_minute: Option<u8>,
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// Time zone: a name in the IANA time zone database.
    #[schemars(length(min = 1, max = 64))]
    timezone: Option<String>,
    /// Day of the week, 1 for Monday to 7 for Sunday; only for weekly schedules.
    #[schemars(range(min = 1, max = 7))]
    weekday: Option<i8>,
    /// Day of the month, 1 to 31; only for monthly schedules.
    #[schemars(range(min = 1, max = 31))]
    day_of_month: Option<i8>,
}

type ScheduleHandlerResult = Result<Versioned<AuditSchedule>>;

fn shown(ctx: &Ctx, schedule: Stored<StoredSchedule>) -> ScheduleHandlerResult {
    Ok(schedule.versioned(|schedule| AuditSchedule::of(schedule, ctx.workspace_id())))
}

/// Returns today's date in a time zone, or an error for an unknown zone.
fn today(scope: &Scope, timezone: &str) -> Result<jiff::civil::Date> {
    if NO_ZONES.iter().any(|name| timezone.eq_ignore_ascii_case(name)) {
        return Err(recurrence::unknown_zone());
    }
    local_date(scope, timezone, scope.now())
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewAuditSchedule>,
) -> Result<Created<Versioned<AuditSchedule>>> {
    let anchor_date = today(ctx, &new.timezone)?;
    repositories::auditable(ctx, new.repository_id)?;
    let mut recurrence = Recurrence {
        cadence: new.cadence,
        local_hour: new.local_hour,
        local_minute: new.local_minute,
        timezone: database_spelling(new.timezone),
        weekday: new.weekday,
        day_of_month: new.day_of_month,
    };
    check_days(new.cadence, new.weekday, new.day_of_month)?;
    recurrence.anchor(anchor_date);
    let mut schedule = StoredSchedule {
        name: new.name,
        repository_id: new.repository_id,
        owner_id: ctx.user(),
        state: ScheduleState::Active,
        recurrence,
        anchor_date,
        missed_run_policy: MissedRunPolicy::RunOnce,
        pending: None,
        done_date: None,
        last_dispatched_at: None,
        last_run_at: None,
        last_error_code: None,
    };
    let id = ctx.new_id();
    dispatch::plan(ctx, id, &mut schedule)?;
    ctx.documents().create(id, &schedule)?;
    shown(ctx, ctx.documents().get(id)?).map(Created)
}

/// Query parameters that filter the list of schedules.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only schedules of this repository.
    repository_id: Option<Uuid>,
    /// Only schedules in this state; by default all except deleted ones.
    state: Option<ScheduleState>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<AuditSchedule>> {
    let all = ctx.documents::<StoredSchedule>().query();
    let wanted = match params.state {
        Some(state) => all.equals("state", name(&state)),
        None => all.one_of("state", ["active", "paused"]),
    };
    let wanted = wanted.equals_if("repository_id", params.repository_id);
    let page = wanted.paging(paging).page()?;
    Ok(page.map(|schedule| AuditSchedule::of(schedule, ctx.workspace_id())))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> ScheduleHandlerResult {
    shown(ctx, ctx.documents().get(id)?)
}

/// Returns a schedule that is not deleted; checks `If-Match`.
fn changeable(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredSchedule>> {
    let schedule = ctx.documents::<StoredSchedule>().get(id)?;
    ctx.check_if_match(schedule.version)?;
    if schedule.state == ScheduleState::Deleted {
        return Err(Problem::conflict("schedule_deleted", "The schedule is deleted."));
    }
    Ok(schedule)
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(change): Body<ScheduleChange>,
) -> ScheduleHandlerResult {
    let mut schedule = changeable(ctx, id)?;
    if let Some(name) = &change.name {
        schedule.name.clone_from(name);
    }
    let recurrence = changed(ctx, &schedule, change)?;
    // If only the name changes, a due time that is being handled is not planned again.
    if recurrence != schedule.recurrence {
        schedule.recurrence = recurrence;
        dispatch::plan_changed(ctx, id, &mut schedule)?;
    }
    ctx.documents().replace(&mut schedule)?;
    shown(ctx, schedule)
}

fn changed(ctx: &Ctx, schedule: &StoredSchedule, change: ScheduleChange) -> Result<Recurrence> {
    let mut recurrence = schedule.recurrence.clone();
    if let Some(timezone) = change.timezone {
        today(ctx, &timezone)?;
        recurrence.timezone = database_spelling(timezone);
    }
    recurrence.local_hour = change.local_hour.unwrap_or(recurrence.local_hour);
    recurrence.local_minute = change.local_minute.unwrap_or(recurrence.local_minute);
    recurrence.cadence = change.cadence.unwrap_or(recurrence.cadence);
    check_days(recurrence.cadence, change.weekday, change.day_of_month)?;
    recurrence.weekday = change.weekday.or(recurrence.weekday);
    recurrence.day_of_month = change.day_of_month.or(recurrence.day_of_month);
    recurrence.anchor(schedule.anchor_date);
    Ok(recurrence)
}

/// Refuses a weekday or day of the month that the cadence does not use.
fn check_days(cadence: Cadence, weekday: Option<i8>, day_of_month: Option<i8>) -> Result<()> {
    if weekday.is_some() && cadence != Cadence::Weekly {
        return Err(Problem::validation("/weekday", "Only a weekly schedule has a weekday."));
    }
    if day_of_month.is_some() && cadence != Cadence::Monthly {
        let message = "Only a monthly schedule has a day of the month.";
        return Err(Problem::validation("/day_of_month", message));
    }
    Ok(())
}

pub(crate) fn pause(ctx: &Ctx, Path(id): Path<Uuid>) -> ScheduleHandlerResult {
    set_state(ctx, id, ScheduleState::Paused)
}

pub(crate) fn resume(ctx: &Ctx, Path(id): Path<Uuid>) -> ScheduleHandlerResult {
    set_state(ctx, id, ScheduleState::Active)
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> ScheduleHandlerResult {
    set_state(ctx, id, ScheduleState::Deleted)
}

fn set_state(ctx: &Ctx, id: Uuid, state: ScheduleState) -> ScheduleHandlerResult {
    let mut schedule = changeable(ctx, id)?;
    schedule.state = state;
    dispatch::plan_changed(ctx, id, &mut schedule)?;
    ctx.documents().replace(&mut schedule)?;
    shown(ctx, schedule)
}

/// Whether an audit of the schedule has not ended.
fn is_running(scope: &Scope, schedule_id: Uuid) -> Result<bool, DocumentError> {
    let audits = scope.documents::<StoredAudit>().query().equals("schedule_id", schedule_id);
    let unfinished = [AuditState::Queued, AuditState::Running].map(|state| name(&state));
    let latest = audits.one_of("state", unfinished).first()?;
    Ok(latest
        .is_some_and(|audit| scope.now().seconds_since(audit.created_at) < ABANDONED_AFTER_SECONDS))
}

/// Stores the end of an audit with the schedule that started it, if any. Does nothing if the
/// schedule has started a later audit.
pub(crate) fn note_end(scope: &Scope, audit: &Stored<StoredAudit>) -> Result<(), DocumentError> {
    let Some(id) = audit.schedule_id else { return Ok(()) };
    let Some(mut schedule) = scope.documents::<StoredSchedule>().find(id)? else { return Ok(()) };
    if schedule.last_dispatched_at.is_some_and(|at| audit.created_at < at) {
        return Ok(());
    }
    schedule.last_run_at = audit.completed_at;
    if audit.state == AuditState::Failed {
        schedule.last_error_code = Some(ScheduledRunError::AuditFailed);
    }
    scope.documents().replace(&mut schedule)
}
