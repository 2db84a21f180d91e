//! Workspaces, which the host itself manages.

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

    async fn a_person_creates_so_many_workspaces_and_no_more(backend) {
        let builder = Builder::new(backend).set("limits.max_workspaces_per_person", 3);
        let (mut host, ada) = builder.start_with_owner().await;
        let bodies: Vec<_> = (0..8).map(|n| json!({ "name": format!("W{n}") })).collect();
        let made = bodies.iter().map(|body| ada.post(WORKSPACES, body));
        let made = futures::future::join_all(made).await;
        let refused: Vec<_> = made.iter().filter(|answer| answer.status != 201).collect();
        assert_eq!(refused.len(), 6, "one is owned already");
        refused[0].problem_about(409, "conflict", "limits.max_workspaces_per_person");
        // Only workspaces that the user owns count towards the limit, and each
        // user has a separate limit.
        let bea = host.member("bea", &ada.workspace, "member");
        bea.post(WORKSPACES, &json!({ "name": "Bea's" })).await.expect(201);
    }

    async fn a_workspace_can_have_any_name(backend) {
        let (_host, ada) = Builder::new(backend).start_with_owner().await;
        let slug = |made: serde_json::Value| made["slug"].as_str().expect("a slug").to_owned();
        let first = slug(ada.post(WORKSPACES, &json!({ "name": "日本" })).await.expect(201));
        let second = slug(ada.post(WORKSPACES, &json!({ "name": "日本" })).await.expect(201));
        assert!(first.starts_with("workspace-") && first != second, "{first} {second}");
    }

    async fn a_cursor_is_worth_nothing_altered_or_to_another_person(backend) {
        let (mut host, ada) = Builder::new(backend).start_with_owner().await;
        ada.post(WORKSPACES, &json!({ "name": "Payments" })).await.expect(201);
        let page = |query: String| format!("{WORKSPACES}?{query}");
        let first = ada.get(&page("limit=1".to_owned())).await.expect(200);
        let members: Vec<_> = first.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["items", "next_cursor"]);
        let cursor = first["next_cursor"].as_str().expect("there are more").to_owned();

        let rest = ada.get(&page(format!("limit=1&cursor={cursor}"))).await.expect(200);
        assert_eq!((&rest["items"][0]["name"], &rest["next_cursor"]), (&json!("Payments"), &json!(null)));

        let vera = host.member("vera", &ada.workspace, "viewer");
        let cut = &cursor[..cursor.len() - 1];
        for (client, cursor) in [(&vera, cursor.as_str()), (&ada, cut), (&ada, "first")] {
            let refused = client.get(&page(format!("cursor={cursor}"))).await;
            refused.problem_about(422, "validation_failed", "cursor: ");
        }
    }
}
