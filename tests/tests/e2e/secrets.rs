//! A secret has one destination: the origin to which it was first sent. Neither a member nor a new
//! version of its area can send it elsewhere.

use assurance_tests::artifacts::path_at;
use assurance_tests::client::send;
use assurance_tests::components::fixture;
use assurance_tests::model_server::ModelServer;
use assurance_tests::operators::stamped;
use assurance_tests::receiver::Receiver;
use assurance_tests::{Builder, Client, both_backends, until};
use reqwest::Method;
use serde_json::{Value, json};
use toml::Value as Toml;

const PATH: &str = "/v1/workspaces/{ws}/fixtures/sends-secret";
const ENDPOINTS: &str = "/v1/workspaces/{ws}/model-endpoints";
const SECRET: &str = "a-secret-of-this-test-alone";

/// Returns the result of sending the secret to a URL.
async fn sent(client: &Client, url: &str, name: &str) -> String {
    client.post(PATH, &json!({ "send": url, "as": name })).await.expect(200);
    until(format!("the job {name} has ended"), async || {
        let came = client.post(PATH, &json!({ "came": name })).await.expect(200);
        came["text"].as_str().map(str::to_owned)
    })
    .await
}

fn bearers(receiver: &Receiver) -> Vec<String> {
    let received = receiver.received().into_iter();
    received.filter_map(|one| one.headers.get("authorization").cloned()).collect()
}

both_backends! {
    async fn no_version_of_an_area_sends_a_secret_to_another_origin(backend) {
        let grants: Vec<Toml> =
            ["documents", "jobs", "secrets", "egress"].map(Toml::from).into();
        let builder = Builder::new(backend).set("egress.allow_loopback", true);
        let builder = builder.set("areas.grants.sends_secret", grants);
        let (mut host, ada) = builder.start_with_owner().await;
        host.keep_secret(SECRET);
        let component = fixture("sends-secret");
        host.put_area("sends_secret", &component).await.expect(200);
        let (here, thief) = (Receiver::content().await, Receiver::content().await);
        ada.post(PATH, &json!({ "put": SECRET })).await.expect(200);

        // Stored but never sent: only the component that stored it may send it.
        host.put_area("sends_secret", &stamped(&component, 1)).await.expect(200);
        let refused = sent(&ada, &thief.base, "early").await;
        assert!(refused.contains("another version of the area stored"), "{refused}");
        host.put_area("sends_secret", &component).await.expect(200);
        assert_eq!(sent(&ada, &format!("{}/first", here.base), "first").await, "204");
        assert_eq!(bearers(&here), [format!("Bearer {SECRET}")]);

        // Afterwards every version may send it there, and nowhere else.
        host.put_area("sends_secret", &stamped(&component, 2)).await.expect(200);
        let refused = sent(&ada, &thief.base, "thief").await;
        assert!(refused.contains(&format!("sent to {} only", here.base)), "{refused}");
        assert_eq!(sent(&ada, &format!("{}/second", here.base), "second").await, "204");
        assert_eq!((bearers(&here).len(), thief.received().len()), (2, 0));

        // A user who enters the secret again may send it elsewhere.
        ada.post(PATH, &json!({ "put": SECRET })).await.expect(200);
        assert_eq!(sent(&ada, &thief.base, "moved").await, "204");
    }

    async fn a_model_endpoint_moves_to_another_server_only_with_a_key(backend) {
        let builder = Builder::new(backend).areas(&["assistant"]);
        let (mut host, ada) = builder.set("egress.allow_loopback", true).start_with_owner().await;
        host.keep_secret(SECRET);
        let server = ModelServer::start(SECRET, &["small"]).await;
        let thief = Receiver::content().await;
        let new = json!({
            "api_key": SECRET, "base_url": server.base, "model_ids": ["small"], "name": "Main",
        });
        let made = ada.post(ENDPOINTS, &new).await.expect(201);
        let path = path_at(ENDPOINTS, &made);
        ada.until(&path, |seen| seen["last_validated_at"].is_string()).await;
        let change = async |changes: Value| {
            let version = ada.get(&path).await.header("etag").expect("an ETag").to_owned();
            let request = ada.request(Method::PATCH, &path).header("if-match", version);
            send(request.json(&changes)).await
        };

        let stolen = change(json!({ "base_url": thief.base })).await;
        stolen.problem_about(422, "validation_failed", "/base_url");
        let problem = stolen.problem_about(422, "validation_failed", "is not sent there");
        let hint = problem["hint"].as_str().expect("a hint");
        assert!(hint.contains("api_key"), "{hint}");
        assert_eq!(ada.get(&path).await.expect(200)["base_url"], server.base);

        // The same server with another path keeps the key; another server needs its own.
        change(json!({ "base_url": format!("{}/", server.base) })).await.expect(200);
        ada.until(&path, |seen| seen["last_validated_at"].is_string()).await;
        change(json!({ "base_url": thief.base, "api_key": "another-key" })).await.expect(200);
        ada.until(&path, |seen| seen["last_error_code"].is_string()).await;
        assert_eq!(bearers(&thief)[0], "Bearer another-key");
        change(json!({ "base_url": server.base, "api_key": null })).await.expect(200);
        assert_eq!(ada.get(&path).await.expect(200)["has_credential"], false);
    }
}
