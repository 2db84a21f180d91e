//! Tests of the queue through a fake host.

use area_sdk::queue::{Job, Status};
use area_sdk::testing::{FakeHost, Request, START, USER, WORKSPACE, member_names};
use area_sdk::{Role, Uuid};
use serde_json::{Value, json};

const RESOURCE: Uuid = Uuid::from_u128(77);

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Creates a job that is due this many seconds after the start time of the host.
fn job(n: u128, lane: &str, status: Status, seconds: i64) -> Job {
    Job {
        id: id(n).to_string(),
        area: "schedules".to_owned(),
        kind: "audit".to_owned(),
        lane: lane.to_owned(),
        resource: Some(RESOURCE.to_string()),
        status,
        attempts: 1,
        max_attempts: 5,
        available_at: START.plus_seconds(seconds).0,
        created_at: START.0,
        updated_at: START.0,
        last_error: None,
        position: None,
    }
}

fn host(jobs: impl IntoIterator<Item = Job>) -> FakeHost {
    let host = FakeHost::new(crate::area());
    jobs.into_iter().for_each(|job| host.put_job(job));
    host
}

fn queue(host: &FakeHost) -> Value {
    host.call(Request::to("get_workspace_queue").role(Role::Viewer)).expect("the queue").body
}

fn act(host: &FakeHost, operation: &str, n: u128) -> Result<Value, area_sdk::Problem> {
    let request = Request::to(operation).with("job_id", id(n).to_string()).role(Role::Admin);
    host.call(request).map(|answer| answer.body)
}

#[test]
fn the_queue_has_exactly_the_fields_of_the_contract() {
    let queue = queue(&host([job(1, "scanner", Status::Queued, 0)]));
    assert_eq!(member_names(&queue), "jobs lanes updated_at");
    let (job, lane) = (&queue["jobs"][0], &queue["lanes"][4]);
    let expected = "attempts available_at created_at dispatch_status kind lane last_error position \
        resource_id status workspace_id";
    assert_eq!(member_names(job), expected);
    assert_eq!((&job["kind"], &job["resource_id"]), (&json!("audit"), &json!(RESOURCE)));
    assert_eq!((&job["workspace_id"], &job["position"]), (&json!(WORKSPACE), &json!(1)));
    assert_eq!(lane, &json!({ "name": "scanner", "capacity": 2, "active": 0, "queued": 1 }));
    assert_eq!(queue["updated_at"], json!(START));
}

#[test]
fn jobs_go_by_lane_and_position_and_say_how_far_they_are() {
    let failed = Job { last_error: Some("no".to_owned()), ..job(5, "scanner", Status::Dead, 0) };
    let queue = queue(&host([
        job(1, "scanner", Status::Running, 0),
        job(2, "scanner", Status::Queued, 60),
        job(3, "scanner", Status::Queued, 0),
        job(6, "scanner", Status::Queued, -1),
        job(4, "delivery", Status::Retrying, 5),
        failed,
    ]));
    let seen: Vec<Value> = queue["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| json!([job["lane"], job["status"], job["dispatch_status"], job["position"]]))
        .collect();
    let expected = json!([
        ["delivery", "retrying", "scheduled", null],
        ["scanner", "queued", "waiting", 1],
        ["scanner", "queued", "waiting", 2],
        ["scanner", "running", "dispatched", null],
        ["scanner", "dead", "settled", null],
    ]);
    assert_eq!(json!(seen), expected);
    let names: Vec<&str> = queue["lanes"]
        .as_array()
        .expect("lanes")
        .iter()
        .map(|lane| lane["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["assistant", "delivery", "ingest", "maintenance", "scanner"]);
}

#[test]
fn pages_are_filtered_and_refuse_a_foreign_cursor() {
    let host = host((1..=5).map(|n| job(n, "ingest", Status::Queued, 0)));
    let page = |cursor: Option<&str>| {
        let request = Request::to("list_queue_jobs").with("limit", 3).with("status", "queued");
        let request = match cursor {
            Some(cursor) => request.with("cursor", cursor),
            None => request,
        };
        host.call(request.role(Role::Viewer)).map(|answer| answer.body)
    };
    let first = page(None).expect("a page");
    assert_eq!(first["items"][0]["id"], json!(id(5)));
    let second = page(first["next_cursor"].as_str()).expect("a page");
    assert_eq!(second["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(second["next_cursor"], Value::Null);
    let refused = page(Some("no cursor")).expect_err("not a cursor");
    assert_eq!(refused.violations[0].pointer, "cursor");
    let none = Request::to("list_queue_jobs").with("limit", 3).with("lane", "scanner");
    assert_eq!(host.call(none).expect("a page").body["items"], json!([]));
}

#[test]
fn a_dead_job_is_retried_and_told_of() {
    let dead = Job { attempts: 5, ..job(1, "scanner", Status::Dead, -60) };
    let host = host([dead]);
    host.advance(10);
    let retried = act(&host, "retry_queue_job", 1).expect("retried");
    assert_eq!((&retried["status"], &retried["attempts"]), (&json!("queued"), &json!(0)));
    assert_eq!(retried["available_at"], json!(host.now()));
    let events = host.events();
    assert_eq!(events[0].name, "job.retried");
    assert_eq!(
        events[0].data,
        json!({
            "job_id": id(1), "area": "schedules", "kind": "audit", "resource_id": RESOURCE,
            "actor_id": USER,
        })
    );
    let again = act(&host, "retry_queue_job", 1).expect_err("it waits already");
    assert_eq!(again.code.as_deref(), Some("job_status"));
    assert!(again.detail.contains("queued"), "{}", again.detail);
}

#[test]
fn what_waits_or_runs_is_cancelled_and_what_has_ended_is_not() {
    let event =
        Job { kind: "event".to_owned(), resource: None, ..job(4, "events", Status::Queued, 0) };
    let delivery = Job { kind: "event".to_owned(), ..job(5, "delivery", Status::Queued, 0) };
    let host = host([
        job(1, "scanner", Status::Running, 0),
        job(2, "scanner", Status::Queued, 0),
        job(3, "scanner", Status::Succeeded, 0),
        event,
        delivery,
    ]);
    for n in [1, 2, 5] {
        let cancelled = act(&host, "cancel_queue_job", n).expect("cancelled");
        assert_eq!(cancelled["status"], "failed");
        assert_eq!(cancelled["position"], Value::Null);
        assert_eq!(cancelled["last_error"], json!(format!("cancelled by user {USER}")));
    }
    let code = |n| act(&host, "cancel_queue_job", n).expect_err("refused").code;
    assert_eq!(code(3).as_deref(), Some("job_status"));
    assert_eq!(code(4).as_deref(), Some("job_not_cancellable"));
    assert_eq!(host.events().len(), 3);
    for operation in ["retry_queue_job", "cancel_queue_job", "get_queue_job"] {
        let missing = act(&host, operation, 99).expect_err("nobody's");
        assert_eq!(missing.kind, area_sdk::Problem::not_found().kind, "{operation}");
    }
    assert_eq!(act(&host, "get_queue_job", 3).expect("a job")["status"], "succeeded");
}
