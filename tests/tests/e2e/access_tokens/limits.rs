//! Limits of access tokens: refused operations, who may manage tokens, and rate limits.

use super::*;

both_backends! {
    async fn admins_make_list_and_revoke_tokens(backend) {
        let (mut host, ada) = host(backend).await;
        let mia = host.member("mia", &ada.workspace, "member");
        let abe = host.member("abe", &ada.workspace, "admin");
        let elsewhere = ada.in_workspace("01939f1a-0000-7000-8000-000000000000");
        let (_, adas) = machine(&mut host, &ada, "admin").await;
        let (ci, abes) = machine(&mut host, &abe, "viewer").await;
        for (client, status, code) in
            [(&mia, 403, "permission_denied"), (&elsewhere, 404, "not_found")]
        {
            client.get(TOKENS).await.problem(status, code);
            create(client, "ci", "viewer").await.problem(status, code);
            client.post(TOKENS, &json!({})).await.problem(status, code);
            client.delete(&path(&abes)).await.problem(status, code);
        }
        create(&ada.without_csrf(), "ci", "viewer").await.problem(403, "csrf_failed");
        let page = abe.get(&format!("{TOKENS}?limit=1")).await.expect(200);
        assert_eq!(page["items"][0]["id"], abes["id"]);
        let cursor = page["next_cursor"].as_str().expect("there are more");
        let rest = abe.get(&format!("{TOKENS}?limit=1&cursor={cursor}")).await.expect(200);
        assert_eq!((&rest["items"][0]["id"], &rest["next_cursor"]), (&adas["id"], &Value::Null));
        let wrong = abe.get(&format!("{TOKENS}?cursor={}", &cursor[1..])).await;
        wrong.problem(422, "validation_failed");

        ada.delete(&path(&abes)).await.expect(204);
        refused(&ci.get(CASES).await);
        ada.delete(&format!("{TOKENS}/ci")).await.problem(422, "validation_failed");
        let log = host.log();
        for event in ["access_token_created", "access_token_revoked"] {
            let line = log.lines().find(|line| line.contains(event) && line.contains(abes["id"].as_str().expect("an id")));
            let line = line.unwrap_or_else(|| panic!("no {event} in the log"));
            assert!(line.contains(&ada.workspace) && line.contains("\"security\""), "{line}");
        }
    }

    async fn what_a_person_decides_no_token_does(backend) {
        let builder = Builder::new(backend).areas(&["invitations", "repohost", "support"]);
        let (mut host, ada) = builder.start_with_owner().await;
        let (ci, created) = machine(&mut host, &ada, "admin").await;
        let own = format!("{MEMBERS}/{}", created["user_id"].as_str().expect("an id"));
        for path in ["/v1/auth/session", "/v1/auth/security", "/v1/workspaces", TOKENS] {
            ci.get(path).await.problem_about(403, "permission_denied", "access token");
        }
        for path in ["/v1/auth/logout", "/v1/auth/password", "/v1/auth/mfa/enrol", "/v1/workspaces", TOKENS] {
            ci.post(path, &json!({})).await.problem(403, "permission_denied");
        }
        ci.delete(&path(&created)).await.problem(403, "permission_denied");
        ci.delete(&own).await.problem(403, "permission_denied");
        // The workspace of this operation is in the body, and the returned URL is for the session.
        let install = json!({ "workspace_id": ada.workspace });
        ci.post("/v1/repohost/app/install", &install).await.problem(403, "permission_denied");

        let invitations = "/v1/workspaces/{ws}/invitations";
        let invite = |role: &str| json!({ "email": format!("{role}@example.org"), "role": role });
        ci.post(invitations, &invite("owner")).await.problem(403, "permission_denied");
        ci.post(invitations, &invite("admin")).await.expect(201);
        ci.get(MEMBERS).await.expect(200);
    }

    async fn operators_make_list_and_revoke_tokens(backend) {
        let (mut host, ada) = host(backend).await;
        let mia = host.create_person("mia");
        host.add_member(&ada.workspace, &mia, "member");
        let create = |role: &'static str, days: &'static str| {
            let of_mia = ["access-token", "create", "--workspace", "first", "--user", &mia.email];
            [&of_mia[..], &["--name", "nightly", "--role", role, "--days", days]].concat()
        };
        let created = host.cli(&create("member", "30"));
        let token = created["token"].as_str().expect("a token");
        host.keep_secret(token);
        let ci = ada.machine(token);
        ci.open_case("by-the-operator").await.expect(201);
        for (role, days, why) in [("admin", "30", "higher than member"), ("viewer", "400", "365 days")] {
            let errors = host.refused(&create(role, days));
            assert!(errors.contains(why), "{errors}");
        }
        let listed = host.cli(&["access-token", "list", "--workspace", "first"]);
        assert_eq!(listed["access_tokens"][0]["id"], created["id"]);
        assert_eq!(listed["access_tokens"].as_array().map(Vec::len), Some(1));
        let id = created["id"].as_str().expect("an id");
        let table = host.command(&["access-token", "list", "--workspace", "first"]).output();
        let table = String::from_utf8(table.expect("the binary starts").stdout).expect("text");
        let rows: Vec<&str> = table.lines().collect();
        assert!(rows.len() == 2 && rows[0].starts_with("NAME"), "{table}");
        for cell in ["nightly", "member", &mia.email, id] {
            assert!(rows[1].contains(cell), "no {cell} in {table}");
        }
        let revoke = ["access-token", "revoke", "--workspace", "first", "--id", id];
        host.cli(&revoke);
        ci.status_within(PATIENCE, CASES, 401).await;
        host.refused(&revoke);
    }

    async fn a_workspace_has_so_many_tokens_at_most(backend) {
        let builder = Builder::new(backend).areas(&["support"]);
        let builder = builder.set("access_tokens.max_per_workspace", 2).set("access_tokens.max_days", 1);
        let (mut host, ada) = builder.start_with_owner().await;
        let (_, first) = machine(&mut host, &ada, "viewer").await;
        let late = json!({ "name": "ci", "role": "viewer", "expires_at": in_ms(2 * 86_400_000) });
        ada.post(TOKENS, &late).await.problem(422, "validation_failed");
        machine(&mut host, &ada, "viewer").await;
        create(&ada, "ci", "viewer").await.problem(409, "conflict");
        ada.delete(&path(&first)).await.expect(204);
        machine(&mut host, &ada, "viewer").await;
    }
}

#[tokio::test]
async fn each_token_has_a_rate_of_its_own_and_is_named_in_the_log() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("log.filter", "debug")
        .set("rates.enabled", true)
        .set("rates.session_burst", 10)
        .set("rates.session_per_minute", 60);
    let (mut host, ada) = builder.start_with_owner().await;
    let (one, created) = machine(&mut host, &ada, "member").await;
    let (other, _) = machine(&mut host, &ada, "member").await;
    let policy = |answer: &Answer| answer.header("ratelimit-policy").map(ToOwned::to_owned);
    let first = one.get(CASES).await;
    first.expect(200);
    assert!(policy(&first).is_some_and(|text| text.contains("\"access-token\";q=10")), "{first:?}");
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(one.get(CASES).await);
    }
    let limited = answers.iter().find(|answer| answer.status == 429).expect("a limit");
    limited.problem(429, "rate_limited");
    other.get(CASES).await.expect(200);
    ada.get(CASES).await.expect(200);
    // A request that takes no units has the rate limit headers, too.
    let nothing = one.get("/v1/nothing").await;
    assert!(policy(&nothing).is_some_and(|text| text.contains("access-token")), "{nothing:?}");
    let id = created["id"].as_str().expect("an id");
    let named = format!("\"access_token.id\":\"{id}\"");
    assert!(host.log().contains(&named), "no line of a request names the token");
}

#[tokio::test]
async fn what_is_no_token_costs_no_query_and_guesses_are_counted() {
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.unknown_sessions_per_minute", 3);
    let (mut host, ada) = builder.start_with_owner().await;
    let (known, _) = machine(&mut host, &ada, "viewer").await;
    known.get(CASES).await.expect(200);
    let text = known.token.clone().expect("a token");
    // Only tokens that were looked up in the database count as guesses.
    for n in 0..10 {
        let wrong_checksum = ada.machine(&format!("{}{n:04}", &text[..46]));
        refused(&wrong_checksum.get(CASES).await);
    }
    let unknown = ada.machine("was_00000000000000000000000000000000000000001XTrtK");
    for _ in 0..3 {
        refused(&unknown.get(CASES).await);
    }
    unknown.get(CASES).await.problem(429, "rate_limited");
    known.get(CASES).await.expect(200);
}
