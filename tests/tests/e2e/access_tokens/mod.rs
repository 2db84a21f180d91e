//! Access tokens: a machine calls the operations of one workspace without a
//! session, as long as the member who created the token may.

mod limits;

use std::time::Duration;

use assurance_tests::artifacts::path_at;
use assurance_tests::client::send;
use assurance_tests::{
    Answer, Backend, Builder, Client, TestHost, both_backends, envelope, within,
};
use reqwest::Method;
use serde_json::{Value, json};

const TOKENS: &str = "/v1/workspaces/{ws}/access-tokens";
const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const REPOSITORIES: &str = "/v1/workspaces/{ws}/repositories";
const MEMBERS: &str = "/v1/workspaces/{ws}/members";
/// Time until a cached session or token expires (`session.cache_ms`), with a
/// margin for busy machines.
const PATIENCE: Duration = Duration::from_secs(20);

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["catalog", "support"]).start_with_owner().await
}

fn repository(name: &str) -> Value {
    json!({ "name": name, "provider": "github", "default_branch": "main" })
}

/// Returns the time this number of milliseconds from now, in RFC 3339.
fn in_ms(ms: i64) -> String {
    envelope::now().plus_ms(ms).to_rfc3339()
}

async fn create(client: &Client, name: &str, role: &str) -> Answer {
    let body = json!({ "name": name, "role": role, "expires_at": in_ms(86_400_000) });
    client.post(TOKENS, &body).await
}

/// Creates a machine client with a new token; the log must not contain the
/// token.
async fn machine(host: &mut TestHost, client: &Client, role: &str) -> (Client, Value) {
    let created = create(client, "ci", role).await.expect(201);
    let token = created["token"].as_str().expect("a token").to_owned();
    host.keep_secret(&token);
    (client.machine(&token), created)
}

fn path(token: &Value) -> String {
    path_at(TOKENS, token)
}

/// Asserts that the response is the refusal of an invalid token, and returns
/// the problem.
#[track_caller]
fn refused(answer: &Answer) -> Value {
    let mut problem = answer.problem(401, "unauthenticated");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    problem["request_id"].take();
    problem
}

both_backends! {
    async fn a_machine_reads_and_writes_with_its_token_alone(backend) {
        let (mut host, ada) = host(backend).await;
        let (ci, created) = machine(&mut host, &ada, "member").await;
        let members: Vec<_> = created.as_object().expect("an object").keys().collect();
        let shown = ["created_at", "expires_at", "id", "last_used_at", "name", "role", "token", "user_id"];
        assert_eq!(members, shown);
        let listed = ada.get(TOKENS).await.expect(200);
        assert_eq!(listed["items"][0]["last_used_at"], Value::Null);
        assert_eq!(listed["items"][0].get("token"), None);

        let made = ci.open_case("by-a-machine").await.expect(201);
        assert_eq!(ci.get(CASES).await.expect(200)[0]["id"], made["id"]);
        // The machine acts as the member who created the token.
        assert_eq!(ada.get(CASES).await.expect(200)[0]["id"], made["id"]);
        ci.post(REPOSITORIES, &repository("shop")).await.expect(201);
        let listed = ada.get(TOKENS).await.expect(200);
        assert!(listed["items"][0]["last_used_at"].is_string(), "{listed}");
        let nobody = host.nobody().in_workspace(&ada.workspace);
        let with = |client: &Client, value: &str| {
            send(client.request(Method::GET, CASES).header("authorization", value))
        };
        let lower = format!("bearer  {}", ci.token.as_deref().unwrap_or_default());
        with(&nobody, &lower).await.expect(200);
        // A header with another scheme is ignored, because it may be for a
        // proxy.
        let session = "/v1/auth/session";
        for (answer, offered) in [(with(&nobody, "Basic eDp5").await, true), (nobody.get(session).await, false)] {
            let hint = answer.problem(401, "unauthenticated")["hint"].to_string();
            let ways = answer.header("www-authenticate").expect("the ways to authenticate");
            assert_eq!((hint.contains("Bearer"), ways.contains("Bearer")), (offered, offered), "{hint}");
        }
        with(&ada, "Basic eDp5").await.expect(200);
    }

    async fn a_token_has_its_own_role_and_never_more_than_its_maker(backend) {
        let (mut host, ada) = host(backend).await;
        let bea = host.create_person("bea");
        host.add_member(&ada.workspace, &bea, "admin");
        let client = host.sign_in(&bea, &ada.workspace);
        let (reader, _) = machine(&mut host, &client, "viewer").await;
        let (writer, _) = machine(&mut host, &client, "admin").await;
        let refused = reader.post(REPOSITORIES, &repository("one")).await;
        refused.problem_about(403, "permission_denied", "yours here is viewer");
        writer.post(REPOSITORIES, &repository("one")).await.expect(201);

        host.add_member(&ada.workspace, &bea, "viewer");
        let mut n = 0;
        within(PATIENCE, "the role of the token falls", async || {
            n += 1;
            writer.post(REPOSITORIES, &repository(&format!("r{n}"))).await.status == 403
        })
        .await;
        writer.get(REPOSITORIES).await.expect(200);
        for (role, who) in [("owner", &ada), ("none", &ada)] {
            create(who, "ci", role).await.problem(422, "validation_failed");
        }
        create(&client, "ci", "viewer").await.problem(403, "permission_denied");
    }

    async fn the_token_of_who_was_removed_or_disabled_is_worth_nothing(backend) {
        let (mut host, ada) = host(backend).await;
        let bea = host.create_person("bea");
        host.add_member(&ada.workspace, &bea, "admin");
        let client = host.sign_in(&bea, &ada.workspace);
        let (ci, _) = machine(&mut host, &client, "member").await;
        ci.get(CASES).await.expect(200);
        ada.delete(&format!("{MEMBERS}/{}", bea.id)).await.expect(204);
        let removed = refused(&ci.get(CASES).await);
        host.add_member(&ada.workspace, &bea, "admin");
        assert_eq!(refused(&ci.get(CASES).await), removed);

        let (ci, _) = machine(&mut host, &client, "member").await;
        ci.get(CASES).await.expect(200);
        host.cli(&["user", "disable", "--user", &bea.email]);
        ci.status_within(PATIENCE, CASES, 401).await;
        host.cli(&["user", "enable", "--user", &bea.email]);
        refused(&ci.get(CASES).await);
        assert_eq!(ada.get(TOKENS).await.expect(200)["items"], json!([]));
    }

    async fn a_token_ends_and_nothing_tells_why_it_is_refused(backend) {
        let (mut host, ada) = host(backend).await;
        let body = |expires_at: String| json!({ "name": "ci", "role": "viewer", "expires_at": expires_at });
        for wrong in [in_ms(-1_000), in_ms(366 * 86_400_000), "soon".to_owned()] {
            ada.post(TOKENS, &body(wrong)).await.problem(422, "validation_failed");
        }
        ada.post(TOKENS, &json!({ "name": "ci", "role": "viewer" })).await.problem(422, "validation_failed");
        create(&ada, " ", "viewer").await.problem(422, "validation_failed");

        let short = ada.post(TOKENS, &body(in_ms(5_000))).await.expect(201);
        let short = ada.machine(short["token"].as_str().expect("a token"));
        short.get(CASES).await.expect(200);
        let expired = refused(&short.status_within(PATIENCE, CASES, 401).await);
        let (ci, created) = machine(&mut host, &ada, "viewer").await;
        ci.get(CASES).await.expect(200);
        ada.delete(&path(&created)).await.expect(204);
        let revoked = refused(&ci.get(CASES).await);
        ada.delete(&path(&created)).await.problem(404, "not_found");
        let text = ci.token.clone().unwrap_or_default();
        let wrong_checksum = refused(&ada.machine(&format!("{}0", &text[..49])).get(CASES).await);
        let unknown = refused(&ada.machine("was_00000000000000000000000000000000000000001XTrtK").get(CASES).await);
        let malformed = refused(&ada.machine("secret").get(CASES).await);
        let empty = refused(&ada.machine("").get(CASES).await);
        for other in [&revoked, &wrong_checksum, &unknown, &malformed, &empty] {
            assert_eq!(other, &expired);
        }
    }

    async fn a_token_opens_its_workspace_only_and_is_not_sent_with_a_cookie(backend) {
        let (mut host, ada) = host(backend).await;
        let owner = host.create_person("oda");
        let second = host.create_workspace("second", &owner);
        host.add_member(&ada.workspace, &owner, "owner");
        let oda = host.sign_in(&owner, &ada.workspace);
        let (ci, _) = machine(&mut host, &oda, "admin").await;
        oda.in_workspace(&second).get(CASES).await.expect(200);
        let there = ci.in_workspace(&second);
        for list in [CASES, MEMBERS] {
            ci.get(list).await.expect(200);
            there.get(list).await.problem(404, "not_found");
        }
        there.open_case("elsewhere-1").await.problem(404, "not_found");

        let both = Client { token: ci.token.clone(), ..oda };
        both.get(CASES).await.problem_about(400, "malformed_request", "together");
        let stale = Client { session: Some("no-session".to_owned()), ..both };
        stale.get(CASES).await.problem(400, "malformed_request");
    }

    async fn the_idempotency_keys_of_a_token_are_its_own(backend) {
        let (mut host, ada) = host(backend).await;
        let (one, _) = machine(&mut host, &ada, "member").await;
        let (other, _) = machine(&mut host, &ada, "member").await;
        let mut ids = Vec::new();
        for client in [&ada, &one, &other] {
            let first = client.open_case("the-same-key").await;
            assert_eq!(first.header("idempotent-replayed"), None);
            let again = client.open_case("the-same-key").await;
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            let id = first.expect(201)["id"].clone();
            assert_eq!(again.expect(201)["id"], id);
            assert!(!ids.contains(&id), "{id}");
            ids.push(id);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_shows_on_another_node_within_a_second() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let (mut one, ada) = host(Backend::Postgres).await;
    let builder = Builder::new(Backend::Postgres).areas(&["catalog", "support"]);
    let mut two = builder.beside(&one).start().await;
    let (ci, created) = machine(&mut one, &ada, "viewer").await;
    two.keep_secret(ci.token.as_deref().expect("a token"));
    let there = ci.at(&two);
    there.get(CASES).await.expect(200);
    ada.delete(&path(&created)).await.expect(204);
    refused(&ci.get(CASES).await);
    refused(&there.status_within(PATIENCE, CASES, 401).await);
}
