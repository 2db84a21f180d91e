//! Responses of the operators' API match its OpenAPI document.

use assurance_tests::components::fixture;
use assurance_tests::operators::{digest, items, stamped};
use assurance_tests::{Answer, Backend, Builder, Client, TestHost};
use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

/// The operators' OpenAPI document of a running host.
struct Document(Value);

impl Document {
    async fn of(host: &TestHost) -> Self {
        let mut document = host.operate(Method::GET, "/openapi.json").await.expect(200);
        close(&mut document["components"]["schemas"]);
        Self(document)
    }

    /// Returns a validator for an operation's response with a status.
    fn validator(&self, id: &str, status: &str) -> Validator {
        let operation = self.operations().find(|operation| operation["operationId"] == id);
        let operation = operation.unwrap_or_else(|| panic!("no operation {id}"));
        let content = operation["responses"][status]["content"].as_object().expect("content");
        let mut schema = content.values().next().expect("a media type")["schema"].clone();
        schema["components"] = self.0["components"].clone();
        jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{id}: {error}"))
    }

    fn operations(&self) -> impl Iterator<Item = &Value> {
        let paths = self.0["paths"].as_object().expect("paths");
        paths.values().flat_map(|path| path.as_object().expect("methods").values())
    }

    /// Asserts that a response matches the operation's schema. Returns its body.
    fn check(&self, id: &str, answer: &Answer) -> Value {
        let told = answer.expect(200);
        self.validate(id, "200", &told);
        told
    }

    fn validate(&self, id: &str, status: &str, told: &Value) {
        let validator = self.validator(id, status);
        let wrong: Vec<_> = validator
            .iter_errors(told)
            .map(|error| format!("{} {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{id}: {wrong:#?}\n{told:#}");
    }
}

/// Forbids additional members of objects, so that a response with one fails.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") && members["properties"].is_object() {
                members.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

async fn host() -> (TestHost, Client) {
    Builder::new(Backend::Sqlite).fixtures(&["echo", "trap"]).start_with_owner().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_says_what_it_answers() {
    let (host, _) = host().await;
    let document = Document::of(&host).await;
    for operation in document.operations() {
        let id = operation["operationId"].as_str().expect("an id");
        document.validator(id, "200");
        document.validator(id, "default");
        if operation["security"].is_array() {
            document.validator(id, "401");
            document.validator(id, "403");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_is_what_the_document_says() {
    let (host, ada) = host().await;
    let document = Document::of(&host).await;
    ada.post("/v1/workspaces/{ws}/fixtures/trap", &json!({})).await.problem(502, "area_fault");
    let put = host.put_area("echo", &stamped(&fixture("echo"), 1)).await;
    document.check("deploy_version", &put);
    for (id, path) in [
        ("live", "/health/live"),
        ("ready", "/health/ready"),
        ("list_areas", "/areas"),
        ("get_area", "/areas/echo"),
        ("list_versions", "/areas/echo/history"),
        ("read_logs", "/areas/trap/logs"),
        ("get_manifest", "/areas/echo/manifest"),
        ("list_audit_log", "/audit-log"),
        ("get_usage", "/usage"),
    ] {
        document.check(id, &host.operate(Method::GET, path).await);
    }
    let logs = host.operate(Method::GET, "/areas/trap/logs").await.expect(200);
    assert!(!items(&logs["lines"]).is_empty() && !items(&logs["faults"]).is_empty(), "{logs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_decided_is_answered_as_the_document_says() {
    let (host, _) = host().await;
    let document = Document::of(&host).await;
    let [one, two] = [1, 2].map(|stamp| stamped(&fixture("echo"), stamp));
    document.check("deploy_version", &host.put_area("echo", &one).await);
    document.check("deploy_version", &host.put_area("echo?shadow=50", &two).await);
    let area = host.operate(Method::GET, "/areas/echo").await;
    assert!(document.check("get_area", &area)["trial"]["figures"].is_object());
    document.check("get_differences", &host.operate(Method::GET, "/areas/echo/shadow").await);

    for query in ["activate=true", "canary=5"] {
        let name = format!("echo?dry_run=true&{query}");
        let dry = host.put_area(&name, &stamped(&fixture("echo"), 3)).await;
        let findings = &document.check("deploy_version", &dry)["findings"];
        // The running shadow prevents a canary.
        assert_eq!(items(findings).len(), usize::from(query == "canary=5"), "{findings}");
    }

    let reason = json!({"reason": "the test says so"});
    let which = json!({"digest": digest(&two), "share": 10});
    for (id, path, body) in [
        ("stop_trial", "/areas/echo/stop", &reason),
        ("begin_shadow", "/areas/echo/shadow", &which),
        ("stop_trial", "/areas/echo/stop", &reason),
        ("begin_canary", "/areas/echo/canary", &which),
        ("activate_version", "/areas/echo/activate", &json!({})),
        ("activate_version", "/areas/echo/activate", &json!({"digest": digest(&two)})),
        ("roll_back", "/areas/echo/rollback", &reason),
        ("activate_version", "/areas/echo/activate", &json!({"digest": &digest(&two)[..8]})),
        (
            "roll_back",
            "/areas/echo/rollback",
            &json!({"reason": "by name", "to": &digest(&one)[..8]}),
        ),
    ] {
        document.check(id, &host.operate_with(path, body).await);
    }
    let gone = host.operate(Method::DELETE, "/areas/echo?reason=enough").await;
    document.check("remove_area", &gone);
    document.check("get_area", &host.operate(Method::GET, "/areas/echo").await);

    let unknown = host.operate(Method::GET, "/areas/nothing").await.problem(404, "not_found");
    document.validate("get_area", "default", &unknown);
    host.operate(Method::GET, "/areas/%FF").await.problem(400, "malformed_request");
    let nobody = Client::nobody(&host.operators);
    let refused = nobody.get("/areas").await.problem(401, "unauthenticated");
    document.validate("list_areas", "401", &refused);
}
