//! Tests of jobs that admins cancel in the queue.

use super::*;

/// Delivers the event that an admin cancelled this job.
fn cancel(host: &FakeHost, job: &EnqueuedJob) {
    let data = json!({
        "job_id": job.id, "area": "webhooks", "kind": job.kind, "resource_id": job.resource,
        "actor_id": Uuid::nil(),
    });
    host.deliver(Uuid::from_u128(9), "job.cancelled", data).expect("handled");
}

/// Creates a host with a webhook whose circuit is open, and its probe.
fn with_probe() -> (FakeHost, EnqueuedJob) {
    let (host, _) = with_webhook();
    host.network(|_| Err(EgressError::Timeout));
    for job in deliver_events(&host, 0..5) {
        attempt(&host, &job, 1);
    }
    let probe = job_of(&host, "probe");
    (host, probe)
}

#[test]
fn a_cancelled_probe_and_a_cancelled_drain_wait_again() {
    let (host, probe) = with_probe();
    cancel(&host, &probe);
    let again = job_of(&host, "probe");
    assert_eq!((&again.payload, again.available_at), (&probe.payload, probe.available_at));

    host.network(|_| Ok(answer(204, &[])));
    run_probe(&host, &again);
    let drain = job_of(&host, "drain");
    cancel(&host, &drain);
    let again = job_of(&host, "drain");
    assert_eq!((&again.payload, again.resource), (&drain.payload, drain.resource));
    cancel(&host, &probe);
    assert!(host.take_jobs().iter().all(|job| job.kind != "probe"), "the circuit is closed");
}

#[test]
fn webhooks_still_receive_that_a_job_was_cancelled() {
    let host = FakeHost::new(crate::area());
    let body = json!({ "url": "https://hooks.example/a", "events": ["job.cancelled"] });
    host.call(Request::to("create_webhook").json(body)).expect("a webhook");
    let data = json!({
        "job_id": Uuid::nil(), "area": "notes", "kind": "tidy", "resource_id": null,
    });
    host.deliver(Uuid::from_u128(9), "job.cancelled", data).expect("handled");
    run(&host, "fan_out");
    assert_eq!(delivery(&host)["event"], "job.cancelled");
}

#[test]
fn a_pending_delivery_that_nothing_tries_can_be_sent_again() {
    let (host, webhook) = with_webhook();
    host.network(|_| Ok(answer(500, &[])));
    assert!(matches!(deliver_to(&host, &webhook, 77, 1), Outcome::Retry(_)));
    host.advance(60);
    let [pending] = &deliveries(&host, &webhook)[..] else { panic!("one delivery") };
    let refused = resend(&host, &webhook, pending).expect_err("pending");
    assert_eq!(refused.code.as_deref(), Some("delivery_pending"));
    host.advance(300);
    assert_eq!(resend(&host, &webhook, pending).expect("asked for").status, 201);
    host.network(|_| Ok(answer(204, &[])));
    assert_eq!(attempt(&host, &job_of(&host, "deliver"), 1), Outcome::Done);
    assert_eq!(delivery(&host)["status"], "succeeded");
}
