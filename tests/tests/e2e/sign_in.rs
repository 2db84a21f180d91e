//! Sign-in and sign-out, sessions, the second factor, and CSRF.

use assurance_tests::cli::Person;
use assurance_tests::client::send;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, totp};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

const LOGIN: &str = "/v1/auth/login";
const SESSION: &str = "/v1/auth/session";

pub(crate) async fn host_with_person(backend: Backend) -> (TestHost, Person) {
    let mut host = Builder::new(backend).prepare().await;
    let person = host.create_person("ada");
    host.start().await;
    (host, person)
}

pub(crate) async fn login(
    host: &TestHost,
    email: &str,
    password: &str,
    code: Option<&str>,
) -> Answer {
    let mut body = json!({ "email": email, "password": password });
    if let Some(code) = code {
        body["code"] = json!(code);
    }
    host.nobody().post(LOGIN, &body).await
}

/// Signs in from an address, with the device cookie of an earlier sign-in if
/// there is one.
async fn login_from(
    host: &TestHost,
    address: &str,
    device: Option<&str>,
    (email, password): (&str, &str),
) -> Answer {
    let request = host.nobody().request(Method::POST, LOGIN).header("x-forwarded-for", address);
    let request = match device {
        Some(device) => request.header("cookie", device),
        None => request,
    };
    send(request.json(&json!({ "email": email, "password": password }))).await
}

/// Returns the device cookie of a sign-in's response.
fn device_of(answer: &Answer) -> String {
    let cookies = answer.headers.get_all("set-cookie").iter();
    let cookies: Vec<_> = cookies.filter_map(|cookie| cookie.to_str().ok()).collect();
    let device = cookies.iter().find(|cookie| cookie.starts_with("service_device="));
    let device = device.unwrap_or_else(|| panic!("no device cookie in {cookies:?}"));
    assert!(device.contains("HttpOnly") && device.contains("SameSite=Strict"), "{device}");
    device.split(';').next().expect("a pair").to_owned()
}

/// Moves the start of all sessions 61 s back.
async fn make_sessions_older(host: &TestHost) {
    let sql = "UPDATE sessions SET created_at = created_at - 61000000";
    if let Some(url) = host.database_url() {
        let mut server = PgConnection::connect(&url).await.expect("a connection");
        server.execute(sql).await.expect("changed");
    } else {
        let file = host.folder().join("data/assurance.sqlite");
        let url = format!("sqlite:{}", file.display());
        let mut file = SqliteConnection::connect(&url).await.expect("a connection");
        file.execute(sql).await.expect("changed");
    }
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
        let client = host.signed_in(&answer);
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
        let first = host.signed_in(&login(&host, &ada.email, &ada.password, None).await);
        let second = host.signed_in(&login(&host, &ada.email, &ada.password, None).await);
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
        let client = host.signed_in(&login(&host, &ada.email, &ada.password, None).await);
        let enrolled = client.post("/v1/auth/mfa/enrol", &json!({})).await.expect(200);
        let secret = enrolled["secret"].as_str().expect("a secret").to_owned();
        let code = totp::code(&secret, 0);
        let confirmed = client.post("/v1/auth/mfa/confirm", &json!({ "code": code })).await;
        let recovery = confirmed.expect(200)["recovery_codes"].clone();
        let recovery = recovery.as_array().expect("codes").clone();
        assert_eq!(recovery.len(), 10);
        // A new id: the old session has ended.
        client.get(SESSION).await.problem(401, "unauthenticated");

        login(&host, &ada.email, &ada.password, None).await.problem(401, "mfa_required");
        let used = login(&host, &ada.email, &ada.password, Some(&code)).await;
        used.problem(401, "invalid_credentials");
        let next = totp::code(&secret, 1);
        let client = host.signed_in(&login(&host, &ada.email, &ada.password, Some(&next)).await);
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

    async fn an_old_session_changes_no_second_factor_and_a_change_ends_the_others(backend) {
        let builder = Builder::new(backend).set("sign_in.recent_minutes", 1);
        let mut host = builder.set("session.cache_ms", 0).prepare().await;
        let ada = host.create_person("ada");
        let workspace = host.create_workspace("first", &ada);
        host.start().await;
        let old = host.signed_in(&login(&host, &ada.email, &ada.password, None).await);
        let enrol = "/v1/auth/mfa/enrol";
        let secret = old.post(enrol, &json!({})).await.expect(200)["secret"].clone();
        let secret = secret.as_str().expect("a secret").to_owned();
        let fresh = host.signed_in(&login(&host, &ada.email, &ada.password, None).await);
        let confirm = json!({ "code": totp::code(&secret, 0) });
        let confirmed = fresh.post("/v1/auth/mfa/confirm", &confirm).await;
        let recovery = confirmed.expect(200)["recovery_codes"][0].clone();
        old.get(SESSION).await.problem(401, "unauthenticated");
        fresh.get(SESSION).await.problem(401, "unauthenticated");
        let stolen = host.signed_in(&confirmed);

        make_sessions_older(&host).await;
        let code = json!({ "code": totp::code(&secret, 1) });
        for operation in ["mfa/disable", "mfa/enrol", "mfa/confirm"] {
            let refused = stolen.post(&format!("/v1/auth/{operation}"), &code).await;
            let problem = refused.problem(403, "permission_denied");
            assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("Sign in again")), "{problem}");
        }
        let change = json!({ "current_password": ada.password, "new_password": "another long password" });
        stolen.post("/v1/auth/password", &change).await.problem(403, "permission_denied");
        let until = assurance_tests::envelope::now().plus_ms(60_000).to_rfc3339();
        let token = json!({ "name": "mine", "role": "admin", "expires_at": until });
        let tokens = "/v1/workspaces/{ws}/access-tokens";
        let refused = stolen.in_workspace(&workspace).post(tokens, &token).await;
        refused.problem(403, "permission_denied");
        let next = totp::code(&secret, 1);
        let fresh = host.signed_in(&login(&host, &ada.email, &ada.password, Some(&next)).await);
        let code = json!({ "code": recovery });
        assert!(fresh.post("/v1/auth/mfa/disable", &code).await.status < 300);
        fresh.get(SESSION).await.expect(200);
        stolen.get(SESSION).await.problem(401, "unauthenticated");
    }

    async fn a_thousand_addresses_keep_nobody_out_and_guess_a_hundred_times_a_day(backend) {
        let mut host = Builder::new(backend).set("api.trusted_proxies", vec!["127.0.0.1"]).prepare().await;
        let ada = host.create_person("ada");
        host.start().await;
        let (right, wrong) = ((ada.email.as_str(), ada.password.as_str()), (ada.email.as_str(), "not hers at all"));
        let (home, travelling) = ("198.51.100.7", "203.0.113.200");
        let first = login_from(&host, home, None, right).await;

        let mut guesses = 0;
        for hundred in 0..10 {
            let attempts = (0..100).map(|n| {
                let address = format!("10.{hundred}.{n}.1");
                let host = &host;
                async move { login_from(host, &address, None, wrong).await.status }
            });
            let statuses = futures::future::join_all(attempts).await;
            guesses += statuses.iter().filter(|status| **status != 429).count();
        }
        assert!((1..=100).contains(&guesses), "{guesses} guesses of 1,000 were judged");

        // Known network without device, then known device on a new network.
        login_from(&host, "198.51.100.99", None, right).await.expect(200);
        let device = device_of(&first);
        let answer = login_from(&host, travelling, Some(&device), right).await;
        answer.expect(200);
        // A device is known only to its own account, and its cookie works once.
        login_from(&host, "192.0.2.1", Some(&device), right).await.problem(429, "rate_limited");
        let device = device_of(&answer);

        // A user with a wrong password waits as long as the response says,
        // whatever other clients do.
        let mut waits = None;
        for _ in 0..10 {
            let answer = login_from(&host, "192.0.2.1", Some(&device), wrong).await;
            waits = answer.header("retry-after").map(|text| text.parse().expect("seconds"));
            if answer.status == 429 {
                break;
            }
        }
        let waits = std::time::Duration::from_secs(waits.expect("a Retry-After"));
        let until = std::time::Instant::now() + waits;
        while std::time::Instant::now() < until {
            login_from(&host, "10.99.1.1", None, wrong).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        login_from(&host, "192.0.2.1", Some(&device), right).await.expect(200);

        // A new password by an operator unlocks the account everywhere.
        login_from(&host, "203.0.115.77", None, right).await.problem(429, "rate_limited");
        let renewed = host.cli(&["user", "password", "--user", &ada.email]);
        let renewed = renewed["password"].as_str().expect("a password").to_owned();
        login_from(&host, "203.0.115.77", None, (&ada.email, &renewed)).await.expect(200);
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
    // Any token of the session is valid, not only the newest.
    let newer = ada.get(SESSION).await.expect(200)["csrf_token"].clone();
    assert!(newer.is_string());
    let own = ada.request(Method::POST, logout).header("origin", host.api.as_str());
    assert!(send(own.json(&json!({}))).await.status < 300);
}

#[tokio::test]
async fn a_restart_keeps_people_signed_in() {
    let (mut host, ada) = host_with_person(Backend::Sqlite).await;
    let client = host.sign_in(&ada, "");
    assert!(host.terminate().await.success());
    host.start().await;
    let client = client.at(&host);
    client.get(SESSION).await.expect(200);
    assert!(client.post("/v1/auth/logout", &json!({})).await.status < 300);
}

both_backends! {
    async fn security_events_say_who_from_where_and_to_what_and_no_secret(backend) {
        let builder = Builder::new(backend).areas(&["webhooks", "invitations", "support"]);
        let mut host = builder.set("egress.allow_loopback", true).prepare().await;
        let (ada, eve) = (host.create_person("ada"), host.create_person("eve"));
        let workspace = host.create_workspace("first", &ada);
        host.start().await;
        login(&host, &ada.email, "a password typed wrong", None).await.expect(401);
        let answer = login(&host, &ada.email, &ada.password, None).await;
        let by_ada = host.signed_in(&answer).in_workspace(&workspace);
        by_ada.subscribe("https://example.com/key").await.expect(201);
        let invitation = json!({ "email": eve.email, "role": "viewer" });
        by_ada.post("/v1/workspaces/{ws}/invitations", &invitation).await.expect(201);
        let enrolled = by_ada.post("/v1/auth/mfa/enrol", &json!({})).await.expect(200);
        let secret = enrolled["secret"].as_str().expect("a secret").to_owned();
        let confirm = json!({ "code": totp::code(&secret, 0) });
        by_ada.post("/v1/auth/mfa/confirm", &confirm).await.expect(200);
        let stranger = Client::nobody(&host.operators);
        stranger.get("/areas").await.expect(401);

        let events = || -> Vec<Value> {
            let log = host.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.filter(|line| line["target"] == "security").collect()
        };
        host.wait_for_log("\"factor_enabled\"", std::time::Duration::from_secs(20)).await;
        host.wait_for_log("\"operator_refused\"", std::time::Duration::from_secs(20)).await;
        let ada_id = answer.json()["user"]["id"].clone();
        let found = |event: &str| {
            let events = events();
            let found = events.iter().find(|line| field(line, "event") == event).cloned();
            found.unwrap_or_else(|| panic!("no {event} in {events:#?}"))
        };
        let failed = found("sign_in");
        assert_eq!(field(&failed, "outcome"), "wrong_credentials");
        assert_eq!(field(&failed, "client.address"), "127.0.0.1");
        let account = field(&failed, "account");
        let all = events();
        let signed_in = all.iter().find(|line| field(line, "outcome") == "signed_in").expect("one");
        assert_eq!(field(signed_in, "account"), account, "a failure is led back to its account");
        assert_eq!(field(signed_in, "user.id"), ada_id);
        let stored = found("secret_stored");
        assert_eq!((field(&stored, "area.name"), field(&stored, "user.id")), (json!("webhooks"), ada_id.clone()));
        assert_eq!(field(&stored, "workspace.id"), workspace.as_str());
        assert_eq!(field(&found("factor_enabled"), "user.id"), ada_id);
        let refused = found("operator_refused");
        assert_eq!((field(&refused, "http.path"), field(&refused, "client.address")), (json!("/areas"), json!("127.0.0.1")));
        let log = host.log();
        for secret in ["a password typed wrong", &ada.email, "example.com/key", &secret] {
            assert!(!log.contains(secret), "{secret:?} is in the log");
        }
    }
}

/// Returns a field of a log line, at any of the places where the log format may
/// have it.
fn field(line: &Value, name: &str) -> Value {
    let own = line.get("fields").and_then(|fields| fields.get(name));
    own.or_else(|| line.get(name)).cloned().unwrap_or_default()
}
