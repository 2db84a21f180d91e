//! The OpenAPI 3.1 document of the operators' API.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::OperatorsState;
use super::views::{
    AreaView, AreasView, BudgetsView, DecisionResultView, DeployResultView, LivenessView, PageView,
    ShadowDifferencesView,
};
use crate::http::problem::ProblemDocument as Problem;
use assurance_core::area_log;
use assurance_core::domain::deployment::{AuditEntry, StoredVersion};
use assurance_core::domain::health::HealthReport;
use assurance_core::domain::manifest::Manifest;
use assurance_core::domain::operator::TokenScope;

/// One operation of the operators' API.
struct OperatorOperation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    /// Scope that the token needs; `None` if no token is needed.
    scope: Option<TokenScope>,
    /// Names and descriptions of the query parameters.
    query: &'static [(&'static str, &'static str)],
    takes: RequestShape,
    answers: SuccessShape,
}

/// Body of a successful response.
enum SuccessShape {
    /// JSON; the function returns its schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Text of this media type.
    Text(&'static str),
}

/// Body and headers of a request.
enum RequestShape {
    Nothing,
    /// A component as bytes, with the signature in two headers.
    Component,
    /// A JSON object: its members with their types, and the names of the required ones.
    Members(&'static [(&'static str, &'static str)], &'static [&'static str]),
}

const READ: Option<TokenScope> = Some(TokenScope::Read);
const DEPLOY: Option<TokenScope> = Some(TokenScope::Deploy);
const PAGE: [(&str, &str); 2] =
    [("limit", "Page size, 1 to 200."), ("cursor", "`next_cursor` of the previous page.")];
const REASON: (&str, &str) = ("reason", "Reason for the audit log.");
const FORCE: (&str, &str) = ("force", "Reason for accepting a version that breaks clients.");

const OPERATIONS: &[OperatorOperation] = &[
    get("/health/live", "live", "Liveness of the process", None, &[], json::<LivenessView>()),
    get(
        "/health/ready",
        "ready",
        "Readiness of this node: 200, or 503 with Retry-After; one line for each check",
        None,
        &[],
        json::<HealthReport>(),
    ),
    get("/openapi.json", "openapi", "This document", None, &[], json::<Map<String, Value>>()),
    get(
        "/metrics",
        "metrics",
        "Metrics in the Prometheus text format",
        READ,
        &[],
        SuccessShape::Text("text/plain"),
    ),
    get(
        "/areas",
        "list_areas",
        "All areas: live and staged versions, and the state of each node",
        READ,
        &[],
        json::<AreasView>(),
    ),
    get("/areas/{name}", "get_area", "One area, as in the list", READ, &[], json::<AreaView>()),
    get(
        "/areas/{name}/history",
        "list_versions",
        "Versions of an area, newest first",
        READ,
        &PAGE,
        json::<PageView<StoredVersion>>(),
    ),
    get(
        "/areas/{name}/logs",
        "read_logs",
        "Last log entries and failed calls of an area on this node",
        READ,
        &[
            PAGE[0],
            (
                "cursor",
                "`cursor` of an earlier response; returns the entries since then, oldest first.",
            ),
        ],
        json::<area_log::AreaLogPage>(),
    ),
    get(
        "/areas/{name}/manifest",
        "get_manifest",
        "Manifest of a version",
        READ,
        &[("digest", "Digest, its first characters, or version; by default the live one.")],
        json::<Manifest>(),
    ),
    get(
        "/areas/{name}/shadow",
        "get_differences",
        "Differences between the responses of the shadow and the live version, on this node",
        READ,
        &[],
        json::<ShadowDifferencesView>(),
    ),
    get(
        "/audit-log",
        "list_audit_log",
        "Decisions of operators, newest first",
        READ,
        &[("area", "Only entries of this area."), PAGE[0], PAGE[1]],
        json::<PageView<AuditEntry>>(),
    ),
    get(
        "/usage",
        "get_usage",
        "Usage of all areas and of the busiest workspaces on this node",
        READ,
        &[],
        json::<BudgetsView>(),
    ),
    OperatorOperation {
        method: "put",
        path: "/areas/{name}",
        id: "deploy_version",
        summary: "Deploy a version: make it live, stage it, or start a trial",
        scope: DEPLOY,
        query: &[
            ("activate", "`false` stages the version without making it live."),
            ("canary", "Starts a canary for this share of the workspaces, in percent."),
            ("workspaces", "Starts a canary for these workspace ids, separated by commas."),
            ("shadow", "Starts a shadow for this share of the requests, in percent."),
            ("dry_run", "`true` checks the version, reports all `findings`, and changes nothing."),
            REASON,
            FORCE,
        ],
        takes: RequestShape::Component,
        answers: json::<DeployResultView>(),
    },
    OperatorOperation {
        method: "delete",
        path: "/areas/{name}",
        id: "remove_area",
        summary: "Remove an area; its data is kept",
        scope: DEPLOY,
        query: &[REASON, ("force", "`true` removes the area even if other areas depend on it.")],
        takes: RequestShape::Nothing,
        answers: json::<DecisionResultView>(),
    },
    post(
        "/areas/{name}/activate",
        "activate_version",
        "Make a version live; by default the one on trial, or the only one that waits",
        DEPLOY,
        RequestShape::Members(
            &[("digest", "string"), ("reason", "string"), ("force", "string")],
            &[],
        ),
    ),
    post(
        "/areas/{name}/canary",
        "begin_canary",
        "Start a canary for a share of the workspaces, in percent, or for those listed",
        DEPLOY,
        RequestShape::Members(
            &[
                ("digest", "string"),
                ("share", "number"),
                ("workspaces", "array"),
                ("reason", "string"),
            ],
            &["digest"],
        ),
    ),
    post(
        "/areas/{name}/shadow",
        "begin_shadow",
        "Start a shadow for a share of the requests, in percent",
        DEPLOY,
        RequestShape::Members(
            &[("digest", "string"), ("share", "number"), ("reason", "string")],
            &["digest"],
        ),
    ),
    post("/areas/{name}/stop", "stop_trial", "End a canary or a shadow", DEPLOY, WITH_REASON),
    post(
        "/areas/{name}/rollback",
        "roll_back",
        "Roll back; without `to`, end the running canary, or make the former version live",
        DEPLOY,
        RequestShape::Members(&[("reason", "string"), ("to", "string")], &["reason"]),
    ),
    post(
        "/areas/{name}/approve",
        "approve_version",
        "Approve the capabilities that a version asks for beyond the live one",
        Some(TokenScope::Approve),
        RequestShape::Members(&[("digest", "string"), ("reason", "string")], &["digest"]),
    ),
];

const WITH_REASON: RequestShape = RequestShape::Members(&[("reason", "string")], &["reason"]);

const fn get(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    scope: Option<TokenScope>,
    query: &'static [(&'static str, &'static str)],
    answers: SuccessShape,
) -> OperatorOperation {
    OperatorOperation {
        method: "get",
        path,
        id,
        summary,
        scope,
        query,
        takes: RequestShape::Nothing,
        answers,
    }
}

/// Describes a POST operation that returns a [`DecisionResultView`].
const fn post(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    scope: Option<TokenScope>,
    takes: RequestShape,
) -> OperatorOperation {
    let answers = json::<DecisionResultView>();
    OperatorOperation { method: "post", path, id, summary, scope, query: &[], takes, answers }
}

const fn json<T: JsonSchema>() -> SuccessShape {
    SuccessShape::Json(SchemaGenerator::subschema_for::<T>)
}

/// Returns the OpenAPI document of the operators' API.
pub(super) async fn openapi(State(operators): State<OperatorsState>) -> Json<Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|all| all.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in OPERATIONS {
        let at = paths.entry(operation.path).or_default();
        at.insert(operation.method.to_owned(), described(operation, &mut schemas));
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": {"title": "Operators' API", "version": env!("CARGO_PKG_VERSION")},
        "externalDocs": {"url": operators.app.base_url, "description": "The API for clients"},
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }))
}

fn described(operation: &OperatorOperation, schemas: &mut SchemaGenerator) -> Value {
    let mut told = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": responses(operation, schemas),
    });
    if let Some(scope) = operation.scope {
        told["security"] = json!([{"token": []}]);
        told["description"] = json!(format!("Needs a token with the scope `{scope}`."));
    }
    if let Some((media_type, schema)) = body(&operation.takes) {
        let content = json!({media_type: {"schema": schema}});
        told["requestBody"] = json!({"required": true, "content": content});
    }
    told
}

/// Describes the success response and the problems of an operation. Problems that every operation
/// can return are references.
fn responses(operation: &OperatorOperation, schemas: &mut SchemaGenerator) -> Value {
    let (media_type, schema) = match operation.answers {
        SuccessShape::Json(of) => ("application/json", of(schemas).to_value()),
        SuccessShape::Text(media_type) => (media_type, json!({"type": "string"})),
    };
    let problem = schemas.subschema_for::<Problem<'_>>();
    let problem = |description: &str| {
        let content = json!({"application/problem+json": {"schema": problem}});
        json!({"description": description, "content": content})
    };
    let mut all = json!({
        "200": {"description": "Done.", "content": {media_type: {"schema": schema}}},
        "default": problem("A problem (RFC 9457) with a hint how to fix it."),
    });
    if operation.id == "ready" {
        let report = schemas.subschema_for::<HealthReport>();
        all["503"] = json!({
            "description": "Not ready: requests belong to another node. `checks` says why.",
            "headers": {"Retry-After": {"schema": {"type": "integer"}}},
            "content": {"application/json": {"schema": report}},
        });
    }
    if operation.scope.is_some() {
        all["401"] = problem("The token is missing or invalid.");
        all["403"] = problem("The token lacks the scope.");
        all["422"] = problem("The request is invalid.");
    }
    all
}

fn parameters(operation: &OperatorOperation) -> Vec<Value> {
    let text = json!({"type": "string"});
    let parameter = |place: &str, name: &str, description: &str| {
        let required = place == "path";
        json!({
            "name": name, "in": place, "required": required, "description": description,
            "schema": text,
        })
    };
    let named = operation.path.contains("{name}");
    let mut all: Vec<Value> =
        named.then(|| parameter("path", "name", "The area.")).into_iter().collect();
    all.extend(operation.query.iter().map(|(name, what)| parameter("query", name, what)));
    if matches!(operation.takes, RequestShape::Component) {
        all.push(parameter(
            "header",
            "X-Area-Publisher",
            "Name of the publisher who signed the component.",
        ));
        all.push(parameter("header", "X-Area-Signature", "Ed25519 signature in base64."));
    }
    all
}

fn body(takes: &RequestShape) -> Option<(&'static str, Value)> {
    match takes {
        RequestShape::Nothing => None,
        RequestShape::Component => Some(("application/wasm", json!({"type": "string"}))),
        RequestShape::Members(members, required) => {
            let typed = |(name, kind): &(&str, &str)| ((*name).to_owned(), json!({"type": kind}));
            let properties: Map<String, Value> = members.iter().map(typed).collect();
            let schema = json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            });
            Some(("application/json", schema))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_has_every_path_of_the_router_and_no_other() {
        let router = include_str!("mod.rs").split(".route(\"").skip(1);
        let routed: BTreeSet<&str> = router.filter_map(|rest| rest.split('"').next()).collect();
        let told: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
        assert_eq!(told, routed);
    }
}
