//! Examples for the documentation, recorded from calls of a running service: of each operation the
//! JSON body of a request and of its response, without what differs between runs.

mod neutral;

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Map, Value};

use crate::client::send;
use crate::{Answer, Client, until};

pub use neutral::Neutral;

/// Calls operations by their ids and keeps an example of each.
#[derive(Debug)]
pub struct Recorder {
    /// Caller of the next operation.
    pub client: Client,
    /// Values of path parameters.
    parameters: BTreeMap<String, String>,
    /// The OpenAPI document.
    document: Value,
    /// By operation id: `request` and `response`, as far as they are JSON.
    examples: BTreeMap<String, Value>,
}

impl Recorder {
    /// Reads the OpenAPI document of the client's service.
    pub async fn start(client: &Client) -> Self {
        let document = client.get("/openapi.json").await.expect(200);
        let workspace = ("workspace_id".to_owned(), client.workspace.clone());
        let parameters = BTreeMap::from([workspace]);
        Self { client: client.clone(), parameters, document, examples: BTreeMap::new() }
    }

    /// Sets a path parameter of the next calls to the id of a resource.
    pub fn set(&mut self, parameter: &str, resource: &Value) {
        let id = resource["id"].as_str().unwrap_or_else(|| panic!("no id: {resource:#}"));
        self.parameters.insert(parameter.to_owned(), id.to_owned());
    }

    /// Returns the value of a path parameter.
    #[must_use]
    pub fn id(&self, parameter: &str) -> &str {
        self.parameters.get(parameter).unwrap_or_else(|| panic!("{parameter} is not set"))
    }

    /// Calls an operation without a body.
    pub async fn act(&mut self, operation: &str) -> Value {
        self.call(operation, "", &Value::Null).await.json_or_null()
    }

    /// Calls an operation with a JSON body.
    pub async fn send(&mut self, operation: &str, body: Value) -> Value {
        self.call(operation, "", &body).await.json_or_null()
    }

    /// Calls an operation with a JSON body and sets a path parameter to the id of the response.
    pub async fn create(&mut self, operation: &str, parameter: &str, body: Value) -> Value {
        let created = self.send(operation, body).await;
        self.set(parameter, &created);
        created
    }

    /// Reads until the response meets the condition.
    pub async fn until(&mut self, operation: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until(format!("{operation} returns the awaited content"), async || {
            let found = self.act(operation).await;
            if wanted(&found) { Ok(found) } else { Err(found) }
        })
        .await
    }

    /// Calls an operation with a query and keeps the example.
    pub async fn call(&mut self, operation: &str, query: &str, body: &Value) -> Answer {
        let (method, path) = self.address(operation);
        let mut request = self.client.request(method.clone(), &format!("{path}{query}"));
        if method == Method::POST {
            let key = body["idempotency_key"].as_str().map(str::to_owned);
            let key = key.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
            request = request.header("idempotency-key", key);
        }
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = send(request).await;
        assert!(answer.status < 300, "{operation}: {}", answer.text());
        self.keep(operation, body, &answer);
        answer
    }

    /// Keeps the example of a call.
    pub fn keep(&mut self, operation: &str, body: &Value, answer: &Answer) {
        let mut example = Map::new();
        for (member, value) in [("request", body.clone()), ("response", answer.json_or_null())] {
            if !value.is_null() {
                example.insert(member.to_owned(), value);
            }
        }
        let neutral = Neutral::new(&self.client.base).value(&Value::Object(example));
        self.examples.insert(operation.to_owned(), neutral);
    }

    /// Returns method and path of an operation.
    ///
    /// # Panics
    /// There is no such operation, or a path parameter is not set.
    #[must_use]
    pub fn address(&self, operation: &str) -> (Method, String) {
        let found = self.operation(operation);
        let part = |part: &str| match part.strip_prefix('{') {
            Some(name) => self.id(name.trim_end_matches('}')).to_owned(),
            None => part.to_owned(),
        };
        let path: Vec<String> = found.path.split('/').map(part).collect();
        (found.method.to_uppercase().parse().expect("a method"), path.join("/"))
    }

    /// Returns the example of a request that the document shows.
    #[must_use]
    pub fn shown_request(&self, operation: &str) -> Value {
        let content = &self.operation(operation).described["requestBody"]["content"];
        content["application/json"]["example"].clone()
    }

    fn operation(&self, id: &str) -> Operation<'_> {
        let found = operations(&self.document).find(|one| one.id() == id);
        found.unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// Returns the document and the examples.
    #[must_use]
    pub fn finish(self) -> (Value, BTreeMap<String, Value>) {
        (self.document, self.examples)
    }
}

impl Answer {
    fn json_or_null(&self) -> Value {
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }
}

/// An operation of an OpenAPI document.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'d> {
    /// In lower case.
    pub method: &'d str,
    /// Template of the path.
    pub path: &'d str,
    /// The operation object.
    pub described: &'d Value,
}

/// Returns the operations of a document.
pub fn operations(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    let paths = document["paths"].as_object().expect("paths");
    paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("operations");
        methods.iter().map(move |(method, described)| Operation { method, path, described })
    })
}

impl<'d> Operation<'d> {
    /// Returns the operation id.
    #[must_use]
    pub fn id(&self) -> &'d str {
        self.described["operationId"].as_str().expect("an id")
    }

    /// Returns the media type objects of JSON bodies: of the request, and of the success.
    #[must_use]
    pub fn bodies(&self) -> Vec<(&'static str, &'d Value)> {
        let responses = self.described["responses"].as_object().expect("responses");
        let success = responses.iter().find(|(status, _)| status.starts_with('2'));
        let success = success.map(|(_, response)| &response["content"]["application/json"]);
        let request = &self.described["requestBody"]["content"]["application/json"];
        let bodies = [("request", request), ("response", success.unwrap_or(&Value::Null))];
        bodies.into_iter().filter(|(_, body)| !body.is_null()).collect()
    }
}

/// Compares two examples by members and kinds of values. Returns the pointers of differences. A null
/// and an empty list are like every value and list: whether a value is known may depend on time.
#[must_use]
pub fn differences(kept: &Value, fresh: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(kept, fresh, "", &mut found);
    found
}

fn compare(kept: &Value, fresh: &Value, pointer: &str, found: &mut Vec<String>) {
    match (kept, fresh) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(kept), Value::Object(fresh)) => {
            for (name, value) in kept {
                let pointer = format!("{pointer}/{name}");
                match fresh.get(name) {
                    Some(fresh) => compare(value, fresh, &pointer, found),
                    None => found.push(format!("{pointer} is gone")),
                }
            }
            let new = fresh.keys().filter(|name| !kept.contains_key(*name));
            found.extend(new.map(|name| format!("{pointer}/{name} is new")));
        }
        (Value::Array(kept), Value::Array(fresh)) => {
            for (at, (kept, fresh)) in kept.iter().zip(fresh).enumerate() {
                compare(kept, fresh, &format!("{pointer}/{at}"), found);
            }
        }
        (kept, fresh) => {
            if std::mem::discriminant(kept) != std::mem::discriminant(fresh) {
                found.push(format!("{pointer} was {kept} and is {fresh}"));
            }
        }
    }
}

/// Returns an example as it is stored.
#[must_use]
pub fn stored(example: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(example).expect("JSON"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_and_kinds_are_compared_and_values_are_not() {
        let kept = json!({ "a": 1, "b": null, "c": ["x"], "d": { "e": true } });
        let same = json!({ "a": 2, "b": "known", "c": [], "d": { "e": false } });
        assert_eq!(differences(&kept, &same), Vec::<String>::new());
        let other = json!({ "a": "1", "b": null, "c": ["x"], "d": { "f": true } });
        let expected = ["/a was 1 and is \"1\"", "/d/e is gone", "/d/f is new"];
        assert_eq!(differences(&kept, &other), expected);
    }
}
