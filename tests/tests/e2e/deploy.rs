//! The life of an area's version: deployed, activated, rolled back, taken
//! out, on one node and on a fleet.

use std::time::{Duration, Instant};

use assurance_tests::operators::{digest, items, stamped};
use assurance_tests::{Backend, Builder, TestHost, both_backends, place};
use reqwest::Method;
use serde_json::{Value, json};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

/// A version of the support area of its own.
fn version(stamp: u8) -> Vec<u8> {
    let file = place::areas().join("support.wasm");
    stamped(&std::fs::read(file).expect("a built area"), stamp)
}

async fn area(host: &TestHost) -> Value {
    host.operate(Method::GET, "/areas/support").await.expect(200)
}

async fn steps(host: &TestHost) -> Vec<String> {
    let log = host.operate(Method::GET, "/audit-log?area=support&limit=200").await.expect(200);
    let steps = items(&log["items"]).iter().rev();
    steps.map(|line| line["step"].as_str().expect("a step").to_owned()).collect()
}

async fn until_live(host: &TestHost, expected: &str) -> Duration {
    let begun = Instant::now();
    while host.live_digest("support").await.as_deref() != Some(expected) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{expected} is never live");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

/// Waits until the nodes tell what is expected.
async fn until_told(host: &TestHost, expected: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let nodes = items(&area(host).await["nodes"]).to_vec();
        if expected(&nodes) {
            return nodes;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{nodes:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

both_backends! {
    async fn a_version_is_deployed_rolled_back_and_taken_out_and_the_log_says_so(backend) {
        let (mut host, mut ada) = Builder::new(backend).start_with_owner().await;
        let (one, two) = (version(1), version(2));
        assert_eq!(host.put_area("support", &one).await.expect(200)["result"], "live");
        assert_eq!(host.put_area("support", &two).await.expect(200)["result"], "live");
        assert_eq!(host.put_area("support", &two).await.expect(200)["result"], "unchanged");
        let told = area(&host).await;
        assert_eq!(told["digest"], digest(&two));
        assert_eq!(told["source"], "deployed");
        assert_eq!(told["previous"]["digest"], digest(&one));
        ada.get(CASES).await.expect(200);

        let reason = json!({"reason": "it is slow"});
        let back = host.operate_with("/areas/support/rollback", &reason).await.expect(200);
        assert_eq!(back["area"]["digest"], digest(&one));
        let nothing = host.operate_with("/areas/support/rollback", &reason).await;
        assert!(nothing.problem(409, "conflict")["detail"].to_string().contains("by its digest"));

        // What is live outlives the process, wherever the component came from.
        host.terminate().await;
        host.start().await;
        ada.base.clone_from(&host.api);
        assert_eq!(host.live_digest("support").await, Some(digest(&one)));
        ada.get(CASES).await.expect(200);

        let wish = json!({"digest": digest(&two), "reason": "it was not slow"});
        host.operate_with("/areas/support/activate", &wish).await.expect(200);
        assert_eq!(host.live_digest("support").await, Some(digest(&two)));
        host.operate(Method::DELETE, "/areas/support?reason=enough").await.expect(200);
        ada.get(CASES).await.problem(404, "not_found");
        assert_eq!(area(&host).await["live"]["digest"], Value::Null);

        let brought = ["received", "compiled", "checked", "staged"];
        let mut expected = [&brought[..], &["activated"], &brought, &["activated"]].concat();
        expected.extend(brought);
        expected.extend(["rolled_back", "refused", "activated", "removed"]);
        assert_eq!(steps(&host).await, expected);
        let history = host.operate(Method::GET, "/areas/support/history").await.expect(200);
        let stages: Vec<&Value> = items(&history["items"]).iter().map(|v| &v["stage"]).collect();
        assert_eq!(stages, ["withdrawn", "retired"]);
    }

    async fn a_staged_version_answers_when_it_is_activated(backend) {
        let host = Builder::new(backend).start().await;
        let one = version(1);
        let request = host.operator(Method::PUT, "/areas/support?activate=false").body(one.clone());
        let staged = assurance_tests::client::send(request).await.expect(200);
        assert_eq!(staged["result"], "staged");
        let told = area(&host).await;
        assert_eq!((&told["digest"], &told["source"]), (&Value::Null, &json!("none")));
        assert_eq!(told["staged"][0]["digest"], digest(&one));
        let wish = json!({"digest": digest(&one)});
        host.operate_with("/areas/support/activate", &wish).await.expect(200);
        assert_eq!(host.live_digest("support").await, Some(digest(&one)));
        let wish = json!({"digest": "none"});
        host.operate_with("/areas/support/activate", &wish).await.problem(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newer_of_file_and_deployment_answers() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]).set("areas.watch", true);
    let mut host = builder.start().await;
    let file = host.areas().join("support.wasm");
    assert_eq!(area(&host).await["source"], "folder");

    let deployed = version(1);
    host.put_area("support", &deployed).await.expect(200);
    host.terminate().await;
    host.start().await;
    assert_eq!(host.live_digest("support").await, Some(digest(&deployed)), "the file is older");

    let built = version(2);
    std::fs::write(&file, &built).expect("written");
    until_live(&host, &digest(&built)).await;
    host.terminate().await;
    host.start().await;
    assert_eq!(host.live_digest("support").await, Some(digest(&built)), "the file is newer");

    std::fs::remove_file(&file).expect("removed");
    until_live(&host, &digest(&deployed)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_of_a_fleet_does_what_an_operator_decides_at_one() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let first = Builder::new(Backend::Postgres).start().await;
    let second = Builder::new(Backend::Postgres).beside(&first).start().await;
    let lonely = Builder::new(Backend::Postgres).beside(&first);
    let lonely = lonely.set("blobs.dir", "elsewhere").start().await;
    let (one, two) = (version(1), version(2));
    first.put_area("support", &one).await.expect(200);
    let took = until_live(&second, &digest(&one)).await;
    assert!(took < Duration::from_secs(5), "the other node took {took:?}");
    second.put_area("support", &two).await.expect(200);
    until_live(&first, &digest(&two)).await;

    // Each node tells what it runs; one that cannot load a version says why.
    let told = until_told(&first, |nodes| {
        let running = nodes.iter().filter(|node| node["digest"] == digest(&two)).count();
        running == 2 && nodes.iter().any(|node| node["state"] == "failed")
    });
    let told = told.await;
    let failed = told.iter().find(|node| node["state"] == "failed").expect("one failed");
    assert!(failed["why"].as_str().expect("a reason").contains("blobs.dir"), "{failed}");
    assert_eq!(lonely.live_digest("support").await, None);

    second.operate_with("/areas/support/rollback", &json!({"reason": "x"})).await.expect(200);
    until_live(&first, &digest(&one)).await;
    first.operate(Method::DELETE, "/areas/support").await.expect(200);
    let begun = Instant::now();
    while second.live_digest("support").await.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it is never taken out");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
