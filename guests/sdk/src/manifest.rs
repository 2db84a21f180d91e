//! Parts of the manifest other than routes: collections, lanes and parameters.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde_json::Value;

use crate::documents::Document;
use crate::schema;
use crate::wit::assurance::area::manifest::{
    self as wit, Field, FieldKind, Index, IntegerBounds, Parameter, ParameterPlace, ParameterType,
    Route, TextBounds,
};

/// A lane of the host's job queue. Each lane has its own workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// For jobs that run audits.
    Scanner,
    /// For jobs that import uploads and submitted evidence.
    Ingest,
    /// For jobs that call language models.
    Assistant,
    /// For deliveries of events and webhooks.
    Delivery,
    /// For jobs that can wait, such as cleanup.
    Maintenance,
}

impl Lane {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scanner => "scanner",
            Self::Ingest => "ingest",
            Self::Assistant => "assistant",
            Self::Delivery => "delivery",
            Self::Maintenance => "maintenance",
        }
    }
}

/// Declaration of a collection: a kind of document. Queries can use only the fields of its indexes,
/// which are fast to query, and those that [`Collection::fields`] adds. A field's kind (text,
/// integer or boolean) is that of the member in the documents' schema.
#[derive(Debug)]
#[must_use]
pub struct Collection {
    name: &'static str,
    summary: &'static str,
    schema: fn() -> String,
    fields: &'static [&'static str],
    indexes: Vec<(&'static [&'static str], bool)>,
    readers: &'static [&'static str],
}

impl Collection {
    /// Declares the collection of this type's documents.
    pub fn of<T: Document + JsonSchema>() -> Self {
        Self {
            name: T::COLLECTION,
            summary: "",
            schema: schema::stored::<T>,
            fields: &[],
            indexes: Vec::new(),
            readers: &[],
        }
    }

    /// Sets the collection's summary for authors of other areas, one line.
    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Sets the fields that queries use and that no index names.
    pub fn fields(mut self, names: &'static [&'static str]) -> Self {
        self.fields = names;
        self
    }

    /// Declares an index on these fields. It serves conditions on the first fields and the order by
    /// the last.
    pub fn index(mut self, fields: &'static [&'static str]) -> Self {
        self.indexes.push((fields, false));
        self
    }

    /// Declares a unique index: at most one document of the workspace has these values. Documents
    /// in which one of them is missing or null are not compared.
    pub fn unique(mut self, fields: &'static [&'static str]) -> Self {
        self.indexes.push((fields, true));
        self
    }

    /// Sets the areas that may read the collection; `*` means all.
    pub fn readable_by(mut self, areas: &'static [&'static str]) -> Self {
        self.readers = areas;
        self
    }

    pub(crate) fn manifest(&self) -> wit::Collection {
        let schema = (self.schema)();
        let members: Value = serde_json::from_str(&schema).unwrap_or_default();
        let indexed = self.indexes.iter().flat_map(|(fields, _)| *fields);
        let names: BTreeSet<&str> = indexed.chain(self.fields).copied().collect();
        wit::Collection {
            name: self.name.to_owned(),
            summary: self.summary.to_owned(),
            schema,
            fields: names.into_iter().map(|name| self.field(name, &members)).collect(),
            indexes: self
                .indexes
                .iter()
                .map(|&(fields, unique)| Index { fields: owned(fields), unique })
                .collect(),
            readers: owned(self.readers),
        }
    }

    /// Returns a field with its kind, from the documents' schema.
    fn field(&self, name: &str, schema: &Value) -> Field {
        let Some(member) = schema["properties"].get(name) else {
            panic!("{}: documents have no member {name}", self.name)
        };
        let kind = match kind(self.name, name, not_null(member)) {
            ParameterType::Boolean => FieldKind::Boolean,
            ParameterType::Integer(_) => FieldKind::Integer,
            _ => FieldKind::Text,
        };
        Field { name: name.to_owned(), kind }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns the names of the path template's parameters except `workspace_id`.
pub(crate) fn path_parameters(template: &str) -> impl Iterator<Item = &str> {
    template
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .filter(|&name| name != "workspace_id")
}

/// Adds a parameter to the route for each member of a struct's schema.
pub(crate) fn parameters(schema: &Value, route: &mut Route) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(members) = schema["properties"].as_object() else { return };
    for (name, member) in members {
        let place = if path_parameters(&route.path).any(|path| path == name) {
            ParameterPlace::Path
        } else if member["x-header"] == true {
            ParameterPlace::Header
        } else {
            ParameterPlace::Query
        };
        let required = required.contains(&name.as_str());
        route.parameters.push(parameter(&route.operation_id, name, place, member, required));
    }
}

/// Returns the declaration of an operation's parameter with this schema.
pub(crate) fn parameter(
    operation: &str,
    name: &str,
    place: ParameterPlace,
    schema: &Value,
    required: bool,
) -> Parameter {
    let default = schema.get("default").filter(|default| !default.is_null());
    Parameter {
        name: name.to_owned(),
        place,
        summary: schema["description"].as_str().unwrap_or_default().to_owned(),
        kind: kind(operation, name, not_null(schema)),
        required: required || place == ParameterPlace::Path,
        default: default.map(Value::to_string),
    }
}

/// Returns the schema of a parameter or field without the null alternative of an optional one.
fn not_null(schema: &Value) -> &Value {
    let branches = schema["anyOf"].as_array();
    branches
        .and_then(|branches| branches.iter().find(|branch| branch["type"] != "null"))
        .unwrap_or(schema)
}

fn words(schema: &Value) -> Vec<String> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let documented = schema["oneOf"].as_array().into_iter().flatten().map(|word| &word["const"]);
    listed.chain(documented).filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Returns the kind of a parameter or field. `owner` is its operation or collection.
fn kind(owner: &str, name: &str, schema: &Value) -> ParameterType {
    let words = words(schema);
    if !words.is_empty() {
        return ParameterType::OneOf(words);
    }
    let is = |kind: &str| {
        let said = &schema["type"];
        said == kind || said.as_array().is_some_and(|kinds| kinds.iter().any(|said| said == kind))
    };
    let bound = |key: &str| schema[key].as_i64();
    let length = |key: &str| schema[key].as_u64().and_then(|length| u32::try_from(length).ok());
    match schema["format"].as_str() {
        Some("uuid") => ParameterType::Uuid,
        Some("date-time") => ParameterType::Timestamp,
        _ if is("boolean") => ParameterType::Boolean,
        _ if is("integer") => ParameterType::Integer(IntegerBounds {
            minimum: bound("minimum").unwrap_or(i64::MIN),
            maximum: bound("maximum").unwrap_or(i64::MAX),
        }),
        _ if is("string") => ParameterType::Text(TextBounds {
            min_length: length("minLength").unwrap_or(0),
            max_length: length("maxLength").unwrap_or(2000),
        }),
        _ => panic!("{owner}: {name} is neither text, integer, boolean, id nor timestamp"),
    }
}
