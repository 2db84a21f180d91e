//! Tests of subscriptions and deliveries through a fake host.

mod cancelled;
mod inactive;
mod together;

use std::cell::RefCell;
use std::rc::Rc;

use area_sdk::testing::{
    EgressError, EnqueuedJob, FakeHost, Header, Incoming, Outgoing, Request, SuccessResponse,
    WORKSPACE, member_names,
};
use area_sdk::wit::Outcome;
use area_sdk::{Problem, Timestamp, Uuid};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const EVENT: Uuid = Uuid::from_u128(77);

fn create(host: &FakeHost) -> Value {
    let body = json!({ "url": "https://hooks.example/a", "events": ["note.created"] });
    host.call(Request::to("create_webhook").json(body)).expect("a webhook").body
}

fn answer(status: u16, headers: &[(&str, &str)]) -> Incoming {
    let header =
        |&(name, value): &(&str, &str)| Header { name: name.to_owned(), value: value.to_owned() };
    Incoming { status, headers: headers.iter().map(header).collect(), body: Vec::new() }
}

/// Runs a delivery's job as attempt `attempt`.
fn attempt(host: &FakeHost, job: &EnqueuedJob, attempt: u32) -> Outcome {
    host.run("deliver", job.payload.clone(), attempt).expect("ended")
}

/// Runs the only job of a kind that was enqueued since jobs were last taken.
fn run(host: &FakeHost, kind: &str) {
    let job = job_of(host, kind);
    assert_eq!(host.run(kind, job.payload, 1), Ok(Outcome::Done));
}

/// Delivers an event that the host has not matched with the subscriptions.
fn fan_out(host: &FakeHost, event: Uuid, name: &str, data: Value) {
    host.deliver(event, name, data).expect("taken");
    run(host, "fan_out");
}

/// Delivers an event to the subscription that requests it, as attempt `attempt`.
fn deliver_to(host: &FakeHost, webhook: &Value, event: u128, attempt: u32) -> Outcome {
    let id = webhook["id"].as_str().expect("an id");
    let event = (Uuid::from_u128(event), "note.created", json!({ "n": 1 }));
    host.deliver_requested(id, event, attempt).expect("ended")
}

fn delivery(host: &FakeHost) -> Value {
    host.documents("deliveries").pop().expect("a delivery")
}

/// Creates a host with one webhook.
fn with_webhook() -> (FakeHost, Value) {
    let host = FakeHost::new(crate::area());
    let webhook = create(&host);
    (host, webhook)
}

/// Starts a request to an operation on a webhook.
fn request(operation: &str, webhook: &Value) -> Request {
    Request::to(operation).with("webhook_id", webhook["id"].clone())
}

/// Returns the list of a webhook's deliveries, newest first.
fn deliveries(host: &FakeHost, webhook: &Value) -> Vec<Value> {
    let list = host.call(request("list_webhook_deliveries", webhook)).expect("a list").body;
    list["items"].as_array().cloned().expect("items")
}

/// Requests that a delivery is sent again.
fn resend(host: &FakeHost, webhook: &Value, delivery: &Value) -> Result<SuccessResponse, Problem> {
    let request = request("resend_webhook_delivery", webhook);
    host.call(request.with("delivery_id", delivery["id"].clone()))
}

/// Creates a host with one webhook and the job of one delivery.
fn with_delivery() -> (FakeHost, Value, EnqueuedJob) {
    let (host, webhook) = with_webhook();
    fan_out(&host, EVENT, "note.created", json!({ "n": 1 }));
    let [job] = &host.take_jobs()[..] else { panic!("one job") };
    let job = job.clone();
    (host, webhook, job)
}

fn header<'a>(sent: &'a Outgoing, name: &str) -> &'a str {
    &sent.headers.iter().find(|header| header.name == name).expect("a header").value
}

#[test]
fn a_webhook_has_exactly_the_fields_of_the_contract_and_its_secret_once() {
    let (host, webhook) = with_webhook();
    assert_eq!(member_names(&webhook), "active created_at events id kind name secret url");
    assert_eq!((&webhook["name"], &webhook["kind"]), (&json!("hooks.example"), &json!("webhook")));
    let secret = webhook["secret"].as_str().and_then(|secret| secret.strip_prefix("whsec_"));
    assert_eq!(STANDARD.decode(secret.expect("a secret")).map(|bytes| bytes.len()), Ok(32));

    let show = request("get_webhook", &webhook);
    assert_eq!(host.call(show).expect("a webhook").body["secret"], Value::Null);
    let stored = host.documents("subscriptions")[0].to_string();
    assert!(!stored.contains("whsec_"));
}

#[test]
fn urls_that_may_not_be_sent_to_are_refused() {
    let host = FakeHost::new(crate::area());
    let body = json!({ "url": "http://localhost/", "events": ["note.created"] });
    let refused = host.call(Request::to("create_webhook").json(body)).expect_err("refused");
    assert_eq!(refused.violations[0].pointer, "/url");
}

#[test]
fn an_event_is_delivered_once_a_subscription_and_signed() {
    let (host, webhook, job) = with_delivery();
    fan_out(&host, EVENT, "note.created", json!({ "n": 1 }));
    fan_out(&host, Uuid::from_u128(78), "other.event", json!({}));
    assert!(host.jobs().is_empty());

    host.network(|_| Ok(answer(204, &[])));
    assert_eq!(attempt(&host, &job, 1), Outcome::Done);
    let sent = &host.sent()[0];
    let body = String::from_utf8(sent.body.clone()).expect("UTF-8");
    let told: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&told["type"], &told["data"]), (&json!("note.created"), &json!({ "n": 1 })));
    assert_eq!(told["workspace_id"], json!(WORKSPACE));
    assert_eq!(header(sent, "webhook-id"), EVENT.to_string());
    assert_eq!((sent.timeout_ms, sent.method.as_str()), (15_000, "POST"));

    let signed = format!("{EVENT}.{}.{body}", header(sent, "webhook-timestamp"));
    let expected = hmac(&webhook["secret"], &signed);
    assert_eq!(header(sent, "webhook-signature"), format!("v1,{expected}"));
    assert_eq!(delivery(&host)["status"], "succeeded");
    assert_eq!(attempt(&host, &job, 2), Outcome::Done, "nothing is left to do");
    assert_eq!(host.sent().len(), 1);
}

/// Computes the signature of a message as a receiver does, with the secret of the webhook.
fn hmac(secret: &Value, message: &str) -> String {
    let secret = secret.as_str().and_then(|secret| secret.strip_prefix("whsec_"));
    let secret = STANDARD.decode(secret.expect("a secret")).expect("base64");
    STANDARD.encode(area_sdk::testing::hmac_sha256(&secret, message.as_bytes()))
}

#[test]
fn the_signature_is_that_of_the_standard_s_own_vector() {
    let message = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk.1649367553.\
                   {\"email\":\"test@example.com\",\"username\":\"test_user\"}";
    let secret = json!("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
    assert_eq!(hmac(&secret, message), "tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
}

#[test]
fn rotation_signs_twice_for_a_day_new_signature_first() {
    let (host, webhook, job) = with_delivery();
    let rotated = host.call(request("rotate_webhook_secret", &webhook)).expect("rotated").body;
    assert_ne!(rotated["secret"], webhook["secret"]);
    host.network(|_| Ok(answer(500, &[])));
    attempt(&host, &job, 1);
    let sent = host.sent().pop().expect("sent");
    let body = String::from_utf8(sent.body.clone()).expect("UTF-8");
    let signed = format!("{EVENT}.{}.{body}", header(&sent, "webhook-timestamp"));
    let (new, old) = (hmac(&rotated["secret"], &signed), hmac(&webhook["secret"], &signed));
    assert_eq!(header(&sent, "webhook-signature"), format!("v1,{new} v1,{old}"));

    host.advance(24 * 3600);
    attempt(&host, &job, 2);
    let sent = host.sent().pop().expect("sent");
    assert!(!header(&sent, "webhook-signature").contains(' '));
    let [forget] = &host.take_jobs()[..] else { panic!("one job") };
    assert_eq!(forget.kind, "forget_secret");
    assert_eq!(host.run("forget_secret", forget.payload.clone(), 1), Ok(Outcome::Done));
}

#[test]
fn failures_are_tried_again_by_the_schedule_and_then_given_up() {
    let (host, _, job) = with_delivery();
    host.network(|_| Err(EgressError::Timeout));
    for nth in 1..=9 {
        let before = host.now();
        let Outcome::Retry((at, why)) = attempt(&host, &job, nth) else { panic!("retry {nth}") };
        assert_eq!(why, "no response within 15 s");
        host.advance(Timestamp(at).seconds_since(before) + 1);
    }
    assert_eq!(attempt(&host, &job, 10), Outcome::Done);
    let delivery = delivery(&host);
    assert_eq!((&delivery["status"], &delivery["attempt_count"]), (&json!("failed"), &json!(10)));
    assert_eq!(delivery["next_attempt_at"], Value::Null);
}

#[test]
fn retry_after_is_honoured() {
    let (host, _, job) = with_delivery();
    host.network(|_| Ok(answer(503, &[("Retry-After", "3600")])));
    let Outcome::Retry((at, _)) = attempt(&host, &job, 1) else { panic!("retried") };
    assert_eq!(Timestamp(at).seconds_since(host.now()), 3600);
}

#[test]
fn every_attempt_is_signed_anew() {
    let (host, _, job) = with_delivery();
    host.network(|_| Ok(answer(500, &[])));
    attempt(&host, &job, 1);
    host.advance(10);
    attempt(&host, &job, 2);
    let sent = host.sent();
    let at = |nth: usize| header(&sent[nth], "webhook-timestamp").parse::<i64>().expect("seconds");
    assert_eq!(at(1) - at(0), 10);
    assert_ne!(header(&sent[0], "webhook-signature"), header(&sent[1], "webhook-signature"));
}

#[test]
fn a_matched_event_is_sent_stored_and_tried_again_in_one_run_each() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(500, &[])));
    assert!(matches!(deliver_to(&host, &webhook, 77, 1), Outcome::Retry(_)));
    assert_eq!((&delivery(&host)["status"], host.sent().len()), (&json!("pending"), 1));
    host.network(|_| Ok(answer(204, &[])));
    assert_eq!(deliver_to(&host, &webhook, 77, 2), Outcome::Done);
    assert_eq!(deliver_to(&host, &webhook, 77, 3), Outcome::Done, "nothing is left to do");
    assert_eq!((host.sent().len(), host.documents("deliveries").len()), (2, 1));
    let delivery = delivery(&host);
    assert_eq!((&delivery["status"], &delivery["attempt_count"]), (&json!("succeeded"), &json!(2)));
    assert_eq!(header(&host.sent()[1], "webhook-id"), EVENT.to_string());
    assert!(host.jobs().iter().all(|job| job.kind == "forget_old"));
}

#[test]
fn a_matched_event_has_a_delivery_for_each_webhook_and_none_for_one_that_went() {
    let host = FakeHost::new(crate::area());
    let (one, other, gone) = (create(&host), create(&host), create(&host));
    host.call(request("delete_webhook", &gone)).expect("deleted");
    host.network(|_| Ok(answer(204, &[])));
    for webhook in [&one, &other, &gone] {
        assert_eq!(deliver_to(&host, webhook, 77, 1), Outcome::Done);
    }
    assert_eq!((host.sent().len(), host.documents("deliveries").len()), (2, 2));
}

#[test]
fn a_matched_event_is_held_while_the_endpoint_fails_and_sent_afterwards() {
    let (host, webhook) = with_webhook();
    host.network(|_| Err(EgressError::Timeout));
    for event in 1000..1005 {
        host.advance(1);
        deliver_to(&host, &webhook, event, 1);
    }
    assert_eq!(sent_ids(&host), [0, 1, 2], "three failures, and nobody else tries");
    host.network(|_| Ok(answer(204, &[])));
    run_probe(&host, &job_of(&host, "probe"));
    run(&host, "drain");
    for job in host.take_jobs().iter().filter(|job| job.kind == "deliver") {
        assert_eq!(attempt(&host, job, 1), Outcome::Done);
    }
    assert!(host.documents("deliveries").iter().all(|one| one["status"] == "succeeded"));
    assert_eq!(host.documents("deliveries").len(), 5);
}

#[test]
fn old_deliveries_are_deleted_and_newer_ones_kept() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(204, &[])));
    for event in 0..300 {
        deliver_to(&host, &webhook, 1000 + event, 1);
    }
    host.advance(31 * 24 * 3600);
    deliver_to(&host, &webhook, 2000, 1);
    let forget = job_of(&host, "forget_old");
    let mut runs = 0;
    while let Outcome::Continue(_) = host.run("forget_old", forget.payload.clone(), 1).expect("ran")
    {
        runs += 1;
    }
    assert_eq!((runs, host.documents("deliveries").len()), (2, 1));
}

#[test]
fn gone_disables_and_tells_and_stops_what_waits() {
    let (host, webhook, job) = with_delivery();
    host.network(|_| Ok(answer(410, &[])));
    assert_eq!(attempt(&host, &job, 1), Outcome::Done);
    assert_eq!(host.events()[0].name, "webhook.disabled");
    assert_eq!(host.events()[0].data["reason"], "gone");
    let test = host.call(request("test_webhook", &webhook));
    assert_eq!(test.expect_err("disabled").code.as_deref(), Some("webhook_disabled"));

    let activate = request("update_webhook", &webhook).json(json!({ "active": true }));
    let activated = host.call(activate).expect("active").body;
    assert_eq!((&activated["active"], &activated["disabled_reason"]), (&json!(true), &Value::Null));
}

#[test]
fn five_days_without_a_success_disable() {
    let (host, _, job) = with_delivery();
    let status = Rc::new(RefCell::new(500));
    let answers = Rc::clone(&status);
    host.network(move |_| Ok(answer(*answers.borrow(), &[])));
    attempt(&host, &job, 1);
    host.advance(119 * 3600);
    *status.borrow_mut() = 200;
    attempt(&host, &job, 2);
    assert_eq!(host.documents("subscriptions")[0]["failing_since"], Value::Null);

    *status.borrow_mut() = 302;
    for (nth, event) in [(1, 80), (2, 81)] {
        fan_out(&host, Uuid::from_u128(event), "note.created", json!({}));
        let job = job_of(&host, "deliver");
        assert_eq!(host.documents("subscriptions")[0]["active"], true, "{nth}");
        attempt(&host, &job, 1);
        host.advance(120 * 3600);
    }
    assert_eq!(host.documents("subscriptions")[0]["active"], false);
    assert_eq!(host.events()[0].data["reason"], "failing");
}

#[test]
fn a_delivery_can_be_sent_again_under_the_same_id() {
    let (host, webhook, job) = with_delivery();
    let list = || deliveries(&host, &webhook).remove(0);
    let resend = || resend(&host, &webhook, &list());
    assert_eq!(resend().expect_err("pending").code.as_deref(), Some("delivery_pending"));
    host.network(|_| Ok(answer(200, &[])));
    attempt(&host, &job, 1);
    resend().expect("asked for");
    let again = host.take_jobs().pop().expect("a job");
    attempt(&host, &again, 1);
    let ids: Vec<String> =
        host.sent().iter().map(|sent| header(sent, "webhook-id").to_owned()).collect();
    assert_eq!(ids, [EVENT.to_string(), EVENT.to_string()]);
    assert_eq!((&list()["attempt_count"], &list()["response_status"]), (&json!(2), &json!(200)));
}

#[test]
fn a_deleted_webhook_is_told_nothing_more() {
    let (host, webhook, job) = with_delivery();
    assert_eq!(host.call(request("delete_webhook", &webhook)).expect("deleted").status, 204);
    assert_eq!(attempt(&host, &job, 1), Outcome::Done);
    assert!(host.sent().is_empty());
    assert_eq!(host.documents("deliveries").len(), 1);
    assert_eq!(host.run_jobs(), [Outcome::Done], "the job that deletes the delivery");
    assert!(host.documents("deliveries").is_empty());
}

#[test]
fn event_names_are_left_to_the_host_to_list() {
    let manifest = crate::area().manifest();
    let create = manifest.routes.iter().find(|route| route.operation_id == "create_webhook");
    let area_sdk::wit::assurance::area::manifest::BodyKind::Json(schema) =
        &create.expect("a route").body
    else {
        panic!("takes JSON")
    };
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let events = &schema["properties"]["events"];
    let name = events["items"]["$ref"].as_str().and_then(|target| schema.pointer(&target[1..]));
    assert_eq!(name.map(|name| &name["format"]), Some(&json!("event-name")));
    assert_eq!(events["minItems"], 1);
    let test = manifest.publishes.iter().find(|event| event.name == "webhook.test");
    assert!(test.expect("an event").schema.contains(r#""x-subscribable":false"#));
}

/// Delivers this number of events, and returns their jobs.
fn deliver_events(host: &FakeHost, events: std::ops::Range<u128>) -> Vec<EnqueuedJob> {
    let mut jobs = Vec::new();
    for event in events {
        host.advance(1);
        host.deliver(Uuid::from_u128(1000 + event), "note.created", json!({})).expect("taken");
        for job in host.take_jobs() {
            assert_eq!(host.run("fan_out", job.payload, 1), Ok(Outcome::Done));
            jobs.extend(host.take_jobs());
        }
    }
    jobs
}

/// Runs a probe when it is due.
fn run_probe(host: &FakeHost, job: &EnqueuedJob) {
    host.advance(job.available_at.expect("a moment").seconds_since(host.now()) + 1);
    assert_eq!(host.run("probe", job.payload.clone(), 1), Ok(Outcome::Done));
}

/// Returns the only job of a kind that was enqueued since the last call.
fn job_of(host: &FakeHost, kind: &str) -> EnqueuedJob {
    let mut jobs = host.take_jobs();
    jobs.retain(|job| job.kind == kind);
    assert!(!jobs.is_empty(), "no {kind}");
    jobs.remove(0)
}

fn sent_ids(host: &FakeHost) -> Vec<u128> {
    let id = |sent: &Outgoing| header(sent, "webhook-id").parse::<Uuid>().expect("an id");
    host.sent().iter().map(|sent| id(sent).as_u128() - 1000).collect()
}

#[test]
fn an_endpoint_that_fails_is_probed_by_one_delivery_at_a_time_and_nothing_is_lost() {
    let (host, webhook) = with_webhook();
    let jobs = deliver_events(&host, 0..40);
    host.network(|_| Err(EgressError::Timeout));
    for job in &jobs {
        attempt(&host, job, 1);
    }
    assert_eq!(sent_ids(&host), [0, 1, 2], "three failures, and nobody else tries");
    let probe = job_of(&host, "probe");
    let held = deliver_events(&host, 40..45);
    assert!(held.iter().all(|job| job.kind == "probe"), "held without a job");

    let show = request("get_webhook", &webhook);
    assert!(host.call(show).expect("a webhook").body["retry_at"].is_string());
    run_probe(&host, &probe);
    let second = job_of(&host, "probe");
    run_probe(&host, &second);
    assert_eq!(sent_ids(&host)[3..], [3, 4], "each probe another message");
    let [first_at, second_at] = [&probe, &second].map(|job| job.available_at.expect("a moment"));
    let between = second_at.seconds_since(first_at);
    assert!((240..=380).contains(&between), "five minutes, {between} s");

    host.network(|_| Ok(answer(204, &[])));
    let third = job_of(&host, "probe");
    run_probe(&host, &third);
    run(&host, "drain");
    let jobs = host.take_jobs();
    assert!(jobs.is_sorted_by_key(|job| job.available_at.map(|at| at.0)));
    for job in jobs.iter().filter(|job| job.kind == "deliver") {
        assert_eq!(attempt(&host, job, 1), Outcome::Done);
    }
    let after: Vec<u128> = sent_ids(&host)[6..].to_vec();
    assert_eq!(after, [vec![0, 1, 2, 3, 4], (6..45).collect()].concat(), "in the events' order");
    assert!(host.documents("deliveries").iter().all(|one| one["status"] == "succeeded"));
}

#[test]
fn one_message_that_is_refused_holds_no_other() {
    let (host, _, poison) = with_delivery();
    host.network(|sent| {
        let refused = header(sent, "webhook-id") == EVENT.to_string();
        Ok(answer(if refused { 500 } else { 204 }, &[]))
    });
    for nth in 1..=5 {
        assert!(matches!(attempt(&host, &poison, nth), Outcome::Retry(_)));
    }
    for job in deliver_events(&host, 0..3) {
        assert_eq!(attempt(&host, &job, 1), Outcome::Done);
    }
    assert_eq!(host.sent().len(), 8);
}

#[test]
fn a_test_and_a_new_url_do_not_wait_for_the_probe() {
    let (host, webhook) = with_webhook();
    host.network(|_| Err(EgressError::Timeout));
    for job in deliver_events(&host, 0..4) {
        attempt(&host, &job, 1);
    }
    let _ = host.take_jobs();
    host.call(request("test_webhook", &webhook)).expect("sent");
    attempt(&host, &job_of(&host, "deliver"), 1);
    assert_eq!(host.sent().len(), 4);

    let moved = json!({ "url": "https://hooks.example/b" });
    let moved = host.call(request("update_webhook", &webhook).json(moved)).expect("moved").body;
    assert_eq!((&moved["retry_at"], &moved["failing_since"]), (&Value::Null, &Value::Null));
    job_of(&host, "drain");
}

#[test]
fn what_is_held_when_a_webhook_is_disabled_is_given_up() {
    let (host, _) = with_webhook();
    host.network(|_| Err(EgressError::Timeout));
    for job in deliver_events(&host, 0..4) {
        attempt(&host, &job, 1);
    }
    host.network(|_| Ok(answer(410, &[])));
    let probe = job_of(&host, "probe");
    run_probe(&host, &probe);
    run(&host, "drain");
    for job in host.take_jobs() {
        assert_eq!(attempt(&host, &job, 1), Outcome::Done);
    }
    assert!(host.documents("deliveries").iter().all(|one| one["status"] == "failed"));
}
