//! Members of a workspace: listed, removed, and leaving.

use std::time::Duration;

use assurance_tests::{Backend, Builder, Client, TestHost, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

const MEMBERS: &str = "/v1/workspaces/{ws}/members";
const CASES: &str = "/v1/workspaces/{ws}/support/cases";
/// Time until a cached session expires (`session.cache_ms`), with a margin for
/// busy machines.
const PATIENCE: Duration = Duration::from_secs(10);

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["support"]).start_with_owner().await
}

/// Returns the path of the member with this name's e-mail address.
async fn member(client: &Client, name: &str) -> String {
    let list = client.get(MEMBERS).await.expect(200);
    let email = format!("{name}@example.org");
    let items = list["items"].as_array().expect("a list");
    let found = items.iter().find(|item| item["email"] == email.as_str());
    let found = found.unwrap_or_else(|| panic!("no {name} in {list:#}"));
    format!("{MEMBERS}/{}", found["user_id"].as_str().expect("an id"))
}

fn emails(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|item| item["email"].as_str().expect("an address")).collect()
}

both_backends! {
    async fn every_member_reads_the_list_page_by_page_and_nobody_else(backend) {
        let (mut host, ada) = host(backend).await;
        let elsewhere = host.elsewhere();
        let vera = host.member("vera", &ada.workspace, "viewer");
        host.member("bea", &ada.workspace, "admin");
        let all = vera.get(MEMBERS).await.expect(200);
        assert_eq!(emails(&all), ["ada@example.org", "bea@example.org", "vera@example.org"]);
        let first = &all["items"][0];
        let members: Vec<_> = first.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["display_name", "email", "joined_at", "role", "user_id"]);
        assert_eq!((&first["role"], &first["display_name"]), (&json!("owner"), &json!("ada")));

        let page = vera.get(&format!("{MEMBERS}?limit=2")).await.expect(200);
        assert_eq!(emails(&page), emails(&all)[..2]);
        let cursor = page["next_cursor"].as_str().expect("there are more");
        let rest = vera.get(&format!("{MEMBERS}?limit=2&cursor={cursor}")).await.expect(200);
        assert_eq!((emails(&rest), &rest["next_cursor"]), (emails(&all)[2..].to_vec(), &Value::Null));
        for query in [format!("cursor={}", &cursor[1..]), "limit=0".to_owned(), "x=1".to_owned()] {
            let refused = vera.get(&format!("{MEMBERS}?{query}")).await;
            refused.problem(422, "validation_failed");
        }
        vera.in_workspace(&elsewhere).get(MEMBERS).await.problem(404, "not_found");
        vera.in_workspace("first").get(MEMBERS).await.problem(422, "validation_failed");
        let nobody = host.nobody().in_workspace(&ada.workspace);
        nobody.get(MEMBERS).await.problem(401, "unauthenticated");
        let put = assurance_tests::client::send(ada.request(Method::PUT, MEMBERS)).await;
        put.problem(405, "method_not_allowed");
    }

    async fn admins_remove_those_who_are_not_above_them(backend) {
        let (mut host, ada) = host(backend).await;
        let vera = host.member("vera", &ada.workspace, "viewer");
        let mia = host.member("mia", &ada.workspace, "member");
        let abe = host.member("abe", &ada.workspace, "admin");
        let amy = host.member("amy", &ada.workspace, "admin");
        let owner = member(&ada, "ada").await;
        for (client, name) in [(&vera, "mia"), (&mia, "vera"), (&mia, "ada")] {
            let refused = client.delete(&member(&ada, name).await).await;
            refused.problem(403, "permission_denied");
        }
        abe.delete(&owner).await.problem_about(403, "permission_denied", "the role owner");
        let path = member(&ada, "vera").await;
        abe.without_csrf().delete(&path).await.problem(403, "csrf_failed");

        mia.open_case("before-removal").await.expect(201);
        for (client, name) in [(&abe, "vera"), (&abe, "mia"), (&abe, "amy"), (&ada, "abe")] {
            let path = member(&ada, name).await;
            client.delete(&path).await.expect(204);
            client.delete(&path).await.problem(404, "not_found");
        }
        for removed in [&vera, &mia, &abe, &amy] {
            removed.get(CASES).await.problem(404, "not_found");
            removed.get(MEMBERS).await.problem(404, "not_found");
            removed.open_case("after-removal").await.problem(404, "not_found");
            removed.delete(&owner).await.problem(404, "not_found");
            // The session belongs to the user and not to the workspace.
            assert_eq!(removed.get("/v1/workspaces").await.expect(200)["items"], json!([]));
        }
        assert_eq!(emails(&ada.get(MEMBERS).await.expect(200)), ["ada@example.org"]);
        ada.delete(&format!("{MEMBERS}/vera")).await.problem(422, "validation_failed");
        let events = host.log();
        let events: Vec<_> = events.lines().filter(|line| line.contains("\"member_removed\"")).collect();
        assert_eq!(events.len(), 4, "{events:#?}");
        let id = path.rsplit('/').next().expect("an id");
        assert!(events[0].contains(id) && events[0].contains(&ada.workspace), "{}", events[0]);
    }

    async fn anybody_leaves_once_and_the_last_owner_stays(backend) {
        let (mut host, ada) = host(backend).await;
        let vera = host.member("vera", &ada.workspace, "viewer");
        let path = member(&ada, "vera").await;
        let leave = |key: &'static str| {
            let request = vera.request(Method::DELETE, &path).header("idempotency-key", key);
            assurance_tests::client::send(request)
        };
        let left = leave("vera-leaves").await;
        left.expect(204);
        assert_eq!(left.header("idempotent-replayed"), None);
        let again = leave("vera-leaves").await;
        again.expect(204);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        leave("vera-leaves-again").await.problem(404, "not_found");
        vera.get(CASES).await.problem(404, "not_found");

        let own = member(&ada, "ada").await;
        let stay = async || {
            let problem = ada.delete(&own).await.problem(409, "conflict");
            assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("another owner")), "{problem}");
        };
        stay().await;
        let oda = host.create_person("oda");
        host.add_member(&ada.workspace, &oda, "owner");
        // A disabled user does not count as an owner.
        host.cli(&["user", "disable", "--user", &oda.email]);
        stay().await;
        host.cli(&["user", "enable", "--user", &oda.email]);
        let oda = host.sign_in(&oda, &ada.workspace);
        ada.delete(&own).await.expect(204);
        assert_eq!(emails(&oda.get(MEMBERS).await.expect(200)), ["oda@example.org"]);
    }

    async fn operators_list_and_remove_members(backend) {
        let (mut host, ada) = host(backend).await;
        let vera = host.member("vera", &ada.workspace, "viewer");
        vera.get(CASES).await.expect(200);
        let listed = host.cli(&["member", "list", "--workspace", "first"]);
        let listed: Vec<_> = listed["members"].as_array().expect("a list").iter().collect();
        assert_eq!((listed.len(), &listed[1]["role"]), (2, &json!("viewer")));
        let remove = |email| ["member", "remove", "--workspace", "first", "--user", email];
        host.cli(&remove("vera@example.org"));
        vera.status_within(PATIENCE, CASES, 404).await;
        for (email, why) in [("vera@example.org", "not a member"), ("ada@example.org", "last owner")] {
            let errors = host.refused(&remove(email));
            assert!(errors.contains(why), "{errors}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_shows_on_another_node_within_a_second() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let (mut one, ada) = host(Backend::Postgres).await;
    let two = Builder::new(Backend::Postgres).areas(&["support"]).beside(&one).start().await;
    let vera = one.member("vera", &ada.workspace, "viewer");
    let there = vera.at(&two);
    there.get(CASES).await.expect(200);
    ada.delete(&member(&ada, "vera").await).await.expect(204);
    vera.get(CASES).await.problem(404, "not_found");
    there.status_within(PATIENCE, CASES, 404).await;
}
