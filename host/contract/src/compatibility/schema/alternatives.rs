//! Splits a schema into alternatives with one JSON type each.

use serde_json::{Map, Value as Json};

/// JSON Schema keywords that do not affect which values are valid.
const ANNOTATIONS: [&str; 14] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// JSON Schema keywords that the compatibility check can compare.
const UNDERSTOOD: [&str; 25] = [
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "type",
    "uniqueItems",
];

const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// Maximum nesting depth of a schema that is compared.
pub(super) const MAX_DEPTH: usize = 64;

/// Maximum number of alternatives into which a schema is split.
const MAX_ALTERNATIVES: usize = 1_000;

/// The part of a schema that applies to values of one JSON type.
pub(super) struct SingleTypeSchema<'s> {
    /// JSON type of the values that the alternative applies to; `None` for any
    /// type.
    pub(super) kind: Option<&'s str>,
    pub(super) members: &'s Map<String, Json>,
    /// Values that the alternative allows (`enum`, `const`); `None` if the
    /// schema does not list them.
    pub(super) values: Option<Vec<&'s Json>>,
}

/// Splits a schema into alternatives and adds them to `into`. Each visited
/// schema takes one of `steps`.
///
/// # Errors
/// The keyword because of which the schema cannot be split.
pub(super) fn split<'s>(
    root: &'s Json,
    schema: &'s Json,
    into: &mut Vec<SingleTypeSchema<'s>>,
    depth: usize,
    steps: &mut usize,
) -> Result<(), String> {
    static NOTHING_SAID: std::sync::LazyLock<Map<String, Json>> =
        std::sync::LazyLock::new(Map::new);
    *steps = steps.saturating_sub(1);
    if *steps == 0 || into.len() > MAX_ALTERNATIVES {
        return Err("anyOf".into());
    }
    let members = match schema {
        Json::Object(members) if depth < MAX_DEPTH => members,
        Json::Bool(true) => &NOTHING_SAID,
        Json::Bool(false) => return Ok(()),
        _ => return Err("$ref".into()),
    };
    let unknown = |name: &&String| {
        !UNDERSTOOD.contains(&name.as_str())
            && !ANNOTATIONS.contains(&name.as_str())
            && !name.starts_with("x-")
    };
    if let Some(name) = members.keys().find(unknown) {
        return Err(name.clone());
    }
    if let Some(target) = members.get("$ref") {
        only(members, "$ref")?;
        let target = target.as_str().and_then(|target| target.strip_prefix('#'));
        let found = target.and_then(|pointer| root.pointer(pointer)).ok_or("$ref")?;
        let first = into.len();
        split(root, found, into, depth + 1, steps)?;
        return allowed_beside(members, "$ref", &into[first..]);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(Json::Array(branches)) = members.get(union) {
            only(members, union)?;
            let first = into.len();
            branches.iter().try_for_each(|branch| split(root, branch, into, depth + 1, steps))?;
            return allowed_beside(members, union, &into[first..]);
        }
    }
    by_type(members, into);
    Ok(())
}

/// Returns an error if a union or reference has other constraints next to it,
/// because the schema then cannot be split.
fn only(members: &Map<String, Json>, keyword: &str) -> Result<(), String> {
    let other = |name: &&String| {
        *name != keyword && !ANNOTATIONS.contains(&name.as_str()) && !name.starts_with("x-")
    };
    // Serializers write `type` next to the union of an enum's variants.
    match members.keys().filter(|name| *name != "type").find(other) {
        Some(_) => Err(keyword.to_owned()),
        None => Ok(()),
    }
}

/// Returns an error if a `type` next to a union or reference may exclude one of
/// its alternatives.
fn allowed_beside(
    members: &Map<String, Json>,
    keyword: &str,
    alternatives: &[SingleTypeSchema<'_>],
) -> Result<(), String> {
    let kinds = match members.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        Some(kind) => Vec::from_iter(kind.as_str()),
        None => return Ok(()),
    };
    let is_allowed = |one: &SingleTypeSchema<'_>| {
        one.kind.is_some() && kinds.iter().any(|kind| same_kind(one.kind, Some(*kind)))
    };
    if alternatives.iter().all(is_allowed) { Ok(()) } else { Err(keyword.to_owned()) }
}

/// Returns the schema that a reference without other constraints names; any
/// other schema itself.
pub(super) fn resolved<'s>(root: &'s Json, schema: &'s Json) -> &'s Json {
    let reference = schema.as_object().filter(|members| only(members, "$ref").is_ok());
    let target = reference.and_then(|members| members.get("$ref")?.as_str()?.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn by_type<'s>(members: &'s Map<String, Json>, into: &mut Vec<SingleTypeSchema<'s>>) {
    let values: Option<Vec<&Json>> = match (members.get("const"), members.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Json::Array(values))) => Some(values.iter().collect()),
        _ => None,
    };
    let kinds: Vec<&str> = match members.get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => match &values {
            Some(values) => TYPES
                .into_iter()
                .filter(|kind| values.iter().any(|value| is_of(value, kind)))
                .collect(),
            None => {
                into.push(SingleTypeSchema { kind: None, members, values: None });
                return;
            }
        },
    };
    for kind in kinds {
        let own = values.as_ref().map(|values| {
            values.iter().copied().filter(|value| is_of(value, kind)).collect::<Vec<_>>()
        });
        if own.as_ref().is_none_or(|own| !own.is_empty()) {
            into.push(SingleTypeSchema { kind: Some(kind), members, values: own });
        }
    }
}

fn is_of(value: &Json, kind: &str) -> bool {
    match value {
        Json::Null => kind == "null",
        Json::Bool(_) => kind == "boolean",
        Json::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Json::String(_) => kind == "string",
        Json::Array(_) => kind == "array",
        Json::Object(_) => kind == "object",
    }
}

/// Returns whether every value of the JSON type `sub` is also of the type
/// `sup`; `None` is any type.
pub(super) fn same_kind(sub: Option<&str>, sup: Option<&str>) -> bool {
    sup.is_none() || sub == sup || (sub == Some("integer") && sup == Some("number"))
}

/// Returns the schema without keywords that do not affect validity.
pub(super) fn strip(schema: &Json) -> Json {
    match schema {
        Json::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                // Below `properties`, `title` can be the name of a property.
                let annotates = ANNOTATIONS.contains(&name.as_str()) || name.starts_with("x-");
                !annotates || value.is_object() && *name != "$defs"
            });
            Json::Object(kept.map(|(name, value)| (name.clone(), strip(value))).collect())
        }
        Json::Array(items) => Json::Array(items.iter().map(strip).collect()),
        other => other.clone(),
    }
}
