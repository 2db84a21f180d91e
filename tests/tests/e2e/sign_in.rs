//! Signing in and out, sessions, the second factor, and CSRF.

use assurance_tests::cli::Person;
use assurance_tests::client::send;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, totp};
use reqwest::Method;
use serde_json::{Value, json};

const LOGIN: &str = "/v1/auth/login";
const SESSION: &str = "/v1/auth/session";

async fn host_with_person(backend: Backend) -> (TestHost, Person) {
    let mut host = Builder::new(backend).prepare().await;
    let person = host.create_person("ada");
    host.start().await;
    (host, person)
}

async fn login(host: &TestHost, email: &str, password: &str, code: Option<&str>) -> Answer {
    let mut body = json!({ "email": email, "password": password });
    if let Some(code) = code {
        body["code"] = json!(code);
    }
    host.nobody().post(LOGIN, &body).await
}

/// The client that an answer with a fresh cookie makes.
fn signed_in(host: &TestHost, answer: &Answer) -> Client {
    let cookie = answer.header("set-cookie").expect("a cookie");
    let (pair, _) = cookie.split_once(';').expect("attributes");
    let session = pair.strip_prefix("service_session=").expect("the session's name");
    let csrf = answer.json()["csrf_token"].as_str().expect("a token").to_owned();
    Client { session: Some(session.to_owned()), csrf: Some(csrf), ..host.nobody() }
}

fn sessions(security: &Value) -> Vec<Value> {
    security["sessions"].as_array().expect("sessions").clone()
}

both_backends! {
    async fn a_person_signs_in_and_out(backend) {
        let (mut host, ada) = host_with_person(backend).await;
        let answer = login(&host, &ada.email, &ada.password, None).await;
        let session = answer.expect(200);
        assert_eq!(session["user"]["email"], ada.email.as_str());
        let cookie = answer.header("set-cookie").expect("a cookie");
        for attribute in ["HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let client = signed_in(&host, &answer);
        let value = client.session.clone().unwrap_or_default();
        assert!(value.len() == 43, "256 bits in base64url: {value}");
        host.keep_secret(&value);
        client.get(SESSION).await.expect(200);
        let left = client.post("/v1/auth/logout", &json!({})).await;
        assert!([200, 204].contains(&left.status), "{}", left.text());
        client.get(SESSION).await.problem(401, "unauthenticated");
    }

    async fn a_wrong_password_and_an_unknown_address_look_alike(backend) {
        let (host, ada) = host_with_person(backend).await;
        let wrong = login(&host, &ada.email, "not the password at all", None).await;
        let unknown = login(&host, "nobody@example.org", "not the password at all", None).await;
        let mut problems = [wrong, unknown].map(|a| a.problem(401, "invalid_credentials"));
        for problem in &mut problems {
            problem["request_id"] = Value::Null;
        }
        assert_eq!(problems[0], problems[1]);
    }

    async fn a_revoked_session_ends_at_once(backend) {
        let (host, ada) = host_with_person(backend).await;
        let first = signed_in(&host, &login(&host, &ada.email, &ada.password, None).await);
        let second = signed_in(&host, &login(&host, &ada.email, &ada.password, None).await);
        second.get(SESSION).await.expect(200);
        let listed = sessions(&first.get("/v1/auth/security").await.expect(200));
        assert_eq!(listed.len(), 2);
        let other = listed.iter().find(|session| session["current"] == false);
        let id = other.expect("another session")["id"].as_str().expect("an id").to_owned();
        let revoked = first.delete(&format!("/v1/auth/sessions/{id}")).await;
        assert!([200, 204].contains(&revoked.status), "{}", revoked.text());
        second.get(SESSION).await.problem(401, "unauthenticated");
        first.get(SESSION).await.expect(200);
        first.delete(&format!("/v1/auth/sessions/{id}")).await.problem(404, "not_found");
    }

    async fn an_authenticator_is_asked_for_and_its_codes_work_once(backend) {
        let (host, ada) = host_with_person(backend).await;
        let client = signed_in(&host, &login(&host, &ada.email, &ada.password, None).await);
        let enrolled = client.post("/v1/auth/mfa/enrol", &json!({})).await.expect(200);
        let secret = enrolled["secret"].as_str().expect("a secret").to_owned();
        let code = totp::code(&secret, 0);
        let confirmed = client.post("/v1/auth/mfa/confirm", &json!({ "code": code })).await;
        let recovery = confirmed.expect(200)["recovery_codes"].clone();
        let recovery = recovery.as_array().expect("codes").clone();
        assert_eq!(recovery.len(), 10);
        // A new id: the old session is over.
        client.get(SESSION).await.problem(401, "unauthenticated");

        login(&host, &ada.email, &ada.password, None).await.problem(401, "mfa_required");
        let used = login(&host, &ada.email, &ada.password, Some(&code)).await;
        used.problem(401, "invalid_credentials");
        let next = totp::code(&secret, 1);
        let client = signed_in(&host, &login(&host, &ada.email, &ada.password, Some(&next)).await);
        let security = client.get("/v1/auth/security").await.expect(200);
        assert_eq!(security["mfa_enabled"], true);
        assert_eq!(security["recovery_codes_remaining"], 10);

        let spare = recovery[0].as_str().expect("text");
        login(&host, &ada.email, &ada.password, Some(spare)).await.expect(200);
        let again = login(&host, &ada.email, &ada.password, Some(spare)).await;
        again.problem(401, "invalid_credentials");
        let security = client.get("/v1/auth/security").await.expect(200);
        assert_eq!(security["recovery_codes_remaining"], 9);
    }

    async fn the_eleventh_session_ends_the_oldest(backend) {
        let (mut host, ada) = host_with_person(backend).await;
        let clients: Vec<Client> = (0..11).map(|_| host.sign_in(&ada, "")).collect();
        clients[0].get(SESSION).await.problem(401, "unauthenticated");
        clients[1].get(SESSION).await.expect(200);
        let security = clients[10].get("/v1/auth/security").await.expect(200);
        assert_eq!(sessions(&security).len(), 10);
    }
}

#[tokio::test]
async fn wrong_passwords_make_an_account_wait() {
    let (host, ada) = host_with_person(Backend::Sqlite).await;
    let mut last = login(&host, &ada.email, "wrong wrong wrong", None).await;
    for _ in 0..10 {
        if last.status == 429 {
            break;
        }
        last = login(&host, &ada.email, "wrong wrong wrong", None).await;
    }
    last.problem(429, "rate_limited");
    assert!(last.header("retry-after").is_some());
}

#[tokio::test]
async fn a_write_needs_the_sessions_own_token() {
    let (mut host, _) = host_with_person(Backend::Sqlite).await;
    let bea = host.create_person("bea");
    let (ada, bea) = (host.sign_in(&bea, ""), host.sign_in(&bea, ""));
    let logout = "/v1/auth/logout";
    let with = |csrf: Option<String>| Client { csrf, ..ada.clone() };
    with(None).post(logout, &json!({})).await.problem(403, "csrf_failed");
    with(bea.csrf.clone()).post(logout, &json!({})).await.problem(403, "csrf_failed");
    with(Some("x".repeat(80))).post(logout, &json!({})).await.problem(403, "csrf_failed");
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        let request = ada.request(Method::POST, logout).header(name, value);
        send(request.json(&json!({}))).await.problem(403, "csrf_failed");
    }
    // Any token of the session serves, not only the newest.
    let newer = ada.get(SESSION).await.expect(200)["csrf_token"].clone();
    assert!(newer.is_string());
    let own = ada.request(Method::POST, logout).header("origin", host.api.as_str());
    assert!(send(own.json(&json!({}))).await.status < 300);
}

#[tokio::test]
async fn a_restart_keeps_people_signed_in() {
    let (mut host, ada) = host_with_person(Backend::Sqlite).await;
    let mut client = host.sign_in(&ada, "");
    assert!(host.terminate().await.success());
    host.start().await;
    client.base.clone_from(&host.api);
    client.get(SESSION).await.expect(200);
    assert!(client.post("/v1/auth/logout", &json!({})).await.status < 300);
}
