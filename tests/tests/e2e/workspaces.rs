//! Workspaces, which the host itself makes.

use assurance_tests::{Builder, Client, both_backends};
use serde_json::json;

const WORKSPACES: &str = "/v1/workspaces";

async fn names(client: &Client) -> Vec<String> {
    let list = client.get(WORKSPACES).await.expect(200);
    let items = list["items"].as_array().expect("a list").clone();
    items.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

both_backends! {
    async fn a_retry_makes_no_second_workspace(backend) {
        let (_host, ada) = Builder::new(backend).start_with_owner().await;
        let body = json!({ "name": "Payments" });
        let made = ada.post_once(WORKSPACES, "once-and-again", &body).await;
        assert_eq!(made.header("idempotent-replayed"), None);
        let made = made.expect(201);
        assert_eq!((&made["slug"], &made["role"]), (&json!("payments"), &json!("owner")));

        let again = ada.post_once(WORKSPACES, "once-and-again", &body).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.expect(201), made);
        assert_eq!(names(&ada).await, ["first", "Payments"]);

        let other = json!({ "name": "Shipping" });
        let reused = ada.post_once(WORKSPACES, "once-and-again", &other).await;
        reused.problem(422, "idempotency_key_reused");
        ada.post_once(WORKSPACES, "short", &other).await.problem(422, "validation_failed");
        ada.post(WORKSPACES, &body).await.problem(409, "conflict");
        assert_eq!(names(&ada).await, ["first", "Payments"]);
    }
}
