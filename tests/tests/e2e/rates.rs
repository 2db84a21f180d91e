//! Rate limits: headers on every response, enforced for each session and workspace.

use assurance_tests::client::send;
use assurance_tests::{Backend, Builder, Client};
use reqwest::Method;
use serde_json::json;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

#[tokio::test]
async fn a_session_over_its_rate_is_told_when_to_come_again() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.session_burst", 10)
        .set("rates.session_per_minute", 60);
    let (mut host, ada) = builder.start_with_owner().await;
    let bob = host.member("bob", &ada.workspace, "member");
    let mut limited = None;
    for _ in 0..30 {
        let answer = ada.get(CASES).await;
        assert!(answer.header("ratelimit").is_some(), "{:?}", answer.headers);
        assert!(answer.header("ratelimit-policy").is_some(), "{:?}", answer.headers);
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
        answer.expect(200);
    }
    let limited = limited.expect("a limit");
    limited.problem(429, "rate_limited");
    let seconds = limited.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| (1..=10).contains(&seconds)), "{:?}", limited.headers);

    // Other users continue, and after the wait she does, too.
    bob.get(CASES).await.expect(200);
    tokio::time::sleep(std::time::Duration::from_secs(seconds.unwrap_or(1) + 1)).await;
    ada.get(CASES).await.expect(200);
}

#[tokio::test]
async fn every_answer_tells_where_its_client_stands() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]).set("rates.enabled", true);
    let (host, ada) = builder.start_with_owner().await;
    let (nobody, body) = (host.nobody().in_workspace(&ada.workspace), json!({}));
    let elsewhere = ada.in_workspace("01939f1a-0000-7000-8000-000000000000");
    // For a session that is no longer cached, the headers show the address's limit.
    let (signed_in, either, by_address) = ("\"session\";q=", "\"s", "\"sign-in\";q=");
    let of_pages = "\"page\";q=";
    for (answer, status, policy) in [
        (ada.get(CASES).await, 200, signed_in),
        (ada.without_csrf().post(CASES, &body).await, 403, either),
        (elsewhere.get(CASES).await, 404, either),
        (ada.delete("/v1/auth/session").await, 405, either),
        (nobody.get(CASES).await, 401, by_address),
        (nobody.get("/v1/nothing").await, 404, by_address),
        (nobody.get("/").await, 200, of_pages),
        (nobody.get("/openapi.json").await, 200, of_pages),
        (ada.get("/problems/not_found").await, 200, of_pages),
        (send(nobody.request(Method::GET, CASES).header("host", "a b")).await, 400, by_address),
    ] {
        assert_eq!(answer.status, status, "{}: {}", answer.path, answer.text());
        let told = answer.header("ratelimit-policy").unwrap_or_default();
        assert!(told.starts_with(policy), "{} {status}: {told:?}", answer.path);
        assert!(answer.header("ratelimit").is_some(), "{} {status}", answer.path);
    }
}

#[tokio::test]
async fn a_workspace_has_a_rate_of_its_own() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.workspace_burst", 10)
        .set("rates.workspace_per_minute", 1);
    let (mut host, ada) = builder.start_with_owner().await;
    let bob = host.member("bob", &ada.workspace, "member");
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(ada.get(CASES).await.status);
        statuses.push(bob.get(CASES).await.status);
    }
    assert!(statuses[..4].iter().all(|status| *status == 200), "{statuses:?}");
    assert!(statuses[16..].iter().all(|status| *status == 429), "{statuses:?}");
    let member = "/v1/workspaces/{ws}/members/01939f1a-0000-7000-8000-000000000000";
    // The role is judged before the rate.
    bob.delete(member).await.problem(403, "permission_denied");
    ada.delete(member).await.problem(429, "rate_limited");
}

#[tokio::test]
async fn what_is_refused_costs_its_session_as_much() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.session_burst", 10)
        .set("rates.session_per_minute", 1);
    let (_host, ada) = builder.start_with_owner().await;
    let elsewhere = ada.in_workspace("0198c000-0000-7000-8000-000000000000");
    for _ in 0..15 {
        elsewhere.get(CASES).await.problem(404, "not_found");
    }
    ada.get(CASES).await.problem(429, "rate_limited");
}

#[tokio::test]
async fn who_guesses_sessions_waits_and_known_ones_at_the_same_address_go_on() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.unknown_sessions_per_minute", 3);
    let (_host, ada) = builder.start_with_owner().await;
    ada.get(CASES).await.expect(200);
    for guess in ["A", "B", "C"] {
        let guessing = Client { session: Some(guess.repeat(42) + "A"), ..ada.clone() };
        guessing.get(CASES).await.problem(401, "unauthenticated");
    }
    let guessing = Client { session: Some("D".repeat(42) + "A"), ..ada.clone() };
    let refused = guessing.get(CASES).await;
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    let policy = refused.header("ratelimit-policy").expect("a policy");
    assert!(policy.starts_with("\"unknown-session\";q=3"), "{policy}");
    ada.get(CASES).await.expect(200);
}

#[tokio::test]
async fn an_address_may_ask_for_so_many_pages_and_the_rest_goes_on() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.pages_per_minute", 3);
    let (_host, ada) = builder.start_with_owner().await;
    for page in ["/", "/reference", "/openapi.json"] {
        assert_eq!(ada.get(page).await.status, 200, "{page}");
    }
    let refused = ada.get("/openapi.json").await;
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    let policy = refused.header("ratelimit-policy").expect("a policy");
    assert!(policy.starts_with("\"page\";q=3"), "{policy}");
    ada.get(CASES).await.expect(200);
}
