//! Tests that the response of every operation of the contract has exactly the
//! contract's fields.

use assurance_tests::contract::Contract;
use assurance_tests::{Backend, Builder, both_backends};
use serde_json::json;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

both_backends! {
    async fn answers_have_exactly_the_contracts_fields(backend) {
        let contract = Contract::read();
        let builder = Builder::new(backend).areas(&["support", "evidence", "webhooks"]);
        let (host, ada) = builder.start_with_owner().await;
        contract.check(1, &ada.get("/v1/auth/session").await.expect(200));
        contract.check(2, &ada.get("/v1/auth/security").await.expect(200));

        let (_, submission) = crate::evidence::submit_one(&host, &ada).await;
        contract.check(3, &submission.expect(201));
        let schema = ada.get("/v1/workspaces/{ws}/evidence-envelopes/schema").await.expect(200);
        contract.check(4, &schema);
        assert_eq!(schema["accepted_versions"], json!(["evidence-envelope-v1"]));
        assert_eq!(schema["signature_algorithms"], json!(["ed25519"]));
        assert_eq!(schema["max_bytes"], 1_048_576);

        let body = json!({ "subject": "Login fails", "description": "Since this morning." });
        contract.check(10, &ada.post_once(CASES, "contract-1", &body).await.expect(201));
        let cases = ada.get(CASES).await.expect(200);
        contract.check(11, &cases);
        assert_eq!(cases.as_array().map(Vec::len), Some(1));

        let webhook = ada.subscribe("https://example.com/hook").await.expect(201);
        contract.check(13, &webhook);
        assert_eq!(webhook["kind"], "webhook");
        assert!(webhook["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
    }
}

#[tokio::test]
async fn operations_whose_area_is_absent_are_not_there() {
    let (_host, ada) = Builder::new(Backend::Sqlite).start_with_owner().await;
    ada.get(CASES).await.problem(404, "not_found");
}
