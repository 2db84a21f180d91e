//! Limits on components: what they declare, and how long their code blocks other writers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use assurance_core::config::ManifestLimits;
use assurance_tests::components::{area, fixture, nested};
use assurance_tests::operators::{digest, stamped};
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, place, until};
use reqwest::Method;
use serde_json::{Value, json};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const HOLD: &str = "/v1/workspaces/{ws}/fixtures/holds-turn";
const PATIENCE: Duration = Duration::from_secs(30);
/// Time within which an operator's change ends the calls of the former version: 2 s, and as much
/// again as other tests may hold the processors. Without the change they run for 60 s and more.
const MOST: Duration = Duration::from_secs(15);

async fn ask(client: &Client, path: &str, body: Value) -> Answer {
    client.post(path, &body).await
}

async fn opens_a_case(client: &Client) -> Answer {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    client.open_case(&format!("a-case-{}", NEXT.fetch_add(1, Ordering::Relaxed))).await
}

/// Starts a call that blocks other writers, without waiting for its response.
fn hold(client: &Client, body: Value) -> tokio::task::JoinHandle<Answer> {
    let client = client.clone();
    tokio::spawn(async move { ask(&client, HOLD, body).await })
}

/// Deploys the guest, starts a call that blocks other writers, and waits until it runs.
async fn holding(host: &TestHost, client: &Client, body: Value) {
    host.put_area("holds_turn", &fixture("holds-turn")).await.expect(200);
    hold(client, body);
    until("the call runs", async || running(host).await > 0).await;
    // A job starts only after the call that enqueued it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(running(host).await, 1);
}

/// Returns the number of running calls and jobs of the guest.
async fn running(host: &TestHost) -> u64 {
    let usage = host.operate(Method::GET, "/usage").await.expect(200);
    let areas = usage["areas"].as_array().expect("a list");
    let area = areas.iter().find(|area| area["name"] == "holds_turn");
    area.and_then(|area| area["running"].as_u64()).unwrap_or(0)
}

/// Returns the duration of an operator's change, and the time until no call of the guest runs.
async fn ended(host: &TestHost, change: impl Future<Output = Answer>) -> [Duration; 2] {
    let begun = Instant::now();
    change.await.expect(200);
    let changed = begun.elapsed();
    until("the calls have ended", async || running(host).await == 0).await;
    [changed, begun.elapsed()]
}

fn check_ended(change: &str, [changed, ended]: [Duration; 2]) {
    println!("{change}: done after {changed:?}, calls ended after {ended:?}");
    assert!(changed < MOST && ended < MOST, "{change}: {changed:?}, {ended:?}");
}

both_backends! {
    async fn a_call_that_computes_while_it_keeps_others_from_writing_is_ended(backend) {
        let builder = Builder::new(backend).areas(&["support"]).fixtures(&["holds-turn"]);
        let (host, ada) = builder.start_with_owner().await;
        let begun = Instant::now();
        let held = hold(&ada, json!({}));
        tokio::time::sleep(Duration::from_millis(100)).await;
        opens_a_case(&ada).await.expect(201);
        held.await.expect("no panic").problem(502, "area_fault");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "others wait for {took:?}");
        host.wait_for_log("runtime.max_turn_cpu_ms", PATIENCE).await;
    }

    async fn an_operator_changes_an_area_whose_calls_compute_and_they_end(backend) {
        let builder = Builder::new(backend)
            .areas(&["support"])
            .set("runtime.max_turn_cpu_ms", 60_000)
            .set("runtime.max_turn_ms", 60_000)
            .set("jobs.max_timeout_ms", 600_000);
        let (host, ada) = builder.start_with_owner().await;
        let other = stamped(&fixture("holds-turn"), 1);
        host.put_area("holds_turn?activate=false", &other).await.expect(200);
        // Jobs are tested last, because the next version would run them again.
        for body in [json!({}), json!({"do": "spin"}), json!({"do": "job"})] {
            if body["do"] != "job" {
                holding(&host, &ada, body.clone()).await;
                let wish = json!({"digest": digest(&other), "reason": "it holds the turn"});
                let change = host.operate_with("/areas/holds_turn/activate", &wish);
                check_ended(&format!("{backend:?} {body} replaced"), ended(&host, change).await);
                opens_a_case(&ada).await.expect(201);
            }
            holding(&host, &ada, body.clone()).await;
            let path = "/areas/holds_turn?reason=it+holds+the+turn&force=true";
            let change = host.operate(Method::DELETE, path);
            check_ended(&format!("{backend:?} {body} removed"), ended(&host, change).await);
            opens_a_case(&ada).await.expect(201);
        }
    }

    async fn a_live_version_that_declares_too_much_is_not_served_and_others_are(backend) {
        let (mut host, ada) = Builder::new(backend).start_with_owner().await;
        for name in ["support", "groups"] {
            host.put_area(name, &area(name)).await.expect(200);
        }
        opens_a_case(&ada).await.expect(201);
        // `groups` has four routes, `support` has six.
        host.restart(&[("areas.manifest.max_routes", 4.into())]).await;
        let ada = ada.at(&host);
        host.wait_for_log("areas.manifest.max_routes", PATIENCE).await;
        let ready = host.operate(Method::GET, "/health/ready").await;
        assert_eq!(ready.status, 503, "{}", ready.text());
        assert!(ready.text().contains("areas.manifest.max_routes"), "{}", ready.text());
        ada.get(CASES).await.problem(503, "unavailable");

        ada.get("/v1/workspaces/{ws}/group-dependencies").await.expect(200);
        host.restart(&[("areas.manifest.max_routes", 500.into())]).await;
        ada.at(&host).get(CASES).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_areas_that_come_with_the_service_declare_a_tenth_of_what_they_may() {
    let folder = std::fs::read_dir(place::areas()).expect("built areas");
    let names: Vec<String> = folder
        .filter_map(|file| {
            let path = file.ok()?.path();
            let is_component = path.extension().is_some_and(|extension| extension == "wasm");
            is_component.then(|| path.file_stem()?.to_str().map(str::to_owned))?
        })
        .collect();
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut builder = Builder::new(Backend::Sqlite).areas(&named);
    for (limit, most) in ManifestLimits::default().all() {
        builder = builder.set(&format!("areas.manifest.{limit}"), i64::from(most / 10));
    }
    let (host, _) = builder.start_with_owner().await;
    assert!(!host.log().contains("component refused"), "{}", host.log());
    host.operate(Method::GET, "/health/ready").await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_costs_too_much_to_compile_is_refused_and_others_start() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("runtime.cache_dir", "compiled")
        .set("runtime.max_compile_cpu_ms", 20_000);
    let mut host = builder.prepare().await;
    let owner = host.create_person("ada");
    let workspace = host.create_workspace("first", &owner);
    std::fs::write(host.areas().join("hostile.wasm"), nested(20)).expect("written");
    host.start().await;
    let ada = host.sign_in(&owner, &workspace);
    opens_a_case(&ada).await.expect(201);
    host.wait_for_log("at most 1000 instances are allowed", PATIENCE).await;

    let refused = host.put_area("hostile", &nested(20)).await;
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    assert!(refused.text().contains("at most 1000 instances are allowed"), "{}", refused.text());

    host.restart(&[("runtime.max_compile_memory_bytes", 20_000_000.into())]).await;
    let refused = host.put_area("dependencies", &area("dependencies")).await;
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    assert!(refused.text().contains("runtime.max_compile_memory_bytes"), "{}", refused.text());
    host.operate(Method::GET, "/health/live").await.expect(200);
}
