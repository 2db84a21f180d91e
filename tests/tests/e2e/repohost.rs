//! Installing the repository-host application (operation 14): the redirect with a state that is
//! valid once in one session, and the return.

use assurance_tests::artifacts::path_at;
use assurance_tests::client::send;
use assurance_tests::contract::Contract;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

const INSTALL: &str = "/v1/repohost/app/install";
const INSTALLATIONS: &str = "/v1/workspaces/{ws}/repohost/installations";
const APP: &str = "https://repohost.example/apps/assurance/installations/new";

async fn host(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["repohost"]);
    builder.set("areas.settings.repohost.app_url", APP).start_with_owner().await
}

async fn start(client: &Client) -> Answer {
    client.post(INSTALL, &json!({ "workspace_id": client.workspace })).await
}

/// Starts an installation. Returns the state in the URL.
async fn state(client: &Client) -> String {
    let started = start(client).await.expect(200);
    let url = started["installation_url"].as_str().expect("a URL");
    url.strip_prefix(&format!("{APP}?state=")).expect("the application's URL").to_owned()
}

/// Returns like a browser: without a CSRF token, from another site.
async fn back(client: &Client, state: &str, more: &str) -> Answer {
    let path = format!("/v1/repohost/app/callback?state={state}{more}");
    send(client.request(Method::GET, &path).header("sec-fetch-site", "cross-site")).await
}

both_backends! {
    async fn an_admin_installs_the_application_for_the_workspace(backend) {
        let (mut host, ada) = host(backend).await;
        let started = start(&ada).await.expect(200);
        Contract::read().check(14, &started);
        let state = state(&ada).await;
        host.keep_secret(&state);
        let answer = back(&ada, &state, "&installation_id=4711&setup_action=install").await;
        assert_eq!(answer.header("etag"), Some("\"1\""));
        let bound = answer.expect(200);
        assert_eq!((&bound["external_id"], &bound["workspace_id"]), (&json!("4711"), &json!(ada.workspace)));
        back(&ada, &state, "&installation_id=4712").await.problem(409, "state_used");
        let page = ada.get(INSTALLATIONS).await.expect(200);
        assert_eq!(page["items"], json!([bound]));

        let path = path_at(INSTALLATIONS, &bound);
        let viewer = host.member("vera", &ada.workspace, "viewer");
        assert_eq!(viewer.get(&path).await.expect(200), bound);
        viewer.delete(&path).await.problem(403, "permission_denied");
        ada.delete(&path).await.expect(204);
        ada.get(&path).await.problem(404, "not_found");
    }

    async fn the_state_is_the_session_s_and_the_workspace_s(backend) {
        let (mut host, ada) = host(backend).await;
        let admin = host.member("adam", &ada.workspace, "admin");
        let state = state(&ada).await;
        let installed = "&installation_id=4711";
        back(&host.nobody(), &state, installed).await.problem(401, "unauthenticated");
        back(&admin, &state, installed).await.problem(403, "permission_denied");
        let again = host.cli(&["session", "create", "--user", "ada@example.org"]);
        let again = Client { session: again["session"].as_str().map(str::to_owned), ..ada.clone() };
        back(&again, &state, installed).await.problem(403, "permission_denied");
        back(&ada, "", installed).await.problem(403, "permission_denied");
        back(&ada, &format!("{state}x"), installed).await.problem(403, "permission_denied");
        // A HEAD request does not use up the state.
        let path = format!("/v1/repohost/app/callback?state={state}{installed}");
        let ahead = send(ada.request(Method::HEAD, &path)).await;
        assert_eq!((ahead.status, ahead.header("allow")), (405, Some("GET")));
        back(&ada, &state, "&setup_action=request").await.problem(409, "installation_requested");
        back(&ada, &state, "").await.problem(422, "validation_failed");
        back(&ada, &state, installed).await.expect(200);
    }

    async fn a_key_that_was_used_does_not_return_a_used_state(backend) {
        let (_host, ada) = host(backend).await;
        let body = json!({ "workspace_id": ada.workspace });
        let first = ada.post_once(INSTALL, "install-key", &body).await;
        let second = ada.post_once(INSTALL, "install-key", &body).await;
        assert_eq!(second.header("idempotent-replayed"), None);
        assert_ne!(first.expect(200), second.expect(200));
        ada.post_once(INSTALL, "short", &body).await.problem(422, "validation_failed");
    }

    async fn only_admins_of_the_workspace_are_sent(backend) {
        let (mut host, ada) = host(backend).await;
        let member = host.member("mia", &ada.workspace, "member");
        start(&member).await.problem(403, "permission_denied");
        ada.post(INSTALL, &json!({})).await.problem(422, "validation_failed");
        ada.post(INSTALL, &json!({ "workspace_id": "x" })).await.problem(422, "validation_failed");
    }

    async fn without_an_application_a_client_is_not_told_to_try_again(backend) {
        let (_host, ada) = Builder::new(backend).areas(&["repohost"]).start_with_owner().await;
        let refused = start(&ada).await;
        assert_eq!(refused.header("retry-after"), None);
        let problem = refused.problem(409, "not_configured");
        let hint: &Value = &problem["hint"];
        assert!(hint.to_string().contains("areas.settings.repohost.app_url"), "{problem}");
    }
}
