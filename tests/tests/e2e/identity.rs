//! Identity providers (operation 6), with an independent OpenID Connect provider on this machine.

use assurance_tests::artifacts::path_at;
use assurance_tests::contract::Contract;
use assurance_tests::oidc::OidcProvider;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

const PROVIDERS: &str = "/v1/workspaces/{ws}/identity/providers";
const SECRET: &str = "the client secret of this test";

async fn host(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["identity"]);
    let (mut host, ada) = builder.set("egress.allow_loopback", true).start_with_owner().await;
    host.keep_secret(SECRET);
    (host, ada)
}

fn new(name: &str, issuer: &str, domain: &str) -> Value {
    json!({
        "name": name, "issuer": issuer, "client_id": "workspace", "client_secret": SECRET,
        "domains": [domain], "claims_mapping": { "groups": "groups" },
        "role_mapping": { "security": "admin" },
    })
}

fn path(provider: &Value) -> String {
    path_at(PROVIDERS, provider)
}

/// Returns the provider after its discovery.
async fn discovered(client: &Client, provider: &Value) -> Value {
    client.until(&path(provider), |found| found["status"] != "draft").await
}

both_backends! {
    async fn a_real_provider_is_discovered_and_its_keys_are_known(backend) {
        let (_host, ada) = host(backend).await;
        let oidc = OidcProvider::start();
        let made = ada.post(PROVIDERS, &new("Main", &oidc.issuer, "Example.COM")).await.expect(201);
        assert_eq!((&made["status"], &made["jwks_sha256"]), (&json!("draft"), &Value::Null));
        let active = discovered(&ada, &made).await;
        assert_eq!((&active["status"], &active["last_error_code"]), (&json!("active"), &Value::Null));
        assert_eq!(active["jwks_sha256"], oidc.jwks_sha256);
        assert_eq!(active["discovery_metadata"]["issuer"], oidc.issuer);
        let jwks_uri = format!("{}/jwks", oidc.issuer);
        assert_eq!(active["discovery_metadata"]["jwks_uri"], jwks_uri);

        let second = json!({ "name": "A first one", "issuer": oidc.issuer, "client_id": "x",
            "domains": ["b.example"] });
        let second = ada.post(PROVIDERS, &second).await.expect(201);
        assert_eq!(second["has_client_secret"], false);
        let oidc = oidc.with_other_keys();
        let rotate = format!("{}/rotate", path(&made));
        let rotated = ada.post(&rotate, &json!({ "client_secret": "another one" })).await.expect(200);
        assert!(rotated["last_rotated_at"].is_string());
        let rotated = |list: &Value| {
            Contract::read().check(6, list);
            list[1]["jwks_sha256"] == oidc.jwks_sha256
        };
        let list = ada.until(PROVIDERS, rotated).await;
        let names = [&list[0]["name"], &list[1]["name"]];
        assert_eq!(names, ["A first one", "Main"]);
        assert_eq!(list[1]["domains"], json!(["example.com"]));
        assert_eq!(list[1]["role_mapping"], json!({ "security": "admin" }));
        assert_eq!(list[1]["claims_mapping"]["email"], "email");
        assert!(list[1]["last_rotated_at"].is_string() && list[1]["version"].as_u64() > Some(2));
        for shown in [list.to_string(), ada.get(&path(&made)).await.text()] {
            assert!(!shown.contains(SECRET) && !shown.contains("another one"));
        }
    }

    async fn an_issuer_that_is_not_the_provider_s_own_is_an_error(backend) {
        let (_host, ada) = host(backend).await;
        let oidc = OidcProvider::start();
        for (name, issuer, code) in [
            ("Slash", format!("{}/", oidc.issuer), "issuer_mismatch"),
            ("Nowhere", format!("{}/nothing", oidc.issuer), "not_found"),
        ] {
            let domain = format!("{}.example", name.to_lowercase());
            let made = ada.post(PROVIDERS, &new(name, &issuer, &domain)).await.expect(201);
            let failed = discovered(&ada, &made).await;
            assert_eq!((&failed["status"], &failed["last_error_code"]), (&json!("error"), &json!(code)));
            assert_eq!(failed["discovery_metadata"], Value::Null);
        }
        Contract::read().check(6, &ada.get(PROVIDERS).await.expect(200));
    }

    async fn providers_are_switched_off_and_on_and_deleted(backend) {
        let (_host, ada) = host(backend).await;
        let oidc = OidcProvider::start();
        let made = ada.post(PROVIDERS, &new("Main", &oidc.issuer, "a.example")).await.expect(201);
        let active = discovered(&ada, &made).await;
        let act = async |action: &str| {
            ada.post(&format!("{}/{action}", path(&made)), &json!({})).await.expect(200)
        };
        assert_eq!(act("disable").await["status"], "disabled");
        assert_eq!(act("enable").await["status"], "draft");
        assert_eq!(discovered(&ada, &made).await["status"], "active");
        let version = active["version"].as_u64().expect("a version");
        let changes = json!({ "name": "New", "domains": ["b.example"] });
        ada.change(Method::PATCH, &path(&made), version, &changes).await.problem(409, "version_conflict");
        ada.change(Method::PATCH, &path(&made), version + 3, &changes).await.expect(200);

        let other = new("Other", &oidc.issuer, "B.example");
        ada.post(PROVIDERS, &other).await.problem(409, "domain_taken");
        let same = new("New", &oidc.issuer, "a.example");
        ada.post(PROVIDERS, &same).await.problem(409, "name_taken");
        ada.delete(&path(&made)).await.expect(204);
        ada.get(&path(&made)).await.problem(404, "not_found");
        ada.post(PROVIDERS, &other).await.expect(201);
    }

    async fn admins_set_providers_up_and_everybody_sees_them(backend) {
        let (mut host, ada) = host(backend).await;
        let viewer = host.member("vera", &ada.workspace, "viewer");
        let member = host.member("mia", &ada.workspace, "member");
        let admin = host.member("adam", &ada.workspace, "admin");
        let stranger = host.create_person("olga");
        let stranger = host.sign_in(&stranger, &ada.workspace);
        let new = new("Main", "https://id.example.com", "a.example");
        member.post(PROVIDERS, &new).await.problem(403, "permission_denied");
        admin.without_csrf().post(PROVIDERS, &new).await.problem(403, "csrf_failed");
        let made = admin.post(PROVIDERS, &new).await.expect(201);
        assert_eq!(viewer.get(PROVIDERS).await.expect(200)[0]["name"], "Main");
        viewer.get(&path(&made)).await.expect(200);
        member.delete(&path(&made)).await.problem(403, "permission_denied");
        stranger.get(PROVIDERS).await.problem(404, "not_found");
        host.nobody().in_workspace(&ada.workspace).get(PROVIDERS).await.problem(401, "unauthenticated");
    }

    async fn wrong_shapes_are_refused_by_their_place(backend) {
        let (_host, ada) = host(backend).await;
        for (member, value) in [
            ("issuer", json!("http://id.example.com")),
            ("issuer", json!("https://10.0.0.1")),
            ("issuer", json!("https://id.example.com?x=1")),
            ("domains", json!([])),
            ("domains", json!(["localhost"])),
            ("role_mapping", json!({ "x": "owner" })),
            ("claims_mapping", json!({ "colour": "x" })),
            ("client_id", json!("")),
            ("client_secret", json!("")),
            ("extra", json!(1)),
        ] {
            let mut body = new("Main", "https://id.example.com", "a.example");
            body[member] = value;
            ada.post(PROVIDERS, &body).await.problem_about(422, "validation_failed", member);
        }
        assert_eq!(ada.get(PROVIDERS).await.expect(200), json!([]));
    }
}
