//! The order of checks: a request with several faults is refused for the first in the specified
//! order. The faults are fixed one after the other.

use assurance_tests::client::send;
use assurance_tests::{Backend, Builder, Client};
use reqwest::{Method, RequestBuilder};

const BIG: usize = 2 << 20;

/// Request parameters, with one fault fewer at each step.
struct Faults {
    path: &'static str,
    key: Option<&'static str>,
    media_type: &'static str,
    body: String,
}

impl Faults {
    fn request(&self, client: &Client) -> RequestBuilder {
        let mut request = client.request(Method::POST, self.path);
        if let Some(key) = self.key {
            request = request.header("idempotency-key", key);
        }
        request.header("content-type", self.media_type).body(self.body.clone())
    }
}

#[tokio::test]
async fn the_first_fault_in_the_specified_order_is_told() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support", "webhooks"]);
    let (mut host, ada) = builder.start_with_owner().await;
    let stranger_workspace = host.elsewhere();
    let viewer = host.member("vera", &ada.workspace, "viewer");
    let mut faults = Faults {
        path: "/v1/workspaces/{ws}/nothing-here",
        key: None,
        media_type: "text/plain",
        body: "{".repeat(BIG),
    };

    // Route, then method: checked for anonymous clients, too.
    let nobody = Client { workspace: stranger_workspace.clone(), ..host.nobody() };
    send(faults.request(&nobody)).await.problem(404, "not_found");
    let patch = nobody.request(Method::PATCH, "/v1/workspaces/{ws}/webhooks");
    let patched = send(patch).await;
    patched.problem(405, "method_not_allowed");
    assert!(patched.header("allow").is_some_and(|allow| allow.contains("POST")));

    // Session, CSRF, membership, role.
    faults.path = "/v1/workspaces/{ws}/webhooks";
    send(faults.request(&nobody)).await.problem(401, "unauthenticated");
    let mut client = viewer.in_workspace(&stranger_workspace).without_csrf();
    send(faults.request(&client)).await.problem(403, "csrf_failed");
    client.csrf.clone_from(&viewer.csrf);
    send(faults.request(&client)).await.problem(404, "not_found");
    send(faults.request(&viewer)).await.problem(403, "permission_denied");

    // Media type, size, shape, idempotency.
    faults.path = "/v1/workspaces/{ws}/support/cases";
    send(faults.request(&viewer)).await.problem(415, "unsupported_media_type");
    faults.media_type = "application/json";
    send(faults.request(&viewer)).await.problem(413, "payload_too_large");
    "{".clone_into(&mut faults.body);
    send(faults.request(&viewer)).await.problem(422, "validation_failed");
    r#"{"subject":"a","description":"b"}"#.clone_into(&mut faults.body);
    send(faults.request(&viewer)).await.problem(422, "validation_failed");
    faults.key = Some("order-key-1");
    send(faults.request(&viewer)).await.expect(201);
    r#"{"subject":"a","description":"c"}"#.clone_into(&mut faults.body);
    send(faults.request(&viewer)).await.problem(422, "idempotency_key_reused");
}

#[tokio::test]
async fn the_rate_is_asked_after_the_role_and_before_the_body() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support", "webhooks"])
        .set("rates.enabled", true)
        .set("rates.session_burst", 8)
        .set("rates.session_per_minute", 1);
    let (mut host, ada) = builder.start_with_owner().await;
    let viewer = host.member("vera", &ada.workspace, "viewer");
    let path = "/v1/workspaces/{ws}/support/cases";
    let faults = |path| Faults { path, key: None, media_type: "text/plain", body: String::new() };
    let mut answer = send(faults(path).request(&viewer)).await;
    for _ in 0..20 {
        if answer.status == 429 {
            break;
        }
        answer.problem(415, "unsupported_media_type");
        answer = send(faults(path).request(&viewer)).await;
    }
    answer.problem(429, "rate_limited");
    let denied = faults("/v1/workspaces/{ws}/webhooks");
    send(denied.request(&viewer)).await.problem(403, "permission_denied");
}

#[tokio::test]
async fn a_body_that_is_missing_is_of_the_wrong_shape_not_of_another_type() {
    let (_host, ada) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    for path in ["/v1/workspaces", "/v1/workspaces/{ws}/support/cases"] {
        send(ada.request(Method::POST, path)).await.problem(422, "validation_failed");
    }
}
