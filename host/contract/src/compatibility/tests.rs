//! Tests of the reported effect of each kind of change.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::contract::ContractLimits;
use super::super::fixtures::{creating, manifest, route};
use super::schema::tests::{object, schema};
use super::{Compatibility, additional_capabilities, compare};
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

/// Returns the reported differences between two manifests as text.
fn told(live: &Manifest, candidate: &Manifest) -> Vec<String> {
    compare(live, candidate).differences.iter().map(ToString::to_string).collect()
}

fn check(change: impl FnOnce(&mut Manifest), expected: &[&str]) {
    assert_eq!(report(change), expected);
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
        told(&with(before, live), &with(now, candidate))
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
    let candidate = with(vec![part("file", 5, true), part("key", 1, true)]);
    assert_eq!(
        told(&live, &candidate),
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
    check(
        |m| m.publishes[0].schema["x-subscribable"] = json!(false),
        &["breaking: event notes.created: cannot be subscribed to any more"],
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
    let changed = |change: fn(&mut CollectionSpec)| {
        let mut candidate = own();
        change(&mut candidate.collections[0]);
        told(&own(), &candidate)
    };
    assert_eq!(changed(|c| c.schema["required"] = json!([])), [""; 0]);
    assert_eq!(changed(|c| c.fields.clear()), [""; 0]);
    assert_eq!(
        changed(|c| c.schema["required"] = json!(["text", "author_id"])),
        ["collection notes, stored documents /author_id: is required now"]
    );
    assert_eq!(
        changed(|c| c.fields[0].kind = FieldKind::Integer),
        ["collection notes, fields /author_id: is of another type now"]
    );
    assert_eq!(
        changed(|c| c.indexes[0].unique = true),
        ["collection notes, indexes: author_id must be unique now"]
    );
}

#[test]
fn a_member_with_a_default_may_be_added_to_stored_documents() {
    let with = |tier: Json, required: &[&str]| {
        let mut own = collection(&["*"]);
        own.schema = object(json!({"text": {"type": "string"}, "tier": tier}), required);
        Manifest { collections: vec![own], ..notes() }
    };
    let mut former = with(json!({}), &["text"]);
    former.collections[0].schema = object(json!({"text": {"type": "string"}}), &["text"]);
    let optional = json!({"type": "integer", "default": 0});
    let optional = with(optional, &["text", "tier"]);
    let needed = with(json!({"type": "integer"}), &["text", "tier"]);
    let missing = ["collection notes, stored documents /tier: is required now"];
    assert_eq!(told(&former, &optional), [""; 0]);
    assert_eq!(told(&former, &needed), missing);
    // Documents of the first version still lack it.
    assert_eq!(told(&optional, &needed), missing);
}

#[test]
fn jobs_that_wait_are_still_run() {
    check(
        |m| m.jobs.clear(),
        &["breaking: job tidy: was removed, and jobs of this kind may be waiting"],
    );
}

#[test]
fn a_wish_for_more_is_told_and_one_for_less_is_not() {
    let with =
        |capabilities: &[Capability]| Manifest { capabilities: capabilities.to_vec(), ..notes() };
    let (live, more) = (with(&[Capability::Log]), with(&[Capability::Log, Capability::Egress]));
    assert_eq!(additional_capabilities(&live, &more), [Capability::Egress].into());
    assert_eq!(additional_capabilities(&more, &live), [].into());
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
}
