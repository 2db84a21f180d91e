//! Tests of the registry: which areas can be live together, and how routes are found.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::*;
use crate::testing;
use assurance_contract::OperationGroup;
use assurance_contract::fixtures::{creating, manifest, route};
use assurance_core::domain::job::{
    EVENT_KIND, Lane, MERGED_EVENTS_KIND, RequestedEventsDocumentField,
};
use assurance_core::domain::manifest::{
    BodyKind, CollectionSpec, FieldKind, FieldSpec, IndexSpec, JobSpec, LinkHolder, Method,
    ParameterKind, ParameterPlace, ParameterSpec, Route, SignedLinkSpec, WorkspaceSource,
};
use assurance_work::{AreaCode, LimitsByArea};

const NOTES: &str = "/v1/workspaces/{workspace_id}/notes";
const NOTE: &str = "/v1/workspaces/{workspace_id}/notes/{note_id}";

/// Code that is never called.
struct UncalledCode;

impl AreaCode for UncalledCode {}

fn loaded(manifest: Manifest) -> LoadedArea {
    testing::loaded(manifest, Arc::new(UncalledCode))
}

fn host() -> Vec<HostOperation> {
    vec![HostOperation {
        method: Method::Get,
        path: "/v1/workspaces/{workspace_id}/host-own",
        operation_id: "host_own",
        tag: OperationGroup { name: "host", summary: "What the host answers" },
        summary: "The host's own.",
        description: "",
        in_contract: true,
        signed_in: true,
        takes_access_token: true,
        least_role: None,
        parameters: vec![],
        idempotent: false,
        body: None,
        success_status: 200,
        response: Some(json!({"type": "object"})),
        sets_cookie: false,
        example: json!({"response": {}}),
    }]
}

fn registry() -> Registry {
    Registry::new(host(), ContractLimits::default(), LimitsByArea::default())
}

fn install(registry: &Registry, manifest: Manifest) -> Result<LiveVersionChange, RegistryError> {
    let (area, version) = (manifest.name.clone(), registry.compile(loaded(manifest))?);
    let plan = registry.plan(&area, AreaTargetState::Live(&version))?;
    Ok(registry.activate(plan).expect("nobody else changes it"))
}

/// Returns the text of the refusal of a manifest; empty if it is installed.
fn refusal(registry: &Registry, manifest: Manifest) -> String {
    let refused = install(registry, manifest).err();
    refused.map(|refused| refused.to_string()).unwrap_or_default()
}

fn remove(registry: &Registry, area: &str) {
    let plan = registry.plan(area, AreaTargetState::Removed).unwrap();
    registry.activate(plan).unwrap();
}

fn notes() -> Manifest {
    manifest("notes", vec![creating("create_note", NOTES), one_note(), list_notes()])
}

fn list_notes() -> Route {
    route("list_notes", NOTES)
}

fn one_note() -> Route {
    let id = ParameterSpec {
        name: "note_id".into(),
        place: ParameterPlace::Path,
        summary: "The note.".into(),
        kind: ParameterKind::Uuid,
        required: true,
        default: None,
    };
    Route { parameters: vec![id], ..route("get_note", NOTE) }
}

fn found(registry: &Registry, method: Option<Method>, path: &str) -> String {
    match registry.snapshot().route(method, path) {
        RouteLookupResult::Route(found) => {
            format!("{} {}", found.route.route.operation_id, found.path_values.join(","))
        }
        RouteLookupResult::MethodNotAllowed(allow) => format!("405 {allow}"),
        RouteLookupResult::Nothing => "404".into(),
    }
}

#[test]
fn a_path_is_found_by_method_and_keeps_its_values() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let check = |method, path, expect: &str| assert_eq!(found(&registry, method, path), expect);
    check(Some(Method::Get), "/v1/workspaces/w1/notes", "list_notes w1");
    check(Some(Method::Post), "/v1/workspaces/w1/notes", "create_note w1");
    check(Some(Method::Get), "/v1/workspaces/w1/notes/n%201", "get_note w1,n%201");
    check(Some(Method::Delete), "/v1/workspaces/w1/notes", "405 GET, HEAD, POST");
    check(None, "/v1/workspaces/w1/notes/n1", "405 GET, HEAD");
    check(Some(Method::Get), "/v1/workspaces/w1/notes/", "404");
    check(Some(Method::Get), "/v1/workspaces/w1/notes/n1/x", "404");
}

#[test]
fn a_route_another_area_answers_is_refused() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let same = manifest("memos", vec![route("list_memos", "/v1/workspaces/{workspace_id}/notes")]);
    assert_eq!(
        refusal(&registry, same),
        "area \"memos\" declares GET /v1/workspaces/{workspace_id}/notes, which is taken by \
         notes; choose another path"
    );
    let other_method = manifest("memos", vec![creating("create_memo", NOTE_OF_MEMOS)]);
    assert!(install(&registry, other_method).is_err(), "its path parameter is not declared");
}

const NOTE_OF_MEMOS: &str = "/v1/workspaces/{workspace_id}/notes/{memo_id}";

#[test]
fn operation_ids_events_and_the_hosts_paths_have_one_owner() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let refused = |manifest| refusal(&registry, manifest);
    let taken = manifest("memos", vec![route("list_notes", "/v1/workspaces/{workspace_id}/m")]);
    assert!(refused(taken).contains("operation id \"list_notes\", which is taken by notes"));
    let host = manifest("memos", vec![route("memos", "/v1/workspaces/{workspace_id}/host-own")]);
    assert!(refused(host).contains("taken by host"));
    let mut event = manifest("memos", vec![]);
    event.publishes[0].name = "notes.created".into();
    assert!(refused(event).contains("publishes \"notes.created\", which is published by notes"));
}

#[test]
fn a_new_version_takes_the_place_of_the_old_and_requests_under_way_keep_theirs() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let under_way = registry.snapshot();
    let mut next = notes();
    next.version = semver::Version::new(0, 2, 0);
    next.routes.pop();
    let change = install(&registry, next).unwrap();
    assert_eq!(change.before.unwrap().manifest.version.to_string(), "0.1.0");
    assert_eq!(found(&registry, Some(Method::Get), "/v1/workspaces/w/notes"), "405 POST");
    assert_eq!(under_way.area("notes").unwrap().manifest.routes.len(), 3);
    remove(&registry, "notes");
    assert_eq!(found(&registry, Some(Method::Post), "/v1/workspaces/w/notes"), "404");
}

#[test]
fn a_plan_that_another_change_overtook_is_not_activated() {
    let registry = registry();
    let version = registry.compile(loaded(notes())).unwrap();
    let plan = registry.plan("notes", AreaTargetState::Live(&version)).unwrap();
    install(&registry, manifest("memos", vec![])).unwrap();
    assert!(registry.activate(plan).is_none());
    assert!(registry.snapshot().area("notes").is_none());
}

#[test]
fn schemas_follow_the_live_events() {
    let registry = registry();
    let mut hooks = creating("create_hook", "/v1/workspaces/{workspace_id}/hooks");
    hooks.body = BodyKind::Json(json!({"type": "object", "required": ["event"],
        "properties": {"event": {"type": "string", "format": "event-name"}}}));
    install(&registry, manifest("hooks", vec![hooks])).unwrap();
    let accepts = |event: &str| {
        let snapshot = registry.snapshot();
        let validator = snapshot.area("hooks").unwrap().routes[0].body.as_ref().unwrap();
        validator.is_valid(&json!({"event": event}))
    };
    assert!(accepts("hooks.created"));
    assert!(!accepts("notes.created"));
    install(&registry, notes()).unwrap();
    assert!(accepts("notes.created"));
    remove(&registry, "notes");
    assert!(!accepts("notes.created"));
}

#[test]
fn an_event_without_subscriptions_is_in_the_document_but_is_no_event_name() {
    let registry = registry();
    let mut notes = notes();
    notes.publishes[0].schema["x-subscribable"] = json!(false);
    install(&registry, notes).unwrap();
    let snapshot = registry.snapshot();
    assert!(snapshot.events().is_empty());
    let document = &snapshot.openapi("https://a.example").value;
    let description = &document["webhooks"]["notes.created"]["post"]["description"];
    assert!(description.as_str().unwrap().contains("needs no subscription"), "{description}");
    assert!(!document.to_string().contains("x-subscribable"));
}

fn with_storage(mut manifest: Manifest, readers: &[&str]) -> Manifest {
    manifest.collections = vec![CollectionSpec {
        name: "items".into(),
        summary: String::new(),
        schema: json!({"type": "object"}),
        fields: vec![FieldSpec { name: "title".into(), kind: FieldKind::Text }],
        indexes: vec![IndexSpec { fields: vec!["title".into()], unique: true }],
        readers: readers.iter().map(ToString::to_string).collect(),
    }];
    manifest
}

#[test]
fn an_area_reaches_its_own_collections_and_those_it_may_read() {
    let registry = registry();
    install(&registry, with_storage(manifest("notes", vec![]), &["memos"])).unwrap();
    install(&registry, with_storage(manifest("memos", vec![]), &[])).unwrap();
    let reach = |area: &str| {
        let snapshot = registry.snapshot();
        let scope = &snapshot.area(area).unwrap().scope;
        scope
            .collections
            .iter()
            .map(|(n, c)| format!("{n}={} {}", c.full_name, c.own))
            .collect::<Vec<_>>()
    };
    let expected = ["items=memos.items true", "notes.items=notes.items false"];
    assert_eq!(reach("memos"), expected);
    assert_eq!(reach("notes"), ["items=notes.items true"]);
}

#[test]
fn blobs_are_shared_with_whom_the_manifest_names() {
    let registry = registry();
    let sharing = Manifest { blob_readers: vec!["memos".into()], ..manifest("notes", vec![]) };
    install(&registry, sharing).unwrap();
    install(&registry, manifest("memos", vec![])).unwrap();
    let snapshot = registry.snapshot();
    let shared = |area: &str| snapshot.area(area).unwrap().scope.shared_blobs.clone();
    assert_eq!(shared("memos"), ["notes".to_owned()].into());
    assert_eq!(shared("notes"), [].into());
    let live = &snapshot.area("notes").unwrap().scope.live;
    assert_eq!(live.iter().map(String::as_str).collect::<Vec<_>>(), ["memos", "notes"]);
}

/// A GET route that is authorized by a signed link.
fn by_link(holder: LinkHolder, writes: bool) -> Route {
    Route {
        workspace: WorkspaceSource::SignedLink(SignedLinkSpec {
            parameter: "state".into(),
            holder,
        }),
        path: "/v1/come-back".into(),
        writes,
        ..route("come_back", "")
    }
}

#[test]
fn only_a_link_of_the_same_session_lets_a_get_write() {
    let refused = |route: Route| refusal(&registry(), manifest("notes", vec![route]));
    assert_eq!(refused(by_link(LinkHolder::SameSession, true)), "");
    assert_eq!(refused(by_link(LinkHolder::Bearer, false)), "");
    assert!(refused(by_link(LinkHolder::SignedIn, true)).contains("a GET must not write"));
    assert!(refused(by_link(LinkHolder::Bearer, true)).contains("a GET must not write"));
    let path = "/v1/workspaces/{workspace_id}/come-back".to_owned();
    let both = refused(Route { path, ..by_link(LinkHolder::Bearer, false) });
    assert!(both.contains("take {workspace_id} out"), "{both}");
}

#[test]
fn no_area_takes_a_path_that_could_be_the_host_s() {
    let refused = |path: &str| {
        let route = Route { path: path.into(), ..by_link(LinkHolder::Bearer, false) };
        refusal(&registry(), manifest("notes", vec![route]))
    };
    assert_eq!(refused("/v1/notes/shared"), "");
    assert!(refused("/v1/{any}/session").contains("must be literal"));
    assert!(refused("/v1/auth/session").contains("is the host's"));
    assert!(refused("/v1/workspaces").contains("is the host's"));
    for below in ["members", "access-tokens"] {
        for path in [below.to_owned(), format!("{below}/{{id}}"), format!("{below}/export")] {
            let path = format!("/v1/workspaces/{{workspace}}/{path}");
            assert!(refused(&path).contains(&format!("{below} is the host's")), "{path}");
        }
    }
    assert!(refused("/v1/workspaces/{workspace}/{any}").contains("must be literal"));
    assert!(!refused("/v1/workspaces/{workspace}/notes/members").contains("host's"));
    assert!(refused("/v1/notes/../auth/session").contains("`.` and `..`"));
    assert!(refused("/v1/./auth/session").contains("`.` and `..`"));
}

#[test]
fn a_get_that_writes_answers_to_no_head_and_the_document_tells_of_links() {
    let registry = registry();
    let routes = vec![by_link(LinkHolder::SameSession, true)];
    install(&registry, manifest("notes", routes)).unwrap();
    let snapshot = registry.snapshot();
    assert!(matches!(
        snapshot.route(None, "/v1/come-back"),
        RouteLookupResult::MethodNotAllowed("GET")
    ));
    let links = &snapshot.area("notes").unwrap().scope.links;
    assert_eq!(links["come_back"], LinkHolder::SameSession);
    let document = &snapshot.openapi("https://a.example").value;
    let operation = &document["paths"]["/v1/come-back"]["get"];
    assert_eq!(operation["security"], json!([{"session": []}]));
    assert_eq!(operation["parameters"][0]["name"], "state");
}

#[test]
fn subscribers_are_found_in_whatever_order_areas_come() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let mut listener = manifest("hooks", vec![]);
    listener.subscriptions = vec!["*".into()];
    listener.jobs = vec![JobSpec {
        name: EVENT_KIND.into(),
        lane: Lane::Ingest,
        max_attempts: 3,
        timeout_ms: 50,
    }];
    install(&registry, listener).unwrap();
    let snapshot = registry.snapshot();
    let heard = &snapshot.area("notes").unwrap().scope.events["notes.created"];
    assert_eq!(heard.len(), 1);
    assert_eq!(
        (heard[0].area.as_str(), heard[0].lane, heard[0].max_attempts),
        ("hooks", Lane::Ingest, 3)
    );
}

#[test]
fn events_are_merged_for_an_area_that_asks_for_it_unless_it_names_them() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let subscriber = |subscriptions: &[&str]| {
        let mut listener = manifest("hooks", vec![]);
        listener.subscriptions = subscriptions.iter().map(|&name| name.into()).collect();
        listener.jobs = vec![JobSpec {
            name: MERGED_EVENTS_KIND.into(),
            lane: Lane::Maintenance,
            max_attempts: 3,
            timeout_ms: 50,
        }];
        install(&registry, listener).unwrap();
        let snapshot = registry.snapshot();
        let heard = &snapshot.area("notes").unwrap().scope.events["notes.created"][0];
        (heard.merged, heard.lane)
    };
    assert_eq!(subscriber(&["*"]), (true, Lane::Maintenance));
    assert_eq!(subscriber(&["*", "notes.created"]), (false, Lane::Events));
}

#[test]
fn a_subscription_to_all_events_is_restricted_by_a_collection() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let requests = |subscription: &str| {
        let mut hooks = with_storage(manifest("hooks", vec![]), &[]);
        hooks.collections[0].schema = json!({
            "type": "object",
            "properties": {"events": {"type": "array"}},
            "x-requests-events": "events",
        });
        hooks.subscriptions = vec![subscription.into()];
        install(&registry, hooks).unwrap();
        let snapshot = registry.snapshot();
        snapshot.area("notes").unwrap().scope.events["notes.created"][0].requests.clone()
    };
    let items =
        RequestedEventsDocumentField { collection: "hooks.items".into(), member: "events".into() };
    assert_eq!(requests("*"), Some(items));
    assert_eq!(requests("notes.created"), None);
}

#[test]
fn complaints_name_what_to_mend_all_at_once() {
    let mut bad = with_storage(notes(), &["Memos"]);
    bad.collections[0].indexes[0].fields.push("colour".into());
    bad.routes[0].idempotency = assurance_core::domain::manifest::IdempotencyMode::None;
    bad.routes[1].parameters[0].name = "id".into();
    bad.routes[2].writes = true;
    bad.routes.push(Route {
        workspace: WorkspaceSource::BodyMember("workspace".into()),
        path: "/v1/Elsewhere".into(),
        response: Some(json!({"type": "nonsense"})),
        ..route("else_where", "")
    });
    let refusal = refusal(&registry(), bad);
    insta::assert_snapshot!(refusal);
}

#[test]
fn the_document_tells_host_and_areas() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    let snapshot = registry.snapshot();
    let document = snapshot.openapi("https://api.example.com");
    assert_eq!(serde_json::from_slice::<Json>(&document.text).unwrap(), document.value);
    insta::assert_json_snapshot!(document.value);
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let registry = registry();
    install(&registry, notes()).unwrap();
    install(
        &registry,
        manifest("memos", vec![creating("create_memo", "/v1/workspaces/{workspace_id}/memos")]),
    )
    .unwrap();
    let snapshot = registry.snapshot();
    let document = &snapshot.openapi("https://api.example.com").value;
    let mut references = vec![];
    collect(document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Json, references: &mut Vec<String>) {
    match value {
        Json::Object(members) => {
            references.extend(members.get("$ref").and_then(Json::as_str).map(str::to_owned));
            members.values().for_each(|member| collect(member, references));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
