//! Checks responses against the contract's field tables (`tests/contract.json`, a copy of the
//! specification). Missing, additional and wrongly typed fields are reported by JSON Pointer.

use std::path::Path;

use serde_json::{Map, Value};

/// The field tables.
#[derive(Debug)]
pub struct Contract(Value);

impl Contract {
    /// Reads the copy next to this crate's manifest.
    #[must_use]
    pub fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("contract.json");
        let text = std::fs::read_to_string(file).expect("contract.json");
        Self(serde_json::from_str(&text).expect("JSON"))
    }

    /// Returns the entries of the operations, in order.
    #[must_use]
    pub fn operations(&self) -> &[Value] {
        self.0["operations"].as_array().expect("operations")
    }

    /// Returns the type that an operation returns.
    #[must_use]
    pub fn returns(&self, operation: u64) -> &str {
        let found = self.operations().iter().find(|entry| entry["n"] == operation);
        found.and_then(|entry| entry["returns"].as_str()).expect("a known operation")
    }

    /// Asserts that a response has exactly the contract's shape.
    #[track_caller]
    pub fn check(&self, operation: u64, answer: &Value) {
        let wrong = self.violations(self.returns(operation), answer);
        assert!(wrong.is_empty(), "operation {operation}:\n{}\n{answer:#}", wrong.join("\n"));
    }

    /// Returns every violation of a type by a value.
    #[must_use]
    pub fn violations(&self, kind: &str, value: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        if value.is_null() {
            wrong.push(format!("the whole is null, {kind} expected"));
        }
        self.compare(kind, value, "", &mut wrong);
        wrong
    }

    /// Adds to `wrong` the types of the contract that have another name in the OpenAPI document, at
    /// every depth.
    pub fn misnamed(&self, document: &Value, kind: &str, schema: &Value, wrong: &mut Vec<String>) {
        if let Some(items) = kind.strip_suffix("[]") {
            return self.misnamed(document, items, &schema["items"], wrong);
        }
        let Some(fields) = self.0["types"].get(kind).and_then(Value::as_object) else { return };
        let branches =
            schema["anyOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
        let target =
            branches.iter().find_map(|branch| branch["$ref"].as_str()).unwrap_or("nothing");
        if target != format!("#/components/schemas/{kind}") {
            wrong.push(format!("{kind} is {target}"));
            return;
        }
        let component = &document["components"]["schemas"][kind];
        for (name, kind) in fields {
            let kind = kind.as_str().expect("a type");
            self.misnamed(document, kind, &component["properties"][name], wrong);
        }
    }

    fn compare(&self, kind: &str, value: &Value, pointer: &str, wrong: &mut Vec<String>) {
        if let Some(items) = kind.strip_suffix("[]") {
            match value.as_array() {
                Some(array) => {
                    for (index, item) in array.iter().enumerate() {
                        let pointer = format!("{pointer}/{index}");
                        if item.is_null() {
                            wrong.push(format!("{pointer} is null inside an array"));
                        }
                        self.compare(items, item, &pointer, wrong);
                    }
                }
                None => wrong.push(format!("{pointer} is no array (of {items}): {value}")),
            }
        } else if let Some(fields) = self.0["types"].get(kind).and_then(Value::as_object) {
            match value.as_object() {
                Some(object) => self.compare_fields(fields, object, pointer, wrong),
                None if value.is_null() => {}
                None => wrong.push(format!("{pointer} is no {kind}: {value}")),
            }
        } else if !is_scalar_of(kind, value) {
            wrong.push(format!("{pointer} is no {kind}: {value}"));
        }
    }

    fn compare_fields(
        &self,
        fields: &Map<String, Value>,
        object: &Map<String, Value>,
        pointer: &str,
        wrong: &mut Vec<String>,
    ) {
        for (name, kind) in fields {
            let pointer = format!("{pointer}/{name}");
            match (object.get(name), kind.as_str()) {
                (Some(value), Some(kind)) => self.compare(kind, value, &pointer, wrong),
                _ => wrong.push(format!("{pointer} is missing")),
            }
        }
        for name in object.keys().filter(|name| !fields.contains_key(*name)) {
            wrong.push(format!("{pointer}/{name} is not in the contract"));
        }
    }
}

/// Whether a value has one of the contract's basic types. Unknown values are null, except in maps.
fn is_scalar_of(kind: &str, value: &Value) -> bool {
    let text = value.as_str();
    match kind {
        "map" => is_map(value, Value::is_i64),
        "string-map" => is_map(value, Value::is_string),
        _ if value.is_null() => true,
        "string" => text.is_some(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "uuid" => text.is_some_and(is_uuid),
        "timestamp" => text.is_some_and(is_timestamp),
        "date" => text.is_some_and(|text| fits(text, "0000-00-00")),
        "decimal" => text.is_some_and(is_decimal),
        "email" => text.is_some_and(|text| text.contains('@')),
        "uri" => text.is_some_and(|text| text.contains(':')),
        other => panic!("contract.json names an unknown type {other}"),
    }
}

fn is_map(value: &Value, holds: fn(&Value) -> bool) -> bool {
    value.as_object().is_some_and(|map| map.values().all(holds))
}

fn is_uuid(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok_and(|id| id.hyphenated().to_string() == text)
}

/// Whether a text is RFC 3339 in UTC with `Z` and microseconds.
fn is_timestamp(text: &str) -> bool {
    fits(text, "0000-00-00T00:00:00.000000Z")
}

fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(whole.strip_prefix('-').unwrap_or(whole)) && digits(fraction)
}

/// Whether a text matches a pattern in which `0` stands for any digit.
fn fits(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| {
            if wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn session() -> Value {
        let user = json!({
            "display_name": "Ada", "email": "ada@example.org", "email_verified": true,
            "id": "0190163d-8694-739b-aea5-966c26f8ad91",
        });
        json!({ "csrf_token": "t", "user": user })
    }

    #[test]
    fn an_exact_answer_has_no_violation() {
        assert_eq!(Contract::read().violations("Session", &session()), [""; 0]);
    }

    #[test]
    fn a_missing_an_extra_and_a_mistyped_field_are_each_named() {
        let mut answer = session();
        answer["user"]["email_verified"] = json!("yes");
        answer["user"]["id"] = json!("not-a-uuid");
        answer["user"]["age"] = json!(36);
        answer.as_object_mut().map(|object| object.remove("csrf_token"));
        let wrong = Contract::read().violations("Session", &answer);
        let expected = [
            "/csrf_token is missing",
            "/user/email_verified is no boolean: \"yes\"",
            "/user/id is no uuid: \"not-a-uuid\"",
            "/user/age is not in the contract",
        ];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn arrays_and_maps_are_never_null_and_other_unknowns_may_be() {
        let contract = Contract::read();
        let mut wrong = Vec::new();
        contract.compare("string[]", &Value::Null, "/a", &mut wrong);
        contract.compare("map", &Value::Null, "/b", &mut wrong);
        contract.compare("timestamp", &Value::Null, "/c", &mut wrong);
        assert_eq!(wrong.len(), 2);
    }

    #[test]
    fn times_are_utc_with_microseconds_and_decimals_have_no_exponent() {
        assert!(is_timestamp("2026-01-31T09:05:00.000001Z"));
        assert!(!is_timestamp("2026-01-31T09:05:00Z"));
        assert!(!is_timestamp("2026-01-31T09:05:00.000001+00:00"));
        assert!(is_decimal("-0.8000") && !is_decimal("1e3") && !is_decimal("1."));
    }
}
