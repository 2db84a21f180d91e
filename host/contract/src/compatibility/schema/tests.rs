//! Tests of what a change of a schema means to those who write and read it.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{SchemaMismatch, SchemaUser};
use crate::compatibility::MAX_STEPS;

fn mismatches(side: SchemaUser, live: &Json, candidate: &Json) -> Vec<SchemaMismatch> {
    let mut steps = MAX_STEPS;
    super::mismatches(side, live, candidate, &mut steps)
}

fn checked(side: SchemaUser, live: Json, candidate: Json, expected: &[&str]) {
    let found = mismatches(side, &live, &candidate);
    let found: Vec<String> = found
        .into_iter()
        .map(|mismatch| format!("{} {}", mismatch.pointer, mismatch.what))
        .collect();
    assert_eq!(found, expected, "{live} -> {candidate}");
}

fn writers(live: Json, candidate: Json, expected: &[&str]) {
    checked(SchemaUser::Writers, live, candidate, expected);
}

fn readers(live: Json, candidate: Json, expected: &[&str]) {
    checked(SchemaUser::Readers, live, candidate, expected);
}

pub(in crate::compatibility) fn object(properties: Json, required: &[&str]) -> Json {
    json!({"type": "object", "properties": properties, "required": required})
}
#[test]
fn values_types_and_bounds_are_compared_by_what_they_mean() {
    let words = |words: &[&str]| json!({"type": "string", "enum": words});
    writers(words(&["a", "b"]), words(&["a"]), &[" does not accept \"b\" any more"]);
    writers(words(&["a"]), words(&["a", "b"]), &[]);
    readers(words(&["a"]), words(&["a", "b"]), &[" may be \"b\" now"]);
    readers(words(&["a"]), json!({"type": "string"}), &[" may have other values now"]);
    writers(json!({"type": "string"}), words(&["a"]), &[" accepts only some values now"]);
    writers(json!({"type": "integer"}), json!({"type": "number"}), &[]);
    writers(
        json!({"type": "number"}),
        json!({"type": "integer"}),
        &[" does not accept a number any more"],
    );
    writers(
        json!({}),
        json!({"type": "string"}),
        &[" does not accept a value of any type any more"],
    );
    let at_most =
        |n| json!({"type": "array", "maxItems": n, "items": {"type": "integer", "maximum": n}});
    writers(
        at_most(9),
        at_most(5),
        &[" maxItems is 5 now, and was 9", "/* maximum is 5 now, and was 9"],
    );
    readers(
        at_most(5),
        at_most(9),
        &[" maxItems is 9 now, and was 5", "/* maximum is 9 now, and was 5"],
    );
    let dated = json!({"type": "string", "format": "date"});
    readers(dated, json!({"type": "string"}), &[" format is none now, and was \"date\""]);
    let short = json!({"type": "string", "maxLength": 1});
    writers(json!({"enum": ["a", "bb"]}), short.clone(), &[" does not accept \"bb\" any more"]);
    readers(short, json!({"enum": ["a", "bb"]}), &[" may be \"bb\" now"]);
    let pair = json!({"$ref": "#/$defs/Pair", "$defs": {
        "Pair": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        "A": {"type": "integer"},
    }});
    writers(json!({"const": {"a": 1}}), pair.clone(), &[]);
    writers(json!({"const": {"b": 1}}), pair, &[" does not accept {\"b\":1} any more"]);
}

#[test]
fn a_value_and_a_union_of_one_are_the_same() {
    let tagged = json!({"oneOf": [{"const": "a"}, {"const": "b", "description": "the second"}]});
    writers(tagged.clone(), json!({"type": "string", "enum": ["a", "b"]}), &[]);
    readers(json!({"enum": ["b", "a"]}), tagged, &[]);
    let maybe = json!({"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}], "$defs": {"T": {"type": "string"}}});
    readers(maybe.clone(), json!({"type": ["string", "null"]}), &[]);
    readers(json!({"type": "string"}), maybe, &[" may be a null now"]);
}

#[test]
fn types_that_contain_themselves_are_compared_once() {
    let tree = |leaf: &str| {
        json!({"$ref": "#/$defs/Tree", "$defs": {"Tree": object(json!({
            "leaf": {"type": leaf}, "below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        }), &["leaf"])}})
    };
    readers(tree("string"), tree("string"), &[]);
    readers(tree("string"), tree("integer"), &["/leaf may be a integer now"]);
}

#[test]
fn a_type_that_contains_itself_is_compared_with_what_replaces_it() {
    let node = json!({"$ref": "#/$defs/Node", "$defs": {"Node": object(json!({
        "value": {"type": "integer"}, "below": {"$ref": "#/$defs/Node"},
    }), &[])}});
    let below = object(json!({"value": {"type": "string"}, "below": true}), &[]);
    let inline = object(json!({"value": {"type": "integer"}, "below": below}), &[]);
    writers(node, inline, &["/below/value does not accept a integer any more"]);
    let list = |value: &str| {
        json!({"$ref": "#/$defs/List", "$defs": {"List": object(json!({
            "value": {"type": value},
            "next": {"anyOf": [{"$ref": "#/$defs/List"}, {"type": "null"}]},
        }), &[])}})
    };
    writers(list("integer"), list("number"), &[]);
}

#[test]
fn items_of_tuples_are_compared_by_their_positions() {
    let pair = |kind: &str| {
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#/$defs/A"}],
            "$defs": {"A": {"type": kind}}})
    };
    writers(pair("integer"), pair("number"), &[]);
    writers(pair("number"), pair("integer"), &["/1 does not accept a number any more"]);
    let one = json!({"type": "array", "prefixItems": [{"type": "string"}]});
    let incomparable = " `prefixItems` is not what it was, and cannot be compared";
    writers(pair("number"), one, &[incomparable]);
}

#[test]
fn a_type_next_to_a_union_counts() {
    let union = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let narrow = json!({"type": "string", "anyOf": union["anyOf"]});
    let incomparable = " `anyOf` is not what it was, and cannot be compared";
    writers(union, narrow, &[incomparable]);
    let words = json!({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]});
    writers(words, json!({"type": "string", "enum": ["a", "b"]}), &[]);
}

#[test]
fn maps_are_compared_by_their_values() {
    let map = |kind: &str| json!({"type": "object", "additionalProperties": {"type": kind}});
    writers(map("string"), map("integer"), &["/* does not accept a string any more"]);
    writers(map("string"), json!({"type": "object"}), &[]);
    readers(json!({"type": "object"}), map("string"), &[]);
    readers(map("string"), map("integer"), &["/* may be a integer now"]);
    let any = "/* does not accept a value of any type any more";
    writers(json!({"type": "object"}), map("string"), &[any]);
    let with = |property: &str| json!({"type": "object", "properties": {property: {"type": "string"}}, "additionalProperties": {"type": "integer"}});
    writers(with("a"), map("integer"), &["/a does not accept a string any more"]);
    writers(map("integer"), with("a"), &["/a does not accept a integer any more"]);
}

#[test]
fn objects_that_take_any_member_are_compared_as_such() {
    let arbitrary = "/* does not accept arbitrary members any more";
    let listed = json!({"properties": {"a": {}}});
    writers(json!({"type": "object"}), object(json!({"a": {}}), &[]), &[arbitrary]);
    writers(json!({}), listed.clone(), &[arbitrary]);
    writers(listed.clone(), json!({}), &[]);
    let required = json!({"properties": {"a": {}}, "required": ["a"]});
    writers(listed.clone(), required.clone(), &["/a is required now"]);
    readers(required, listed, &["/a is not always there any more"]);
    let typed = json!({"properties": {"a": {"type": "string"}}, "additionalProperties": true});
    writers(json!({}), typed, &["/a does not accept a value of any type any more"]);
}

#[test]
fn what_cannot_be_compared_fits_only_itself() {
    let never = |word: &str| json!({"type": "string", "not": {"const": word}, "description": word});
    writers(never("a"), never("b"), &[" `not` is not what it was, and cannot be compared"]);
    let told = json!({"type": "string", "not": {"const": "a"}, "description": "other words"});
    writers(never("a"), told, &[]);
}

/// Generates schemas similar to those of areas.
pub(in crate::compatibility) fn schema() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({"type": "string", "format": "uuid"})),
        (0..9_u32, 9..99_u32)
            .prop_map(|(low, high)| json!({"type": "string", "minLength": low, "maxLength": high})),
        any::<i32>().prop_map(|low| json!({"type": ["integer", "null"], "minimum": low})),
        Just(json!({"oneOf": [{"const": "a"}, {"const": 1}, {"type": "null"}]})),
        Just(json!({"enum": ["a", null, 2, true]})),
        Just(json!({"type": "string", "not": {"const": "a"}})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| json!({"anyOf": [one, other]})),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|properties| {
                let required: Vec<_> = properties.keys().take(1).cloned().collect();
                json!({"type": "object", "properties": properties, "required": required})
            }),
        ]
    })
}

/// Returns the same schema with annotations.
fn annotated(schema: &Json) -> Json {
    let mut told = if schema.is_object() { schema.clone() } else { json!({}) };
    told["title"] = json!("T");
    told["description"] = json!("D");
    told["x-own"] = json!(1);
    told
}

#[test]
fn schemas_that_expand_without_end_are_compared_in_bounded_steps() {
    let expanding = |last: &str| {
        let mut definitions = serde_json::Map::new();
        for at in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
            let member = json!({"$ref": format!("#/$defs/m{}", at + 1)});
            let members = json!({"type": "object", "properties": {"a": member, "b": member}});
            definitions.insert(format!("m{at}"), members);
        }
        definitions.insert("d40".into(), json!({"type": last}));
        definitions.insert("m40".into(), json!({"type": last}));
        definitions
    };
    let begun = std::time::Instant::now();
    for root in ["#/$defs/d0", "#/$defs/m0"] {
        let live = json!({"$ref": root, "$defs": expanding("string")});
        let candidate = json!({"$ref": root, "$defs": expanding("integer")});
        for side in [SchemaUser::Writers, SchemaUser::Readers] {
            let found = mismatches(side, &live, &candidate);
            assert!(!found.is_empty() && found.len() < 10_000, "{}", found.len());
        }
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

proptest! {
    #[test]
    fn words_about_a_schema_change_nothing(live in schema()) {
        let told = annotated(&live);
        for side in [SchemaUser::Writers, SchemaUser::Readers] {
            prop_assert_eq!(mismatches(side, &live, &told), vec![]);
            prop_assert_eq!(mismatches(side, &told, &live), vec![]);
        }
    }
}
