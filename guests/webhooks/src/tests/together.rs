//! Tests of deliveries that run together.

use std::cell::Cell;

use super::*;

/// Returns the payload of an event that a webhook requests.
pub(super) fn requested(webhook: &Value, event: u128) -> Value {
    json!({
        "id": Uuid::from_u128(1000 + event), "name": "note.created", "data": { "n": event },
        "occurred_at": "2026-01-01T00:00:00Z", "requested_by": webhook["id"],
    })
}

/// Counts the outcomes of a batch: done, retried, and continued.
pub(super) fn counted(outcomes: &[Outcome]) -> [usize; 3] {
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|one| is(one)).count();
    [
        count(|one| matches!(one, Outcome::Done)),
        count(|one| matches!(one, Outcome::Retry(_))),
        count(|one| matches!(one, Outcome::Continue(_))),
    ]
}

#[test]
fn events_that_are_delivered_together_are_each_sent_once_and_stored() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(204, &[])));
    deliver_to(&host, &webhook, 1003, 1);
    let events: Vec<Value> = (0..20).map(|event| requested(&webhook, event)).collect();
    let outcomes = host.run_batch("event", &events).expect("ended");
    assert_eq!(counted(&outcomes), [20, 0, 0]);
    let mut sent = sent_ids(&host);
    sent.sort_unstable();
    assert!(sent.into_iter().eq(0..20));
    let deliveries = host.documents("deliveries");
    assert_eq!(deliveries.len(), 20);
    assert!(deliveries.iter().all(|one| one["status"] == "succeeded" && one["attempt_count"] == 1));
}

#[test]
fn after_a_failure_the_others_of_a_batch_run_by_themselves() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(500, &[])));
    let events: Vec<Value> = (0..20).map(|event| requested(&webhook, event)).collect();
    let outcomes = host.run_batch("event", &events).expect("ended");
    assert_eq!(counted(&outcomes), [0, 1, 19]);
    let Outcome::Continue(later) = &outcomes[1] else { panic!("{outcomes:?}") };
    let later: Value = serde_json::from_str(later).expect("JSON");
    assert_eq!((&later["id"], &later["requested_by"]), (&events[1]["id"], &webhook["id"]));

    let sent = Cell::new(0);
    host.network(move |_| {
        sent.set(sent.get() + 1);
        Ok(answer(if sent.get() == 1 { 204 } else { 500 }, &[]))
    });
    let outcomes = host.run_batch("event", &events[1..]).expect("ended");
    // One is sent, then eight together. The third failure opens the circuit, which holds this and
    // the later ones.
    assert_eq!(counted(&outcomes), [17, 2, 0]);
    assert_eq!((host.sent().len(), host.documents("deliveries").len()), (10, 20));
    let pending = host.documents("deliveries").into_iter().filter(|one| one["status"] == "pending");
    assert_eq!(pending.count(), 19);
}

#[test]
fn a_webhook_that_is_disabled_amid_a_batch_gets_nothing_more() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(410, &[])));
    let events: Vec<Value> = (0..20).map(|event| requested(&webhook, event)).collect();
    let outcomes = host.run_batch("event", &events).expect("ended");
    assert_eq!(counted(&outcomes), [1, 0, 19]);
    let Outcome::Continue(later) = &outcomes[1] else { panic!("{outcomes:?}") };
    let later = serde_json::from_str(later).expect("JSON");
    assert_eq!(host.run("event", later, 1), Ok(Outcome::Done));
    let deliveries = host.documents("deliveries");
    assert_eq!((host.sent().len(), deliveries.len()), (1, 2));
    assert!(deliveries.iter().all(|one| one["status"] == "failed"));
}

#[test]
fn a_batch_of_events_for_different_webhooks_is_left_to_runs_of_one() {
    let host = FakeHost::new(crate::area());
    let (one, other) = (create(&host), create(&host));
    let events = [requested(&one, 1), requested(&other, 1)];
    assert!(host.run_batch("event", &events).is_err());
    assert!(host.sent().is_empty());
}

#[test]
fn a_delivery_that_waits_for_its_own_retry_gets_no_second_job() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(503, &[("Retry-After", "3600")])));
    for event in 1000..1002 {
        assert!(matches!(deliver_to(&host, &webhook, event, 1), Outcome::Retry(_)));
        host.advance(1);
    }
    host.network(|_| Ok(answer(503, &[])));
    deliver_to(&host, &webhook, 1002, 1);
    host.network(|_| Ok(answer(204, &[])));
    run_probe(&host, &job_of(&host, "probe"));
    run(&host, "drain");
    let mut jobs = host.take_jobs();
    jobs.retain(|job| job.kind == "deliver");
    assert_eq!(jobs.len(), 1, "only the third was held");
    assert_eq!(attempt(&host, &jobs[0], 1), Outcome::Done);
    assert_eq!(sent_ids(&host), [0, 1, 2, 0, 2]);
}
