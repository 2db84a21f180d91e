//! Schedules: stored form and responses.

use area_sdk::prelude::*;
use jiff::civil::Date;

use super::recurrence::{Cadence, Occurrence, Recurrence};

/// State of an audit schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleState {
    /// The schedule starts audits.
    Active,
    /// The schedule starts no audits until it is resumed.
    Paused,
    /// The schedule starts no further audits and cannot be resumed.
    Deleted,
}

/// Handling of due times at which no audit could be started, for example while the service was
/// down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MissedRunPolicy {
    /// Of all missed due times, only the latest one starts an audit, at most 24 hours late.
    RunOnce,
}

/// Reason why a due time did not lead to a completed audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ScheduleError")]
pub(crate) enum ScheduledRunError {
    /// The due time passed more than 24 hours ago, or a later due time has passed as well.
    MissedWindow,
    /// The previous audit of the schedule was still running.
    Overlap,
    /// The repository is archived or was deleted.
    RepositoryUnavailable,
    /// The audit started and failed.
    AuditFailed,
}

/// The enqueued job for the next due time of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Pending")]
pub(crate) struct PendingDispatchJob {
    #[serde(flatten)]
    pub(crate) slot: Occurrence,
    pub(crate) job_id: Uuid,
}

/// A stored schedule. Id, version and times are those of the document.
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
    pub(crate) pending: Option<PendingDispatchJob>,
    /// Local date of the last handled due time. Prevents two audits for one date.
    #[schemars(with = "Option<String>")]
    pub(crate) done_date: Option<Date>,
    pub(crate) last_dispatched_at: Option<Timestamp>,
    pub(crate) last_run_at: Option<Timestamp>,
    pub(crate) last_error_code: Option<ScheduledRunError>,
}

document!(StoredSchedule, "schedules");

/// A schedule that starts audits of a repository.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditSchedule {
    /// Local date of the schedule's creation. It provides the default of `weekday` and
    /// `day_of_month`.
    #[schemars(with = "String", extend("format" = "date"))]
    anchor_date: Date,
    cadence: Cadence,
    created_at: Timestamp,
    /// Day of the month, 1 to 31, for monthly schedules; shorter months use their last day. Null
    /// otherwise.
    day_of_month: Option<i8>,
    id: Uuid,
    /// Time at which the schedule last started an audit; null if never.
    last_dispatched_at: Option<Timestamp>,
    /// Reason why the last due time did not lead to a completed audit; null if it did.
    last_error_code: Option<ScheduledRunError>,
    /// Time at which the last audit of the schedule ended; null if none has.
    last_run_at: Option<Timestamp>,
    local_hour: u8,
    local_minute: u8,
    missed_run_policy: MissedRunPolicy,
    name: String,
    /// Next due time; null unless the schedule is active.
    next_run_at: Option<Timestamp>,
    owner_id: Uuid,
    repository_id: Uuid,
    state: ScheduleState,
    /// Id of the enqueued job that will start the next audit.
    engine_schedule_id: Option<Uuid>,
    timezone: String,
    updated_at: Timestamp,
    version: u64,
    /// Day of the week, 1 for Monday to 7 for Sunday, for weekly schedules; null otherwise.
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
