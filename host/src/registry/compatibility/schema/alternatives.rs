//! Taking a schema apart into alternatives of one type each.

use serde_json::{Map, Value as Json};

/// Keywords that say nothing about which values are taken.
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

/// Keywords that are compared by their meaning.
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

/// Deeper than any honest schema.
pub(super) const MAX_DEPTH: usize = 64;

/// More than any honest union has.
const MAX_ALTERNATIVES: usize = 1_000;

/// One type's share of a schema.
pub(super) struct Alternative<'s> {
    /// Nothing: any type.
    pub(super) kind: Option<&'s str>,
    pub(super) members: &'s Map<String, Json>,
    /// The values it is limited to.
    pub(super) values: Option<Vec<&'s Json>>,
}

/// The alternatives of a schema, or the keyword that stands in the way. Each
/// schema on the way takes a step.
pub(super) fn take_apart<'s>(
    root: &'s Json,
    schema: &'s Json,
    into: &mut Vec<Alternative<'s>>,
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
        return take_apart(root, found, into, depth + 1, steps);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(Json::Array(branches)) = members.get(union) {
            only(members, union)?;
            return branches
                .iter()
                .try_for_each(|branch| take_apart(root, branch, into, depth + 1, steps));
        }
    }
    by_type(members, into);
    Ok(())
}

/// A union or a reference that comes with other demands is not taken apart.
fn only(members: &Map<String, Json>, keyword: &str) -> Result<(), String> {
    let other = |name: &&String| {
        *name != keyword && !ANNOTATIONS.contains(&name.as_str()) && !name.starts_with("x-")
    };
    // `type` beside a union of its variants is what serializers write.
    match members.keys().filter(|name| *name != "type").find(other) {
        Some(_) => Err(keyword.to_owned()),
        None => Ok(()),
    }
}

fn by_type<'s>(members: &'s Map<String, Json>, into: &mut Vec<Alternative<'s>>) {
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
                into.push(Alternative { kind: None, members, values: None });
                return;
            }
        },
    };
    for kind in kinds {
        let own = values.as_ref().map(|values| {
            values.iter().copied().filter(|value| is_of(value, kind)).collect::<Vec<_>>()
        });
        if own.as_ref().is_none_or(|own| !own.is_empty()) {
            into.push(Alternative { kind: Some(kind), members, values: own });
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

/// Whether a value of the one type is of the other.
pub(super) fn same_kind(sub: Option<&str>, sup: Option<&str>) -> bool {
    sup.is_none() || sub == sup || (sub == Some("integer") && sup == Some("number"))
}

/// The schema without what says nothing about values.
pub(super) fn strip(schema: &Json) -> Json {
    match schema {
        Json::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                // A property may be called `title`; then it is a schema.
                let annotates = ANNOTATIONS.contains(&name.as_str()) || name.starts_with("x-");
                !annotates || value.is_object() && *name != "$defs"
            });
            Json::Object(kept.map(|(name, value)| (name.clone(), strip(value))).collect())
        }
        Json::Array(items) => Json::Array(items.iter().map(strip).collect()),
        other => other.clone(),
    }
}
