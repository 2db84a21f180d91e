//! Tests of the area through a fake host and a simulated provider.

use area_sdk::testing::{EgressError, FakeHost, Incoming, Request};
use area_sdk::wit::Outcome;
use area_sdk::wit::assurance::area::manifest::BodyKind;
use area_sdk::wit::assurance::area::types::ProblemKind;
use serde_json::{Value, json};

const ISSUER: &str = "https://id.example";
const SECRET: &str = "the client secret";

fn new(name: &str, domain: &str) -> Value {
    json!({
        "name": name, "issuer": ISSUER, "client_id": "workspace", "client_secret": SECRET,
        "domains": [domain], "claims_mapping": { "groups": "roles" },
        "role_mapping": { "security": "admin" },
    })
}

fn create(host: &FakeHost, body: Value) -> Result<Value, area_sdk::Problem> {
    host.call(Request::to("create_identity_provider").json(body)).map(|answer| answer.body)
}

fn one(host: &FakeHost) -> Value {
    create(host, new("Main", "Example.COM")).expect("a provider")
}

fn to(operation: &str, provider: &Value) -> Request {
    Request::to(operation).with("provider_id", provider["id"].clone())
}

fn call(host: &FakeHost, operation: &str, provider: &Value, body: Value) -> Value {
    host.call(to(operation, provider).json(body)).expect(operation).body
}

fn show(host: &FakeHost, provider: &Value) -> Value {
    host.call(to("get_identity_provider", provider)).expect("shown").body
}

fn answer(status: u16, body: &Value) -> Result<Incoming, EgressError> {
    Ok(Incoming { status, headers: Vec::new(), body: body.to_string().into_bytes() })
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": "https://id.example/authorize",
        "token_endpoint": "https://id.example/token",
        "jwks_uri": "https://id.example/keys",
        "response_types_supported": ["code"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

fn keys(n: &str) -> Value {
    json!({ "keys": [{ "kty": "RSA", "n": n, "e": "AQAB" }] })
}

/// Simulates an identity provider with this issuer and this RSA modulus in its key set.
fn plays(host: &FakeHost, issuer: &'static str, n: &'static str) {
    host.network(move |request| {
        if request.url.ends_with("/keys") {
            answer(200, &keys(n))
        } else {
            answer(200, &metadata(issuer))
        }
    });
}

/// Runs every step of the last enqueued job as attempt `attempt`.
fn discover(host: &FakeHost, attempt: u32) -> Outcome {
    let job = host.take_jobs().pop().expect("a job");
    host.run_to_end(&job.kind, job.payload, attempt)
}

#[test]
fn the_list_has_exactly_the_fields_of_the_contract_by_name() {
    let host = FakeHost::new(crate::area());
    create(&host, new("Zebra", "z.example")).expect("a provider");
    one(&host);
    let list = host.call(Request::to("list_identity_providers")).expect("a list").body;
    let names: Vec<_> = list.as_array().expect("an array").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["Main", "Zebra"]);
    let mut members: Vec<&String> = list[0].as_object().expect("an object").keys().collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "claims_mapping",
            "client_id",
            "created_at",
            "discovery_metadata",
            "domains",
            "id",
            "issuer",
            "jwks_sha256",
            "last_rotated_at",
            "name",
            "role_mapping",
            "status",
            "updated_at",
            "version",
            "workspace_id"
        ]
    );
    assert_eq!((&list[0]["status"], &list[0]["version"]), (&json!("draft"), &json!(1)));
    assert_eq!(list[0]["domains"], json!(["example.com"]));
    let claims = json!({ "subject": "sub", "email": "email", "name": "name", "groups": "roles" });
    assert_eq!(list[0]["claims_mapping"], claims);
    assert_eq!(list[0]["role_mapping"], json!({ "security": "admin" }));
}

#[test]
fn a_discovery_makes_a_provider_active_and_its_keys_known() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    plays(&host, ISSUER, "n1");
    assert_eq!(discover(&host, 1), Outcome::Done);
    let urls: Vec<String> = host.sent().into_iter().map(|sent| sent.url).collect();
    assert_eq!(
        urls,
        ["https://id.example/.well-known/openid-configuration", "https://id.example/keys"]
    );
    let active = show(&host, &made);
    assert_eq!((&active["status"], &active["version"]), (&json!("active"), &json!(2)));
    assert_eq!(active["discovery_metadata"], metadata(ISSUER));
    // SHA-256 of {"keys":[{"e":"AQAB","kty":"RSA","n":"n1"}]}, computed by sha256sum.
    assert_eq!(
        active["jwks_sha256"],
        "86c5aacafc2c43fd7fdc642ab556f4fecf0d55a5f13e6e6367cabcce95dfe36f"
    );
    assert_eq!(host.events()[1].name, "identity_provider.activated");
}

#[test]
fn a_secret_is_shown_nowhere() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    plays(&host, ISSUER, "n1");
    call(&host, "rotate_identity_provider", &made, json!({ "client_secret": "another secret" }));
    discover(&host, 1);
    let everything = format!(
        "{made}{}{:?}{:?}{:?}{:?}",
        show(&host, &made),
        host.documents("providers"),
        host.events(),
        host.jobs(),
        host.log_lines()
    );
    assert!(!everything.contains(SECRET) && !everything.contains("another secret"));
    assert_eq!(show(&host, &made)["has_client_secret"], true);
}

#[test]
fn what_cannot_be_discovered_has_a_code() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    plays(&host, "https://id.example/", "n1");
    assert_eq!(discover(&host, 1), Outcome::Done);
    let failed = show(&host, &made);
    assert_eq!(
        (&failed["status"], &failed["last_error_code"]),
        (&json!("error"), &json!("issuer_mismatch"))
    );
    assert_eq!(
        (&failed["jwks_sha256"], &failed["discovery_metadata"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(host.sent().len(), 1, "its keys are not asked for");
    assert_eq!(host.events()[1].data["error_code"], "issuer_mismatch");

    for (status, code) in [(301, "redirected"), (404, "not_found"), (403, "request_rejected")] {
        call(&host, "enable_identity_provider", &made, json!({}));
        host.network(move |_| answer(status, &json!({})));
        discover(&host, 1);
        assert_eq!(show(&host, &made)["last_error_code"], code);
    }
    call(&host, "enable_identity_provider", &made, json!({}));
    plays(&host, ISSUER, "n1");
    discover(&host, 1);
    assert_eq!(
        (&show(&host, &made)["status"], &show(&host, &made)["last_error_code"]),
        (&json!("active"), &Value::Null)
    );
}

#[test]
fn a_provider_that_is_away_is_asked_three_times() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    let job = host.jobs().pop().expect("a job");
    host.network(|_| Err(EgressError::Timeout));
    assert!(matches!(discover(&host, 1), Outcome::Retry((_, why)) if why == "timeout"));
    assert_eq!(
        (&show(&host, &made)["status"], &show(&host, &made)["last_error_code"]),
        (&json!("draft"), &json!("timeout"))
    );
    let Ok(Outcome::Continue(checkpoint)) = host.run(&job.kind, job.payload, 3) else {
        panic!("looked up")
    };
    let checkpoint: Value = serde_json::from_str(&checkpoint).expect("JSON");
    assert_eq!(host.run(&job.kind, checkpoint, 3), Ok(Outcome::Done));
    assert_eq!(show(&host, &made)["status"], "error");
}

#[test]
fn a_rotation_reads_the_keys_again_and_an_earlier_discovery_does_not_count() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    plays(&host, ISSUER, "n1");
    let early = host.take_jobs().pop().expect("a job");
    let rotated = call(&host, "rotate_identity_provider", &made, json!({}));
    assert_eq!(rotated["last_rotated_at"], json!(host.now()));
    assert_eq!(host.run(&early.kind, early.payload, 1), Ok(Outcome::Done));
    assert_eq!(show(&host, &made)["status"], "draft");
    discover(&host, 1);
    let first = show(&host, &made)["jwks_sha256"].clone();
    plays(&host, ISSUER, "n2");
    call(&host, "rotate_identity_provider", &made, json!({}));
    discover(&host, 1);
    assert_ne!(show(&host, &made)["jwks_sha256"], first);
}

#[test]
fn a_provider_that_is_off_stays_off() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    plays(&host, ISSUER, "n1");
    call(&host, "disable_identity_provider", &made, json!({}));
    discover(&host, 1);
    let off = show(&host, &made);
    assert_eq!(off["status"], "disabled");
    assert!(off["jwks_sha256"].is_string());
    let again = call(&host, "disable_identity_provider", &made, json!({}));
    assert_eq!(again["version"], off["version"]);
    assert_eq!(call(&host, "enable_identity_provider", &made, json!({}))["status"], "draft");
    discover(&host, 1);
    assert_eq!(show(&host, &made)["status"], "active");
}

#[test]
fn a_draft_whose_discovery_was_cancelled_can_be_enabled() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    plays(&host, ISSUER, "n1");
    assert_eq!(host.take_jobs().len(), 1, "the job that an admin cancels");
    call(&host, "enable_identity_provider", &made, json!({}));
    discover(&host, 1);
    let active = show(&host, &made);
    assert_eq!(active["status"], "active");
    let again = call(&host, "enable_identity_provider", &made, json!({}));
    assert_eq!((again["version"].clone(), host.take_jobs().len()), (active["version"].clone(), 0));
}

#[test]
fn names_and_domains_belong_to_one_provider() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    let code = |result: Result<Value, area_sdk::Problem>| result.expect_err("refused").code;
    assert_eq!(code(create(&host, new("Main", "b.example"))).as_deref(), Some("name_taken"));
    assert_eq!(code(create(&host, new("Other", "EXAMPLE.com"))).as_deref(), Some("domain_taken"));
    assert_eq!(host.documents("domains").len(), 1);
    let changed =
        call(&host, "update_identity_provider", &made, json!({ "domains": ["b.example"] }));
    assert_eq!(changed["domains"], json!(["b.example"]));
    let other = create(&host, new("Other", "example.com")).expect("free again");
    assert_eq!(host.call(to("delete_identity_provider", &other)).expect("deleted").status, 204);
    create(&host, new("Third", "example.com")).expect("free again");
}

#[test]
fn what_is_wrong_is_named_by_its_place() {
    let host = FakeHost::new(crate::area());
    let refused = |member: &str, value: Value| {
        let mut body = new("Main", "a.example");
        body[member] = value;
        create(&host, body).expect_err(member).violations[0].pointer.clone()
    };
    assert_eq!(refused("issuer", json!("http://id.example")), "/issuer");
    assert_eq!(refused("issuer", json!("https://id.example?x")), "/issuer");
    assert_eq!(refused("domains", json!(["a.example", "localhost"])), "/domains/1");
    assert_eq!(refused("name", json!(" ")), "/name");
    assert_eq!(refused("claims_mapping", json!({ "email": "" })), "/claims_mapping");
    assert_eq!(refused("claims_mapping", json!({})), "/role_mapping", "no claim has groups");
    let owner = create(&host, {
        let mut body = new("Main", "a.example");
        body["role_mapping"] = json!({ "x": "owner" });
        body
    });
    assert_eq!(owner.expect_err("owner").kind, ProblemKind::ValidationFailed);
}

#[test]
fn changes_honour_if_match() {
    let host = FakeHost::new(crate::area());
    let made = one(&host);
    for operation in [
        "update_identity_provider",
        "rotate_identity_provider",
        "disable_identity_provider",
        "enable_identity_provider",
        "delete_identity_provider",
    ] {
        let refused = host.call(to(operation, &made).json(json!({})).if_match(9));
        assert_eq!(refused.expect_err(operation).kind, ProblemKind::VersionConflict);
    }
    let changes = json!({ "name": "New", "client_id": "other", "role_mapping": {} });
    let changed = host.call(to("update_identity_provider", &made).json(changes).if_match(1));
    let changed = changed.expect("changed");
    assert_eq!((changed.version, &changed.body["name"]), (Some(2), &json!("New")));
}

#[test]
fn the_manifest_says_what_a_body_is() {
    let routes = crate::area().manifest().routes;
    let create = routes.iter().find(|route| route.operation_id == "create_identity_provider");
    let BodyKind::Json(schema) = &create.expect("a route").body else { panic!("JSON") };
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    assert_eq!(schema["required"], json!(["name", "issuer", "client_id", "domains"]));
}
