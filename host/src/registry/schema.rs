//! JSON Schemas of areas: made ready for the host's use, compiled, asked.
//!
//! Two things are done to a schema before it is compiled or published: the
//! format `event-name` becomes the names of the live areas' events, and the
//! objects of a request body are closed, because an unknown member is always
//! refused.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value as Json, json};

use crate::domain::area::Violation;

/// The format that stands for "the name of an event some live area publishes".
const EVENT_NAME: &str = "event-name";

/// Keywords whose subschemas look at the same object as their parent.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "$ref", "if", "then", "else", "dependentSchemas"];

/// Compiles a schema: formats are checked, patterns run in linear time.
///
/// # Errors
/// Says what is wrong with the schema.
pub fn compile(schema: &Json) -> Result<Validator, String> {
    if let Some(foreign) = foreign_reference(schema) {
        return Err(format!("it refers to {foreign:?}; references may only begin with `#`"));
    }
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}

/// The schema with `event-name` spelt out.
pub(super) fn with_events(schema: &Json, events: &[String]) -> Json {
    let mut schema = schema.clone();
    name_events(&mut schema, events);
    schema
}

/// True where the schema depends on which events are live.
pub(super) fn names_events(schema: &Json) -> bool {
    match schema {
        Json::Object(members) => {
            members.get("format").and_then(Json::as_str) == Some(EVENT_NAME)
                || members.values().any(names_events)
        }
        Json::Array(items) => items.iter().any(names_events),
        _ => false,
    }
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

/// Closes every object schema that does not itself say what unknown members
/// are.
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
    for (keyword, member) in members.iter_mut() {
        close_below(keyword, member, below_in_place);
    }
}

fn close_below(keyword: &str, member: &mut Json, below_in_place: bool) {
    match keyword {
        "allOf" | "anyOf" | "oneOf" => {
            for branch in member.as_array_mut().into_iter().flatten() {
                close_at(branch, below_in_place);
            }
        }
        "if" | "then" | "else" => close_at(member, below_in_place),
        "items" | "contains" | "additionalProperties" | "unevaluatedProperties" => {
            close_at(member, false);
        }
        "prefixItems" => {
            for item in member.as_array_mut().into_iter().flatten() {
                close_at(item, false);
            }
        }
        "properties" | "patternProperties" | "$defs" => {
            for (_, value) in member.as_object_mut().into_iter().flatten() {
                close_at(value, false);
            }
        }
        _ => {}
    }
}

fn foreign_reference(schema: &Json) -> Option<&str> {
    match schema {
        Json::Object(members) => {
            own_foreign_reference(members).or_else(|| members.values().find_map(foreign_reference))
        }
        Json::Array(items) => items.iter().find_map(foreign_reference),
        _ => None,
    }
}

fn own_foreign_reference(members: &Map<String, Json>) -> Option<&str> {
    ["$ref", "$dynamicRef"]
        .iter()
        .filter_map(|keyword| members.get(*keyword)?.as_str())
        .find(|target| !target.starts_with('#'))
}

/// What is wrong with a value, at most `most` violations and how many more.
pub fn violations(validator: &Validator, value: &Json, most: usize) -> (Vec<Violation>, usize) {
    let mut named = Vec::new();
    let mut more = 0;
    for error in validator.iter_errors(value) {
        for violation in explain(&error) {
            if named.len() < most {
                named.push(violation);
            } else {
                more += 1;
            }
        }
    }
    (named, more)
}

/// One violation per missing or unknown member; one for anything else. The
/// offending value is never repeated: it may be a secret.
fn explain(error: &ValidationError<'_>) -> Vec<Violation> {
    let at = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .map(|name| violation(&below(at, name), "is not a member this operation knows"))
            .collect(),
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![violation(&below(at, name), "is required")]
        }
        ValidationErrorKind::OneOfNotValid { .. }
        | ValidationErrorKind::AnyOf { .. }
        | ValidationErrorKind::Enum { .. } => vec![violation(at, &choice(error))],
        ValidationErrorKind::FalseSchema | ValidationErrorKind::Not { .. } => {
            vec![violation(at, "is not allowed here")]
        }
        ValidationErrorKind::Format { format } => {
            vec![violation(at, &format!("must be a valid {format}"))]
        }
        _ => vec![violation(at, &bare_message(error))],
    }
}

fn choice(error: &ValidationError<'_>) -> String {
    match options(error) {
        Some(options) => {
            format!("must be one of {}", shortened(&Json::Array(options).to_string()))
        }
        None => "has none of the shapes allowed here".to_owned(),
    }
}

/// The values one of which was wanted, where it comes to that: the words of an
/// enumeration are often constants with a description each, and `null` may do
/// as well.
fn options(error: &ValidationError<'_>) -> Option<Vec<Json>> {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => Some(vec![(**expected_value).clone()]),
        ValidationErrorKind::Enum { options } => options.as_array().cloned(),
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) } => {
            Some(vec![Json::Null])
        }
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            let here =
                |inner: &&ValidationError<'_>| inner.instance_path() == error.instance_path();
            let branch = |errors: &Vec<_>| errors.iter().filter(here).find_map(options);
            let branches: Option<Vec<_>> = context.iter().map(branch).collect();
            branches.map(|branches| branches.concat())
        }
        _ => None,
    }
}

fn bare_message(error: &ValidationError<'_>) -> String {
    let message = error.masked_with("value").to_string();
    shortened(message.strip_prefix("value ").unwrap_or(&message)).to_owned()
}

fn shortened(text: &str) -> &str {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn violation(pointer: &str, message: &str) -> Violation {
    Violation { pointer: pointer.to_owned(), message: message.to_owned() }
}

/// A JSON Pointer one member further down (RFC 6901).
fn below(pointer: &str, member: &str) -> String {
    format!("{pointer}/{}", member.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(schema: Json, value: Json) -> Vec<String> {
        let mut schema = schema;
        close(&mut schema);
        let (found, _) = violations(&compile(&schema).unwrap(), &value, 10);
        found.into_iter().map(|v| format!("{} {}", v.pointer, v.message)).collect()
    }

    #[test]
    fn unknown_and_missing_members_are_named_by_pointer() {
        let schema = json!({"type": "object", "required": ["a/b"], "properties": {
            "a/b": {"type": "string"},
            "inner": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
        }});
        let found = messages(schema, json!({"extra": 1, "inner": {"n": 0, "m": 2}}));
        assert!(found.contains(&"/extra is not a member this operation knows".to_owned()));
        assert!(found.contains(&"/inner/m is not a member this operation knows".to_owned()));
        assert!(found.contains(&"/a~1b is required".to_owned()));
        assert!(found.iter().any(|m| m.starts_with("/inner/n is less than")), "{found:?}");
    }

    #[test]
    fn the_words_of_an_enumeration_are_told_however_they_are_described() {
        let words = json!({"oneOf": [
            {"type": "string", "const": "daily", "description": "Each day."},
            {"type": "string", "enum": ["weekly", "monthly"]},
        ]});
        let told = |value: Json| messages(words.clone(), value);
        assert_eq!(told(json!("hourly")), [r#" must be one of ["daily","weekly","monthly"]"#]);
        assert_eq!(told(json!(3)), told(json!("hourly")));
        let optional = json!({"$defs": {"Word": words}, "type": "object", "properties": {
            "cadence": {"anyOf": [{"$ref": "#/$defs/Word"}, {"type": "null"}]},
        }});
        assert_eq!(
            messages(optional, json!({"cadence": "hourly"})),
            [r#"/cadence must be one of ["daily","weekly","monthly",null]"#]
        );
        let shapes = json!({"oneOf": [{"type": "object", "required": ["a"]}, {"const": 1}]});
        assert_eq!(messages(shapes, json!({})), [" has none of the shapes allowed here"]);
    }

    #[test]
    fn a_violation_does_not_repeat_the_value() {
        let schema = json!({"type": "object", "properties": {"api_key": {"type": "string", "maxLength": 3}}});
        let found = messages(schema, json!({"api_key": "hush-hush"}));
        assert_eq!(found, ["/api_key is longer than 3 characters"]);
    }

    #[test]
    fn composed_objects_are_closed_as_a_whole() {
        let schema = json!({"type": "object", "properties": {"a": {}},
            "oneOf": [{"properties": {"b": {}}, "required": ["b"]}, {"properties": {"c": {}}, "required": ["c"]}]});
        assert!(messages(schema.clone(), json!({"a": 1, "b": 2})).is_empty());
        assert!(!messages(schema, json!({"a": 1, "b": 2, "d": 3})).is_empty());
    }

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
