//! Generates JSON Schemas (2020-12) from Rust types. Used only for the manifest.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// Returns a schema without `$defs`, so that code can read its members directly.
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

/// Returns the schema of a collection's documents, without `$defs`.
pub(crate) fn stored<T: JsonSchema>() -> String {
    inline::<T>(SchemaSettings::draft2020_12().for_serialize()).to_value().to_string()
}

/// Returns the schema with a member added at its root.
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
