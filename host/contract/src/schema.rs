//! JSON Schemas of areas: preparation, compilation, validation.
//!
//! Before a schema is compiled or published, two things change: the format
//! `event-name` is replaced by the names of the live areas' events, and the
//! objects of a request body reject unknown members.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value as Json, json};

use super::walk::{for_each_subschema, objects};
use assurance_core::domain::manifest::{BodyKind, EventSpec, Route};

/// JSON Schema format of a string that must name an event of a live area.
const EVENT_NAME: &str = "event-name";

/// JSON Schema keyword of an event: `false` if no webhook can subscribe to the
/// event, because its area chooses the webhook.
pub(super) const SUBSCRIBABLE: &str = "x-subscribable";

/// JSON Schema keywords whose subschemas apply to the same object as their
/// parent.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "$ref", "if", "then", "else", "dependentSchemas"];

/// JSON Schema with its compiled validator.
#[derive(Debug)]
pub struct CompiledSchema {
    pub(super) schema: Json,
    pub(super) validator: Validator,
}

impl CompiledSchema {
    /// Compiles a JSON Schema. Formats are checked, and patterns run in linear
    /// time.
    ///
    /// # Errors
    /// A description of what is wrong with the schema.
    pub fn new(schema: Json) -> Result<Self, String> {
        let validator = compile(&schema)?;
        Ok(Self { schema, validator })
    }

    /// Returns the JSON Schema as it was compiled.
    #[must_use]
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// Returns whether the value conforms to the schema.
    #[must_use]
    pub fn is_valid(&self, value: &Json) -> bool {
        self.validator.is_valid(value)
    }
}

/// Compiles a JSON Schema into a validator.
///
/// # Errors
/// A description of what is wrong with the schema.
pub(super) fn compile(schema: &Json) -> Result<Validator, String> {
    if let Some(foreign) = foreign_reference(schema) {
        return Err(format!("it refers to {foreign:?}; references may only begin with `#`"));
    }
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Returns the declared schema of a route's JSON body; `None` for other bodies.
pub(super) fn of_body(route: &Route) -> Option<&Json> {
    match &route.body {
        BodyKind::Json(schema) => Some(schema),
        BodyKind::None | BodyKind::Multipart(_) | BodyKind::Blob => None,
    }
}

/// Returns the schema with the format `event-name` replaced by the list of
/// these events.
pub(super) fn with_events(schema: &Json, events: &[String]) -> Json {
    let mut schema = schema.clone();
    name_events(&mut schema, events);
    schema
}

/// Returns whether webhooks can subscribe to the event, so that it is one of
/// the names that replace the format `event-name`.
#[must_use]
pub fn is_subscribable(event: &EventSpec) -> bool {
    event.schema[SUBSCRIBABLE] != false
}

/// Returns whether the schema contains the format `event-name` and so depends
/// on the events of the live areas.
pub(super) fn names_events(schema: &Json) -> bool {
    objects(schema).any(|object| object["format"] == EVENT_NAME)
}

fn name_events(schema: &mut Json, events: &[String]) {
    match schema {
        Json::Object(members) => {
            if members.get("format").and_then(Json::as_str) == Some(EVENT_NAME) {
                members.remove("format");
                if events.is_empty() {
                    members.insert("not".into(), json!({}));
                } else {
                    members.insert("enum".into(), json!(events));
                }
            }
            members.values_mut().for_each(|member| name_events(member, events));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| name_events(item, events)),
        _ => {}
    }
}

/// Changes all object schemas in a request schema to reject unknown members,
/// except those that set a rule for unknown members themselves.
pub(super) fn close(schema: &mut Json) {
    close_at(schema, false);
}

fn close_at(schema: &mut Json, parent_closes: bool) {
    let Json::Object(members) = schema else { return };
    let has_properties = members.contains_key("properties");
    let applies_in_place = IN_PLACE.iter().any(|keyword| members.contains_key(*keyword));
    let open_on_purpose = ["additionalProperties", "unevaluatedProperties", "patternProperties"]
        .iter()
        .any(|keyword| members.contains_key(*keyword));
    if has_properties && !open_on_purpose && !parent_closes {
        let keyword =
            if applies_in_place { "unevaluatedProperties" } else { "additionalProperties" };
        members.insert(keyword.into(), Json::Bool(false));
    }
    let below_in_place = parent_closes || has_properties;
    for_each_subschema(members, &mut |keyword, _, subschema| match keyword {
        "allOf" | "anyOf" | "oneOf" | "if" | "then" | "else" => close_at(subschema, below_in_place),
        "dependentSchemas" | "propertyNames" | "not" => {}
        _ => close_at(subschema, false),
    });
    if let Some(Json::Object(definitions)) = members.get_mut("$defs") {
        definitions.values_mut().for_each(|definition| close_at(definition, false));
    }
}

fn foreign_reference(schema: &Json) -> Option<&str> {
    let mut references = objects(schema).flat_map(|object| {
        ["$ref", "$dynamicRef"].into_iter().filter_map(move |keyword| object[keyword].as_str())
    });
    references.find(|target| !target.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_become_an_enumeration() {
        let schema = json!({"type": "array", "items": {"type": "string", "format": "event-name"}});
        assert!(names_events(&schema));
        let live = compile(&with_events(&schema, &["case.created".into()])).unwrap();
        assert!(live.is_valid(&json!(["case.created"])));
        assert!(!live.is_valid(&json!(["case.lost"])));
        let none = compile(&with_events(&schema, &[])).unwrap();
        assert!(!none.is_valid(&json!(["case.created"])));
    }

    #[test]
    fn references_stay_inside() {
        assert!(compile(&json!({"$ref": "https://example.com/x.json"})).is_err());
        assert!(compile(&json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}})).is_ok());
    }
}
