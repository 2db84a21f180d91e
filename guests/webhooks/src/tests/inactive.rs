//! Tests of events that wait while their webhook is changed or deactivated.

use super::together::{counted, requested};
use super::*;

const REASON: &str = "the webhook is disabled";

fn change(host: &FakeHost, webhook: &Value, changes: Value) {
    host.call(request("update_webhook", webhook).json(changes)).expect("changed");
}

#[test]
fn events_that_wait_when_a_webhook_is_deactivated_fail_and_can_be_sent_again() {
    let (host, webhook) = with_webhook();
    let events: Vec<Value> = (0..3).map(|event| requested(&webhook, event)).collect();
    change(&host, &webhook, json!({ "active": false }));
    let outcomes = host.run_batch("event", &events).expect("ended");
    assert_eq!(counted(&outcomes), [3, 0, 0]);
    let failed = host.documents("deliveries");
    assert_eq!((host.sent().len(), failed.len()), (0, 3));
    for one in &failed {
        assert_eq!((&one["status"], &one["next_attempt_at"]), (&json!("failed"), &Value::Null));
        assert_eq!(one["attempts"][0]["error"], REASON);
    }

    change(&host, &webhook, json!({ "active": true }));
    host.network(|_| Ok(answer(204, &[])));
    for one in deliveries(&host, &webhook) {
        resend(&host, &webhook, &one).expect("requested");
        assert_eq!(attempt(&host, &job_of(&host, "deliver"), 1), Outcome::Done);
    }
    let mut sent = sent_ids(&host);
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2]);
    assert!(host.documents("deliveries").iter().all(|one| one["status"] == "succeeded"));
}

#[test]
fn a_run_that_conflicted_with_the_deactivation_says_that_the_message_may_have_arrived() {
    let (host, webhook) = with_webhook();
    host.advance(1);
    change(&host, &webhook, json!({ "active": false }));
    // The service runs a call again with the time of its first attempt.
    host.advance(-1);
    assert_eq!(deliver_to(&host, &webhook, 77, 1), Outcome::Done);
    let error = "the webhook was disabled during this attempt; the message may have arrived";
    assert_eq!(delivery(&host)["attempts"][0]["error"], error);
}

#[test]
fn a_delivery_that_waits_for_its_retry_fails_when_its_webhook_is_deactivated() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(500, &[])));
    assert!(matches!(deliver_to(&host, &webhook, 77, 1), Outcome::Retry(_)));
    change(&host, &webhook, json!({ "active": false }));
    host.advance(5);
    assert_eq!(deliver_to(&host, &webhook, 77, 2), Outcome::Done);
    let delivery = delivery(&host);
    assert_eq!((&delivery["status"], host.sent().len()), (&json!("failed"), 1));
    assert_eq!(delivery["attempts"][1]["error"], REASON);
}

#[test]
fn an_event_that_waits_to_be_matched_fails_when_the_webhook_is_deactivated() {
    let (host, webhook) = with_webhook();
    host.deliver(EVENT, "note.created", json!({})).expect("taken");
    let matching = job_of(&host, "fan_out");
    host.advance(1);
    change(&host, &webhook, json!({ "active": false }));
    assert_eq!(host.run("fan_out", matching.payload, 1), Ok(Outcome::Done));
    assert_eq!(attempt(&host, &job_of(&host, "deliver"), 1), Outcome::Done);
    assert_eq!((&delivery(&host)["status"], host.sent().len()), (&json!("failed"), 0));
}

#[test]
fn an_event_that_was_published_while_the_webhook_was_inactive_leaves_nothing() {
    let (host, webhook) = with_webhook();
    for _ in 0..2 {
        change(&host, &webhook, json!({ "active": false }));
        host.advance(1);
        assert_eq!(deliver_to(&host, &webhook, 77, 1), Outcome::Done);
        fan_out(&host, EVENT, "note.created", json!({}));
    }
    assert!(host.documents("deliveries").is_empty());
    assert!(host.jobs().is_empty());
}

#[test]
fn an_event_of_an_inactive_time_is_not_delivered_after_it() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(204, &[])));
    let event = |number: u128, by: &Value| {
        json!({
            "id": Uuid::from_u128(1000 + number), "name": "note.created", "data": {},
            "occurred_at": host.now(), "requested_by": by,
        })
    };
    let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
    for number in 0..3 {
        host.advance(1);
        change(&host, &webhook, json!({ "active": false }));
        host.advance(1);
        matched.push(event(number, &webhook["id"]));
        unmatched.push(event(10 + number, &Value::Null));
        host.advance(1);
        change(&host, &webhook, json!({ "active": true }));
    }
    matched.push(event(3, &webhook["id"]));
    unmatched.push(event(13, &Value::Null));
    let outcomes = host.run_batch("event", &matched).expect("ended");
    assert_eq!(counted(&outcomes), [4, 0, 0]);
    for event in unmatched {
        host.run("event", event, 1).expect("taken");
        run(&host, "fan_out");
    }
    assert_eq!(attempt(&host, &job_of(&host, "deliver"), 1), Outcome::Done);
    assert_eq!(sent_ids(&host), [3, 13]);
    assert_eq!(host.documents("deliveries").len(), 2);
}

#[test]
fn a_webhook_gets_the_events_that_it_requested_when_they_were_published() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(204, &[])));
    change(&host, &webhook, json!({ "events": ["note.deleted"] }));
    assert_eq!(deliver_to(&host, &webhook, 77, 1), Outcome::Done);
    assert_eq!((&delivery(&host)["status"], host.sent().len()), (&json!("succeeded"), 1));
}
