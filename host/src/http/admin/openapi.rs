//! What the operators' listener answers, as an OpenAPI 3.1 document.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::Operators;
use super::answers::{Area, Areas, Decided, Differences, Health, Page, Sent, Used};
use crate::domain::deployment::{AuditLine, Deployment};
use crate::domain::health::HealthReport;
use crate::domain::manifest::Manifest;
use crate::domain::operator::Scope;
use crate::http::problem::Members as Problem;
use crate::journal;

/// One operation of operators.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    /// What a token must have; nothing: no token is needed.
    scope: Option<Scope>,
    /// Names and descriptions.
    query: &'static [(&'static str, &'static str)],
    takes: Takes,
    answers: Answers,
}

/// What a success brings.
enum Answers {
    /// JSON of a type's schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Text of this media type.
    Text(&'static str),
}

/// What a request brings.
enum Takes {
    Nothing,
    /// A component, and in two headers who signed it.
    Component,
    /// A JSON object: its members with their types, and which are needed.
    Members(&'static [(&'static str, &'static str)], &'static [&'static str]),
}

const READ: Option<Scope> = Some(Scope::Read);
const DEPLOY: Option<Scope> = Some(Scope::Deploy);
const PAGE: [(&str, &str); 2] =
    [("limit", "Items, 1 to 200."), ("cursor", "`next_cursor` of the page before.")];
const REASON: (&str, &str) = ("reason", "Why; the audit log keeps it.");
const FORCE: (&str, &str) = ("force", "Why it is taken although it breaks clients.");

const OPERATIONS: &[Operation] = &[
    get("/health/live", "live", "Whether the process answers", None, &[], json::<Health>()),
    get(
        "/health/ready",
        "ready",
        "Whether this node can do its work: 200, or 503 with Retry-After; one line for each check",
        None,
        &[],
        json::<HealthReport>(),
    ),
    get("/openapi.json", "openapi", "This document", None, &[], json::<Map<String, Value>>()),
    get(
        "/metrics",
        "metrics",
        "Measures, as Prometheus reads them",
        READ,
        &[],
        Answers::Text("text/plain"),
    ),
    get(
        "/areas",
        "list_areas",
        "Every area: what answers, what waits, on which nodes",
        READ,
        &[],
        json::<Areas>(),
    ),
    get("/areas/{name}", "get_area", "One area, as the list tells it", READ, &[], json::<Area>()),
    get(
        "/areas/{name}/history",
        "list_versions",
        "The versions it had, newest first",
        READ,
        &PAGE,
        json::<Page<Deployment>>(),
    ),
    get(
        "/areas/{name}/logs",
        "read_logs",
        "What its guests said last, and how its last calls failed, at this node",
        READ,
        &[PAGE[0], ("cursor", "`cursor` of an answer: what came since, oldest first.")],
        json::<journal::Page>(),
    ),
    get(
        "/areas/{name}/manifest",
        "get_manifest",
        "What a version says it is",
        READ,
        &[("digest", "Which; else the live one.")],
        json::<Manifest>(),
    ),
    get(
        "/areas/{name}/shadow",
        "get_differences",
        "How the answers of its shadow differ, as this node has seen",
        READ,
        &[],
        json::<Differences>(),
    ),
    get(
        "/audit-log",
        "list_audit_log",
        "Who did what, newest first",
        READ,
        &[("area", "Of this area only."), PAGE[0], PAGE[1]],
        json::<Page<AuditLine>>(),
    ),
    get(
        "/usage",
        "get_usage",
        "What the areas and the busiest workspaces use on this node",
        READ,
        &[],
        json::<Used>(),
    ),
    Operation {
        method: "put",
        path: "/areas/{name}",
        id: "deploy_version",
        summary: "Bring a version, and let it answer, wait or be tried",
        scope: DEPLOY,
        query: &[
            ("activate", "`false`: it waits."),
            ("canary", "It answers for this share of the workspaces, in percent."),
            ("workspaces", "It answers for these, separated by commas."),
            ("shadow", "It answers copies of this share of the requests, in percent."),
            FORCE,
        ],
        takes: Takes::Component,
        answers: json::<Sent>(),
    },
    Operation {
        method: "delete",
        path: "/areas/{name}",
        id: "remove_area",
        summary: "Take the area out; what it has stored stays",
        scope: DEPLOY,
        query: &[REASON, ("force", "`true`: although other areas depend on it.")],
        takes: Takes::Nothing,
        answers: json::<Decided>(),
    },
    post(
        "/areas/{name}/activate",
        "activate_version",
        "Let a version answer; the one on trial, where none is named",
        DEPLOY,
        Takes::Members(&[("digest", "string"), ("reason", "string"), ("force", "string")], &[]),
    ),
    post(
        "/areas/{name}/canary",
        "begin_canary",
        "Let a version answer for a share of the workspaces, in percent, or for those listed",
        DEPLOY,
        Takes::Members(
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
        "Let a version answer copies of a share of the requests, in percent",
        DEPLOY,
        Takes::Members(
            &[("digest", "string"), ("share", "number"), ("reason", "string")],
            &["digest"],
        ),
    ),
    post("/areas/{name}/stop", "stop_trial", "End a canary or a shadow", DEPLOY, WITH_REASON),
    post(
        "/areas/{name}/rollback",
        "roll_back",
        "End the canary that runs, or else let the version before answer",
        DEPLOY,
        WITH_REASON,
    ),
    post(
        "/areas/{name}/approve",
        "approve_version",
        "Grant a version what it asks for beyond the live one",
        Some(Scope::Approve),
        Takes::Members(&[("digest", "string"), ("reason", "string")], &["digest"]),
    ),
];

const WITH_REASON: Takes = Takes::Members(&[("reason", "string")], &["reason"]);

const fn get(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    scope: Option<Scope>,
    query: &'static [(&'static str, &'static str)],
    answers: Answers,
) -> Operation {
    Operation { method: "get", path, id, summary, scope, query, takes: Takes::Nothing, answers }
}

/// What was decided is answered with what came of it.
const fn post(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    scope: Option<Scope>,
    takes: Takes,
) -> Operation {
    let answers = json::<Decided>();
    Operation { method: "post", path, id, summary, scope, query: &[], takes, answers }
}

const fn json<T: JsonSchema>() -> Answers {
    Answers::Json(SchemaGenerator::subschema_for::<T>)
}

/// The document.
pub(super) async fn openapi(State(operators): State<Operators>) -> Json<Value> {
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
        "externalDocs": {"url": operators.app.base_url, "description": "The API of clients"},
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }))
}

fn described(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
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

/// The success, and the problems: those that anybody may meet here by name.
fn responses(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let (media_type, schema) = match operation.answers {
        Answers::Json(of) => ("application/json", of(schemas).to_value()),
        Answers::Text(media_type) => (media_type, json!({"type": "string"})),
    };
    let problem = schemas.subschema_for::<Problem<'_>>();
    let problem = |description: &str| {
        let content = json!({"application/problem+json": {"schema": problem}});
        json!({"description": description, "content": content})
    };
    let mut all = json!({
        "200": {"description": "Done.", "content": {media_type: {"schema": schema}}},
        "default": problem("A problem (RFC 9457) that names the way out."),
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
        all["401"] = problem("No token, or none that is known.");
        all["403"] = problem("The token lacks the scope.");
        all["422"] = problem("What was sent is not what is taken here.");
    }
    all
}

fn parameters(operation: &Operation) -> Vec<Value> {
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
    if matches!(operation.takes, Takes::Component) {
        all.push(parameter("header", "X-Area-Publisher", "Who signed the component."));
        all.push(parameter("header", "X-Area-Signature", "Ed25519, in base64."));
    }
    all
}

fn body(takes: &Takes) -> Option<(&'static str, Value)> {
    match takes {
        Takes::Nothing => None,
        Takes::Component => Some(("application/wasm", json!({"type": "string"}))),
        Takes::Members(members, required) => {
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
