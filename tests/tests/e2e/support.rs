//! Support cases (operations 10 and 11), and idempotency, which they require.

use assurance_tests::artifacts::path_at;
use assurance_tests::{Answer, Builder, Client, both_backends};
use futures::future::join_all;
use serde_json::{Value, json};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

fn case(subject: &str) -> Value {
    json!({ "subject": subject, "description": "It does not work." })
}

async fn open(client: &Client, key: &str, subject: &str) -> Answer {
    client.post_once(CASES, key, &case(subject)).await
}

async fn subjects(client: &Client) -> Vec<String> {
    let cases = client.get(CASES).await.expect(200);
    let cases = cases.as_array().expect("an array");
    cases.iter().map(|case| case["subject"].as_str().expect("a subject").to_owned()).collect()
}

both_backends! {
    async fn everyone_sees_their_own_cases_only_newest_first(backend) {
        let (mut host, ada) = Builder::new(backend).areas(&["support"]).start_with_owner().await;
        let viewer = host.member("vera", &ada.workspace, "viewer");
        for subject in ["one", "two", "three"] {
            open(&ada, &format!("ada-key-{subject}"), subject).await.expect(201);
        }
        let theirs = open(&viewer, "vera-key-1", "hers").await.expect(201);
        assert_eq!(subjects(&ada).await, ["three", "two", "one"]);
        assert_eq!(subjects(&viewer).await, ["hers"]);

        let stranger_path = path_at(CASES, &theirs);
        let member = host.member("mia", &ada.workspace, "member");
        member.get(&stranger_path).await.problem(404, "not_found");
    }

    async fn another_workspace_shows_nothing_of_this_one(backend) {
        let (mut host, ada) = Builder::new(backend).areas(&["support"]).start_with_owner().await;
        open(&ada, "same-key-1", "first").await.expect(201);
        let bea = host.create_owner("bea", "second");
        assert_eq!(subjects(&bea).await, [""; 0]);
        // The same key is independent for another user.
        let answer = open(&bea, "same-key-1", "first").await;
        answer.expect(201);
        assert_eq!(answer.header("idempotent-replayed"), None);
        bea.in_workspace(&ada.workspace).get(CASES).await.problem(404, "not_found");
    }

    async fn idempotency_keys_hold_to_their_rules(backend) {
        let (_host, ada) = Builder::new(backend).areas(&["support"]).start_with_owner().await;
        a_retry_gets_the_first_answer_and_has_one_effect(&ada.new_workspace("retried").await).await;
        a_key_with_another_body_is_refused(&ada.new_workspace("reused").await).await;
        a_refusal_leaves_the_key_free(&ada.new_workspace("refused").await).await;
        many_at_once_with_one_key_make_one_case(&ada.new_workspace("crowded").await).await;
        the_key_is_required_and_has_bounds(&ada.new_workspace("bounds").await).await;
        lengths_are_counted_in_characters(&ada.new_workspace("lengths").await).await;
    }
}

async fn a_retry_gets_the_first_answer_and_has_one_effect(ada: &Client) {
    let first = open(ada, "retried-key", "once").await;
    let again = open(ada, "retried-key", "once").await;
    assert_eq!(first.expect(201), again.expect(201));
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_ne!(first.header("x-request-id"), again.header("x-request-id"));
    assert_eq!(subjects(ada).await, ["once"]);

    // A body with members in another order is the same body.
    let reordered = r#"{"description": "It does not work.", "subject": "once"}"#;
    let request = ada.request(reqwest::Method::POST, CASES);
    let request = request.header("idempotency-key", "retried-key");
    let request = request.header("content-type", "application/json").body(reordered);
    let again = assurance_tests::client::send(request).await;
    assert_eq!(first.expect(201), again.expect(201));
}

async fn a_key_with_another_body_is_refused(ada: &Client) {
    open(ada, "reused-key", "once").await.expect(201);
    open(ada, "reused-key", "twice").await.problem(422, "idempotency_key_reused");
    assert_eq!(subjects(ada).await, ["once"]);
}

async fn a_refusal_leaves_the_key_free(ada: &Client) {
    open(ada, "refused-key", "").await.problem(422, "validation_failed");
    open(ada, "refused-key", "now right").await.expect(201);
}

async fn many_at_once_with_one_key_make_one_case(ada: &Client) {
    let (mut fresh, mut answered) = (0, 0);
    for answer in join_all((0..32).map(|_| open(ada, "crowded-key", "once"))).await {
        if answer.status == 409 {
            answer.problem(409, "idempotency_in_progress");
            assert!(answer.header("retry-after").is_some());
            continue;
        }
        answer.expect(201);
        answered += 1;
        fresh += usize::from(answer.header("idempotent-replayed").is_none());
    }
    assert!(answered >= 1, "nobody was answered");
    assert_eq!(fresh, 1, "one of {answered} answers is the first");
    assert_eq!(subjects(ada).await, ["once"]);
}

async fn the_key_is_required_and_has_bounds(ada: &Client) {
    let without = ada.post(CASES, &case("x")).await;
    without.problem_about(422, "validation_failed", "Idempotency-Key");
    for key in ["seven77".to_owned(), "x".repeat(256), "with a space in it".to_owned()] {
        open(ada, &key, "x").await.problem(422, "validation_failed");
    }
    open(ada, "eight888", "shortest").await.expect(201);
    open(ada, &"y".repeat(255), "longest").await.expect(201);
}

async fn lengths_are_counted_in_characters(ada: &Client) {
    let body = json!({ "subject": "ü".repeat(200), "description": "語".repeat(20_000) });
    let made = ada.post_once(CASES, "long-key-1", &body).await.expect(201);
    assert_eq!(made["subject"], body["subject"]);
    assert_eq!(made["description"], body["description"]);
    open(ada, "long-key-2", &"ü".repeat(201)).await.problem(422, "validation_failed");
}
