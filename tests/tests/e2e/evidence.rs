//! Signed evidence (operations 3 and 4), created with the command line as a producer does.

use assurance_tests::envelope;
use assurance_tests::{Answer, Builder, Client, TestHost, both_backends};
use futures::future::join_all;
use serde_json::{Value, json};

const ENVELOPES: &str = "/v1/workspaces/{ws}/evidence-envelopes";
const PRODUCERS: &str = "/v1/workspaces/{ws}/evidence-producers";

async fn submit(client: &Client, envelope: &Value) -> Answer {
    let key = envelope["idempotency_key"].as_str().expect("a key");
    client.post_once(ENVELOPES, key, envelope).await
}

/// Submits a valid envelope. Returns it with the response.
pub(crate) async fn submit_one(host: &TestHost, client: &Client) -> (Value, Answer) {
    let key = host.create_producer(client, "key-1").await;
    let envelope = envelope::unsigned(&client.workspace, "submission-1");
    let envelope = host.sign(&key, "key-1", &envelope);
    let answer = submit(client, &envelope).await;
    (envelope, answer)
}

both_backends! {
    async fn sixty_four_at_once_make_one_receipt(backend) {
        // Only few long calls run at a time, and these calls would be long in a build without
        // optimization on a busy machine.
        let host = Builder::new(backend).areas(&["evidence"]).set("runtime.first_slice_ms", 1_000);
        let (host, ada) = host.start_with_owner().await;
        let key = host.create_producer(&ada, "key-1").await;
        let unsigned = envelope::unsigned(&ada.workspace, "crowded-1");
        let envelope = host.sign(&key, "key-1", &unsigned);
        let answers = join_all((0..64).map(|_| submit(&ada, &envelope))).await;
        let answers: Vec<Value> = answers.iter().map(|answer| answer.expect(201)).collect();
        let fresh = answers.iter().filter(|answer| answer["replayed"] == false);
        assert_eq!(fresh.count(), 1);
        assert!(answers.iter().all(|answer| answer["receipt"] == answers[0]["receipt"]));
        let listed = ada.get(ENVELOPES).await.expect(200);
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
        let log = host.log();
        assert!(!log.contains("WARN"), "those who lose a race run again, in silence");
        assert!(!log.contains("sqlx::postgres::notice"), "what a database remarks stays there");
    }

    async fn envelopes_are_accepted_and_refused(backend) {
        let (mut host, ada) = Builder::new(backend).areas(&["evidence"]).start_with_owner().await;
        let new = async |name: &str| ada.new_workspace(name).await;
        a_signed_envelope_is_accepted_and_replayed(&host, &new("signed").await).await;
        one_changed_byte_makes_the_signature_invalid(&host, &new("tampered").await).await;
        a_key_with_another_envelope_is_refused(&host, &new("reused").await).await;
        the_same_envelope_under_another_key_is_replayed(&host, &new("copied").await).await;
        times_are_held_to(&host, &new("timed").await).await;
        bad_records_are_rejected_one_by_one(&host, &new("mixed").await).await;
        a_revoked_key_verifies_nothing_new_but_retries_are_answered(
            &host,
            &new("revoked").await,
        )
        .await;
        roles_and_the_feature_flag_are_held_to(&mut host, &new("roles").await).await;
    }
}

async fn a_signed_envelope_is_accepted_and_replayed(host: &TestHost, ada: &Client) {
    let (envelope, answer) = submit_one(host, ada).await;
    let first = answer.expect(201);
    assert_eq!(first["replayed"], false);
    assert_eq!(first["receipt"]["status"], "accepted");
    assert_eq!(first["receipt"]["accepted_count"], 1);
    assert_eq!(first["receipt"]["schema_version"], "evidence-envelope-v1");
    assert_eq!(first["receipt"]["signature_key_id"], "key-1");
    let again = submit(ada, &envelope).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let again = again.expect(201);
    assert_eq!(again["replayed"], true);
    assert_eq!(again["receipt"], first["receipt"]);
}

async fn one_changed_byte_makes_the_signature_invalid(host: &TestHost, ada: &Client) {
    let key = host.create_producer(ada, "key-1").await;
    let unsigned = envelope::unsigned(&ada.workspace, "tampered-1");
    let signed = host.sign(&key, "key-1", &unsigned);
    let mut tampered = signed.clone();
    tampered["records"][0]["summary"] = json!("a build rao");
    submit(ada, &tampered).await.problem(422, "signature_invalid");
    let stranger = host.generate_key();
    let foreign = host.sign(&stranger, "key-1", &unsigned);
    submit(ada, &foreign).await.problem(422, "signature_invalid");
    // The hint may be wrong; the key is found anyway.
    let hinted = host.sign(&key, "no-such-key", &unsigned);
    submit(ada, &hinted).await.expect(201);
}

async fn a_key_with_another_envelope_is_refused(host: &TestHost, ada: &Client) {
    let (envelope, answer) = submit_one(host, ada).await;
    answer.expect(201);
    let mut other = envelope.clone();
    other["records"][0]["summary"] = json!("something else");
    submit(ada, &other).await.problem(422, "idempotency_key_reused");
    ada.post_once(ENVELOPES, "another-key", &envelope).await.problem(422, "validation_failed");
}

async fn the_same_envelope_under_another_key_is_replayed(host: &TestHost, ada: &Client) {
    let key = host.create_producer(ada, "key-1").await;
    let mut unsigned = envelope::unsigned(&ada.workspace, "first-key");
    let first = submit(ada, &host.sign(&key, "key-1", &unsigned)).await.expect(201);
    unsigned["idempotency_key"] = json!("second-key");
    let second = submit(ada, &host.sign(&key, "key-1", &unsigned)).await.expect(201);
    assert_eq!(second["replayed"], true);
    assert_eq!(second["receipt"], first["receipt"]);
    unsigned["idempotency_key"] = json!("third-key");
    unsigned["authority"] = json!("somebody else");
    let third = submit(ada, &host.sign(&key, "key-1", &unsigned)).await;
    third.problem(409, "envelope_conflict");
}

async fn times_are_held_to(host: &TestHost, ada: &Client) {
    let key = host.create_producer(ada, "key-1").await;
    let now = envelope::now();
    let minute = 60_000;
    let cases = [
        (-30 * minute, -10 * minute, "envelope_expired"),
        (10 * minute, 20 * minute, "envelope_not_yet_valid"),
        (0, 25 * 60 * minute, "envelope_lifetime_invalid"),
        (2 * minute, minute, "envelope_lifetime_invalid"),
    ];
    for (index, (issued, expires, code)) in cases.into_iter().enumerate() {
        let mut unsigned = envelope::unsigned(&ada.workspace, &format!("timed-in-{index}"));
        unsigned["issued_at"] = json!(now.plus_ms(issued));
        unsigned["expires_at"] = json!(now.plus_ms(expires));
        let answer = submit(ada, &host.sign(&key, "key-1", &unsigned)).await;
        assert_eq!(answer.status, 422, "{code}: {}", answer.text());
        assert_eq!(answer.json()["code"], code);
    }
    // A clock difference of five minutes is allowed.
    let mut unsigned = envelope::unsigned(&ada.workspace, "timed-ok");
    unsigned["issued_at"] = json!(now.plus_ms(4 * minute));
    submit(ada, &host.sign(&key, "key-1", &unsigned)).await.expect(201);
}

async fn bad_records_are_rejected_one_by_one(host: &TestHost, ada: &Client) {
    let key = host.create_producer(ada, "key-1").await;
    let mut unsigned = envelope::unsigned(&ada.workspace, "mixed-01");
    let mut bad = envelope::record("too sure");
    bad["confidence"] = json!(1.5);
    unsigned["records"] = json!([envelope::record("good"), bad, envelope::record("good too")]);
    let receipt = submit(ada, &host.sign(&key, "key-1", &unsigned)).await.expect(201);
    let receipt = &receipt["receipt"];
    assert_eq!(receipt["status"], "partially_accepted");
    assert_eq!(receipt["record_count"], 3);
    assert_eq!(receipt["accepted_count"], 2);
    assert_eq!(receipt["rejected_count"], 1);
    assert_eq!(receipt["validation_errors"][0]["index"], 1);
    assert_eq!(receipt["validation_errors"][0]["pointer"], "/records/1/confidence");
}

async fn a_revoked_key_verifies_nothing_new_but_retries_are_answered(
    host: &TestHost,
    ada: &Client,
) {
    let key = host.create_producer(ada, "key-1").await;
    let first = host.sign(&key, "key-1", &envelope::unsigned(&ada.workspace, "before-1"));
    let receipt = submit(ada, &first).await.expect(201);
    let producers = ada.get(PRODUCERS).await.expect(200);
    let id = producers["items"][0]["id"].as_str().expect("an id");
    ada.post(&format!("{PRODUCERS}/{id}/revoke"), &json!({})).await.expect(200);
    let after = host.sign(&key, "key-1", &envelope::unsigned(&ada.workspace, "after-01"));
    submit(ada, &after).await.problem(422, "signature_invalid");
    let again = submit(ada, &first).await.expect(201);
    assert_eq!(again["receipt"], receipt["receipt"]);
}

async fn roles_and_the_feature_flag_are_held_to(host: &mut TestHost, ada: &Client) {
    let (envelope, answer) = submit_one(host, ada).await;
    answer.expect(201);
    let viewer = host.member("vera", &ada.workspace, "viewer");
    submit(&viewer, &envelope).await.problem(403, "permission_denied");
    viewer.get(&format!("{ENVELOPES}/schema")).await.expect(200);
    let flag =
        ["workspace", "flag", "set", "--workspace", &ada.workspace, "evidence_envelopes", "off"];
    host.cli(&flag);
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    submit(ada, &envelope).await.problem(403, "feature_disabled");
    ada.get(&format!("{ENVELOPES}/schema")).await.expect(200);
}
