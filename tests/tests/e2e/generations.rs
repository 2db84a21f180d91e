//! Two generations of the contract in one host: an area built for the former one is served, and
//! swapped for one of the current one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assurance_tests::components::fixture;
use assurance_tests::operators::digest;
use assurance_tests::{Builder, Client, TestHost, both_backends, place};
use reqwest::Method;
use serde_json::{Value, json};

const COUNTS: &str = "/v1/workspaces/{ws}/fixtures/counts";

/// Number of swaps while clients call.
const SWAPS: usize = 20;

const CLIENTS: usize = 4;

async fn area(host: &TestHost) -> Value {
    host.operate(Method::GET, "/areas/counts").await.expect(200)
}

async fn calls_until(stop: Arc<AtomicBool>, client: Client) -> Vec<String> {
    let mut generations = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let told = client.post(COUNTS, &json!({})).await.expect(200);
        generations.push(told["generation"].as_str().expect("a generation").to_owned());
    }
    generations
}

both_backends! {
    async fn areas_of_two_generations_answer_under_one_host(backend) {
        let builder = Builder::new(backend).fixtures(&["speaks-0-1", "echo"]);
        let (host, ada) = builder.start_with_owner().await;
        for count in 1..=5 {
            let told = ada.post(COUNTS, &json!({})).await.expect(200);
            assert_eq!(told, json!({"generation": "0.1.0", "count": count}));
        }
        let echoed = ada.post("/v1/workspaces/{ws}/fixtures/echo", &json!({"a": 1})).await;
        assert_eq!(echoed.expect(200), json!({"a": 1}));
        assert_eq!(area(&host).await["generation"], "0.1.0");
        let echo = host.operate(Method::GET, "/areas/echo").await.expect(200);
        assert_eq!(echo["generation"], "0.3.0");

        let file = place::fixtures().join("speaks-0-1.wasm");
        let checked = host.cli(&["area", "check", file.to_str().expect("a path")]);
        assert_eq!(checked["generation"], "0.1.0");

        // Documents of the former version are read by the current one, which counts with a limit.
        host.put_area("counts", &fixture("speaks-0-2")).await.expect(200);
        let told = ada.post(COUNTS, &json!({})).await.expect(200);
        assert_eq!(told, json!({"generation": "0.2.0", "count": 3}));
        assert_eq!(area(&host).await["generation"], "0.2.0");
    }

    async fn swaps_between_generations_lose_no_request(backend) {
        let (host, ada) = Builder::new(backend).start_with_owner().await;
        let (old, new) = (fixture("speaks-0-1"), fixture("speaks-0-2"));
        host.put_area("counts", &old).await.expect(200);
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| tokio::spawn(calls_until(Arc::clone(&stop), ada.clone())))
            .collect();
        for _ in 0..SWAPS {
            host.put_area("counts", &new).await.expect(200);
            assert_eq!(area(&host).await["digest"], digest(&new));
            let why = json!({"reason": "to see the former one again"});
            host.operate_with("/areas/counts/rollback", &why).await.expect(200);
            assert_eq!(area(&host).await["digest"], digest(&old));
        }
        stop.store(true, Ordering::Relaxed);
        let mut seen = Vec::new();
        for client in clients {
            seen.extend(client.await.expect("every request was answered well"));
        }
        for generation in ["0.1.0", "0.2.0"] {
            assert!(seen.iter().any(|one| one == generation), "{generation} never answered");
        }
    }
}
