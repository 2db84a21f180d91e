//! Webhooks (operation 13): delivered to a real receiver, verified with an independent
//! implementation, retried, and never sent to forbidden addresses.

use std::time::Duration;

use assurance_tests::artifacts::path_at;
use assurance_tests::receiver::{ReceivedRequest, Receiver};
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, python};
use reqwest::Method;
use serde_json::{Value, json};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const WEBHOOKS: &str = "/v1/workspaces/{ws}/webhooks";
const SOON: Duration = Duration::from_secs(15);

/// Python script that verifies a delivery with the package of Standard Webhooks, as the receiver's
/// owner would.
const VERIFY: &str = r#"
import base64, json, sys
from standardwebhooks import Webhook
secret, headers, body = sys.argv[1], json.loads(sys.argv[2]), base64.b64decode(sys.argv[3])
Webhook(secret).verify(body, headers)
try:
    Webhook(secret).verify(body + b" ", headers)
except Exception:
    print("verified")
"#;

async fn host(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["support", "webhooks"]);
    builder.set("egress.allow_loopback", true).start_with_owner().await
}

async fn subscribe(client: &Client, url: &str) -> Answer {
    client.post(WEBHOOKS, &json!({ "events": ["support_case.created"], "url": url })).await
}

async fn open_case(client: &Client, key: &str) -> Value {
    let body = json!({ "subject": key, "description": "d" });
    client.post_once(CASES, key, &body).await.expect(201)
}

async fn set_active(client: &Client, path: &str, active: bool) {
    let version = client.get(path).await.version().expect("a version");
    client.change(Method::PATCH, path, version, &json!({ "active": active })).await.expect(200);
}

fn verify(secret: &str, received: &ReceivedRequest) {
    use base64::Engine as _;
    let python = python::with_packages(&["standardwebhooks"]);
    let body = base64::engine::general_purpose::STANDARD.encode(&received.body);
    let headers = serde_json::to_string(&received.headers).expect("JSON");
    assert_eq!(python::run(&python, VERIFY, &[secret, &headers, &body]).trim(), "verified");
}

both_backends! {
    async fn a_delivery_arrives_and_verifies(backend) {
        let (mut host, ada) = host(backend).await;
        let receiver = Receiver::content().await;
        let webhook = subscribe(&ada, &format!("{}/hook", receiver.base)).await.expect(201);
        let secret = webhook["secret"].as_str().expect("a secret").to_owned();
        host.keep_secret(&secret);
        let case = open_case(&ada, "delivered-1").await;
        let received = receiver.wait_for(1, SOON).await.remove(0);
        assert_eq!(received.line, "POST /hook HTTP/1.1");
        assert_eq!(received.headers["content-type"], "application/json");
        let body: Value = serde_json::from_slice(&received.body).expect("JSON");
        assert_eq!(body["type"], "support_case.created");
        assert_eq!(body["workspace_id"], ada.workspace);
        assert_eq!(body["data"]["case_id"], case["id"]);
        verify(&secret, &received);

        let vera = host.member("vera", &ada.workspace, "viewer");
        let path = path_at(WEBHOOKS, &webhook);
        for path in [WEBHOOKS, &path, &format!("{path}/deliveries")] {
            let shown = vera.get(path).await.expect(200);
            assert!(!shown.to_string().contains(&secret), "the secret is shown twice");
            // The path of a receiver often is a credential.
            assert!(!shown.to_string().contains("/hook"), "{shown}");
        }
        assert_eq!(vera.get(&path).await.expect(200)["url"], receiver.base);
        assert_eq!(ada.get(&path).await.expect(200)["url"], webhook["url"]);
        subscribe(&vera, &receiver.base).await.problem(403, "permission_denied");
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(receiver.received().len(), 1, "delivered once");
    }

    async fn only_subscribed_events_of_ones_own_workspace_are_delivered(backend) {
        let (mut host, ada) = host(backend).await;
        let receiver = Receiver::content().await;
        subscribe(&ada, &receiver.base).await.expect(201);
        let bea = host.create_owner("bea", "second");
        open_case(&bea, "not-here-1").await;
        let case = open_case(&ada, "but-here-1").await;
        receiver.wait_for(1, SOON).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let received = receiver.received();
        for message in &received {
            let body: Value = serde_json::from_slice(&message.body).expect("JSON");
            assert_eq!(body["data"]["case_id"], case["id"]);
            assert_eq!(body["workspace_id"], ada.workspace);
        }
        assert_eq!(received.len(), 1, "{received:#?}");
    }

    async fn a_receiver_that_fails_sees_the_same_message_again(backend) {
        let (_host, ada) = host(backend).await;
        let receiver = Receiver::start(&["500 Internal Server Error", "204 No Content"]).await;
        let webhook = subscribe(&ada, &receiver.base).await.expect(201);
        open_case(&ada, "retried-1").await;
        let received = receiver.wait_for(2, Duration::from_secs(30)).await;
        let waited = received[1].at - received[0].at;
        let (least, most) = (Duration::from_millis(3_900), Duration::from_millis(9_000));
        assert!(waited > least && waited < most, "the first retry came after {waited:?}");
        assert_eq!(received[0].headers["webhook-id"], received[1].headers["webhook-id"]);
        assert_eq!(received[0].body, received[1].body);
        verify(webhook["secret"].as_str().expect("a secret"), &received[1]);
    }

    async fn a_delivery_survives_a_killed_host(backend) {
        let (mut host, ada) = host(backend).await;
        let receiver = Receiver::start(&["503 Service Unavailable", "204 No Content"]).await;
        subscribe(&ada, &receiver.base).await.expect(201);
        open_case(&ada, "survivor-1").await;
        receiver.wait_for(1, SOON).await;
        host.kill9();
        host.start().await;
        let received = receiver.wait_for(2, Duration::from_secs(60)).await;
        assert_eq!(received[0].headers["webhook-id"], received[1].headers["webhook-id"]);
    }

    async fn events_that_wait_for_a_deactivated_webhook_are_listed_and_sent_again(backend) {
        // Without jobs the events wait.
        let builder = Builder::new(backend).areas(&["support", "webhooks"]);
        let builder = builder.set("egress.allow_loopback", true).set("jobs.enabled", false);
        let (mut host, ada) = builder.start_with_owner().await;
        let receiver = Receiver::content().await;
        let webhook = subscribe(&ada, &receiver.base).await.expect(201);
        let path = path_at(WEBHOOKS, &webhook);
        for key in ["waits-long-1", "waits-long-2", "waits-long-3"] {
            open_case(&ada, key).await;
        }
        set_active(&ada, &path, false).await;
        open_case(&ada, "while-inactive").await;
        host.restart(&[("jobs.enabled", true.into())]).await;
        let ada = ada.at(&host);
        let failed = format!("{path}/deliveries?status=failed");
        let three = |page: &Value| page["items"].as_array().is_some_and(|items| items.len() == 3);
        let failed = ada.until(&failed, three).await;
        assert!(receiver.received().is_empty());

        set_active(&ada, &path, true).await;
        for delivery in failed["items"].as_array().expect("items") {
            assert_eq!(delivery["attempts"][0]["error"], "the webhook is disabled");
            let id = delivery["id"].as_str().expect("an id");
            ada.post(&format!("{path}/deliveries/{id}/resend"), &json!({})).await.expect(201);
        }
        receiver.wait_for(3, SOON).await;
        ada.until(&format!("{path}/deliveries?status=succeeded"), three).await;
    }

    async fn what_cannot_be_subscribed_is_refused(backend) {
        let (_host, ada) = host(backend).await;
        for events in [json!([]), json!(["no.such_event"]), json!(["support_case.created", "x"]), json!(["webhook.test"])] {
            let body = json!({ "events": events, "url": "https://example.com/" });
            ada.post(WEBHOOKS, &body).await.problem(422, "validation_failed");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_not_followed() {
    let (_host, ada) = host(Backend::Sqlite).await;
    let target = Receiver::content().await;
    let head = format!("302 Found\r\nlocation: {}/stolen", target.base);
    let heads: &'static [&'static str] = vec![&*head.leak()].leak();
    let receiver = Receiver::start(heads).await;
    subscribe(&ada, &receiver.base).await.expect(201);
    open_case(&ada, "redirected").await;
    receiver.wait_for(2, Duration::from_secs(30)).await;
    assert!(target.received().is_empty(), "the redirect was followed");
}

#[tokio::test]
async fn a_410_disables_the_subscription() {
    let (_host, ada) = host(Backend::Sqlite).await;
    let receiver = Receiver::start(&["410 Gone"]).await;
    subscribe(&ada, &receiver.base).await.expect(201);
    open_case(&ada, "gone-for-good").await;
    receiver.wait_for(1, SOON).await;
    let is_inactive = |shown: &Value| shown.get("items").unwrap_or(shown)[0]["active"] == false;
    ada.until(WEBHOOKS, is_inactive).await;
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_outside_development() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support", "webhooks"]);
    let (_host, ada) = builder.start_with_owner().await;
    let refused = [
        "http://example.com/hook",
        "https://127.0.0.1/hook",
        "https://localhost/hook",
        "https://[::1]/hook",
        "https://10.1.2.3/hook",
        "https://172.16.0.1/hook",
        "https://192.168.1.1/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/hook",
        "https://192.0.2.1/hook",
        "https://224.0.0.1/hook",
        "https://0.0.0.0/hook",
        "https://[::ffff:127.0.0.1]/hook",
        "https://[64:ff9b::7f00:1]/hook",
        "https://[fd00::1]/hook",
        "https://2130706433/hook",
        "https://0x7f.1/hook",
        "https://user:password@example.com/hook",
        "https://@example.com/hook",
        "https:/example.com/hook",
        "https:example.com/hook",
        "ftp://example.com/hook",
        "not a url",
    ];
    for url in refused {
        let answer = subscribe(&ada, url).await;
        assert_eq!(answer.status, 422, "{url}: {}", answer.text());
        answer.problem(422, "validation_failed");
    }
}
