//! A JSON Schema as a person reads it: one row a member, and what it may be.

use serde_json::{Map, Value as Json};

/// A member of a body or an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// From the outside in: `items[].id`.
    pub(super) path: String,
    /// `string (uuid)`, `"low" | "high"`.
    pub(super) kind: String,
    /// Always there.
    pub(super) required: bool,
    /// `CommonMark`.
    pub(super) description: String,
}

/// Members that are deeper, and kinds made of more, are left to the document:
/// a schema may contain itself.
const MAX_DEPTH: usize = 6;

/// All members of what a schema describes, outer ones before their inner ones.
pub(super) fn members(document: &Json, schema: &Json) -> Vec<Member> {
    let mut found = Vec::new();
    collect(document, schema, "", 0, &mut found);
    found
}

/// The schema that a reference within the document leads to, or itself.
pub(super) fn resolved<'a>(document: &'a Json, schema: &'a Json) -> &'a Json {
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

fn collect(document: &Json, schema: &Json, at: &str, depth: usize, found: &mut Vec<Member>) {
    if depth > MAX_DEPTH {
        return;
    }
    let schema = resolved(document, schema);
    for part in parts(schema) {
        collect(document, part, at, depth + 1, found);
    }
    if schema["items"].is_object() {
        collect(document, &schema["items"], &format!("{at}[]"), depth + 1, found);
    }
    if schema["additionalProperties"].is_object() {
        collect(document, &schema["additionalProperties"], &beneath(at, "*"), depth + 1, found);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = beneath(at, name);
        if found.iter().any(|known| known.path == path) {
            continue;
        }
        found.push(Member {
            kind: kind(document, member),
            required: is_required(schema, name),
            description: description(document, member),
            path: path.clone(),
        });
        collect(document, member, &path, depth + 1, found);
    }
}

fn beneath(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// What a schema is put together from.
fn parts(schema: &Json) -> impl Iterator<Item = &Json> {
    ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|of| schema[of].as_array().into_iter().flatten())
}

/// Whether an object of this schema always has the member.
pub(super) fn is_required(schema: &Json, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
}

fn description(document: &Json, schema: &Json) -> String {
    let of = |schema: &Json| schema["description"].as_str().map(str::to_owned);
    of(schema).or_else(|| of(resolved(document, schema))).unwrap_or_default()
}

/// What a value of this schema may be, in a few words.
pub(super) fn kind(document: &Json, schema: &Json) -> String {
    kind_within(document, schema, 0)
}

fn kind_within(document: &Json, schema: &Json, depth: usize) -> String {
    let schema = resolved(document, schema);
    if depth > MAX_DEPTH {
        return "…".to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        return any_of(values.iter().map(Json::to_string));
    }
    let variants = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    if let Some(variants) = variants {
        return any_of(variants.iter().map(|one| kind_within(document, one, depth + 1)));
    }
    let of_type = |name: &str| match name {
        "array" => format!("array of {}", kind_within(document, &schema["items"], depth + 1)),
        "string" => string(schema),
        "integer" | "number" => format!("{name}{}", bounds(schema, "minimum", "maximum", "")),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Json::String(name) => of_type(name),
        Json::Array(names) => any_of(names.iter().filter_map(Json::as_str).map(of_type)),
        _ => "anything".to_owned(),
    }
}

fn any_of(kinds: impl Iterator<Item = String>) -> String {
    let mut kinds: Vec<String> = kinds.collect();
    kinds.dedup();
    kinds.join(" | ")
}

fn string(schema: &Json) -> String {
    match schema["format"].as_str() {
        Some(format) => format!("string ({format})"),
        None => format!("string{}", bounds(schema, "minLength", "maxLength", " characters")),
    }
}

/// `, 1 to 200 characters`; nothing, where nothing is bounded.
fn bounds(schema: &Json, least: &str, most: &str, unit: &str) -> String {
    let of = |name: &str| schema.get(name).filter(|bound| bound.is_number());
    match (of(least), of(most)) {
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
        (Some(least), None) => format!(", at least {least}{unit}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

/// The members of an object schema that a valid value must have.
pub(super) fn required_members(schema: &Json) -> Map<String, Json> {
    let members = schema["properties"].as_object().into_iter().flatten();
    let required = members.filter(|(name, _)| is_required(schema, name));
    required.map(|(name, member)| (name.clone(), member.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(document: &Json, schema: &Json) -> Vec<String> {
        members(document, schema).into_iter().map(|member| member.path).collect()
    }

    #[test]
    fn members_are_listed_from_the_outside_in() {
        let schema = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "items": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"id": {"type": "string", "format": "uuid"}},
                }},
                "labels": {"type": "object", "additionalProperties": {
                    "type": "object", "properties": {"value": {"type": "boolean"}},
                }},
            },
        });
        let found = members(&Json::Null, &schema);
        let first = found.first().unwrap();
        assert_eq!((first.path.as_str(), first.required), ("items", true));
        assert_eq!(first.kind, "array of object");
        assert_eq!(
            paths(&Json::Null, &schema),
            ["items", "items[].id", "labels", "labels.*.value"]
        );
    }

    #[test]
    fn references_are_followed_and_one_in_a_circle_comes_to_an_end() {
        let document = json!({"components": {"schemas": {"Tree": {
            "type": "object",
            "description": "A tree",
            "properties": {"child": {"$ref": "#/components/schemas/Tree"}},
        }}}});
        let found = members(&document, &json!({"$ref": "#/components/schemas/Tree"}));
        assert_eq!(found.len(), MAX_DEPTH + 1);
        assert_eq!(found.first().unwrap().description, "A tree");
    }

    #[test]
    fn kinds_say_what_a_value_may_be() {
        let of = |schema: Json| kind(&Json::Null, &schema);
        assert_eq!(of(json!({"enum": ["low", "high"]})), r#""low" | "high""#);
        assert_eq!(of(json!({"oneOf": [{"const": 1}, {"type": "null"}]})), "1 | null");
        assert_eq!(
            of(json!({"type": ["string", "null"], "format": "uuid"})),
            "string (uuid) | null"
        );
        assert_eq!(
            of(json!({"type": "string", "minLength": 1, "maxLength": 9})),
            "string, 1 to 9 characters"
        );
        assert_eq!(of(json!({"type": "integer", "minimum": 0})), "integer, at least 0");
        assert_eq!(of(json!({})), "anything");
    }
}
