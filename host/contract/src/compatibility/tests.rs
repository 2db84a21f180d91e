//! Tests of the reported effect of each kind of change.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::contract::ContractLimits;
use super::super::fixtures::{creating, manifest, route};
use super::schema::{SchemaMismatch, SchemaUser};
use super::{Compatibility, MAX_STEPS, additional_capabilities, compare, schema as schemas};
use assurance_core::domain::job::Lane;
use assurance_core::domain::manifest::{
    BodyKind, Capability, CollectionSpec, FieldKind, FieldSpec, FormPart, IdempotencyMode,
    IndexSpec, JobSpec, Manifest, ParameterKind, ParameterPlace, ParameterSpec, Route,
};
use assurance_core::domain::role::Role;

const NOTES: &str = "/v1/workspaces/{workspace_id}/notes";

fn notes() -> Manifest {
    let mut notes = manifest("notes", vec![creating("create_note", NOTES), list()]);
    notes.collections = vec![collection(&["*"])];
    notes.jobs = vec![JobSpec {
        name: "tidy".into(),
        lane: Lane::Maintenance,
        max_attempts: 3,
        timeout_ms: 9,
    }];
    notes
}

fn list() -> Route {
    let kind = ParameterKind::Integer { minimum: 1, maximum: 100 };
    Route { parameters: vec![parameter("limit", kind)], ..route("list_notes", NOTES) }
}

fn parameter(name: &str, kind: ParameterKind) -> ParameterSpec {
    ParameterSpec {
        name: name.into(),
        place: ParameterPlace::Query,
        summary: String::new(),
        kind,
        required: false,
        default: Some(json!(20)),
    }
}

fn collection(readers: &[&str]) -> CollectionSpec {
    CollectionSpec {
        name: "notes".into(),
        summary: String::new(),
        schema: json!({"type": "object", "required": ["text"],
            "properties": {"text": {"type": "string"}, "author_id": {"type": "string"}}}),
        fields: vec![FieldSpec { name: "author_id".into(), kind: FieldKind::Text }],
        indexes: vec![IndexSpec { fields: vec!["author_id".into()], unique: false }],
        readers: readers.iter().map(|&reader| reader.to_owned()).collect(),
    }
}

/// Applies `change` to the manifest of the notes area and returns the reported
/// differences as text.
fn report(change: impl FnOnce(&mut Manifest)) -> Vec<String> {
    let mut candidate = notes();
    change(&mut candidate);
    let report = compare(&notes(), &candidate);
    let verdict = |verdict| match verdict {
        Compatibility::Safe => "safe",
        Compatibility::Breaking => "breaking",
        Compatibility::Forbidden => "forbidden",
    };
    report.differences.iter().map(|found| format!("{}: {found}", verdict(found.verdict))).collect()
}

fn check(change: impl FnOnce(&mut Manifest), expected: &[&str]) {
    assert_eq!(report(change), expected);
}

fn mismatches(side: SchemaUser, live: &Json, candidate: &Json) -> Vec<SchemaMismatch> {
    let mut steps = MAX_STEPS;
    schemas::mismatches(side, live, candidate, &mut steps)
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

fn object(properties: Json, required: &[&str]) -> Json {
    json!({"type": "object", "properties": properties, "required": required})
}

#[test]
fn a_route_that_goes_or_moves_breaks_its_clients() {
    check(|m| drop(m.routes.pop()), &["breaking: operation list_notes: is gone"]);
    check(
        |m| m.routes[1].path.push_str("/all"),
        &[
            "breaking: operation list_notes: answers at GET /v1/workspaces/{workspace_id}/notes/all \
           now, not GET /v1/workspaces/{workspace_id}/notes",
        ],
    );
    check(|m| m.routes.push(route("more", "/v1/more")), &["safe: operation more: is new"]);
}

#[test]
fn who_may_call_may_call_still() {
    check(
        |m| m.routes[1].least_role = Role::Admin,
        &["breaking: operation list_notes, role: needs admin now, and needed viewer"],
    );
    check(|m| m.routes[0].least_role = Role::Viewer, &[]);
    check(
        |m| m.routes[1].feature_flag = Some("notes_two".into()),
        &["breaking: operation list_notes, feature flag: needs the feature notes_two now"],
    );
}

#[test]
fn parameters_take_what_they_took() {
    check(
        |m| m.routes[1].parameters[0].kind = ParameterKind::Integer { minimum: 1, maximum: 50 },
        &["breaking: operation list_notes, parameter limit: takes 1 to 50 now, and took 1 to 100"],
    );
    check(
        |m| m.routes[1].parameters.clear(),
        &["breaking: operation list_notes, parameter limit: is not accepted any more"],
    );
    check(
        |m| m.routes[1].parameters[0].default = Some(json!(50)),
        &["breaking: operation list_notes, parameter limit: has another default now"],
    );
    check(
        |m| {
            let words = ParameterKind::OneOf { values: vec!["a".into()] };
            let sort = ParameterSpec { required: true, default: None, ..parameter("sort", words) };
            m.routes[1].parameters.push(sort);
        },
        &["breaking: operation list_notes, parameter sort: is required now"],
    );
}

#[test]
fn a_path_parameter_may_be_renamed() {
    let one = |name: &str| {
        let path = format!("{NOTES}/{{{name}}}");
        let place = ParameterPlace::Path;
        let own = ParameterSpec {
            place,
            required: true,
            default: None,
            ..parameter(name, ParameterKind::Uuid)
        };
        manifest("notes", vec![Route { parameters: vec![own], ..route("get_note", &path) }])
    };
    assert_eq!(compare(&one("id"), &one("note_id")).differences, []);
}

#[test]
fn requests_that_were_taken_are_taken() {
    let body = |schema: Json| move |m: &mut Manifest| m.routes[0].body = BodyKind::Json(schema);
    check(
        body(object(
            json!({"title": {"type": "string", "minLength": 1}, "tag": {}}),
            &["title", "tag"],
        )),
        &["breaking: operation create_note, request /tag: is required now"],
    );
    check(
        body(object(json!({"title": {"type": "string", "minLength": 3}}), &[])),
        &["breaking: operation create_note, request /title: minLength is 3 now, and was 1"],
    );
    check(
        body(object(json!({}), &[])),
        &["breaking: operation create_note, request /title: is not accepted any more"],
    );
    check(
        |m| m.routes[0].body = BodyKind::Blob,
        &["breaking: operation create_note, request: takes a body of another kind now"],
    );
    check(body(object(json!({"title": true, "more": true}), &[])), &[]);
}

#[test]
fn requests_as_large_as_before_are_taken() {
    let found = |(before, live): (u64, BodyKind), (now, candidate): (u64, BodyKind)| {
        let with = |max_body_bytes, body| {
            manifest("notes", vec![Route { max_body_bytes, body, ..creating("send", NOTES) }])
        };
        let report = compare(&with(before, live), &with(now, candidate));
        report.differences.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let json = |bytes| (bytes, BodyKind::Json(json!({})));
    let smaller = |now: u64, before: u64| {
        vec![format!("operation send, request: takes {now} bytes now, and took {before}")]
    };
    let (mib, none) = (1_048_576, Vec::<String>::new());
    assert_eq!(found(json(0), json(1_000)), smaller(1_000, mib));
    assert_eq!(found(json(5 * mib), json(0)), smaller(mib, 5 * mib));
    assert_eq!(found(json(mib), json(0)), none);
    assert_eq!(found(json(0), json(mib)), none);
    let most = ContractLimits::default().max_body_bytes;
    assert_eq!(found((0, BodyKind::Blob), (mib, BodyKind::Blob)), smaller(mib, most));
}

#[test]
fn forms_take_the_parts_they_took() {
    let part = |name: &str, max_bytes, required| FormPart {
        name: name.into(),
        summary: String::new(),
        required,
        file: true,
        max_bytes,
    };
    let with = |parts: Vec<FormPart>| {
        let form = Route { body: BodyKind::Multipart(parts), ..creating("send", NOTES) };
        manifest("notes", vec![form])
    };
    let live = with(vec![part("file", 10, true), part("extra", 10, false)]);
    let report = compare(&live, &with(vec![part("file", 5, true), part("key", 1, true)]));
    let told: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "operation send, request /file: takes 5 bytes now, and took 10",
            "operation send, request /extra: is not accepted any more",
            "operation send, request /key: is required now",
        ]
    );
}

#[test]
fn retries_stay_as_safe_as_they_were() {
    check(
        |m| m.routes[0].idempotency = IdempotencyMode::Required,
        &["breaking: operation create_note, header Idempotency-Key: is required now"],
    );
    check(
        |m| m.routes[0].idempotency = IdempotencyMode::None,
        &["breaking: operation create_note, header Idempotency-Key: is not supported any more"],
    );
}

#[test]
fn answers_keep_what_they_promised() {
    check(
        |m| m.routes[0].response = Some(object(json!({}), &[])),
        &["breaking: operation create_note, response /title: is gone"],
    );
    check(
        |m| m.routes[0].success_status = 202,
        &["breaking: operation create_note, response: the status is 202 now, and was 201"],
    );
    let title = json!({"type": ["string", "null"], "minLength": 1});
    check(
        move |m| m.routes[0].response = Some(object(json!({"title": title, "new": true}), &[])),
        &["breaking: operation create_note, response /title: may be a null now"],
    );
}

#[test]
fn events_keep_what_they_promised() {
    check(|m| m.publishes.clear(), &["breaking: event notes.created: is not published any more"]);
    check(
        |m| m.publishes[0].schema = object(json!({"id": {"type": "integer"}}), &[]),
        &["breaking: event notes.created, data /id: may be a integer now"],
    );
}

#[test]
fn what_other_areas_read_is_not_taken_from_them() {
    check(
        |m| m.collections.clear(),
        &["forbidden: collection notes: was removed, and other areas may read it"],
    );
    check(
        |m| m.collections[0].readers = vec!["support".into()],
        &["forbidden: collection notes, readers: * may not read them any more"],
    );
    check(
        |m| m.collections[0].fields.clear(),
        &["forbidden: collection notes, fields /author_id: cannot be queried any more"],
    );
    check(
        |m| m.collections[0].schema["required"] = json!([]),
        &["forbidden: collection notes, documents /text: is not always there any more"],
    );
}

#[test]
fn what_nobody_else_reads_is_an_areas_own_affair() {
    let own = || Manifest { collections: vec![collection(&[])], ..notes() };
    let told = |change: &dyn Fn(&mut CollectionSpec)| {
        let mut candidate = own();
        change(&mut candidate.collections[0]);
        compare(&own(), &candidate).differences.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&|c| c.schema["required"] = json!([])), [""; 0]);
    assert_eq!(told(&|c| c.fields.clear()), [""; 0]);
    assert_eq!(
        told(&|c| c.schema["required"] = json!(["text", "author_id"])),
        ["collection notes, stored documents /author_id: is required now"]
    );
    assert_eq!(
        told(&|c| c.fields[0].kind = FieldKind::Integer),
        ["collection notes, fields /author_id: is of another type now"]
    );
    assert_eq!(
        told(&|c| c.indexes[0].unique = true),
        ["collection notes, indexes: author_id must be unique now"]
    );
}

#[test]
fn jobs_that_wait_are_still_run() {
    check(
        |m| m.jobs.clear(),
        &["breaking: job tidy: was removed, and jobs of this kind may be waiting"],
    );
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

#[test]
fn a_wish_for_more_is_told_and_one_for_less_is_not() {
    let with =
        |capabilities: &[Capability]| Manifest { capabilities: capabilities.to_vec(), ..notes() };
    let (live, more) = (with(&[Capability::Log]), with(&[Capability::Log, Capability::Egress]));
    assert_eq!(additional_capabilities(&live, &more), [Capability::Egress].into());
    assert_eq!(additional_capabilities(&more, &live), [].into());
}

/// Generates schemas similar to those of areas.
fn schema() -> impl Strategy<Value = Json> {
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
    fn a_manifest_is_compatible_with_itself(request in schema(), response in schema(), documents in schema()) {
        let mut notes = notes();
        notes.routes[0].body = BodyKind::Json(request);
        notes.routes[0].response = Some(response);
        notes.collections[0].schema = documents;
        prop_assert_eq!(compare(&notes, &notes).differences, []);
    }

    #[test]
    fn words_about_a_schema_change_nothing(live in schema()) {
let told = annotated(&live);
        for side in [SchemaUser::Writers, SchemaUser::Readers] {
            prop_assert_eq!(mismatches(side, &live, &told), vec![]);
            prop_assert_eq!(mismatches(side, &told, &live), vec![]);
        }
    }
}
