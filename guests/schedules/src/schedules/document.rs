//! A schedule as it is kept, and as the contract shows it.

use area_sdk::prelude::*;
use jiff::civil::Date;

use super::recurrence::{Cadence, Recurrence, Slot};

/// Where a schedule stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleState {
    /// Starts audits.
    Active,
    /// Starts none until it is resumed.
    Paused,
    /// Starts none ever again.
    Deleted,
}

impl ScheduleState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Deleted => "deleted",
        }
    }
}

/// What becomes of a due time at which nothing could be dispatched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MissedRunPolicy {
    /// The latest one is caught up with, once, within 24 hours.
    RunOnce,
}

/// Why a due time led to no completed audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleError {
    /// It was over for more than 24 hours, or a later one was due as well.
    MissedWindow,
    /// The schedule's audit before it was still running.
    Overlap,
    /// The repository is archived or gone.
    RepositoryUnavailable,
    /// The audit failed.
    AuditFailed,
}

/// The run that waits in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pending {
    #[serde(flatten)]
    pub(crate) slot: Slot,
    pub(crate) job_id: Uuid,
}

/// A schedule as it is kept; id, version and times are the document's.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredSchedule {
    pub(crate) name: String,
    pub(crate) repository_id: Uuid,
    pub(crate) owner_id: Uuid,
    pub(crate) state: ScheduleState,
    #[serde(flatten)]
    pub(crate) recurrence: Recurrence,
    #[schemars(with = "String")]
    pub(crate) anchor_date: Date,
    pub(crate) missed_run_policy: MissedRunPolicy,
    pub(crate) pending: Option<Pending>,
    /// The local date of the last due time that was dealt with: no date has
    /// two runs, whatever is changed meanwhile.
    #[schemars(with = "Option<String>")]
    pub(crate) done_date: Option<Date>,
    pub(crate) last_dispatched_at: Option<Timestamp>,
    pub(crate) last_run_at: Option<Timestamp>,
    pub(crate) last_error_code: Option<ScheduleError>,
}

impl Document for StoredSchedule {
    const COLLECTION: &'static str = "schedules";
}

/// A schedule as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditSchedule {
    /// The local date on which it was made; weekday and day of the month
    /// follow from it.
    #[schemars(with = "String", extend("format" = "date"))]
    anchor_date: Date,
    cadence: Cadence,
    created_at: Timestamp,
    /// 1 to 31 where the cadence is monthly; a shorter month has it on its
    /// last day.
    day_of_month: Option<i8>,
    id: Uuid,
    /// When it last started an audit.
    last_dispatched_at: Option<Timestamp>,
    /// Why the last due time led to no audit, or to none that completed.
    last_error_code: Option<ScheduleError>,
    /// When the last audit it started ended.
    last_run_at: Option<Timestamp>,
    local_hour: u8,
    local_minute: u8,
    missed_run_policy: MissedRunPolicy,
    name: String,
    /// Null unless it is active.
    next_run_at: Option<Timestamp>,
    owner_id: Uuid,
    repository_id: Uuid,
    state: ScheduleState,
    /// The job in the queue that will start the next audit.
    engine_schedule_id: Option<Uuid>,
    timezone: String,
    updated_at: Timestamp,
    version: u64,
    /// 1 for Monday to 7 for Sunday where the cadence is weekly.
    weekday: Option<i8>,
    workspace_id: Uuid,
}

impl AuditSchedule {
    pub(crate) fn of(schedule: Stored<StoredSchedule>, workspace_id: Uuid) -> Self {
        let (id, created_at) = (schedule.uuid(), schedule.created_at);
        let (updated_at, version) = (schedule.updated_at, schedule.version);
        let schedule = schedule.value;
        let recurrence = schedule.recurrence;
        Self {
            anchor_date: schedule.anchor_date,
            cadence: recurrence.cadence,
            created_at,
            day_of_month: recurrence.day_of_month,
            id,
            last_dispatched_at: schedule.last_dispatched_at,
            last_error_code: schedule.last_error_code,
            last_run_at: schedule.last_run_at,
            local_hour: recurrence.local_hour,
            local_minute: recurrence.local_minute,
            missed_run_policy: schedule.missed_run_policy,
            name: schedule.name,
            next_run_at: schedule.pending.map(|pending| pending.slot.due_at),
            owner_id: schedule.owner_id,
            repository_id: schedule.repository_id,
            state: schedule.state,
            engine_schedule_id: schedule.pending.map(|pending| pending.job_id),
            timezone: recurrence.timezone,
            updated_at,
            version,
            weekday: recurrence.weekday,
            workspace_id,
        }
    }
}
