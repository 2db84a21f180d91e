//! Generates JSON Schemas (2020-12) from Rust types. Used only for the manifest.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Returns the schema of a type without `$defs`, so that code can read its members directly.
fn inline<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    of::<T>(settings.with(|settings| settings.inline_subschemas = true))
}

fn of<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let settings = settings.with(|settings| settings.meta_schema = None);
    settings.into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of a struct of parameters, without `$defs`.
pub(crate) fn parameters<T: JsonSchema>() -> Value {
    inline::<T>(SchemaSettings::draft2020_12().for_deserialize()).to_value()
}

/// Returns the schema of a request body. It refuses unknown members at every level. Named types are
/// in `$defs`, and OpenAPI publishes them under their names.
pub(crate) fn body<T: JsonSchema>() -> String {
    let mut schema = of::<T>(SchemaSettings::draft2020_12().for_deserialize()).to_value();
    for_each_object(&mut schema, &mut |object| {
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    });
    schema.to_string()
}

/// Returns the schema of a response or an event. Every member is required; an unknown value is
/// null. Named types are in `$defs`, and OpenAPI publishes them under their names.
pub(crate) fn published<T: JsonSchema>() -> String {
    of::<T>(SchemaSettings::draft2020_12().for_serialize()).to_value().to_string()
}

/// Returns the schema of a collection's documents as they are written, without `$defs`. A member
/// that documents of an earlier version may lack has a `default`, so the host does not refuse it.
pub(crate) fn stored<T: JsonSchema>() -> String {
    let mut written = inline::<T>(SchemaSettings::draft2020_12().for_serialize()).to_value();
    let read = inline::<T>(SchemaSettings::draft2020_12().for_deserialize()).to_value();
    add_defaults(&mut written, &read);
    written.to_string()
}

/// Adds `"default": null` to each member of the `written` schema that the `read` schema does not
/// require, unless it has a default.
fn add_defaults(written: &mut Value, read: &Value) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            let needed = required(read);
            for name in required(written).iter().filter(|&name| !needed.contains(name)) {
                match written.get_mut("properties").and_then(|members| members.get_mut(name)) {
                    Some(Value::Object(schema)) => {
                        schema.entry("default").or_insert(Value::Null);
                    }
                    Some(any) => *any = json!({ "default": null }),
                    None => {}
                }
            }
            for (name, part) in written {
                add_defaults(part, read.get(name).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            written.iter_mut().zip(read).for_each(|(written, read)| add_defaults(written, read));
        }
        _ => {}
    }
}

fn required(schema: &Map<String, Value>) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Returns a schema with a member added at its root.
pub(crate) fn with(schema: &str, member: &str, value: Value) -> String {
    let mut members: Map<String, Value> = serde_json::from_str(schema).unwrap_or_default();
    members.insert(member.to_owned(), value);
    Value::Object(members).to_string()
}

fn for_each_object(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values_mut().for_each(|value| for_each_object(value, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| for_each_object(value, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct ExampleService {
        name: String,
        owner: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        content: Option<Value>,
        links: Vec<ExampleLink>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct ExampleLink {
        url: String,
        title: Option<String>,
    }

    #[test]
    fn members_that_old_documents_may_lack_have_a_default() {
        let schema: Value = serde_json::from_str(&stored::<ExampleService>()).expect("JSON");
        let members = &schema["properties"];
        let default = |name: &str| members[name].get("default").cloned();
        assert_eq!(default("name"), None);
        assert_eq!(default("owner"), Some(Value::Null));
        assert_eq!(default("tags"), Some(json!([])));
        assert_eq!(default("content"), Some(Value::Null));
        let link = &members["links"]["items"]["properties"];
        assert_eq!(link["title"].get("default"), Some(&Value::Null));
        assert_eq!(link["url"].get("default"), None);
        // Readers may rely on what is always written.
        assert_eq!(schema["required"], json!(["name", "owner", "tags", "content", "links"]));
    }
}
