//! Jobs and deliveries that run together: one call and one transaction for many.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use assurance_tests::receiver::Receiver;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, until};
use serde_json::{Value, json};

const FIXTURE: &str = "/v1/workspaces/{ws}/fixtures/runs-together";
const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const SOON: Duration = Duration::from_secs(60);

/// Enqueues jobs and waits until this number of jobs is stored. Returns the number of calls.
async fn run(client: &Client, body: &Value, jobs: u64) -> u64 {
    client.post(FIXTURE, body).await.expect(200);
    let seen = until(format!("{jobs} jobs of {body} are stored"), async || {
        let seen = client.post(FIXTURE, &json!({})).await.expect(200);
        if seen["jobs"] == jobs { Ok(seen) } else { Err(seen) }
    })
    .await;
    seen["calls"].as_u64().expect("a number")
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
        client.open_case(&format!("the-case-{case}")).await.expect(201);
    }
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
        ada.subscribe(&receiver.base).await.expect(201);
        open_cases(&ada, 300).await;
        assert!(receiver.received().is_empty());
        host.restart(&[("jobs.enabled", true.into())]).await;
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
        ada.subscribe(&receiver.base).await.expect(201);
        open_cases(&ada, 60).await;
        host.restart(&[("jobs.enabled", true.into())]).await;
        until("60 deliveries are accepted", async || {
            let accepted = receiver.received().into_iter().skip(2);
            let ids: BTreeSet<_> =
                accepted.map(|request| request.headers["webhook-id"].clone()).collect();
            if ids.len() == 60 { Ok(()) } else { Err(ids.len()) }
        })
        .await;
    }

    async fn a_workspace_with_too_many_waiting_deliveries_is_told_to_wait(backend) {
        let builder = Builder::new(backend).areas(&["support", "webhooks"]);
        let builder = builder.set("egress.allow_loopback", true).set("jobs.enabled", false);
        let builder = builder.set("jobs.max_waiting_per_area", 20);
        let (mut host, ada) = builder.start_with_owner().await;
        let receiver = Receiver::content().await;
        ada.subscribe(&receiver.base).await.expect(201);
        let other = ada.new_workspace("other").await;
        // The queue is counted in the background.
        let mut taken = 0;
        let refused = loop {
            let answer = ada.open_case(&format!("the-case-{taken}")).await;
            if answer.status != 201 {
                break answer;
            }
            taken += 1;
            assert!((..200).contains(&taken), "more jobs are taken");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(taken >= 20, "{taken}");
        assert_eq!(refused.header("retry-after"), Some("5"));
        let problem = refused.problem(429, "rate_limited");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.starts_with("Too many jobs of the workspace are waiting"), "{detail}");
        ada.get(CASES).await.expect(200);
        other.open_case("the-case-0").await.expect(201);

        host.restart(&[("jobs.enabled", true.into())]).await;
        let ada = ada.at(&host);
        receiver.wait_for(taken as usize, SOON).await;
        let is_accepted = async || ada.open_case("the-last-case").await.status == 201;
        until("a case is accepted", is_accepted).await;
    }
}
