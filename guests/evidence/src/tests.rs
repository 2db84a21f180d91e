//! Tests of submissions through a fake host.

use area_sdk::Uuid;
use area_sdk::testing::{FakeHost, Request, START, SuccessResponse, WORKSPACE};
use area_sdk::{Problem, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::canonical::{jcs, pae};

fn signing_key() -> SigningKey {
    SigningKey::from_bytes(&[3; 32])
}

/// Creates a host with one producer and its key. Returns the key's document id.
fn host() -> (FakeHost, Value) {
    let host = FakeHost::new(crate::area());
    let producer = Request::to("create_evidence_producer").json(json!({ "name": "scanner" }));
    let producer = host.call(producer).expect("a producer").body;
    let key = Request::to("create_evidence_producer_key")
        .with("producer_id", producer["id"].clone())
        .json(
            json!({ "public_key": STANDARD.encode(signing_key().verifying_key()), "key_id": "k1" }),
        );
    let key = host.call(key).expect("a key").body;
    (host, key)
}

fn record(id: u128) -> Value {
    json!({
        "confidence": 0.9, "content_sha256": "a".repeat(64), "evidence_id": Uuid::from_u128(id),
        "kind": "finding", "observed_at": START, "provider": "scanner", "source_ref": "repo@1",
        "source_type": "code", "subject_key": "repo", "summary": "x"
    })
}

fn unsigned(key: &str) -> Value {
    json!({
        "authority": "build", "collection_method": "push", "envelope_id": Uuid::from_u128(500),
        "issued_at": START, "expires_at": START.plus_seconds(3600), "idempotency_key": key,
        "records": [record(1), record(2)], "workspace_id": WORKSPACE,
        "source": { "external_id": "r1", "kind": "code", "observed_at": START,
                    "provider": "git", "revision": "abc" }
    })
}

fn sign(mut envelope: Value) -> Value {
    let signature = signing_key().sign(&pae(&jcs(&envelope)));
    let value = URL_SAFE_NO_PAD.encode(signature.to_bytes());
    envelope["signature"] = json!({ "key_id": "k1", "value": value });
    envelope
}

fn submit(host: &FakeHost, envelope: &Value) -> Result<SuccessResponse, Problem> {
    let key = envelope["idempotency_key"].as_str().expect("a key");
    host.call(Request::to("submit_evidence_envelope").key(key).json(envelope.clone()))
}

fn code(result: Result<SuccessResponse, Problem>) -> String {
    let problem = result.expect_err("a refusal");
    problem.code.unwrap_or_else(|| problem.violations[0].pointer.clone())
}

#[test]
fn an_envelope_is_accepted_once_and_its_receipt_never_changes() {
    let (host, _) = host();
    let envelope = sign(unsigned("key-00001"));
    let first = submit(&host, &envelope).expect("a receipt");
    assert_eq!(
        (first.status, first.replayed, &first.body["replayed"]),
        (201, false, &json!(false))
    );
    let receipt = &first.body["receipt"];
    assert_eq!(receipt.as_object().map(serde_json::Map::len), Some(28));
    assert_eq!(receipt["status"], "accepted");
    assert_eq!(receipt["signature_key_id"], "k1");
    assert_eq!(receipt["mcp_ingestion_id"], Value::Null);
    assert_eq!(host.documents("records").len(), 2);
    assert_eq!(host.documents("ingestion_runs").len(), 1);
    assert_eq!(host.events()[0].name, "evidence_envelope.accepted");
    assert_eq!(host.events()[0].data["kinds"], json!(["finding"]));

    // A repeated submission, also by another user, returns the same receipt after the expiry.
    host.advance(1_000_000);
    let keys = host.documents("keys").len();
    assert_eq!(keys, 1);
    let again = submit(&host, &envelope).expect("the receipt");
    assert!(again.replayed && again.body["replayed"] == json!(true));
    assert_eq!(&again.body["receipt"], receipt);
    let request = Request::to("submit_evidence_envelope").key("key-00001").json(envelope);
    let other = host.call(request.by(Uuid::from_u128(42))).expect("the receipt");
    assert_eq!(&other.body["receipt"], receipt);
    assert_eq!(host.documents("receipts").len(), 1);
}

#[test]
fn what_is_said_twice_must_be_said_alike() {
    let (host, _) = host();
    let mut elsewhere = unsigned("key-00001");
    elsewhere["workspace_id"] = json!(Uuid::from_u128(1));
    assert_eq!(code(submit(&host, &sign(elsewhere))), "/workspace_id");
    let request = Request::to("submit_evidence_envelope").key("key-00002");
    let request = request.json(sign(unsigned("key-00001")));
    assert_eq!(code(host.call(request)), "/idempotency_key");
}

#[test]
fn keys_and_ids_are_used_once() {
    let (host, _) = host();
    submit(&host, &sign(unsigned("key-00001"))).expect("a receipt");

    let mut changed = unsigned("key-00001");
    changed["authority"] = json!("other");
    assert_eq!(code(submit(&host, &sign(changed.clone()))), "idempotency_key_reused");
    changed["idempotency_key"] = json!("key-00002");
    assert_eq!(code(submit(&host, &sign(changed.clone()))), "envelope_conflict");
    changed["envelope_id"] = json!(Uuid::from_u128(501));
    changed["idempotency_key"] = json!("key-00001");
    assert_eq!(code(submit(&host, &sign(changed))), "idempotency_key_reused");

    let replayed = submit(&host, &sign(unsigned("key-00002"))).expect("the first receipt");
    assert!(replayed.replayed);
    assert_eq!(replayed.body["receipt"]["idempotency_key"], "key-00001");
}

#[test]
fn a_second_key_of_an_envelope_is_kept_like_the_first() {
    let (host, key) = host();
    let first = submit(&host, &sign(unsigned("key-00001"))).expect("a receipt").body;
    let again = sign(unsigned("key-00002"));
    submit(&host, &again).expect("the first receipt");

    let mut other = unsigned("key-00002");
    other["envelope_id"] = json!(Uuid::from_u128(501));
    assert_eq!(code(submit(&host, &sign(other))), "idempotency_key_reused");

    let revoke = Request::to("revoke_evidence_producer_key").with("id", key["id"].clone());
    host.call(revoke).expect("revoked");
    let retried = submit(&host, &again).expect("the first receipt");
    assert!(retried.replayed);
    assert_eq!(retried.body["receipt"], first["receipt"]);
    assert_eq!(host.documents("resubmissions").len(), 1);
}

#[test]
fn one_key_of_a_user_is_of_one_envelope_also_after_a_replay() {
    let (host, _) = host();
    let by = |user: u128, envelope: &Value| {
        let request = Request::to("submit_evidence_envelope").key("key-00001");
        host.call(request.json(envelope.clone()).by(Uuid::from_u128(user)))
    };
    let first = sign(unsigned("key-00001"));
    let mut second = unsigned("key-00001");
    second["envelope_id"] = json!(Uuid::from_u128(501));
    let second = sign(second);
    assert!(!by(41, &first).expect("a receipt").replayed);
    for _ in 0..2 {
        assert!(by(42, &first).expect("the receipt").replayed);
        assert_eq!(code(by(42, &second)), "idempotency_key_reused");
    }
    assert!(!by(43, &second).expect("another receipt").replayed);
    assert_eq!(code(by(41, &second)), "idempotency_key_reused");
    assert_eq!(code(by(43, &first)), "idempotency_key_reused");
}

#[test]
fn a_key_that_could_verify_nothing_is_refused() {
    let (host, key) = host();
    let request = Request::to("create_evidence_producer_key")
        .with("producer_id", key["producer_id"].clone())
        .json(json!({ "public_key": STANDARD.encode([0xff; 32]) }));
    assert_eq!(code(host.call(request)), "/public_key");
}

#[test]
fn only_active_keys_verify_and_the_hint_does_not_matter() {
    let (host, key) = host();
    let mut envelope = sign(unsigned("key-00001"));
    envelope["records"][0]["summary"] = json!("y");
    assert_eq!(code(submit(&host, &envelope)), "signature_invalid");
    for value in ["AAAA", &STANDARD.encode([0; 64])] {
        envelope["signature"]["value"] = json!(value);
        assert_eq!(code(submit(&host, &envelope)), "signature_invalid");
    }

    let mut hinted = sign(unsigned("key-00001"));
    hinted["signature"]["key_id"] = json!("somebody else's");
    let receipt = submit(&host, &hinted).expect("a receipt").body;
    assert_eq!(receipt["receipt"]["signature_key_id"], "k1");

    let revoke = Request::to("revoke_evidence_producer_key").with("id", key["id"].clone());
    assert_eq!(host.call(revoke).expect("revoked").body["state"], "revoked");
    let mut new = unsigned("key-00003");
    new["envelope_id"] = json!(Uuid::from_u128(502));
    assert_eq!(code(submit(&host, &sign(new))), "signature_invalid");
}

#[test]
fn revoking_a_producer_revokes_its_keys() {
    let (host, key) = host();
    let revoke =
        Request::to("revoke_evidence_producer").with("producer_id", key["producer_id"].clone());
    host.call(revoke).expect("revoked");
    assert_eq!(code(submit(&host, &sign(unsigned("key-00001")))), "signature_invalid");
    let request = Request::to("create_evidence_producer_key")
        .with("producer_id", key["producer_id"].clone())
        .json(json!({ "public_key": STANDARD.encode([1; 32]) }));
    assert_eq!(code(host.call(request)), "producer_revoked");
}

#[test]
fn a_time_outside_the_years_0_to_9999_is_pointed_at() {
    let (host, _) = host();
    for pointer in ["/issued_at", "/source/observed_at", "/records/1/observed_at"] {
        let mut envelope = unsigned("key-00001");
        *envelope.pointer_mut(pointer).expect("a time") = json!("9999-12-31T23:59:59-01:00");
        let problem = submit(&host, &sign(envelope)).expect_err("a refusal");
        let [violation] = &problem.violations[..] else { panic!("one violation") };
        assert_eq!(violation.pointer, pointer);
        assert!(violation.message.ends_with("UTC of 0 to 9999"), "{}", violation.message);
    }
}

#[test]
fn time_is_judged_with_five_minutes_of_tolerance() {
    let (host, _) = host();
    let at = |issued: i64, expires: i64| {
        let mut envelope = unsigned("key-00001");
        let moment = |seconds: i64| json!(Timestamp(START.0).plus_seconds(seconds));
        envelope["issued_at"] = moment(issued);
        envelope["expires_at"] = moment(expires);
        submit(&host, &sign(envelope))
    };
    assert_eq!(code(at(301, 600)), "envelope_not_yet_valid");
    assert_eq!(code(at(-1000, -301)), "envelope_expired");
    assert_eq!(code(at(0, 86_401)), "envelope_lifetime_invalid");
    assert_eq!(code(at(10, 10)), "envelope_lifetime_invalid");
    assert!(at(-86_700, -300).is_ok());
}

#[test]
fn bad_records_are_rejected_one_by_one() {
    let (host, _) = host();
    let mut envelope = unsigned("key-00001");
    envelope["collection_method"] = json!("mcp");
    envelope["records"][1]["confidence"] = json!(2);
    let receipt = submit(&host, &sign(envelope)).expect("a receipt").body["receipt"].clone();
    assert_eq!(receipt["status"], "partially_accepted");
    assert_eq!((&receipt["accepted_count"], &receipt["rejected_count"]), (&json!(1), &json!(1)));
    assert_eq!(receipt["validation_errors"][0]["pointer"], "/records/1/confidence");
    assert_eq!(receipt["error_codes"], json!(["confidence_out_of_range"]));
    assert!(receipt["mcp_ingestion_id"].is_string());

    let mut rejected = unsigned("key-00002");
    rejected["envelope_id"] = json!(Uuid::from_u128(502));
    rejected["records"] = json!([{ "confidence": -1, "content_sha256": "", "evidence_id": WORKSPACE,
        "kind": "", "observed_at": START, "provider": "", "source_ref": "", "source_type": "",
        "subject_key": "", "summary": "" }]);
    let receipt = submit(&host, &sign(rejected)).expect("a receipt").body["receipt"].clone();
    assert_eq!(receipt["status"], "rejected");
    assert_eq!(host.events()[1].name, "evidence_envelope.rejected");
}

#[test]
fn a_subject_too_long_for_its_index_is_rejected_alone() {
    let (host, _) = host();
    let mut envelope = unsigned("key-00001");
    envelope["records"][0]["subject_key"] = json!("\u{20ac}".repeat(500));
    envelope["records"][1]["subject_key"] = json!("\u{1f600}".repeat(400));
    let receipt = submit(&host, &sign(envelope)).expect("a receipt").body["receipt"].clone();
    assert_eq!(receipt["status"], "partially_accepted");
    assert_eq!(receipt["validation_errors"][0]["pointer"], "/records/1/subject_key");
    assert_eq!(receipt["error_codes"], json!(["length_out_of_range"]));
}

#[test]
fn numbers_count_as_the_client_wrote_them() {
    let (host, _) = host();
    let signed = sign(unsigned("key-00001"));
    let text = signed.to_string().replace("0.9,", "9.0e-1 ,");
    assert!(text.contains("9.0e-1"));
    let request = Request::to("submit_evidence_envelope").key("key-00001").json_text(text);
    assert_eq!(host.call(request).expect("a receipt").body["receipt"]["status"], "accepted");
}

#[test]
fn the_schema_is_described() {
    let host = FakeHost::new(crate::area());
    let schema = host.call(Request::to("get_evidence_envelope_schema")).expect("a schema").body;
    assert_eq!(schema.as_object().map(serde_json::Map::len), Some(10));
    assert_eq!(schema["max_bytes"], 1_048_576);
    assert_eq!(schema["signature_algorithms"], json!(["ed25519"]));
}
