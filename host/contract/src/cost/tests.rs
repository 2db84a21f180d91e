//! Tests of the limits on manifests.

use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};

use super::super::contract::{self, ContractLimits};
use super::super::fixtures::{creating, manifest, route};
use super::*;
use assurance_core::domain::manifest::{CollectionSpec, IndexSpec, Method};

fn nodes(schema: &Json) -> Result<u64, String> {
    schema_nodes(schema, 10_000)
}

const NOTES: &str = "/v1/workspaces/{workspace_id}/notes";

/// Returns a chain of definitions; `shape` creates each from a reference to the
/// next.
fn chain(length: usize, shape: impl Fn(Json) -> Json) -> Json {
    let mut definitions = Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), shape(next));
    }
    definitions.insert(format!("d{length}"), json!({"type": "string"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

fn refusal(manifest: &Manifest) -> String {
    let begun = Instant::now();
    let refused = contract::compile(manifest, &[], &ContractLimits::default());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "the check took {took:?}");
    refused.expect_err("it is accepted").to_string()
}

fn refused(manifest: &Manifest, parts: &[&str]) {
    let told = refusal(manifest);
    for part in parts {
        assert!(told.contains(part), "{part:?} is not in: {}", &told[..told.len().min(2_000)]);
    }
}

#[test]
fn a_request_schema_whose_branches_double_is_refused() {
    let mut post = creating("create_note", NOTES);
    post.body = BodyKind::Json(chain(40, |next| json!({"anyOf": [next, next]})));
    refused(
        &manifest("notes", vec![post]),
        &[
            "request schema of route create_note",
            "10000 are allowed",
            "areas.manifest.max_schema_nodes",
        ],
    );
}

#[test]
fn a_response_schema_of_wide_references_is_refused() {
    let wide = |next: Json| {
        let members = (0..40).map(|at| (format!("m{at}"), next.clone()));
        json!({"type": "object", "properties": members.collect::<Map<_, _>>()})
    };
    let mut get = route("list_notes", NOTES);
    get.response = Some(chain(7, wide));
    refused(&manifest("notes", vec![get]), &["response schema of route list_notes", "nodes"]);
}

#[test]
fn schemas_of_collections_and_events_count_as_well() {
    let expanding = chain(40, |next| json!({"allOf": [next, next]}));
    let mut with_both = manifest("notes", vec![]);
    with_both.collections = vec![collection("notes", expanding.clone())];
    with_both.publishes[0].schema = expanding;
    refused(&with_both, &["schema of collection notes", "schema of event notes.created"]);
}

#[test]
fn a_schema_that_a_value_makes_double_at_each_level_is_refused() {
    let twice = json!({"anyOf": [
        {"properties": {"child": {"$ref": "#"}}},
        {"properties": {"child": {"$ref": "#"}, "other": {}}},
    ]});
    assert!(nodes(&twice).unwrap() > 10_000);
    let fibonacci = json!({"anyOf": [
        {"items": {"$ref": "#"}},
        {"items": {"items": {"$ref": "#"}}},
    ]});
    assert!(nodes(&fibonacci).unwrap() > 10_000);
    let marked = (0..60)
        .fold(json!({}), |inner, _| json!({"unevaluatedProperties": false, "anyOf": [inner]}));
    assert!(nodes(&marked).unwrap() > 10_000);
}

#[test]
fn recursive_schemas_of_honest_shapes_are_accepted() {
    let tree = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "left": {"$ref": "#"}, "right": {"$ref": "#"},
        "all": {"type": "array", "items": {"$ref": "#"}},
    }});
    assert!(nodes(&tree).unwrap() < 1_000, "{:?}", nodes(&tree));
    let expression = json!({"$ref": "#/$defs/E", "$defs": {"E": {"oneOf": [
        {"properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/E"}}}},
        {"properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/E"}}}},
        {"properties": {"not": {"$ref": "#/$defs/E"}}},
        {"type": "string"},
    ]}}});
    assert!(nodes(&expression).unwrap() < 10_000, "{:?}", nodes(&expression));
}

#[test]
fn a_reference_to_itself_or_to_nothing_is_refused() {
    for (schema, why) in [
        (json!({"$ref": "#"}), "leads back to its own schema"),
        (chain(3, |_| json!({"anyOf": [{"$ref": "#/$defs/d0"}]})), "leads back"),
        (json!({"$ref": "#/$defs/lost"}), "which it does not define"),
        (json!({"properties": {"a": {"$id": "x", "$ref": "#"}}}), "below its root"),
        (chain(3_000, |next| next), "nested schemas"),
    ] {
        let told = nodes(&schema).expect_err("it is accepted");
        assert!(told.contains(why), "{told}");
    }
    assert_eq!(nodes(&json!({"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}})), Ok(2));
}

#[test]
fn large_programs_of_regular_expressions_are_refused() {
    let with = |patterns: Vec<String>| {
        let members = patterns.into_iter().enumerate();
        let members = members
            .map(|(at, pattern)| (format!("m{at}"), json!({"type": "string", "pattern": pattern})));
        let mut post = creating("create_note", NOTES);
        post.body =
            BodyKind::Json(json!({"type": "object", "properties": members.collect::<Map<_, _>>()}));
        manifest("notes", vec![post])
    };
    let large = with(vec![r"^(\p{L}{1,40}){1,30}$".into()]);
    refused(&large, &["regular expression", "areas.manifest.max_pattern_bytes"]);
    let many = with((0..400).map(|at| format!(r"^\p{{L}}{{1,{}}}$", 20 + at % 5)).collect());
    refused(&many, &["all regular expressions", "areas.manifest.max_total_pattern_bytes"]);
}

#[test]
fn lists_and_texts_are_bounded() {
    let routes = (0..10_000).map(|at| route(&format!("get_{at}"), &format!("{NOTES}/x{at}")));
    refused(&manifest("notes", routes.collect()), &["routes: 10000 entries", "max_routes"]);

    let mut wordy = manifest("notes", vec![]);
    wordy.summary = "x".repeat(20 << 20);
    refused(&wordy, &["the manifest: ", "areas.manifest.max_bytes"]);
    wordy.summary = "x".repeat(100_000);
    refused(&wordy, &["the text at /summary: 100000 bytes", "areas.manifest.max_text_bytes"]);

    let mut indexed = manifest("notes", vec![]);
    let index = IndexSpec { fields: vec!["title".into()], unique: false };
    indexed.collections = (0..40)
        .map(|at| CollectionSpec {
            indexes: vec![index.clone(); 28],
            ..collection(&format!("c{at}"), json!({}))
        })
        .collect();
    refused(&indexed, &["indexes: 1120 entries", "areas.manifest.max_indexes"]);

    let mut wide = creating("create_note", NOTES);
    let members = (0..50_000).map(|at| (format!("m{at}"), json!({})));
    wide.body =
        BodyKind::Json(json!({"type": "object", "properties": members.collect::<Map<_, _>>()}));
    refused(&manifest("notes", vec![wide]), &["request schema of route create_note: 50002 nodes"]);

    let mut listening = manifest("notes", vec![]);
    listening.subscriptions = (0..101).map(|at| format!("notes.e{at}")).collect();
    refused(&listening, &["subscriptions: 101 entries", "areas.manifest.max_events"]);
}

#[test]
fn what_was_raised_is_accepted() {
    let routes = (0..501).map(|at| route(&format!("get_{at}"), &format!("{NOTES}/x{at}")));
    let many = manifest("notes", routes.collect());
    refused(&many, &["max_routes"]);
    let mut limits = ContractLimits::default();
    limits.manifest.max_routes = 600;
    assert_eq!(contract::compile(&many, &[], &limits).unwrap().len(), 501);
    assert!(many.routes.iter().all(|route| route.method == Method::Get));
}

fn collection(name: &str, schema: Json) -> CollectionSpec {
    CollectionSpec {
        name: name.into(),
        summary: "Kept.".into(),
        schema,
        fields: vec![],
        indexes: vec![],
        readers: vec![],
    }
}
