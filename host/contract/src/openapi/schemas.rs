//! Moves object types out of the operations' schemas into named components, at every depth. Equal
//! types with the same name become one component.
//!
//! A component has the name that the type's author chose. If several types have the same name,
//! types of the published contract have priority; the others get longer names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::components::{IF_MATCH, VERSIONED};
use super::names::{camel, variant_name};
use crate::contract::SINGLE_USE;
use crate::schema::SUBSCRIBABLE;
use crate::walk::{for_each_subschema, rewrite_references};

/// JSON Pointer prefix of a reference to a schema component of the OpenAPI document.
const COMPONENTS: &str = "#/components/schemas/";

/// Prefix of a temporary reference to a definition that is still being read, because it is
/// recursive.
const OPEN: &str = "open:";

/// JSON Schema keywords that are removed from published schemas.
const UNPUBLISHED: [&str; 9] =
    ["$schema", "$id", "$defs", "title", VERSIONED, IF_MATCH, SINGLE_USE, SUBSCRIBABLE, "examples"];

/// The place where a schema is used; determines the names of its components.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaNamingContext<'a> {
    /// Name of the area, or the tag of the host's operation.
    pub(super) owner: &'a str,
    /// Name for the schema if it has no `title`.
    pub(super) name: &'a str,
    /// Whether an operation of the published contract uses the schema.
    pub(super) in_contract: bool,
    /// Whether the schema describes a request body.
    pub(super) is_request: bool,
}

/// One object type that becomes a schema component. Its references contain the keys of other types,
/// not their names.
#[derive(Debug)]
struct ComponentType {
    name: String,
    owner: String,
    in_contract: bool,
    is_request: bool,
    /// Number of types that were added before this one; decides which type gets a name first.
    order: usize,
    schema: Json,
}

/// Collects component types while operations are described. References contain the keys of types;
/// [`Self::finish`] replaces keys by names.
#[derive(Debug, Default)]
pub(super) struct SchemaComponents {
    types: BTreeMap<String, ComponentType>,
    /// Reference to each type without a name of its own, by owner and SHA-256 of the schema.
    unnamed: HashMap<(String, String), String>,
}

impl SchemaComponents {
    /// Moves the object types of a schema into schema components. Returns the schema with
    /// references in their place. The schema must contain all its definitions (`$defs`).
    pub(super) fn hoist(&mut self, usage: SchemaNamingContext<'_>, schema: &Json) -> Json {
        let mut reader = ComponentTypeExtractor {
            usage,
            definitions: schema["$defs"].as_object().cloned().unwrap_or_default(),
            root: schema,
            targets: HashMap::new(),
            open: BTreeSet::new(),
            recursive: BTreeSet::new(),
            into: self,
        };
        if schema["type"] == "array" || !schema.is_object() {
            let name = camel(usage.name);
            return reader.read(schema.clone(), &name);
        }
        json!({"$ref": reader.root_target()})
    }

    /// Returns all schema components by name, and replaces keys by names in the document's
    /// references.
    pub(super) fn finish(self, document: &mut Json) -> Map<String, Json> {
        let names = self.names();
        let rename = |target: &str| {
            let key = target.strip_prefix(COMPONENTS)?;
            let (key, rest) = key.find('/').map_or((key, ""), |slash| key.split_at(slash));
            names.get(key).map(|name| format!("{COMPONENTS}{name}{rest}"))
        };
        rewrite_references(document, &rename);
        let components = self.types.into_iter().map(|(key, one)| {
            let mut schema = one.schema;
            rewrite_references(&mut schema, &rename);
            let name = names.get(&key).cloned().unwrap_or_default();
            schema["title"] = Json::String(name.clone());
            (name, schema)
        });
        components.collect()
    }

    /// Chooses a unique component name for each type, and returns the names by the types' keys.
    fn names(&self) -> BTreeMap<String, String> {
        let mut taken = BTreeSet::from(["Problem".to_owned()]);
        let mut ordered: Vec<_> = self.types.iter().collect();
        ordered.sort_by_key(|(_, one)| (!one.in_contract, one.is_request, one.order));
        let named = ordered.into_iter().map(|(key, one)| {
            let name = one.names().find(|name| !taken.contains(name)).unwrap_or_default();
            taken.insert(name.clone());
            (key.clone(), name)
        });
        named.collect()
    }
}

impl ComponentType {
    /// Returns an endless sequence of possible component names for the type, the preferred one
    /// first.
    fn names(&self) -> impl Iterator<Item = String> {
        let plain = self.name.clone();
        let with_area = format!("{}{plain}", camel(&self.owner));
        let suffix = if self.is_request { "Input" } else { "" };
        let input = format!("{plain}{suffix}");
        let numbered = format!("{with_area}{suffix}");
        let more = (2..).map(move |number: u32| format!("{numbered}{number}"));
        [plain, input, with_area.clone(), format!("{with_area}{suffix}")].into_iter().chain(more)
    }
}

/// Reads one schema with its definitions (`$defs`) and adds its types to the components.
struct ComponentTypeExtractor<'a> {
    usage: SchemaNamingContext<'a>,
    definitions: Map<String, Json>,
    root: &'a Json,
    /// Reference to the component of each definition that was read, by definition id; the root's id
    /// is "".
    targets: HashMap<String, String>,
    open: BTreeSet<String>,
    /// Ids of definitions that refer to themselves, directly or through others, and are still being
    /// read.
    recursive: BTreeSet<String>,
    into: &'a mut SchemaComponents,
}

impl ComponentTypeExtractor<'_> {
    fn root_target(&mut self) -> String {
        let title = self.root["title"].as_str().unwrap_or(self.usage.name);
        self.target("", self.root.clone(), &camel(title))
    }

    /// Returns the reference to the component of the definition with this id; reads the definition
    /// at its first use.
    fn target(&mut self, id: &str, schema: Json, name: &str) -> String {
        if let Some(target) = self.targets.get(id) {
            return target.clone();
        }
        if !self.open.insert(id.to_owned()) {
            self.recursive.insert(id.to_owned());
            return format!("{OPEN}{id}");
        }
        let schema = self.read(schema, name);
        let target = alias_target(&schema).unwrap_or_else(|| self.keep(name, schema));
        self.open.remove(id);
        if self.recursive.remove(id) {
            self.close(id, &target);
        }
        self.targets.insert(id.to_owned(), target.clone());
        target
    }

    /// Replaces the temporary references to a definition after it was read.
    fn close(&mut self, id: &str, target: &str) {
        let open = format!("{OPEN}{id}");
        let close = |found: &str| (found == open).then(|| target.to_owned());
        for one in self.into.types.values_mut() {
            rewrite_references(&mut one.schema, &close);
        }
    }

    /// Adds a type without a name of its own to the components, or reuses one with an equal schema.
    /// Returns its reference.
    fn keep_unnamed(&mut self, name: &str, schema: Json) -> String {
        let content = hex::encode(Sha256::digest(schema.to_string()));
        let content = (self.usage.owner.to_owned(), content);
        if let Some(target) = self.into.unnamed.get(&content) {
            return target.clone();
        }
        let target = self.keep(name, schema);
        self.into.unnamed.insert(content, target.clone());
        target
    }

    /// Adds a type to the components, or reuses one with the same name and schema. Returns its
    /// reference.
    fn keep(&mut self, name: &str, schema: Json) -> String {
        let digest = Sha256::digest(format!("{name}\n{schema}"));
        let key = hex::encode(&digest[..16]);
        let order = self.into.types.len();
        let usage = self.usage;
        let one = self.into.types.entry(key.clone()).or_insert_with(|| ComponentType {
            name: name.to_owned(),
            owner: usage.owner.to_owned(),
            in_contract: usage.in_contract,
            is_request: usage.is_request,
            order,
            schema,
        });
        one.in_contract |= usage.in_contract;
        one.is_request &= usage.is_request;
        format!("{COMPONENTS}{key}")
    }

    /// Returns the schema as it is published: without definitions and titles, with references to
    /// components in place of nested object types.
    fn read(&mut self, mut schema: Json, name: &str) -> Json {
        let Json::Object(members) = &mut schema else { return schema };
        for keyword in UNPUBLISHED {
            members.remove(keyword);
        }
        if let Some(target) = members.get("$ref").and_then(Json::as_str) {
            let target = self.redirected(target);
            members.insert("$ref".to_owned(), target.into());
        }
        join_constants(members);
        let composed = members.contains_key("properties");
        let optional = is_optional(members);
        for_each_subschema(members, &mut |keyword, at, subschema| {
            let inner = match keyword {
                "properties" => format!("{name}{}", camel(at)),
                "oneOf" | "anyOf" if !optional => variant_name(name, at, subschema),
                "items" | "additionalProperties" => format!("{name}Item"),
                _ => name.to_owned(),
            };
            let read = self.read(subschema.take(), &inner);
            let in_place = matches!(keyword, "oneOf" | "anyOf") && composed
                || matches!(keyword, "allOf" | "if" | "then" | "else" | "not");
            *subschema = if is_object_type(&read) && !in_place {
                json!({"$ref": self.keep_unnamed(&inner, read)})
            } else {
                read
            };
        });
        schema
    }

    fn redirected(&mut self, target: &str) -> String {
        if target == "#" {
            return self.root_target();
        }
        let Some(path) = target.strip_prefix("#/$defs/") else { return target.to_owned() };
        let (id, rest) = path.find('/').map_or((path, ""), |slash| path.split_at(slash));
        let Some(definition) = self.definitions.get(id).cloned() else { return target.to_owned() };
        let name = camel(id);
        format!("{}{rest}", self.target(id, definition, &name))
    }
}

/// Replaces a union of string constants by one enum whose description lists those of the constants.
/// Schemas use such a union to describe each value, but client generators make a type of each
/// constant, and some then accept only the first.
fn join_constants(members: &mut Map<String, Json>) {
    let Some(branches) = members.get("oneOf").and_then(Json::as_array) else { return };
    let mut values = Vec::new();
    let mut lines = Vec::new();
    for branch in branches {
        let value = branch["const"].as_str();
        let several = branch["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
        let known = value.is_some() || several.iter().all(Json::is_string) && !several.is_empty();
        if branch["type"] != "string" || !known {
            return;
        }
        values.extend(branch.get("const").cloned());
        values.extend(several.iter().cloned());
        if let (Some(value), Some(description)) = (value, branch["description"].as_str()) {
            lines.push(format!("- `{value}`: {description}"));
        }
    }
    members.remove("oneOf");
    members.insert("type".to_owned(), "string".into());
    members.insert("enum".to_owned(), values.into());
    if !lines.is_empty() {
        let own = members.get("description").and_then(Json::as_str);
        let paragraphs = own.map(str::to_owned).into_iter().chain([lines.join("\n")]);
        let description = paragraphs.collect::<Vec<_>>().join("\n\n");
        members.insert("description".to_owned(), description.into());
    }
}

/// Returns whether the schema is a union of `null` and one other schema.
fn is_optional(members: &Map<String, Json>) -> bool {
    let branches = members.get("anyOf").or(members.get("oneOf")).and_then(Json::as_array);
    branches.is_some_and(|branches| {
        branches.len() == 2 && branches.iter().any(|branch| branch["type"] == "null")
    })
}

/// Returns the component that the schema refers to if it adds at most a description. Such an alias
/// gets no component of its own, because client generators would generate the same type twice.
fn alias_target(schema: &Json) -> Option<String> {
    let members = schema.as_object()?;
    let target = members.get("$ref")?.as_str().filter(|target| !target.starts_with(OPEN))?;
    let is_alias = members.keys().all(|keyword| keyword == "$ref" || keyword == "description");
    is_alias.then(|| target.to_owned())
}

/// Returns whether the schema describes an object with named properties.
fn is_object_type(schema: &Json) -> bool {
    schema["properties"].as_object().is_some_and(|members| !members.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(owner: &'static str, name: &'static str) -> SchemaNamingContext<'static> {
        SchemaNamingContext { owner, name, in_contract: false, is_request: false }
    }

    /// Returns the components of these schemas, and a document that consists of the schemas.
    fn published(schemas: &[(SchemaNamingContext<'_>, Json)]) -> (Map<String, Json>, Json) {
        let mut components = SchemaComponents::default();
        let hoisted = schemas.iter().map(|(usage, schema)| components.hoist(*usage, schema));
        let mut document = Json::Array(hoisted.collect());
        let schemas = components.finish(&mut document);
        (schemas, document)
    }

    fn reference(name: &str) -> Json {
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    fn item(member: &str) -> Json {
        json!({"title": "Item", "type": "object", "properties": {member: {"type": "string"}}})
    }

    #[test]
    fn equal_types_are_one_component_at_every_depth() {
        let page = json!({
            "title": "ItemPage", "type": "object",
            "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}},
            "$defs": {"Item": item("id")},
        });
        let list = json!({"type": "array", "title": "Array_of_Item",
            "items": {"$ref": "#/$defs/Item"}, "$defs": {"Item": item("id")}});
        let schemas = [
            (used("a", "get_response"), item("id")),
            (used("a", "page_response"), page),
            (used("a", "list_response"), list),
        ];
        let (components, document) = published(&schemas);
        assert_eq!(components.keys().collect::<Vec<_>>(), ["Item", "ItemPage"]);
        assert_eq!(components["ItemPage"]["properties"]["items"]["items"], reference("Item"));
        assert_eq!(document[2], json!({"type": "array", "items": reference("Item")}));
    }

    #[test]
    fn of_different_types_with_one_name_the_contracts_keeps_it() {
        let contract = SchemaNamingContext { in_contract: true, ..used("b", "x") };
        let request = SchemaNamingContext { is_request: true, ..used("b", "x") };
        let schemas =
            [(used("a_b", "x"), item("one")), (request, item("two")), (contract, item("three"))];
        let (components, document) = published(&schemas);
        assert_eq!(components.keys().collect::<Vec<_>>(), ["ABItem", "Item", "ItemInput"]);
        assert_eq!(document, json!(["ABItem", "ItemInput", "Item"].map(reference)));
    }

    #[test]
    fn objects_without_a_name_are_named_by_where_they_are() {
        let schema = json!({"title": "Change", "type": "object", "properties": {
            "old": {"type": "object", "properties": {"id": {}}},
            "new": {"anyOf": [{"type": "object", "properties": {"id": {}}}, {"type": "null"}]},
            "step": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "move"}, "to": {}}},
                {"type": "object", "properties": {"kind": {"const": "stop"}}},
            ]},
        }});
        let (components, _) = published(&[(used("a", "x"), schema)]);
        let names = ["Change", "ChangeNew", "ChangeStepMove", "ChangeStepStop"];
        assert_eq!(components.keys().collect::<Vec<_>>(), names);
        assert_eq!(components["Change"]["properties"]["old"], reference("ChangeNew"));
    }

    #[test]
    fn constants_are_joined_to_an_enum() {
        let schema = json!({"title": "Job", "type": "object", "properties": {"state": {
            "description": "Where it is.",
            "oneOf": [
                {"type": "string", "enum": ["waiting", "running"]},
                {"type": "string", "const": "failed", "description": "It is not tried again."},
            ],
        }}});
        let (components, _) = published(&[(used("a", "x"), schema)]);
        let state = json!({
            "type": "string", "enum": ["waiting", "running", "failed"],
            "description": "Where it is.\n\n- `failed`: It is not tried again.",
        });
        assert_eq!(components["Job"]["properties"]["state"], state);
    }

    #[test]
    fn another_name_of_a_type_is_no_component() {
        let failed = json!({"title": "Failed", "description": "It failed.", "$ref": "#/$defs/Item",
            "$defs": {"Item": item("id")}});
        let schemas = [(used("a", "x"), item("id")), (used("a", "failed.data"), failed)];
        let (components, document) = published(&schemas);
        assert_eq!(components.keys().collect::<Vec<_>>(), ["Item"]);
        assert_eq!(document, json!([reference("Item"), reference("Item")]));
    }

    #[test]
    fn a_type_may_contain_itself() {
        let schema = json!({"title": "Tree", "type": "object", "properties": {
            "root": {"$ref": "#/$defs/Node"}, "rest": {"$ref": "#"},
        }, "$defs": {"Node": {"type": "object", "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        }}}});
        let (components, _) = published(&[(used("a", "x"), schema)]);
        assert_eq!(components["Node"]["properties"]["children"]["items"], reference("Node"));
        assert_eq!(components["Tree"]["properties"]["rest"], reference("Tree"));
    }
}
