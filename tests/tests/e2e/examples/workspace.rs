//! People, what the workspace is about, other systems, and the queue.

use assurance_tests::client::send;
use assurance_tests::examples::Recorder;
use assurance_tests::receiver::Receiver;
use assurance_tests::{Client, TestHost};
use reqwest::Method;
use serde_json::{Value, json};

use super::CREATE_ACCESS_TOKEN;
use crate::invitations::{mail_to, token, word_after};

/// Workspaces, members, access tokens and invitations.
pub(super) async fn people(recorder: &mut Recorder, host: &TestHost) {
    recorder.send("create_workspace", json!({ "name": "Second", "slug": "second" })).await;
    recorder.act("list_workspaces").await;
    recorder.act("list_members").await;
    // As a reader of the documentation copies it.
    let access = recorder.shown_request(CREATE_ACCESS_TOKEN);
    recorder.send(CREATE_ACCESS_TOKEN, access).await;
    recorder.act("list_access_tokens").await;

    for (email, operation) in [("eve@example.org", "accept"), ("mia@example.org", "decline")] {
        let new = json!({ "email": email, "role": "member" });
        recorder.create("create_invitation", "invitation_id", new).await;
        let mail = mail_to(host, email).await;
        let account = json!({
            "token": word_after(&mail, "\"token\": \""), "display_name": "Eve",
            "password": "a password that nobody guesses",
        });
        let ada = recorder.client.clone();
        recorder.client = Client { session: None, csrf: None, ..ada.clone() };
        let registered = recorder.call("register", "", &account).await;
        recorder.client = recorder.client.with_session(&registered);
        let query = format!("?token={}", token(&mail, operation));
        recorder.call(&format!("{operation}_invitation"), &query, &Value::Null).await;
        recorder.client = ada;
    }
    let new = json!({ "email": "zoe@example.org", "role": "viewer" });
    recorder.create("create_invitation", "invitation_id", new).await;
    mail_to(host, "zoe@example.org").await;
    for operation in ["get_invitation", "resend_invitation", "revoke_invitation"] {
        recorder.act(operation).await;
    }
    recorder.act("list_invitations").await;
    recorder.act("page_invitations").await;
}

/// Repositories, services, groups and their dependencies.
pub(super) async fn catalog(recorder: &mut Recorder) {
    let repository = json!({
        "name": "shop", "provider": "github", "url": "https://github.com/example/shop",
        "default_branch": "main",
    });
    let repository = recorder.create("create_repository", "repository_id", repository).await;
    recorder.send("update_repository", json!({ "external_id": "4711" })).await;
    let me = recorder.act("get_session").await["user"]["id"].clone();
    let group = |name: &str, zone: &str, classification: &str| {
        json!({
            "name": name, "identities": [format!("@shop/{name}")], "member_ids": [me],
            "trust_zone": zone, "data_classification": classification,
        })
    };
    let web = recorder.create("create_group", "group_id", group("web", "dmz", "internal")).await;
    recorder.send("update_group", json!({ "data_classification": "confidential" })).await;
    let login = json!({
        "name": "login", "identities": ["demo@example.com"], "member_ids": [me],
        "trust_zone": "internal", "data_classification": "restricted",
    });
    let login = recorder.send("create_group", login).await;
    let service = json!({
        "name": "storefront", "repository_ids": [repository["id"]], "group_id": web["id"],
        "environment": "production",
    });
    recorder.create("create_service", "service_id", service).await;
    recorder.send("update_service", json!({ "tier": "1" })).await;
    let dependency = json!({
        "source_group_id": web["id"], "target_group_id": login["id"], "relationship_kind": "calls",
    });
    recorder.create("create_group_dependency", "dependency_id", dependency).await;
    for operation in [
        "list_repositories",
        "get_repository",
        "list_groups",
        "get_group",
        "list_services",
        "get_service",
        "list_group_dependencies",
        "get_group_dependency",
    ] {
        recorder.act(operation).await;
    }
}

/// Webhooks, identity providers, the repository host and support.
pub(super) async fn systems(recorder: &mut Recorder, receiver: &Receiver) {
    let webhook =
        json!({ "url": format!("{}/hooks", receiver.base), "events": ["finding.created"] });
    recorder.create("create_webhook", "webhook_id", webhook).await;
    recorder.send("update_webhook", json!({ "name": "Chat of the shop" })).await;
    recorder.create("test_webhook", "delivery_id", Value::Null).await;
    let delivered = |list: &Value| list["items"][0]["status"] == "succeeded";
    recorder.until("list_webhook_deliveries", delivered).await;
    for operation in
        ["resend_webhook_delivery", "rotate_webhook_secret", "get_webhook", "list_webhooks"]
    {
        recorder.act(operation).await;
    }

    let provider = json!({
        "name": "Main", "issuer": format!("{}/issuer", receiver.base), "client_id": "assurance",
        "client_secret": "a secret of the provider", "domains": ["example.com"],
        "claims_mapping": { "groups": "groups" }, "role_mapping": { "security": "admin" },
    });
    recorder.create("create_identity_provider", "provider_id", provider).await;
    recorder.send("update_identity_provider", json!({ "domains": ["example.org"] })).await;
    let rotation = json!({ "client_secret": "another secret of the provider" });
    recorder.send("rotate_identity_provider", rotation).await;
    for operation in [
        "disable_identity_provider",
        "enable_identity_provider",
        "get_identity_provider",
        "list_identity_providers",
    ] {
        recorder.act(operation).await;
    }

    install(recorder).await;
    let case = json!({ "subject": "Login fails", "description": "Since this morning." });
    recorder.create("create_support_case", "case_id", case).await;
    recorder.send("add_support_note", json!({ "body": "It works again." })).await;
    for operation in
        ["close_support_case", "get_support_case", "list_support_cases", "page_support_cases"]
    {
        recorder.act(operation).await;
    }
}

/// Installs the application of the repository host, as a browser does.
async fn install(recorder: &mut Recorder) {
    let workspace = json!({ "workspace_id": recorder.client.workspace });
    let started = recorder.send("start_repohost_install", workspace).await;
    let url = started["installation_url"].as_str().expect("a URL");
    let state = url.split("state=").nth(1).expect("a state");
    let query = format!("?state={state}&installation_id=4711&setup_action=install");
    let (_, path) = recorder.address("complete_repohost_install");
    let back = send(recorder.client.request(Method::GET, &format!("{path}{query}"))).await;
    recorder.set("installation_id", &back.expect(200));
    recorder.keep("complete_repohost_install", &Value::Null, &back);
    recorder.act("get_repohost_installation").await;
    recorder.act("list_repohost_installations").await;
}

/// Cancels the job of a schedule's audit and queues it again.
pub(super) async fn queue(recorder: &mut Recorder) {
    recorder.act("get_workspace_queue").await;
    let jobs =
        recorder.call("list_queue_jobs", "?kind=expire_invitation", &Value::Null).await.json();
    recorder.set("job_id", &jobs["items"][0]);
    for operation in ["get_queue_job", "cancel_queue_job", "retry_queue_job"] {
        recorder.act(operation).await;
    }
}
