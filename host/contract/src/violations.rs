//! Violations of a schema, each with the JSON Pointer of the value and a message for people. They do
//! not contain the value.

use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value as Json;

use super::schema::CompiledSchema;
use super::walk::below;
use assurance_core::domain::area::Violation;

/// Minimum similarity (0 to 1) of a known name that is suggested for an unknown one.
const SIMILAR: f64 = 0.85;

/// Maximum length of an unknown name for which similar names are searched, in bytes.
const MAX_COMPARED_BYTES: usize = 64;

/// Maximum depth of references and union branches that are followed in a schema to collect member
/// names.
const MAX_DEPTH: usize = 8;

/// Returns ` (did you mean `NAME`?)` with the most similar known name; an empty string if none is
/// similar.
#[must_use]
pub fn did_you_mean<'n>(unknown: &str, known: impl Iterator<Item = &'n str>) -> String {
    if unknown.len() > MAX_COMPARED_BYTES {
        return String::new();
    }
    let rated = known.map(|name| (strsim::jaro_winkler(unknown, name), name));
    let nearest = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    match nearest {
        Some((similarity, name)) if similarity >= SIMILAR => format!(" (did you mean `{name}`?)"),
        _ => String::new(),
    }
}

impl CompiledSchema {
    /// Returns at most `most` violations of the schema by the value, and the number of further
    /// ones.
    #[must_use]
    pub fn violations(&self, value: &Json, most: usize) -> (Vec<Violation>, usize) {
        let mut named = Vec::new();
        let mut more = 0;
        for error in self.validator.iter_errors(value) {
            for_each_cause(&error, &mut |cause| {
                // Similar names are looked for only in violations that are named.
                let schema = (named.len() < most).then_some(&self.schema);
                for violation in explain(schema, cause) {
                    if named.len() < most {
                        named.push(violation);
                    } else {
                        more += 1;
                    }
                }
            });
        }
        (named, more)
    }
}

/// Calls `report` with the validation errors of the only alternative that allows the value's type,
/// if there is exactly one such alternative; otherwise with the error itself.
fn for_each_cause(error: &ValidationError<'_>, report: &mut dyn FnMut(&ValidationError<'_>)) {
    match branch_of_type(error) {
        Some(errors) => errors.iter().for_each(|inner| for_each_cause(inner, report)),
        None => report(error),
    }
}

/// Returns the validation errors of the only `anyOf` or `oneOf` branch that allows the value's
/// type; `None` if none or several do, or if the branches are a list of values.
fn branch_of_type<'e>(error: &'e ValidationError<'_>) -> Option<&'e Vec<ValidationError<'static>>> {
    let (ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context }) =
        error.kind()
    else {
        return None;
    };
    if options(error).is_some() {
        return None;
    }
    let is_type = |inner: &ValidationError<'_>| {
        matches!(inner.kind(), ValidationErrorKind::Type { .. })
            && inner.instance_path() == error.instance_path()
    };
    let mut fitting = context.iter().filter(|errors| !errors.iter().any(is_type));
    fitting.next().filter(|_| fitting.next().is_none())
}

/// Returns one violation for each missing or unknown member that a validation error reports; one
/// for any other error. The invalid value is not included, because it may be a secret.
fn explain(schema: Option<&Json>, error: &ValidationError<'_>) -> Vec<Violation> {
    let at = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let at_keyword = |schema| members_at(schema, error.schema_path().as_str());
            let known = schema.map(at_keyword).unwrap_or_default();
            let unknown = |name: &String| {
                let meant = did_you_mean(name, known.iter().copied());
                let message = format!("is not a member of this request{meant}");
                violation(&below(at, name), &message)
            };
            unexpected.iter().map(unknown).collect()
        }
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
        None => "matches none of the allowed schemas".to_owned(),
    }
}

/// Returns the allowed values if the validation error is about a list of values. Such a list can be
/// constants with descriptions, and can include `null`.
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

/// Returns the names of all members of the object schema that contains the keyword at this JSON
/// Pointer.
fn members_at<'s>(schema: &'s Json, keyword: &str) -> BTreeSet<&'s str> {
    let object = keyword.rsplit_once('/').and_then(|(object, _)| schema.pointer(object));
    let mut names = BTreeSet::new();
    gather_members(schema, object.unwrap_or(schema), 0, &mut names);
    names
}

fn gather_members<'s>(
    root: &'s Json,
    schema: &'s Json,
    depth: usize,
    names: &mut BTreeSet<&'s str>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let members = schema["properties"].as_object().into_iter().flatten();
    names.extend(members.map(|(name, _)| name.as_str()));
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    let referenced = target.and_then(|pointer| root.pointer(pointer));
    let branches = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|of| schema[of].as_array());
    for part in branches.flatten().chain(referenced) {
        gather_members(root, part, depth + 1, names);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::close;

    fn messages(schema: Json, value: Json) -> Vec<String> {
        let mut schema = schema;
        close(&mut schema);
        let (found, _) = CompiledSchema::new(schema).unwrap().violations(&value, 10);
        found.into_iter().map(|v| format!("{} {}", v.pointer, v.message)).collect()
    }

    #[test]
    fn unknown_and_missing_members_are_named_by_pointer() {
        let schema = json!({"type": "object", "required": ["a/b"], "properties": {
            "a/b": {"type": "string"},
            "inner": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
        }});
        let found = messages(schema, json!({"extra": 1, "inner": {"n": 0, "m": 2}}));
        assert!(found.contains(&"/extra is not a member of this request".to_owned()));
        assert!(found.contains(&"/inner/m is not a member of this request".to_owned()));
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
        assert_eq!(messages(shapes, json!({})), [" matches none of the allowed schemas"]);
    }

    #[test]
    fn the_alternative_of_the_value_s_type_is_explained() {
        let record = json!({"type": "object", "required": ["id", "modified"], "properties": {
            "id": {"type": "string"}, "modified": {"type": "string", "format": "date-time"},
        }});
        let schema = json!({"oneOf": [record, {"type": "array", "minItems": 1, "items": record}]});
        let told = |value: Json| messages(schema.clone(), value);
        assert_eq!(told(json!({"id": "X"})), ["/modified is required"]);
        assert_eq!(told(json!([{"id": "X"}])), ["/0/modified is required"]);
        let dated = json!({"id": "X", "modified": "yesterday"});
        assert_eq!(told(dated), ["/modified must be a valid date-time"]);
        assert_eq!(told(json!("X")), [" matches none of the allowed schemas"]);
        let optional = json!({"type": "object", "properties": {
            "inner": {"anyOf": [schema, {"type": "null"}]},
        }});
        let found = messages(optional, json!({"inner": {"id": 1, "modified": null}}));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|message| message.contains(" is not of type")), "{found:?}");
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
    fn a_misspelled_member_is_told_the_right_name() {
        let schema = json!({
            "$defs": {"Step": {"type": "object", "properties": {"verification_predicate": {}}}},
            "type": "object",
            "properties": {"message": {}, "steps": {"items": {"$ref": "#/$defs/Step"}}},
            "anyOf": [{"properties": {"title": {}}}, true],
        });
        let told = |value: Json| messages(schema.clone(), value).join("; ");
        let unknown = "is not a member of this request";
        assert_eq!(
            told(json!({"mesage": ""})),
            format!("/mesage {unknown} (did you mean `message`?)")
        );
        assert_eq!(told(json!({"titel": ""})), format!("/titel {unknown} (did you mean `title`?)"));
        assert_eq!(told(json!({"colour": ""})), format!("/colour {unknown}"));
        assert_eq!(
            told(json!({"steps": [{"verification_predicat": 1}]})),
            format!(
                "/steps/0/verification_predicat {unknown} (did you mean `verification_predicate`?)"
            )
        );
    }
}
