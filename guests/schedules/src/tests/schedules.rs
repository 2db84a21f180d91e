//! Tests of schedules: responses, started audits and skipped due times.

use area_sdk::testing::{Request, USER, WORKSPACE, member_names};
use area_sdk::{JobError, Uuid};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{REPOSITORY, World};

#[test]
fn a_schedule_has_exactly_the_fields_of_the_contract() {
    let (world, schedule) = World::with_schedule();
    let expected = "anchor_date cadence created_at day_of_month engine_schedule_id id \
        last_dispatched_at last_error_code last_run_at local_hour local_minute missed_run_policy \
        name next_run_at owner_id repository_id state timezone updated_at version weekday \
        workspace_id";
    assert_eq!(member_names(&schedule), expected);
    assert_eq!(schedule["next_run_at"], "2026-05-07T01:30:00.000000Z");
    assert_eq!(schedule["anchor_date"], "2026-05-06");
    assert_eq!((&schedule["owner_id"], &schedule["state"]), (&json!(USER), &json!("active")));
    assert_eq!(schedule["missed_run_policy"], "run_once");
    assert_eq!(schedule["workspace_id"], json!(WORKSPACE));
    let job = world.host.jobs().remove(0);
    assert_eq!(schedule["engine_schedule_id"], json!(job.id));
}

#[test]
fn weekday_and_day_come_from_the_local_date_of_the_making() {
    // In Auckland it is already Thursday, the 7th.
    let world = World::at("2026-05-06T20:00:00Z");
    let zone = "Pacific/Auckland";
    let weekly = world.create(json!({ "cadence": "weekly", "timezone": zone }));
    assert_eq!((&weekly["weekday"], &weekly["day_of_month"]), (&json!(4), &Value::Null));
    assert_eq!(weekly["anchor_date"], "2026-05-07");
    let monthly = world.create(json!({ "cadence": "monthly", "timezone": zone }));
    assert_eq!((&monthly["weekday"], &monthly["day_of_month"]), (&Value::Null, &json!(7)));
}

#[test]
fn weekday_and_day_can_be_given() {
    let world = World::at("2026-05-06T12:00:00Z");
    let weekly = world.create(json!({ "cadence": "weekly", "weekday": 1 }));
    assert_eq!((&weekly["weekday"], &weekly["day_of_month"]), (&json!(1), &Value::Null));
    assert_eq!(weekly["next_run_at"], "2026-05-11T01:30:00.000000Z");
    let monthly = world.create(json!({ "cadence": "monthly", "day_of_month": 31 }));
    assert_eq!((&monthly["weekday"], &monthly["day_of_month"]), (&Value::Null, &json!(31)));
    assert_eq!(monthly["next_run_at"], "2026-05-31T01:30:00.000000Z");
    assert_eq!(monthly["anchor_date"], "2026-05-06");

    for (cadence, member) in
        [("daily", "weekday"), ("monthly", "weekday"), ("weekly", "day_of_month")]
    {
        let refused = world.ask(json!({ "cadence": cadence, member: 1 })).expect_err("refused");
        assert_eq!(refused.violations[0].pointer, format!("/{member}"), "{cadence}");
    }
}

#[test]
fn the_first_run_is_on_the_day_itself_if_its_time_is_to_come() {
    let world = World::at("2026-05-06T12:00:30Z");
    let due = |minute| {
        let change = json!({ "timezone": "UTC", "local_hour": 12, "local_minute": minute });
        world.create(change)["next_run_at"].clone()
    };
    assert_eq!(due(0), "2026-05-07T12:00:00.000000Z");
    assert_eq!(due(1), "2026-05-06T12:01:00.000000Z");
}

#[test]
fn a_due_time_starts_one_audit_and_plans_the_next() {
    let (mut world, schedule) = World::with_schedule();
    world.go_to("2026-05-07T01:30:00Z");
    let shown = world.show(&schedule);
    assert_eq!(shown["last_dispatched_at"], "2026-05-07T01:30:00.000000Z");
    assert_eq!(shown["next_run_at"], "2026-05-08T01:30:00.000000Z");
    assert_ne!(shown["engine_schedule_id"], schedule["engine_schedule_id"]);
    let [audit] = &world.audits()[..] else { panic!("one audit") };
    assert_eq!((&audit["trigger"], &audit["state"]), (&json!("schedule"), &json!("running")));
    assert_eq!((&audit["schedule_id"], &audit["branch_ref"]), (&schedule["id"], &json!("main")));
    assert_eq!(audit["requested_by"], json!(USER));
    assert_eq!(audit["due_at"], schedule["next_run_at"]);
    let told = world.published("schedule.dispatched");
    assert_eq!((told.len(), &told[0]["audit_id"]), (1, &audit["id"]));
}

#[test]
fn the_end_of_its_audit_is_written_down() {
    let (mut world, schedule) = World::with_schedule();
    world.go_to("2026-05-07T01:31:00Z");
    assert_eq!(world.show(&schedule)["last_run_at"], Value::Null);
    world.end_audits("succeeded");
    let shown = world.show(&schedule);
    assert_eq!(shown["last_run_at"], "2026-05-07T01:31:00.000000Z");
    assert_eq!(shown["last_error_code"], Value::Null);
    world.go_to("2026-05-08T01:31:00Z");
    world.end_audits("failed");
    assert_eq!(world.show(&schedule)["last_error_code"], "audit_failed");
    world.go_to("2026-05-09T01:31:00Z");
    assert_eq!(world.show(&schedule)["last_error_code"], Value::Null);
    assert_eq!(world.audits().len(), 3);
}

#[test]
fn the_end_of_an_earlier_audit_does_not_change_the_schedule() {
    let (world, schedule) = World::with_schedule();
    let [first, ..] = &world.host.take_jobs()[..] else { panic!("a job") };
    world.host.advance(13 * 3600 + 1800);
    world.host.run(&first.kind, first.payload.clone(), 1).expect("the first audit");
    let [_, deadline, second] = &world.host.take_jobs()[..] else { panic!("three jobs") };
    world.host.advance(24 * 3600);
    world.host.run(&second.kind, second.payload.clone(), 1).expect("the second audit");
    let [audit, ..] = &world.host.take_jobs()[..] else { panic!("three jobs") };
    world.host.run(&audit.kind, audit.payload.clone(), 1).expect("started");
    world.end_audits("succeeded");
    let ended = world.show(&schedule);
    assert_eq!(ended["last_run_at"], json!(world.host.now()));
    world.host.advance(60);
    world.host.run(&deadline.kind, deadline.payload.clone(), 1).expect("ended");
    assert_eq!(world.published("audit.failed").len(), 1);
    assert_eq!(world.show(&schedule), ended);
}

#[test]
fn what_was_missed_is_caught_up_with_once() {
    let (mut world, schedule) = World::with_schedule();
    world.be_away_until("2026-05-10T00:00:00Z");
    let due: Vec<Value> = world.audits().iter().map(|audit| audit["due_at"].clone()).collect();
    assert_eq!(due, ["2026-05-09T01:30:00.000000Z"]);
    let [skipped] = &world.published("schedule.skipped")[..] else { panic!("told once") };
    assert_eq!(skipped["reason"], "missed_window");
    assert_eq!(skipped["due_at"], "2026-05-07T01:30:00.000000Z");
    assert_eq!(skipped["last_due_at"], "2026-05-08T01:30:00.000000Z");
    let shown = world.show(&schedule);
    assert_eq!(shown["next_run_at"], "2026-05-10T01:30:00.000000Z");
    assert_eq!(shown["last_error_code"], Value::Null);
}

#[test]
fn what_is_over_for_more_than_a_day_is_skipped() {
    let weekly = json!({ "cadence": "weekly" });
    let mut late = World::at("2026-05-06T12:00:00Z");
    let schedule = late.create(weekly.clone());
    late.be_away_until("2026-05-14T01:30:01Z");
    assert_eq!(late.audits(), [""; 0]);
    let shown = late.show(&schedule);
    assert_eq!(shown["last_error_code"], "missed_window");
    assert_eq!(shown["next_run_at"], "2026-05-20T01:30:00.000000Z");
    let [skipped] = &late.published("schedule.skipped")[..] else { panic!("told once") };
    assert_eq!(skipped["due_at"], skipped["last_due_at"]);

    let mut in_time = World::at("2026-05-06T12:00:00Z");
    in_time.create(weekly);
    in_time.be_away_until("2026-05-14T01:30:00Z");
    assert_eq!(in_time.audits().len(), 1);
}

#[test]
fn an_audit_that_still_runs_keeps_the_next_from_starting() {
    let (mut world, schedule) = World::with_schedule();
    world.be_away_until("2026-05-08T01:29:00Z");
    world.be_away_until("2026-05-08T01:30:00Z");
    assert_eq!(world.audits().len(), 1);
    assert_eq!(world.show(&schedule)["last_error_code"], "overlap");
    assert_eq!(world.published("schedule.skipped")[0]["reason"], "overlap");
    world.end_audits("succeeded");
    world.go_to("2026-05-09T01:30:00Z");
    assert_eq!(world.audits().len(), 2);
    assert_eq!(world.show(&schedule)["last_error_code"], Value::Null);
}

#[test]
fn an_archived_repository_is_not_audited() {
    let (mut world, schedule) = World::with_schedule();
    world.put_repository(REPOSITORY, true);
    world.go_to("2026-05-07T02:00:00Z");
    assert_eq!(world.show(&schedule)["last_error_code"], "repository_unavailable");
    let refused = world.ask(json!({})).expect_err("refused");
    assert_eq!(refused.code.as_deref(), Some("repository_archived"));
}

#[test]
fn a_schedule_that_rests_starts_nothing_and_catches_up_with_nothing() {
    let (mut world, schedule) = World::with_schedule();
    let paused = world.host.call(world.request("pause_audit_schedule", &schedule)).expect("paused");
    assert_eq!(paused.body["state"], "paused");
    assert_eq!(paused.body["next_run_at"], Value::Null);
    assert_eq!(paused.body["engine_schedule_id"], Value::Null);
    world.go_to("2026-05-09T12:00:00Z");
    assert_eq!(world.audits(), [""; 0]);
    let resumed = world.host.call(world.request("resume_audit_schedule", &schedule));
    let resumed = resumed.expect("resumed").body;
    assert_eq!(resumed["next_run_at"], "2026-05-10T01:30:00.000000Z");
    world.go_to("2026-05-10T12:00:00Z");
    assert_eq!(world.audits().len(), 1);
}

#[test]
fn pausing_and_resuming_before_the_due_time_leaves_one_run() {
    let (mut world, schedule) = World::with_schedule();
    for operation in ["pause_audit_schedule", "resume_audit_schedule"] {
        world.host.call(world.request(operation, &schedule)).expect("done");
    }
    assert_eq!(world.host.jobs().len(), 2);
    world.go_to("2026-05-07T12:00:00Z");
    assert_eq!(world.audits().len(), 1);
}

#[test]
fn a_deleted_schedule_can_be_read_and_does_nothing() {
    let (mut world, schedule) = World::with_schedule();
    let gone = world.host.call(world.request("delete_audit_schedule", &schedule)).expect("gone");
    assert_eq!(gone.body["state"], "deleted");
    world.go_to("2026-05-08T12:00:00Z");
    assert_eq!(world.audits(), [""; 0]);
    let resumed = world.host.call(world.request("resume_audit_schedule", &schedule));
    assert_eq!(resumed.expect_err("refused").code.as_deref(), Some("schedule_deleted"));
    let list = |request: Request| {
        let list = world.host.call(request.with("limit", 50)).expect("a list").body;
        list["items"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(list(Request::to("list_audit_schedules")), 0);
    assert_eq!(list(Request::to("list_audit_schedules").with("state", "deleted")), 1);
}

#[test]
fn a_cancelled_due_time_is_skipped_and_the_next_one_planned() {
    let (mut world, schedule) = World::with_schedule();
    let job = world.host.take_jobs().remove(0);
    world.cancel(&job);
    let shown = world.show(&schedule);
    assert_eq!(shown["next_run_at"], "2026-05-08T01:30:00.000000Z");
    // The schedule waits for another job by now.
    world.cancel(&job);
    world.host.run(&job.kind, job.payload.clone(), 1).expect("retried by a user");
    assert_eq!(world.show(&schedule), shown);
    world.go_to("2026-05-07T12:00:00Z");
    assert!(world.audits().is_empty());
    world.go_to("2026-05-08T12:00:00Z");
    assert_eq!(world.audits().len(), 1);
}

#[test]
fn a_dispatch_whose_attempts_fail_is_put_off_for_a_day() {
    let mut world = World::at("2026-05-06T12:00:00Z");
    let schedule = world.create(json!({ "cadence": "weekly" }));
    let job = world.host.take_jobs().remove(0);
    world.be_away_until("2026-05-13T02:30:00Z");
    world.host.run(&job.kind, job.payload, 21).expect("put off");
    let jobs = world.host.jobs();
    let [again] = &jobs[..] else { panic!("one job") };
    assert_eq!(again.available_at, Some(world.host.now().plus_seconds(86_400)));
    assert_eq!(world.show(&schedule)["engine_schedule_id"], json!(again.id));
    world.go_to("2026-05-14T02:30:00Z");
    assert!(world.audits().is_empty());
    let shown = world.show(&schedule);
    assert_eq!(shown["last_error_code"], "missed_window");
    assert_eq!(shown["next_run_at"], "2026-05-20T01:30:00.000000Z");
}

#[test]
fn a_dispatch_that_cannot_plan_is_tried_again() {
    let (mut world, schedule) = World::with_schedule();
    let job = world.host.take_jobs().remove(0);
    let mut stored = world.host.documents("schedules").remove(0);
    stored["timezone"] = json!("Mars/Olympus");
    world.host.put_document("schedules", schedule["id"].as_str().expect("an id"), stored);
    world.be_away_until("2026-05-07T02:00:00Z");
    let failed = world.host.run(&job.kind, job.payload, 1);
    assert!(matches!(failed, Err(JobError::Retry(_))), "{failed:?}");
}

#[test]
fn a_change_plans_anew_but_gives_no_date_a_second_run() {
    let mut world = World::at("2026-05-06T12:00:00Z");
    let schedule = world.create(json!({ "timezone": "UTC" }));
    world.go_to("2026-05-07T04:00:00Z");
    world.end_audits("succeeded");
    let later = world.request("update_audit_schedule", &schedule).json(json!({ "local_hour": 15 }));
    let changed = world.host.call(later).expect("changed").body;
    assert_eq!(changed["next_run_at"], "2026-05-08T15:30:00.000000Z");
    world.go_to("2026-05-08T14:00:00Z");
    assert_eq!(world.audits().len(), 1, "the job of the old due time does nothing");
    world.go_to("2026-05-08T16:00:00Z");
    assert_eq!(world.audits().len(), 2);
}

#[test]
fn a_change_or_resume_of_an_overdue_schedule_does_not_drop_its_run() {
    for (operation, change) in [
        ("resume_audit_schedule", None),
        ("update_audit_schedule", Some(json!({ "local_hour": 2 }))),
    ] {
        let (mut world, schedule) = World::with_schedule();
        world.host.advance(16 * 3600);
        let request = world.request(operation, &schedule);
        let request = change.into_iter().fold(request, Request::json);
        let changed = world.host.call(request).expect("changed").body;
        assert_eq!(changed["next_run_at"], "2026-05-07T01:30:00.000000Z", "{operation}");
        world.go_to("2026-05-07T05:00:00Z");
        let due: Vec<Value> =
            world.audits().into_iter().map(|audit| audit["due_at"].clone()).collect();
        assert_eq!(due, ["2026-05-07T01:30:00.000000Z"], "{operation}");
        let next = world.show(&schedule)["next_run_at"].clone();
        assert!(next.as_str().is_some_and(|next| next.starts_with("2026-05-08")), "{next}");
    }
}

#[test]
fn a_change_of_the_name_leaves_the_due_time() {
    let (world, schedule) = World::with_schedule();
    let rename = world.request("update_audit_schedule", &schedule).json(json!({ "name": "New" }));
    let renamed = world.host.call(rename.if_match(1)).expect("renamed").body;
    assert_eq!((&renamed["name"], &renamed["version"]), (&json!("New"), &json!(2)));
    assert_eq!(renamed["engine_schedule_id"], schedule["engine_schedule_id"]);
    assert_eq!(world.host.jobs().len(), 1);
    let stale = world.request("update_audit_schedule", &schedule).json(json!({ "name": "Old" }));
    let stale = world.host.call(stale.if_match(1)).expect_err("stale");
    assert_eq!(format!("{:?}", stale.kind), "ProblemKind::VersionConflict");
}

#[test]
fn weekday_and_day_can_be_changed_where_the_cadence_has_them() {
    let (world, schedule) = World::with_schedule();
    let update = |change: Value| {
        let request = world.request("update_audit_schedule", &schedule).json(change);
        world.host.call(request).map(|answer| answer.body)
    };
    let refused = update(json!({ "weekday": 1 })).expect_err("daily");
    assert_eq!(refused.violations[0].pointer, "/weekday");
    let weekly = update(json!({ "cadence": "weekly", "weekday": 1 })).expect("weekly");
    assert_eq!(weekly["next_run_at"], "2026-05-11T01:30:00.000000Z");
    let refused = update(json!({ "day_of_month": 31 })).expect_err("weekly");
    assert_eq!(refused.violations[0].pointer, "/day_of_month");
    let monthly = update(json!({ "cadence": "monthly", "day_of_month": 31 })).expect("monthly");
    assert_eq!((&monthly["weekday"], &monthly["day_of_month"]), (&Value::Null, &json!(31)));
    let back = update(json!({ "cadence": "weekly" })).expect("weekly");
    assert_eq!(back["weekday"], 3, "of the anchor's date");
}

#[test]
fn zones_that_the_database_does_not_have_are_refused() {
    let world = World::at("2026-05-06T12:00:00Z");
    for zone in
        ["Mars/Olympus", "+02:00", "CET-1CEST", "Etc/Unknown", "Factory", "local", "../etc/passwd"]
    {
        let refused = world.ask(json!({ "timezone": zone })).expect_err(zone);
        assert_eq!(refused.violations[0].pointer, "/timezone", "{zone}");
    }
}

#[test]
fn a_zone_is_stored_in_the_spelling_of_the_database() {
    let world = World::at("2026-05-06T12:00:00Z");
    let schedule = world.create(json!({ "timezone": "EUROPE/berlin" }));
    assert_eq!(schedule["timezone"], "Europe/Berlin");
    for (sent, expected) in [("utc", "UTC"), ("america/port-au-prince", "America/Port-au-Prince")] {
        let change = world.request("update_audit_schedule", &schedule);
        let changed = world.host.call(change.json(json!({ "timezone": sent }))).expect("changed");
        assert_eq!(changed.body["timezone"], expected);
    }
}

#[test]
fn a_schedule_that_was_stored_with_another_spelling_of_its_zone_keeps_working() {
    let (mut world, schedule) = World::with_schedule();
    let mut stored = world.host.documents("schedules").remove(0);
    stored["timezone"] = json!("EUROPE/berlin");
    world.host.put_document("schedules", schedule["id"].as_str().expect("an id"), stored);
    world.go_to("2026-05-07T02:00:00Z");
    assert_eq!(world.show(&schedule)["next_run_at"], "2026-05-08T01:30:00.000000Z");
    assert_eq!(world.audits().len(), 1);
}

#[test]
fn an_unknown_repository_is_not_found() {
    let world = World::at("2026-05-06T12:00:00Z");
    let refused = world.ask(json!({ "repository_id": Uuid::from_u128(404) }));
    assert_eq!(format!("{:?}", refused.expect_err("refused").kind), "ProblemKind::NotFound");
}

/// An action on a schedule.
#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(i64),
    BeAway(i64),
    Pause,
    Resume,
    Hour(u8),
    EndAudits,
    Delete,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_i64..200_000).prop_map(Step::Wait),
        2 => (1_i64..400_000).prop_map(Step::BeAway),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        2 => (0_u8..24).prop_map(Step::Hour),
        3 => Just(Step::EndAudits),
        1 => Just(Step::Delete),
    ]
}

/// Runs one action.
fn take(world: &mut World, schedule: &Value, step: Step) {
    let later = |world: &World, seconds| world.host.now().plus_seconds(seconds).to_string();
    let ask = |world: &World, request: Request| world.host.call(request).map(drop);
    let deleted = world.show(schedule)["state"] == "deleted";
    let asked = match step {
        Step::Wait(seconds) => {
            world.go_to(&later(world, seconds));
            return;
        }
        Step::BeAway(seconds) => {
            world.be_away_until(&later(world, seconds));
            return;
        }
        Step::EndAudits => {
            world.end_audits("succeeded");
            return;
        }
        Step::Pause => ask(world, world.request("pause_audit_schedule", schedule)),
        Step::Resume => ask(world, world.request("resume_audit_schedule", schedule)),
        Step::Delete => ask(world, world.request("delete_audit_schedule", schedule)),
        Step::Hour(hour) => {
            let change = json!({ "local_hour": hour });
            ask(world, world.request("update_audit_schedule", schedule).json(change))
        }
    };
    assert_eq!(asked.is_err(), deleted, "{step:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_no_local_date_has_two_runs(steps in prop::collection::vec(steps(), 1..30)) {
        let mut world = World::at("2026-03-20T12:00:00Z");
        let schedule = world.create(json!({ "timezone": "UTC" }));
        for step in steps {
            take(&mut world, &schedule, step);
            let shown = world.show(&schedule);
            let active = shown["state"] == "active";
            prop_assert_eq!(active, !shown["next_run_at"].is_null());
            prop_assert_eq!(active, !shown["engine_schedule_id"].is_null());
            let due = world.audits();
            let mut dates: Vec<&str> =
                due.iter().map(|audit| &audit["due_at"].as_str().expect("due")[..10]).collect();
            let all = dates.len();
            dates.dedup();
            prop_assert_eq!(dates.len(), all);
        }
    }
}
