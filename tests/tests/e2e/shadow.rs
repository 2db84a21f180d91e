//! A shadow version executes copies of requests, and operators see the differences between its
//! responses and the live version's.

use assurance_tests::operators::{digest, items};
use assurance_tests::{Backend, Builder, TestHost, both_backends, until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::canary::{marked, scene};

const AREA: &str = "/areas/behaves_as_marked";
const PATH: &str = "/v1/workspaces/{ws}/fixtures/behaves-as-marked";

async fn shadow(host: &TestHost, component: Vec<u8>) {
    let put = host.put_area("behaves_as_marked?shadow=100", &component).await;
    assert_eq!(put.expect(200)["result"], "shadow");
}

/// Returns the comparison after this number of requests.
async fn compared(host: &TestHost, requests: u64) -> Value {
    until(format!("{requests} requests are compared"), async || {
        let told = host.operate(Method::GET, &format!("{AREA}/shadow")).await.expect(200);
        let enough = told["requests"]["compared"].as_u64() >= Some(requests);
        if enough { Ok(told) } else { Err(told) }
    })
    .await
}

both_backends! {
    async fn a_planted_difference_is_found_with_request_id_and_pointer(backend) {
        let (host, ada, _) = scene(Builder::new(backend)).await;
        shadow(&host, marked("another.")).await;
        let mut asked = Vec::new();
        for n in 1..=3 {
            let kept = ada.post(PATH, &json!({"do": "keep"})).await;
            asked.push(kept.header("x-request-id").expect("an id").to_owned());
            let kept = kept.expect(200);
            assert_eq!((&kept["case"]["state"], &kept["there"]), (&json!("open"), &json!(n)));
            compared(&host, n).await;
        }
        let told = compared(&host, 3).await;
        assert_eq!((&told["requests"]["different"], &told["requests"]["uncertain"]), (&json!(3), &json!(0)));
        let pointers: Vec<&Value> =
            items(&told["differences"]).iter().map(|found| &found["pointer"]).collect();
        let expected =
            ["/body/case/state", "/effects/documents/behaves_as_marked.things/*/state"];
        assert_eq!(pointers, expected, "{told}");
        let found = &told["differences"][0];
        assert_eq!((&found["count"], &found["operation"]), (&json!(3), &json!("behaves_as_marked")));
        let ids: Vec<&Value> =
            items(&found["examples"]).iter().map(|example| &example["request_id"]).collect();
        assert_eq!(ids, asked.iter().collect::<Vec<_>>());
        assert!(!told.to_string().contains("closed"), "values are not shown: {told}");
        // Nothing of the copies was stored: the next request counts only live ones.
        assert_eq!(ada.post(PATH, &json!({"do": "keep"})).await.expect(200)["there"], 4);
    }

    async fn a_version_that_does_the_same_shows_no_difference(backend) {
        let (host, ada, _) = scene(Builder::new(backend)).await;
        shadow(&host, assurance_tests::operators::stamped(&marked("soundly."), 1)).await;
        for n in 1..=3 {
            ada.post(PATH, &json!({"do": "keep"})).await.expect(200);
            ada.post(PATH, &json!({"do": "run"})).await.expect(200);
            compared(&host, 2 * n).await;
        }
        let told = compared(&host, 6).await;
        assert_eq!(told["differences"], json!([]), "{told}");
        assert_eq!((&told["requests"]["different"], &told["requests"]["uncertain"]), (&json!(0), &json!(0)));
        assert_eq!(told["candidate"]["calls"], 6);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_that_fails_is_told_and_nobody_notices() {
    let builder = Builder::new(Backend::Sqlite).set("areas.shadow.show_values", true);
    let (host, ada, _) = scene(builder).await;
    let file = host.write("behaves-as-marked.wasm", &marked("trapping"));
    let begun = host.cli(&["area", "deploy", file, "--shadow", "100"]);
    assert_eq!((&begun["result"], &begun["nodes"]), (&json!("shadow"), &json!(1)));
    ada.post(PATH, &json!({"do": "tell"})).await.expect(200);
    compared(&host, 1).await;
    let told = host.cli(&["area", "diff", "behaves_as_marked"]);
    let status = items(&told["differences"]).iter().find(|found| found["pointer"] == "/status");
    let example = &status.expect("it is told")["examples"][0];
    assert_eq!((&example["live"], &example["candidate"]), (&json!("\"200\""), &json!("\"fault\"")));
    assert_eq!(told["candidate"]["faults"], 1);

    // A shadow is staged when it is stopped, because its responses were never used.
    host.cli(&["area", "stop", "behaves_as_marked", "--reason", "it traps"]);
    let area = host.operate(Method::GET, AREA).await.expect(200);
    assert_eq!(area["staged"][0]["digest"], digest(&marked("trapping")));
    assert_eq!(area["staged"][0]["stage"], "staged");
    let path = format!("{AREA}/shadow");
    host.operate(Method::GET, &path).await.problem(404, "not_found");
}
