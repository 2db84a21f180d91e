//! JSON Schemas (2020-12) from Rust types. Only `describe` makes any.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

fn of<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let settings = settings.with(|settings| {
        // Whole in itself, wherever the host puts it; 2020-12 is the contract.
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>()
}

/// Of what a client sends: unknown members are refused at every level.
pub(crate) fn request<T: JsonSchema>() -> Value {
    let mut schema = of::<T>(SchemaSettings::draft2020_12().for_deserialize()).to_value();
    for_each_object(&mut schema, &mut |object| {
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    });
    schema
}

/// Of what an area sends or keeps: every member is there, null where unknown.
pub(crate) fn response<T: JsonSchema>() -> String {
    of::<T>(SchemaSettings::draft2020_12().for_serialize()).to_value().to_string()
}

fn for_each_object(value: &mut Value, visit: &mut impl FnMut(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values_mut().for_each(|value| for_each_object(value, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| for_each_object(value, visit)),
        _ => {}
    }
}
