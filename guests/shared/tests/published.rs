//! Compares the types of other areas' documents with the owners' manifests.

use std::collections::BTreeSet;

use area_sdk::{Area, Document};
use area_shared::{catalog, evidence, uploads};
use schemars::JsonSchema;
use serde_json::Value;

/// Returns the JSON types of a member.
fn types(member: &Value) -> BTreeSet<&str> {
    let branches = ["anyOf", "oneOf"].iter().filter_map(|key| member[*key].as_array()).flatten();
    let own = match &member["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    branches.flat_map(types).chain(own).collect()
}

/// Resolves a member's reference within the schema.
fn resolved<'a>(shape: &'a Value, member: &'a Value) -> &'a Value {
    let reference = member["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    reference.map_or(member, |path| shape.pointer(path).expect("a definition"))
}

/// Asserts that the owner has every member of the type, and that the type accepts every JSON type
/// that the owner writes.
fn check<T: Document + JsonSchema>(owner: &Area) {
    let manifest = owner.manifest();
    let name = T::COLLECTION.strip_prefix(&format!("{}.", manifest.name)).expect("the owner's");
    let kept = manifest.collections.iter().find(|kept| kept.name == name).expect("a collection");
    assert!(!kept.readers.is_empty(), "{name} is read by nobody");
    let kept: Value = serde_json::from_str(&kept.schema).expect("a schema");
    let shape = schemars::schema_for!(T).to_value();
    for (member, read) in shape["properties"].as_object().expect("members") {
        let written = types(&kept["properties"][member]);
        assert!(!written.is_empty(), "{name} has no member {member}");
        let read = types(resolved(&shape, read));
        assert!(written.is_subset(&read), "{name}.{member}: {written:?} is read as {read:?}");
    }
}

#[test]
fn shapes_read_what_their_owners_write() {
    check::<catalog::Repository>(&area_catalog::area());
    check::<catalog::Service>(&area_catalog::area());
    check::<catalog::UserGroup>(&area_catalog::area());
    check::<evidence::EvidenceRecord>(&area_evidence::area());
    check::<uploads::Upload>(&area_uploads::area());
}
