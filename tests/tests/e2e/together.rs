//! Jobs and deliveries that run together: one call and one transaction for many.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assurance_tests::receiver::Receiver;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends};
use serde_json::{Value, json};

const FIXTURE: &str = "/v1/workspaces/{ws}/fixtures/runs-together";
const SOON: Duration = Duration::from_secs(60);

/// Enqueues jobs and waits until this number of jobs is stored. Returns the number of calls.
async fn run(client: &Client, body: &Value, jobs: u64) -> u64 {
    client.post(FIXTURE, body).await.expect(200);
    let begun = Instant::now();
    loop {
        let seen = client.post(FIXTURE, &json!({})).await.expect(200);
        if seen["jobs"] == jobs {
            return seen["calls"].as_u64().expect("a number");
        }
        assert!(begun.elapsed() < SOON, "{body}: {seen} of {jobs}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asserts that no job of the fixture has failed or was counted as a second attempt.
async fn assert_all_succeeded(client: &Client, jobs: usize) {
    let mut page = "/v1/workspaces/{ws}/queue/jobs?kind=work&limit=100".to_owned();
    let mut seen = 0;
    loop {
        let jobs = client.get(&page).await.expect(200);
        for job in jobs["items"].as_array().expect("items") {
            assert_eq!(
                (&job["status"], &job["attempts"]),
                (&json!("succeeded"), &json!(1)),
                "{job}"
            );
            seen += 1;
        }
        let Some(cursor) = jobs["next_cursor"].as_str() else { break };
        page = format!("/v1/workspaces/{{ws}}/queue/jobs?kind=work&limit=100&cursor={cursor}");
    }
    assert_eq!(seen, jobs);
}

async fn open_cases(client: &Client, cases: u32) {
    for case in 0..cases {
        let body = json!({ "subject": format!("case {case}"), "description": "d" });
        let key = format!("the-case-{case}");
        client.post_once("/v1/workspaces/{ws}/support/cases", &key, &body).await.expect(201);
    }
}

async fn subscribe(client: &Client, receiver: &Receiver) -> Value {
    let body = json!({ "events": ["support_case.created"], "url": receiver.base });
    client.post("/v1/workspaces/{ws}/webhooks", &body).await.expect(201)
}

/// Returns a host on which no delivery is sent until it is started again, so that many wait.
async fn host_without_deliveries(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["support", "webhooks"]);
    let builder = builder.set("egress.allow_loopback", true).set("jobs.enabled", false);
    builder.start_with_owner().await
}

both_backends! {
    async fn jobs_of_a_component_run_together(backend) {
        let builder = Builder::new(backend).areas(&["queue"]).fixtures(&["runs-together"]);
        let (_host, ada) = builder.start_with_owner().await;
        let calls = run(&ada, &json!({ "jobs": 400 }), 400).await;
        assert!(calls < 200, "{calls} calls");
        assert_all_succeeded(&ada, 400).await;
    }

    async fn jobs_that_fail_together_run_by_themselves(backend) {
        for how in ["trap", "refuse", "forget"] {
            let builder = Builder::new(backend).areas(&["queue"]).fixtures(&["runs-together"]);
            let (_host, ada) = builder.start_with_owner().await;
            let calls = run(&ada, &json!({ "jobs": 150, "fails": how }), 150).await;
            assert_eq!(calls, 150, "{how}: each in a call of its own");
            assert_all_succeeded(&ada, 150).await;
        }
    }

    async fn deliveries_that_wait_are_sent_together_and_once_each(backend) {
        let (mut host, ada) = host_without_deliveries(backend).await;
        let receiver = Receiver::content().await;
        subscribe(&ada, &receiver).await;
        open_cases(&ada, 300).await;
        assert!(receiver.received().is_empty());
        host.terminate().await;
        host.configure(&[("jobs.enabled", true.into())]);
        host.start().await;
        let received = receiver.wait_for(300, SOON).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(receiver.received().len(), 300, "sent once each");
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        for request in &received {
            *times.entry(&request.headers["webhook-id"]).or_default() += 1;
        }
        assert_eq!(times.len(), 300);
    }

    async fn a_receiver_that_fails_gets_every_delivery_once_it_is_back(backend) {
        let (mut host, ada) = host_without_deliveries(backend).await;
        let receiver = Receiver::start(&[
            "500 Internal Server Error",
            "500 Internal Server Error",
            "204 No Content",
        ])
        .await;
        subscribe(&ada, &receiver).await;
        open_cases(&ada, 60).await;
        host.terminate().await;
        host.configure(&[("jobs.enabled", true.into())]);
        host.start().await;
        let begun = Instant::now();
        loop {
            let mut ids: Vec<String> = receiver
                .received()
                .iter()
                .skip(2)
                .map(|request| request.headers["webhook-id"].clone())
                .collect();
            ids.sort_unstable();
            ids.dedup();
            if ids.len() == 60 {
                break;
            }
            assert!(begun.elapsed() < SOON, "{} of 60 deliveries", ids.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
