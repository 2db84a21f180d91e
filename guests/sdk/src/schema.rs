//! JSON Schemas (2020-12) from Rust types. Only `describe` makes any.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// A schema that is whole without definitions. Code reads its members.
fn inline<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    of::<T>(settings.with(|settings| settings.inline_subschemas = true))
}

fn of<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let settings = settings.with(|settings| settings.meta_schema = None);
    settings.into_generator().into_root_schema_for::<T>()
}

/// Of parameters: whole without definitions.
pub(crate) fn parameters<T: JsonSchema>() -> Value {
    inline::<T>(SchemaSettings::draft2020_12().for_deserialize()).to_value()
}

/// Of a request body: unknown members are refused at every level. Named types
/// are definitions; OpenAPI publishes them under their names.
pub(crate) fn body<T: JsonSchema>() -> String {
    let mut schema = of::<T>(SchemaSettings::draft2020_12().for_deserialize()).to_value();
    for_each_object(&mut schema, &mut |object| {
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    });
    schema.to_string()
}

/// Of a response or an event: every member is there, null where unknown. Named
/// types are definitions; OpenAPI publishes them under their names.
pub(crate) fn published<T: JsonSchema>() -> String {
    of::<T>(SchemaSettings::draft2020_12().for_serialize()).to_value().to_string()
}

/// Of a collection's documents: whole without definitions.
pub(crate) fn stored<T: JsonSchema>() -> String {
    inline::<T>(SchemaSettings::draft2020_12().for_serialize()).to_value().to_string()
}

/// The schema with a member added at its root.
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
