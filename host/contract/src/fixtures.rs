//! Small manifests for tests.

use serde_json::json;

use super::contract::{self, CompiledRoute, ContractLimits};
use assurance_core::domain::manifest::{
    BodyKind, EventSpec, IdempotencyMode, Manifest, Method, RateClass, Route, WorkspaceSource,
};
use assurance_core::domain::role::Role;

/// Returns a route that only reads.
pub fn route(operation_id: &str, path: &str) -> Route {
    Route {
        operation_id: operation_id.into(),
        method: Method::Get,
        path: path.into(),
        summary: "Reads.".into(),
        description: String::new(),
        in_contract: false,
        workspace: WorkspaceSource::Path,
        least_role: Role::Viewer,
        feature_flag: None,
        parameters: vec![],
        body: BodyKind::None,
        max_body_bytes: 0,
        success_status: 200,
        response: Some(json!({"type": "object"})),
        problem_codes: vec![],
        idempotency: IdempotencyMode::None,
        rate: RateClass::Light,
        writes: false,
        deadline_ms: 0,
    }
}

/// Returns a route that creates a resource with a title.
pub fn creating(operation_id: &str, path: &str) -> Route {
    Route {
        method: Method::Post,
        body: BodyKind::Json(json!({
            "type": "object", "title": "NewNote", "required": ["title"],
            "properties": {"title": {"$ref": "#/$defs/Title"}},
            "$defs": {"Title": {"type": "string", "minLength": 1}},
        })),
        success_status: 201,
        response: Some(json!({"type": "object", "title": "Note",
            "properties": {"title": {"$ref": "#/$defs/Title"}},
            "$defs": {"Title": {"type": "string", "minLength": 1}}})),
        idempotency: IdempotencyMode::Optional,
        rate: RateClass::Standard,
        least_role: Role::Member,
        writes: true,
        ..route(operation_id, path)
    }
}

/// Returns the manifest of an area with these routes and one event.
pub fn manifest(name: &str, routes: Vec<Route>) -> Manifest {
    Manifest {
        name: name.into(),
        version: semver::Version::new(0, 1, 0),
        summary: format!("The {name} area."),
        routes,
        collections: vec![],
        blob_readers: Vec::new(),
        publishes: vec![EventSpec {
            name: format!("{name}.created"),
            summary: "Something was made.".into(),
            schema: json!({"type": "object", "properties": {"id": {"type": "string"}}}),
        }],
        subscriptions: vec![],
        jobs: vec![],
        capabilities: vec![],
    }
}

/// Returns the compiled contract of one route.
pub fn contract(route: Route) -> CompiledRoute {
    let manifest = manifest("notes", vec![route]);
    let compiled = contract::compile(&manifest, &[], &ContractLimits::default());
    compiled.expect("a valid manifest").remove(0)
}
