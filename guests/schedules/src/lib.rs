//! Audits and the schedules that start them (operation 9). An audit examines a repository: this
//! area collects its inputs, other areas import them, and when all have reported their results the
//! audit is complete.

mod audits;
mod cancelled;
mod repositories;
mod schedules;

use area_sdk::prelude::*;
use area_shared::queue::JobCancelled;

use audits::document::StoredAudit;
use audits::events::{AuditCompleted, AuditFailed, AuditStarted};
use audits::run::{EndOverdueAuditJob, StartAuditJob};
use schedules::dispatch::{DispatchScheduleJob, ScheduleDispatched, ScheduleSkipped};
use schedules::document::StoredSchedule;

/// Number of attempts of jobs that must not be lost. By default they take almost four days, in
/// which a version that cannot run them can be replaced.
const TIMER_ATTEMPTS: u32 = 100;

const AUDITS: &str = "/v1/workspaces/{workspace_id}/audits";
const SCHEDULES: &str = "/v1/workspaces/{workspace_id}/audit-schedules";
const SCHEDULE: &str = "/v1/workspaces/{workspace_id}/audit-schedules/{schedule_id}";

/// Declares the area `schedules`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("schedules", env!("CARGO_PKG_VERSION"))
        .summary("Audits of repositories, and the schedules that start them");
    let area = area.on(JobCancelled::NAME, cancelled::job_cancelled);
    schedule_routes(schedule_work(audit_routes(audit_work(area))))
}

fn audit_work(area: Area) -> Area {
    area.collection(
        Collection::of::<StoredAudit>()
            .summary("Audits with their inputs and results")
            .unique(&["schedule_id", "due_at"])
            .index(&["repository_id", "started_at"])
            .index(&["state", "started_at"])
            .readable_by(&["*"]),
    )
    .event::<AuditStarted>("An audit has collected its inputs")
    .event::<AuditCompleted>("An audit is complete, with its facts")
    .event::<AuditFailed>("An audit failed")
    .job::<StartAuditJob>(Lane::Scanner, 10, 30_000, audits::run::run)
    .job::<EndOverdueAuditJob>(Lane::Maintenance, TIMER_ATTEMPTS, 10_000, audits::run::deadline)
    .on("audit.findings_imported", audits::parts::findings)
    .on("audit.dependencies_imported", audits::parts::dependencies)
    .on("audit.ownership_imported", audits::parts::ownership)
}

fn audit_routes(area: Area) -> Area {
    area.routes([
        post("start_audit", AUDITS)
            .summary("Start an audit of a repository")
            .description(audits::DESCRIPTION)
            .problems(&["repository_archived"])
            .example(include_str!("../examples/start_audit.json"))
            .handler(audits::start),
        get("list_audits", AUDITS)
            .summary("List audits, newest first")
            .description("Without inputs and facts, which `GET` of one audit returns.")
            .example(include_str!("../examples/list_audits.json"))
            .handler(audits::list),
        get("get_audit", "/v1/workspaces/{workspace_id}/audits/{audit_id}")
            .summary("Read an audit")
            .description(
                "Read it until `state` is `completed` or `failed`. `progress` says how far the \
                 imports are, `parts` has the result of each.",
            )
            .example(include_str!("../examples/get_audit.json"))
            .handler(audits::show),
    ])
}

fn schedule_work(area: Area) -> Area {
    area.uses(&[Capability::Calendar])
        .collection(
            Collection::of::<StoredSchedule>()
                .summary("Schedules, which start audits automatically")
                .index(&["state"])
                .index(&["repository_id"])
                .readable_by(&["*"]),
        )
        .event::<ScheduleDispatched>("A schedule has started an audit")
        .event::<ScheduleSkipped>("A schedule was due and started no audit")
        .job::<DispatchScheduleJob>(
            Lane::Maintenance,
            TIMER_ATTEMPTS,
            10_000,
            schedules::dispatch::run,
        )
}

fn schedule_routes(area: Area) -> Area {
    area.routes([
        post("create_audit_schedule", SCHEDULES)
            .summary("Schedule audits of a repository")
            .description(schedules::DESCRIPTION)
            .in_contract()
            .problems(&["repository_archived"])
            .example(include_str!("../examples/create_audit_schedule.json"))
            .handler(schedules::create),
        get("list_audit_schedules", SCHEDULES)
            .summary("List schedules, newest first")
            .description(
                "One page. Repository and state select schedules; deleted ones are listed only if \
                 `state` asks for them.",
            )
            .example(include_str!("../examples/list_audit_schedules.json"))
            .handler(schedules::list),
        get("get_audit_schedule", SCHEDULE)
            .summary("Read a schedule")
            .description(
                "With its last and its next run. The `ETag` of the response is the version that a \
                 change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_audit_schedule.json"))
            .handler(schedules::show),
        patch("update_audit_schedule", SCHEDULE)
            .summary("Change a schedule")
            .description(
                "Absent members keep their values. A change does not give a local date a second \
                run.",
            )
            .problems(&["schedule_deleted"])
            .example(include_str!("../examples/update_audit_schedule.json"))
            .handler(schedules::update),
        post(
            "pause_audit_schedule",
            "/v1/workspaces/{workspace_id}/audit-schedules/{schedule_id}/pause",
        )
        .summary("Pause a schedule")
        .description(
            "No run starts until the schedule is resumed. Runs that are missed meanwhile are not \
             made up for.",
        )
        .problems(&["schedule_deleted"])
        .example(include_str!("../examples/pause_audit_schedule.json"))
        .if_match()
        .handler(schedules::pause),
        post(
            "resume_audit_schedule",
            "/v1/workspaces/{workspace_id}/audit-schedules/{schedule_id}/resume",
        )
        .summary("Resume a schedule")
        .description("Due times that passed during the pause are skipped.")
        .problems(&["schedule_deleted"])
        .example(include_str!("../examples/resume_audit_schedule.json"))
        .if_match()
        .handler(schedules::resume),
        delete("delete_audit_schedule", SCHEDULE)
            .summary("Delete a schedule")
            .description("It can still be read as `deleted`; its audits are kept.")
            .problems(&["schedule_deleted"])
            .example(include_str!("../examples/delete_audit_schedule.json"))
            .handler(schedules::remove),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
