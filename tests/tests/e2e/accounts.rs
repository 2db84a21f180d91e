//! Accounts: users change their passwords, and operators disable accounts.

use std::time::Duration;

use assurance_tests::cli::Person;
use assurance_tests::{Answer, Backend, Client, TestHost, both_backends, totp};
use serde_json::{Value, json};

use crate::sign_in::{self, login};

const PASSWORD: &str = "/v1/auth/password";
const SESSION: &str = "/v1/auth/session";
const NEW: &str = "another password that nobody guesses";
/// Time until a cached session expires (`session.cache_ms`), with a margin for
/// busy machines.
const PATIENCE: Duration = Duration::from_secs(10);

async fn host_with_person(backend: Backend) -> (TestHost, Person) {
    let (mut host, person) = sign_in::host_with_person(backend).await;
    host.keep_secret(NEW);
    (host, person)
}

async fn change(client: &Client, current: &str, new: &str) -> Answer {
    client.post(PASSWORD, &json!({ "current_password": current, "new_password": new })).await
}

/// Waits until the service has noticed that a session ended.
async fn ended(client: &Client) {
    client.status_within(PATIENCE, SESSION, 401).await;
}

both_backends! {
    async fn a_new_password_ends_the_other_sessions_and_keeps_this_one(backend) {
        let (mut host, ada) = host_with_person(backend).await;
        let (here, there) = (host.sign_in(&ada, ""), host.sign_in(&ada, ""));
        there.get(SESSION).await.expect(200);
        for (current, new, place) in [
            (ada.password.as_str(), "short", "/new_password"),
            ("not hers at all", NEW, "/current_password"),
            ("", NEW, "/current_password"),
        ] {
            let refused = change(&here, current, new).await;
            refused.problem_about(422, "validation_failed", place);
        }
        change(&here.without_csrf(), &ada.password, NEW).await.problem(403, "csrf_failed");
        change(&host.nobody(), &ada.password, NEW).await.problem(401, "unauthenticated");
        there.get(SESSION).await.expect(200);

        change(&here, &ada.password, NEW).await.expect(204);
        here.get(SESSION).await.expect(200);
        there.get(SESSION).await.problem(401, "unauthenticated");
        login(&host, &ada.email, &ada.password, None).await.problem(401, "invalid_credentials");
        login(&host, &ada.email, NEW, None).await.expect(200);
        let log = host.log();
        let outcomes = ["invalid_password", "wrong_password", "changed"];
        for outcome in outcomes.map(|outcome| format!("\"outcome\":\"{outcome}\"")) {
            let logged = log.lines().any(|line| line.contains("\"password_change\"") && line.contains(&outcome));
            assert!(logged, "{outcome}");
        }
    }

    async fn a_stolen_session_is_no_way_to_guess_the_password(backend) {
        let (mut host, ada) = host_with_person(backend).await;
        let stolen = host.sign_in(&ada, "");
        for _ in 0..5 {
            change(&stolen, "wrong wrong wrong", NEW).await.problem(422, "validation_failed");
        }
        let late = change(&stolen, &ada.password, NEW).await;
        late.problem(429, "rate_limited");
        let wait = late.header("retry-after").expect("a Retry-After").parse().expect("seconds");
        // Both ways to try a password share one counter.
        login(&host, &ada.email, &ada.password, None).await.problem(429, "rate_limited");
        tokio::time::sleep(Duration::from_secs(wait) + Duration::from_millis(100)).await;
        change(&stolen, &ada.password, NEW).await.expect(204);
        login(&host, &ada.email, NEW, None).await.expect(200);
    }

    async fn a_disabled_person_is_signed_out_and_cannot_sign_in(backend) {
        let (mut host, ada) = host_with_person(backend).await;
        let workspace = host.create_workspace("first", &ada);
        let client = host.sign_in(&ada, &workspace);
        client.get(SESSION).await.expect(200);
        let disabled = host.cli(&["user", "disable", "--user", &ada.email]);
        assert_eq!((&disabled["disabled"], &disabled["ended"]), (&json!(true), &json!(1)));
        ended(&client).await;

        let right = login(&host, &ada.email, &ada.password, None).await;
        let unknown = login(&host, "nobody@example.org", "not the password at all", None).await;
        let mut problems = [right, unknown].map(|answer| answer.problem(401, "invalid_credentials"));
        for problem in &mut problems {
            problem["request_id"] = Value::Null;
        }
        assert_eq!(problems[0], problems[1]);
        let errors = host.refused(&["session", "create", "--user", &ada.email]);
        assert!(errors.contains("is disabled; enable it with: assurance user enable"), "{errors}");
        // A new password does not enable the account.
        let renewed = host.cli(&["user", "password", "--user", &ada.email]);
        let renewed = renewed["password"].as_str().expect("a password").to_owned();
        host.keep_secret(&renewed);
        login(&host, &ada.email, &renewed, None).await.problem(401, "invalid_credentials");

        host.cli(&["user", "enable", "--user", &ada.email]);
        login(&host, &ada.email, &renewed, None).await.expect(200);
        let again = host.sign_in(&ada, &workspace);
        assert_eq!(again.get("/v1/workspaces").await.expect(200)["items"][0]["role"], "owner");
    }

    async fn an_operator_frees_a_person_of_a_lost_second_factor(backend) {
        let (mut host, ada) = host_with_person(backend).await;
        let client = host.sign_in(&ada, "");
        let enrolled = client.post("/v1/auth/mfa/enrol", &json!({})).await.expect(200);
        let secret = enrolled["secret"].as_str().expect("a secret").to_owned();
        let confirm = json!({ "code": totp::code(&secret, 0) });
        let confirmed = client.post("/v1/auth/mfa/confirm", &confirm).await.expect(200);
        let recovery = confirmed["recovery_codes"][0].as_str().expect("a code").to_owned();
        login(&host, &ada.email, &ada.password, None).await.problem(401, "mfa_required");
        let open = host.sign_in(&ada, "");
        open.get(SESSION).await.expect(200);

        let reset = ["user", "reset-factor", "--user", &ada.email];
        let removed = host.cli(&reset);
        assert_eq!((&removed["removed"], &removed["ended"]), (&json!(true), &json!(2)));
        ended(&open).await;
        login(&host, &ada.email, &ada.password, None).await.expect(200);
        let fresh = host.sign_in(&ada, "");
        let security = fresh.get("/v1/auth/security").await.expect(200);
        assert_eq!((&security["mfa_enabled"], &security["recovery_codes_remaining"]), (&json!(false), &json!(0)));
        let used = fresh.post("/v1/auth/mfa/disable", &json!({ "code": recovery })).await;
        used.problem(409, "conflict");
        fresh.post("/v1/auth/mfa/enrol", &json!({})).await.expect(200);
        assert_eq!(host.cli(&reset)["removed"], json!(true), "an enrollment that waits");
        assert_eq!(host.cli(&reset)["removed"], json!(false));
    }
}
