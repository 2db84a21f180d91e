//! The example area: copied into the folder of a running host, its routes, validation and
//! documentation become live.

use std::time::Duration;

use assurance_tests::receiver::Receiver;
use assurance_tests::{Builder, both_backends, place, until};
use serde_json::{Value, json};

const NOTES: &str = "/v1/workspaces/{ws}/notes";

both_backends! {
    async fn an_area_dropped_into_the_folder_is_live(backend) {
        let builder = Builder::new(backend)
            .areas(&["webhooks"])
            .set("areas.watch", true)
            .set("egress.allow_loopback", true);
        let (mut host, ada) = builder.start_with_owner().await;
        ada.get(NOTES).await.problem(404, "not_found");
        let component = place::areas().join("examples/notes.wasm");
        std::fs::copy(component, host.areas().join("notes.wasm")).expect("built");
        until("the area is live", async || ada.get(NOTES).await.status != 404).await;

        let receiver = Receiver::content().await;
        let body = json!({ "events": ["note.created"], "url": receiver.base });
        ada.post("/v1/workspaces/{ws}/webhooks", &body).await.expect(201);
        let note = ada.post(NOTES, &json!({ "text": "remember" })).await.expect(201);
        assert_eq!(note["text"], "remember");
        ada.post(NOTES, &json!({ "text": "" })).await.problem(422, "validation_failed");
        ada.post(NOTES, &json!({ "text": "x", "y": 1 })).await.problem(422, "validation_failed");
        let bob = host.member("bob", &ada.workspace, "member");
        bob.post(NOTES, &json!({ "text": "his" })).await.expect(201);

        let author = note["author_id"].as_str().expect("an id");
        let page = ada.get(&format!("{NOTES}?author_id={author}")).await.expect(200);
        assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(page["items"][0]["id"], note["id"]);
        let document = host.nobody().get("/openapi.json").await.expect(200);
        assert!(document["paths"]["/v1/workspaces/{workspace_id}/notes"]["post"].is_object());

        let received = receiver.wait_for(1, Duration::from_secs(15)).await;
        let body: Value = serde_json::from_slice(&received[0].body).expect("JSON");
        assert_eq!(body["data"]["note_id"], note["id"]);
    }
}
