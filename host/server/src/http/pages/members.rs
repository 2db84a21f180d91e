//! Describes a JSON Schema for people: one table row for each member, with its
//! type and limits.

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::Value as Json;

/// Row of a table in the reference: a member of a request or response body, or
/// a parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SchemaFieldRow {
    /// Path of the member from the body's root, such as `items[].id`; the name
    /// of a parameter.
    pub(super) path: String,
    /// Type of the member with its limits, such as `string (uuid)` or
    /// `"low" | "high"`.
    pub(super) kind: String,
    /// Whether the schema requires the member or parameter.
    pub(super) required: bool,
    /// Default of an absent member, as JSON.
    pub(super) default: Option<String>,
    /// Description of the member in `CommonMark`.
    pub(super) description: String,
}

/// Maximum nesting depth of shown members and types. Deeper ones are only in
/// the OpenAPI document, because a schema may contain itself.
const MAX_DEPTH: usize = 6;

/// Size limit of one page in units: one unit for each byte of text, and
/// [`NODE_UNITS`] for each visited schema node.
const PAGE_UNITS: usize = 512 << 10;

/// Units that each visited schema node takes from the page's size limit.
const NODE_UNITS: usize = 64;

/// Returns the schema that a reference within the document leads to; a schema
/// without `$ref` is returned unchanged.
pub(super) fn resolved<'a>(document: &'a Json, schema: &'a Json) -> &'a Json {
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// Reads the schemas of the OpenAPI document for one page, up to the page's
/// size limit. The limit is needed because areas write schemas, and a few
/// references can expand to millions of members.
#[derive(Debug)]
pub(super) struct SchemaMemberReader<'a> {
    pub(super) document: &'a Json,
    left: Cell<usize>,
}

impl<'a> SchemaMemberReader<'a> {
    pub(super) fn new(document: &'a Json) -> Self {
        Self { document, left: Cell::new(PAGE_UNITS) }
    }

    /// Returns whether the size limit of the page is reached.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// Takes units from the page's size limit. Returns false if the limit is
    /// reached; then all further calls return false.
    pub(super) fn spend(&self, units: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(units));
        !self.is_exhausted()
    }

    /// Returns all members of the value that a schema describes; outer members
    /// come before their inner ones.
    pub(super) fn members(&self, schema: &Json) -> Vec<SchemaFieldRow> {
        let mut found = SchemaMemberRows::default();
        self.collect(schema, "", 0, &mut found);
        found.rows
    }

    /// Returns the type of a schema's values in a few words.
    pub(super) fn kind(&self, schema: &Json) -> String {
        self.kind_within(schema, 0)
    }

    fn collect(&self, schema: &Json, at: &str, depth: usize, found: &mut SchemaMemberRows) {
        if depth > MAX_DEPTH || !self.spend(NODE_UNITS + at.len()) {
            return;
        }
        let schema = resolved(self.document, schema);
        for part in parts(schema) {
            self.collect(part, at, depth + 1, found);
        }
        if schema["items"].is_object() {
            self.collect(&schema["items"], &format!("{at}[]"), depth + 1, found);
        }
        if schema["additionalProperties"].is_object() {
            self.collect(&schema["additionalProperties"], &beneath(at, "*"), depth + 1, found);
        }
        let required = required(schema);
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let path = beneath(at, name);
            if !self.spend(NODE_UNITS + path.len()) {
                return;
            }
            if !found.paths.insert(path.clone()) {
                continue;
            }
            found.rows.push(SchemaFieldRow {
                kind: self.kind(member),
                required: required.contains(name.as_str()),
                default: self.default(member),
                description: self.description(member),
                path: path.clone(),
            });
            self.collect(member, &path, depth + 1, found);
        }
    }

    /// Returns the default of a schema as JSON; `None` without one, and for
    /// `null`.
    pub(super) fn default(&self, schema: &Json) -> Option<String> {
        let own = schema.get("default").or_else(|| resolved(self.document, schema).get("default"));
        let default = own.filter(|value| !value.is_null())?.to_string();
        self.spend(default.len()).then_some(default)
    }

    fn description(&self, schema: &Json) -> String {
        let own = schema["description"].as_str();
        let text = own.or_else(|| resolved(self.document, schema)["description"].as_str());
        text.filter(|text| self.spend(text.len())).unwrap_or_default().to_owned()
    }

    fn kind_within(&self, schema: &Json, depth: usize) -> String {
        let schema = resolved(self.document, schema);
        if depth > MAX_DEPTH || !self.spend(NODE_UNITS) {
            return "…".to_owned();
        }
        let fits = |text: String| if self.spend(text.len()) { text } else { "…".to_owned() };
        if let Some(value) = schema.get("const") {
            return fits(value.to_string());
        }
        if let Some(values) = schema["enum"].as_array() {
            return fits(any_of(values.iter().map(Json::to_string)));
        }
        let variants = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        if let Some(variants) = variants {
            let kinds = variants.iter().take_while(|_| !self.is_exhausted());
            return fits(any_of(kinds.map(|one| self.kind_within(one, depth + 1))));
        }
        let of_type = |name: &str| match name {
            "array" => format!("array of {}", self.kind_within(&schema["items"], depth + 1)),
            "string" => string(schema),
            "integer" | "number" => format!("{name}{}", bounds(schema, "minimum", "maximum", "")),
            other => other.to_owned(),
        };
        match &schema["type"] {
            Json::String(name) => of_type(name),
            Json::Array(names) => any_of(names.iter().filter_map(Json::as_str).map(of_type)),
            _ => "anything".to_owned(),
        }
    }
}

/// Table rows of a schema's members while they are collected, and the paths
/// that have a row.
#[derive(Default)]
struct SchemaMemberRows {
    rows: Vec<SchemaFieldRow>,
    paths: HashSet<String>,
}

fn beneath(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// Returns the subschemas of `allOf`, `anyOf` and `oneOf`.
fn parts(schema: &Json) -> impl Iterator<Item = &Json> {
    ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|of| schema[of].as_array().into_iter().flatten())
}

/// Returns the names of the required members of an object schema.
fn required(schema: &Json) -> HashSet<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect()
}

fn any_of(kinds: impl Iterator<Item = String>) -> String {
    let mut kinds: Vec<String> = kinds.collect();
    kinds.dedup();
    kinds.join(" | ")
}

fn string(schema: &Json) -> String {
    match schema["format"].as_str() {
        Some(format) => format!("string ({format})"),
        None => format!("string{}", bounds(schema, "minLength", "maxLength", " characters")),
    }
}

/// Returns limits as text, such as `, 1 to 200 characters`; an empty string
/// without limits.
fn bounds(schema: &Json, least: &str, most: &str, unit: &str) -> String {
    let of = |name: &str| schema.get(name).filter(|bound| bound.is_number());
    match (of(least), of(most)) {
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
        (Some(least), None) => format!(", at least {least}{unit}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

/// Returns the required members of an object schema.
pub(super) fn required_members(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let required = required(schema);
    let members = schema["properties"].as_object().into_iter().flatten();
    members.filter(move |(name, _)| required.contains(name.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(document: &Json, schema: &Json) -> Vec<String> {
        SchemaMemberReader::new(document)
            .members(schema)
            .into_iter()
            .map(|member| member.path)
            .collect()
    }

    #[test]
    fn members_are_listed_from_the_outside_in() {
        let schema = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "items": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"id": {"type": "string", "format": "uuid"}},
                }},
                "labels": {"type": "object", "additionalProperties": {
                    "type": "object", "properties": {"value": {"type": "boolean"}},
                }},
            },
        });
        let found = SchemaMemberReader::new(&Json::Null).members(&schema);
        let first = found.first().unwrap();
        assert_eq!((first.path.as_str(), first.required), ("items", true));
        assert_eq!(first.kind, "array of object");
        assert_eq!(
            paths(&Json::Null, &schema),
            ["items", "items[].id", "labels", "labels.*.value"]
        );
    }

    #[test]
    fn references_are_followed_and_one_in_a_circle_comes_to_an_end() {
        let document = json!({"components": {"schemas": {"Tree": {
            "type": "object",
            "description": "A tree",
            "properties": {"child": {"$ref": "#/components/schemas/Tree"}},
        }}}});
        let found = SchemaMemberReader::new(&document)
            .members(&json!({"$ref": "#/components/schemas/Tree"}));
        assert_eq!(found.len(), MAX_DEPTH + 1);
        assert_eq!(found.first().unwrap().description, "A tree");
    }

    #[test]
    fn kinds_say_what_a_value_may_be() {
        let of = |schema: Json| SchemaMemberReader::new(&Json::Null).kind(&schema);
        assert_eq!(of(json!({"enum": ["low", "high"]})), r#""low" | "high""#);
        assert_eq!(of(json!({"oneOf": [{"const": 1}, {"type": "null"}]})), "1 | null");
        assert_eq!(
            of(json!({"type": ["string", "null"], "format": "uuid"})),
            "string (uuid) | null"
        );
        assert_eq!(
            of(json!({"type": "string", "minLength": 1, "maxLength": 9})),
            "string, 1 to 9 characters"
        );
        assert_eq!(of(json!({"type": "integer", "minimum": 0})), "integer, at least 0");
        assert_eq!(of(json!({})), "anything");
    }

    #[test]
    fn a_page_has_room_for_so_many_members_however_wide_a_schema_is() {
        let wide = |level: usize| {
            let below = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
            let members: serde_json::Map<_, _> =
                (0..40).map(|at| (format!("m{at}"), below.clone())).collect();
            let any = vec![below; 40];
            json!({"properties": members, "anyOf": any})
        };
        let levels: serde_json::Map<_, _> =
            (0..7).map(|level| (format!("L{level}"), wide(level))).collect();
        let document = json!({"components": {"schemas": levels}});
        let schema = json!({"$ref": "#/components/schemas/L0"});
        let begun = std::time::Instant::now();
        let schemas = SchemaMemberReader::new(&document);
        let (kind, rows) = (schemas.kind(&schema), schemas.members(&schema));
        let took = begun.elapsed();
        assert!(schemas.is_exhausted() && took.as_secs() < 2, "{took:?}");
        assert!(kind.len() + rows.len() < 2 * PAGE_UNITS);
    }
}
