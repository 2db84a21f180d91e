//! Compares the SDK's fake host with the service: the same requests run on it, on SQLite and on
//! PostgreSQL, and the responses must be equal.

use area_sdk::testing::{FakeHost, Request};
use area_sdk::wit::assurance::area::types::ProblemKind;
use assurance_tests::{Builder, both_backends};
use serde_json::{Value, json};

const PATH: &str = "/v1/workspaces/{ws}/documents";

/// Documents with values of each type, documents without some members, and texts that databases
/// sort or compare differently.
fn items() -> Vec<Value> {
    let items = [
        ("a", json!({ "name": "Alpha", "rank": 3, "done": true, "key": "k1" })),
        ("b", json!({ "name": "alpha", "rank": 1, "done": false })),
        ("c", json!({ "name": "Beta", "rank": 2, "done": true })),
        ("d", json!({ "name": "beta_x%y", "rank": 2 })),
        ("e", json!({ "name": "Ärger", "rank": -5, "done": false })),
        ("f", json!({ "name": "ärger\\z", "done": true })),
        ("g", json!({ "rank": 9_007_199_254_740_991_i64 })),
        ("h", json!({})),
        ("i", json!({ "name": "", "rank": 0, "done": false, "key": "k2" })),
        ("j", json!({ "name": "alphabet", "rank": 3, "done": true })),
        ("k", json!({ "name": "zeta 🦀", "rank": 2, "done": false })),
    ];
    let create = |(id, item)| json!({ "do": "create", "id": id, "item": item });
    items.into_iter().map(create).collect()
}

/// Conditions whose documents are queried in every order and page size.
fn conditions() -> Vec<Value> {
    let one = |test: &str, field: &str, more: Value| {
        let mut condition = json!({ "test": test, "fields": [field] });
        condition
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        json!([condition])
    };
    vec![
        json!([]),
        one("equals", "name", json!({ "value": "alpha" })),
        one("equals", "rank", json!({ "value": 2 })),
        one("equals", "done", json!({ "value": false })),
        one("equals", "done", json!({ "value": null })),
        one("equals", "name", json!({ "value": null })),
        one("one_of", "rank", json!({ "values": [3, 1, 3] })),
        one("one_of", "name", json!({ "values": ["Beta", "nobody"] })),
        one("one_of", "name", json!({ "values": [] })),
        one("range", "rank", json!({ "from": 1, "below": 3 })),
        one("range", "rank", json!({ "below": 2 })),
        one("range", "name", json!({ "from": "a", "below": "b" })),
        one("prefix", "name", json!({ "text": "alpha" })),
        one("prefix", "name", json!({ "text": "beta_" })),
        one("prefix", "name", json!({ "text": "" })),
        one("contains", "name", json!({ "text": "ALPHA" })),
        one("contains", "name", json!({ "text": "_x%" })),
        one("contains", "name", json!({ "text": "\\" })),
        one("contains", "name", json!({ "text": "ÄRGER" })),
        json!([
            { "test": "equals", "fields": ["done"], "value": true },
            { "test": "contains", "fields": ["name", "key"], "text": "a" },
        ]),
    ]
}

/// All requests; each is one call.
fn table() -> Vec<Value> {
    let orders =
        [json!([]), json!(["rank"]), json!(["-rank"]), json!(["name"]), json!(["done", "-name"])];
    let mut calls = vec![json!({ "steps": items() })];
    for conditions in conditions() {
        let mut steps = vec![
            json!({ "do": "count", "where": conditions }),
            json!({ "do": "count_up_to", "where": conditions }),
            json!({ "do": "count_by", "where": conditions, "fields": ["done"] }),
            json!({ "do": "count_by", "where": conditions, "fields": ["rank", "done"] }),
        ];
        for order in &orders {
            for limit in [1, 3, 50] {
                let step =
                    json!({ "do": "pages", "where": conditions, "order": order, "limit": limit });
                steps.push(step);
            }
            steps.push(json!({ "do": "pages", "where": conditions, "order": order, "after": "c", "limit": 2 }));
        }
        calls.push(json!({ "steps": steps }));
    }
    calls.extend(writes());
    calls
}

/// Writes with their responses, within a call and between calls.
fn writes() -> Vec<Value> {
    let create = |id: &str, item: Value| json!({ "do": "create", "id": id, "item": item });
    let get = |id: &str| json!({ "do": "get", "id": id });
    vec![
        json!({ "steps": [create("a", json!({}))] }),
        json!({ "steps": [create("n", json!({ "rank": 7 })), create("n", json!({})), get("n")] }),
        json!({ "steps": [
            { "do": "replace", "id": "n", "item": { "rank": 8 } }, get("n"),
            { "do": "count", "where": [{ "test": "equals", "fields": ["rank"], "value": 8 }] },
            { "do": "delete", "id": "n" }, get("n"), { "do": "delete", "id": "n" },
            create("n", json!({ "name": "again" })), get("n"),
        ] }),
        json!({ "steps": [get("n"), { "do": "get_many", "ids": ["c", "nobody", "a", "c"] }] }),
        json!({ "steps": [{ "do": "replace", "id": "nobody", "item": {} }] }),
        json!({ "steps": [create("u", json!({ "key": "k1" }))] }),
        json!({ "steps": [get("u")] }),
        json!({ "steps": [create("v", json!({})), create("w", json!({})), get("v"), get("w")] }),
        json!({ "steps": [{ "do": "cursor", "cursor": "not a cursor", "order": ["rank"] }] }),
    ]
}

/// Status and body of a response; refusals have no body here.
type Outcome = (u16, Value);

fn by_fake_host() -> Vec<Outcome> {
    let host = FakeHost::new(fixture_asks_documents::area());
    let outcome = |call: &Value| match host.call(Request::to("ask_documents").json(call.clone())) {
        Ok(answer) => (answer.status, answer.body),
        Err(problem) if problem.kind == ProblemKind::Conflict => (409, Value::Null),
        Err(problem) => panic!("{problem:?}"),
    };
    table().iter().map(outcome).collect()
}

both_backends! {
    async fn the_fake_host_answers_as_the_service_does(backend) {
        let (_host, ada) = Builder::new(backend).fixtures(&["asks-documents"]).start_with_owner().await;
        let expected = by_fake_host();
        for (call, expected) in table().iter().zip(expected) {
            let answer = ada.post(PATH, call).await;
            let body = if answer.status < 400 { answer.json() } else { Value::Null };
            assert_eq!((answer.status, body), expected, "{call}");
        }
    }
}
