//! Conditional reads: a client that has the current version of a resource receives no body.

use assurance_tests::artifacts::id_of;
use assurance_tests::client::send;
use assurance_tests::{Answer, Builder, Client, both_backends, until};
use reqwest::Method;
use serde_json::json;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const CONVERSATIONS: &str = "/v1/workspaces/{ws}/assistant/conversations";
const CONTEXT: &str = "/v1/workspaces/{ws}/context";
const REPOSITORIES: &str = "/v1/workspaces/{ws}/repositories";

async fn read(client: &Client, method: Method, path: &str, known: &str) -> Answer {
    send(client.request(method, path).header("if-none-match", known)).await
}

/// Reads a resource twice, the second time with its `ETag` in `If-None-Match`. Returns the `ETag`.
async fn check_unchanged(client: &Client, path: &str) -> String {
    let first = client.get(path).await;
    first.expect(200);
    let tag = first.header("etag").unwrap_or_else(|| panic!("{path} has no ETag")).to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        for method in [Method::GET, Method::HEAD] {
            let again = read(client, method, path, &known).await;
            assert_eq!((again.status, again.text().as_str()), (304, ""), "{path} {known}");
            assert_eq!(again.header("etag"), Some(tag.as_str()), "{path}");
            assert_eq!(again.header("content-type"), None, "{path}");
            assert_eq!(again.header("cache-control"), Some("no-store"), "{path}");
            assert!(again.header("x-request-id").is_some(), "{path}");
        }
    }
    for other in ["\"0\"", "", "nonsense"] {
        read(client, Method::GET, path, other).await.expect(200);
    }
    tag
}

both_backends! {
    async fn a_version_that_the_client_has_is_not_sent_again(backend) {
        let (_host, ada) = Builder::new(backend).areas(&["catalog", "support"]).start_with_owner().await;
        let repository = ada.repository("shop").await;
        let case = id_of(&ada.open_case("a-case-key").await.expect(201));
        check_unchanged(&ada, &format!("{CASES}/{case}")).await;
        let path = format!("{REPOSITORIES}/{repository}");
        let before = check_unchanged(&ada, &path).await;
        let change = ada.request(Method::PATCH, &path).header("if-none-match", &before);
        send(change.json(&json!({ "default_branch": "trunk" }))).await.expect(200);
        let changed = read(&ada, Method::GET, &path, &before).await;
        assert_eq!(changed.expect(200)["default_branch"], "trunk");
        assert_ne!(changed.header("etag"), Some(before.as_str()));
        // A list has no version, and a refusal does not depend on `If-None-Match`.
        read(&ada, Method::GET, REPOSITORIES, "*").await.expect(200);
        read(&ada, Method::GET, &format!("{CASES}/{repository}"), "*").await.problem(404, "not_found");
    }

    async fn what_is_shown_with_a_resource_changes_its_tag_as_its_version_does(backend) {
        let (_host, ada) = Builder::new(backend).areas(&["assistant"]).start_with_owner().await;
        let body = json!({ "message": "How many findings are open?" });
        let conversation = id_of(&ada.post(CONVERSATIONS, &body).await.expect(201));
        let path = format!("{CONVERSATIONS}/{conversation}");
        let mut tag = String::new();
        // The run ends in a job, which does not change the conversation's version.
        until("the run has ended", async || {
            let answer = read(&ada, Method::GET, &path, &tag).await;
            if answer.status != 200 {
                return Err(answer.text());
            }
            tag = answer.header("etag").expect("an ETag").to_owned();
            let ended = answer.json()["runs"][0]["completed_at"].is_string();
            if ended { Ok(()) } else { Err(answer.text()) }
        })
        .await;
        // `If-Match` accepts the `ETag` of a read, also as a compressing proxy weakens it.
        let change = ada.request(Method::PATCH, &path).header("if-match", format!("W/{tag}"));
        send(change.json(&json!({ "title": "Findings" }))).await.expect(200);
        let stale = ada.request(Method::PATCH, &path).header("if-match", &tag);
        send(stale.json(&json!({ "title": "Again" }))).await.problem(409, "version_conflict");
    }

    async fn the_context_changes_its_tag_with_its_content(backend) {
        let (_host, ada) = Builder::new(backend).areas(&["catalog", "context"]).start_with_owner().await;
        let mut before = String::new();
        for count in 1..=2 {
            ada.repository(&format!("shop-{count}")).await;
            until("the changed context is stored", async || {
                let answer = read(&ada, Method::GET, CONTEXT, &before).await;
                if answer.status != 200 || answer.json()["repository_count"] != count {
                    return false;
                }
                let kept = format!("{CONTEXT}/snapshots/{}", id_of(&answer.json()));
                ada.get(&kept).await.status == 200
            })
            .await;
            let tag = check_unchanged(&ada, CONTEXT).await;
            assert_ne!(tag, before);
            before = tag;
        }
    }
}
