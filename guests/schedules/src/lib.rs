//! Audits, and the schedules that start them (operation 9). An audit is one
//! look at a repository: this area gathers what there is to look at, other
//! areas bring their part of it up to date, and when all have answered the
//! audit is complete.

mod audits;
mod repositories;
mod schedules;

use area_sdk::prelude::*;

use audits::document::StoredAudit;
use audits::events::{AuditCompleted, AuditFailed, AuditStarted};
use audits::run::{AuditDeadline, RunAudit};
use schedules::dispatch::{DispatchSchedule, ScheduleDispatched, ScheduleSkipped};
use schedules::document::StoredSchedule;

const AUDITS: &str = "/v1/workspaces/{workspace_id}/audits";
const SCHEDULES: &str = "/v1/workspaces/{workspace_id}/audit-schedules";
const SCHEDULE: &str = "/v1/workspaces/{workspace_id}/audit-schedules/{schedule_id}";

/// The area.
pub fn area() -> Area {
    let area = Area::new("schedules", env!("CARGO_PKG_VERSION"))
        .summary("Audits of repositories, and the schedules that start them");
    schedule_routes(schedule_work(audit_routes(audit_work(area))))
}

fn audit_work(area: Area) -> Area {
    area.collection(
        Collection::of::<StoredAudit>()
            .summary("Looks at repositories: what was looked at, and what came of it")
            .text("repository_id")
            .text("state")
            .text("started_at")
            .text("schedule_id")
            .text("due_at")
            .unique(&["schedule_id", "due_at"])
            .index(&["repository_id", "started_at"])
            .index(&["state", "started_at"])
            .readable_by(&["*"]),
    )
    .event::<AuditStarted>("An audit has gathered what it looks at")
    .event::<AuditCompleted>("An audit is complete, with its facts")
    .event::<AuditFailed>("An audit came to nothing")
    .job::<RunAudit>(Lane::Scanner, 10, 30_000, audits::run::run)
    .job::<AuditDeadline>(Lane::Maintenance, 10, 10_000, audits::run::deadline)
    .on("audit.findings_imported", audits::parts::findings)
    .on("audit.dependencies_imported", audits::parts::dependencies)
    .on("audit.ownership_imported", audits::parts::ownership)
}

fn audit_routes(area: Area) -> Area {
    area.route(
        post("start_audit", AUDITS)
            .summary("Start an audit of a repository")
            .description(audits::DESCRIPTION)
            .problems(&["repository_archived"])
            .handler(audits::start),
    )
    .route(
        get("list_audits", AUDITS)
            .summary("List audits, newest first")
            .description("Without inputs and facts, which `GET` of one audit shows.")
            .handler(audits::list),
    )
    .route(
        get("get_audit", "/v1/workspaces/{workspace_id}/audits/{audit_id}")
            .summary("Read an audit")
            .handler(audits::show),
    )
}

fn schedule_work(area: Area) -> Area {
    area.uses(&[Capability::Calendar])
        .collection(
            Collection::of::<StoredSchedule>()
                .summary("What starts audits by itself")
                .text("repository_id")
                .text("state")
                .index(&["state"])
                .index(&["repository_id"])
                .readable_by(&["*"]),
        )
        .event::<ScheduleDispatched>("A schedule has started an audit")
        .event::<ScheduleSkipped>("A schedule was due and started no audit")
        .job::<DispatchSchedule>(Lane::Maintenance, 30, 10_000, schedules::dispatch::run)
}

fn schedule_routes(area: Area) -> Area {
    area.route(
        post("create_audit_schedule", SCHEDULES)
            .summary("Schedule audits of a repository")
            .description(schedules::DESCRIPTION)
            .in_contract()
            .problems(&["repository_archived"])
            .handler(schedules::create),
    )
    .route(
        get("list_audit_schedules", SCHEDULES)
            .summary("List schedules, newest first")
            .handler(schedules::list),
    )
    .route(get("get_audit_schedule", SCHEDULE).summary("Read a schedule").handler(schedules::show))
    .route(
        patch("update_audit_schedule", SCHEDULE)
            .summary("Change a schedule")
            .description(
                "Members that are absent stay. A local date that had its run does not get another \
                 by a change.",
            )
            .problems(&["schedule_deleted"])
            .handler(schedules::update),
    )
    .route(
        post(
            "pause_audit_schedule",
            "/v1/workspaces/{workspace_id}/audit-schedules/{schedule_id}/pause",
        )
        .summary("Let a schedule rest")
        .problems(&["schedule_deleted"])
        .handler(schedules::pause),
    )
    .route(
        post(
            "resume_audit_schedule",
            "/v1/workspaces/{workspace_id}/audit-schedules/{schedule_id}/resume",
        )
        .summary("Let a schedule work again")
        .description("Due times that passed while it rested are not caught up with.")
        .problems(&["schedule_deleted"])
        .handler(schedules::resume),
    )
    .route(
        delete("delete_audit_schedule", SCHEDULE)
            .summary("Delete a schedule")
            .description("It can still be read, as `deleted`; its audits stay.")
            .problems(&["schedule_deleted"])
            .handler(schedules::remove),
    )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
