//! Traverses JSON Schemas.

use serde_json::{Map, Value as Json};

/// Calls `visit` for each direct subschema with its keyword, its property name
/// or position (from 1; empty if there is none), and the subschema.
pub(super) fn for_each_subschema(
    members: &mut Map<String, Json>,
    visit: &mut impl FnMut(&str, &str, &mut Json),
) {
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas", Json::Object(schemas)) => {
                for (name, schema) in schemas.iter_mut() {
                    visit(keyword, name, schema);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => {
                for (position, schema) in schemas.iter_mut().enumerate() {
                    visit(keyword, &(position + 1).to_string(), schema);
                }
            }
            (
                "items"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else",
                schema,
            ) if schema.is_object() => visit(keyword, "", schema),
            _ => {}
        }
    }
}

/// Returns every object in a JSON value, at any depth.
pub(super) fn objects(value: &Json) -> impl Iterator<Item = &Json> {
    let mut waiting = vec![value];
    std::iter::from_fn(move || {
        while let Some(value) = waiting.pop() {
            match value {
                Json::Object(members) => {
                    waiting.extend(members.values());
                    return Some(value);
                }
                Json::Array(items) => waiting.extend(items),
                _ => {}
            }
        }
        None
    })
}

/// Replaces the targets of all `$ref` in a JSON value, at any depth, for which
/// `rename` returns a new target.
pub(super) fn rewrite_references(value: &mut Json, rename: &impl Fn(&str) -> Option<String>) {
    match value {
        Json::Object(members) => {
            for (keyword, member) in members.iter_mut() {
                match member {
                    Json::String(target) if keyword == "$ref" => {
                        if let Some(name) = rename(target) {
                            *target = name;
                        }
                    }
                    other => rewrite_references(other, rename),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| rewrite_references(item, rename)),
        _ => {}
    }
}

/// Returns the JSON Pointer (RFC 6901) of the member `name` of the object at `pointer`.
pub(super) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
