//! One operation object of the document.

use serde_json::{Map, Value as Json, json};

use super::HostOperation;
use super::components::{Components, problem_responses};
use crate::domain::manifest::{
    BodyKind, FormPart, Idempotency, Link, LinkHolder, Manifest, Method, ParameterPlace,
    ParameterSpec, Route, WorkspaceSource,
};
use crate::registry::contract::RouteContract;
use crate::registry::parameters;

/// An operation of the host.
pub(super) fn of_host(described: &HostOperation, components: &mut Components) -> Json {
    let mut operation = json!({
        "operationId": described.operation_id,
        "summary": described.summary,
        "description": described.description,
        "tags": [described.tag],
        "x-contract": described.in_contract,
        "parameters": described.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "security": security(described.signed_in, described.method),
    });
    if described.idempotent
        && let Some(parameters) = operation["parameters"].as_array_mut()
    {
        parameters.push(idempotency_key());
    }
    if let Some(schema) = &described.body {
        let schema = components.hoist("host", described.operation_id, schema);
        operation["requestBody"] = json_body(&schema);
    }
    let response = described
        .response
        .as_ref()
        .map(|schema| components.hoist("host", described.operation_id, schema));
    let takes_body = described.body.is_some();
    operation["responses"] = responses(described.success_status, response, takes_body);
    operation
}

/// An operation of an area.
pub(super) fn of_area(
    manifest: &Manifest,
    contract: &RouteContract,
    components: &mut Components,
) -> Json {
    let route = &contract.route;
    let name = &manifest.name;
    let mut operation = json!({
        "operationId": route.operation_id,
        "summary": route.summary,
        "description": description(route),
        "tags": [name],
        "x-contract": route.in_contract,
        "x-least-role": route.least_role,
        "x-rate-class": route.rate,
        "parameters": parameters_of(contract),
        "security": security(!by_link_alone(route), route.method),
    });
    if !route.problem_codes.is_empty() {
        operation["x-problem-codes"] = json!(route.problem_codes);
    }
    match &route.body {
        BodyKind::None => {}
        BodyKind::Json(declared) => {
            let schema = contract.body_schema.as_ref().unwrap_or(declared);
            let schema = components.hoist(name, &format!("{}_request", route.operation_id), schema);
            operation["requestBody"] = json_body(&schema);
        }
        BodyKind::Multipart(parts) => operation["requestBody"] = form_body(parts),
        BodyKind::Blob => {
            operation["requestBody"] = json!({"required": true, "content": {"*/*": {}}});
        }
    }
    let response = contract
        .response_schema
        .as_ref()
        .map(|schema| components.hoist(name, &format!("{}_response", route.operation_id), schema));
    let takes_body = !matches!(route.body, BodyKind::None);
    operation["responses"] = responses(route.success_status, response, takes_body);
    operation
}

fn description(route: &Route) -> String {
    match &route.feature_flag {
        Some(flag) => format!(
            "{}\n\nAnswers 403 `feature_disabled` while the workspace's feature `{flag}` is off.",
            route.description
        )
        .trim_start()
        .to_owned(),
        None => route.description.clone(),
    }
}

fn by_link_alone(route: &Route) -> bool {
    matches!(&route.workspace,
        WorkspaceSource::SignedLink(link) if link.holder == LinkHolder::Bearer)
}

/// The parameter that carries a signed link, and what makes it good.
fn signed_link(link: &Link) -> Json {
    let description = match link.holder {
        LinkHolder::Bearer => {
            "Signed by this service, as a part of the URL it gave out: whoever has it may use it \
             until it expires."
        }
        LinkHolder::SignedIn => "Signed by this service; it expires.",
        LinkHolder::SameSession => {
            "Signed by this service for the session that asked for it; it expires."
        }
    };
    json!({"name": link.parameter, "in": "query", "required": true, "description": description,
        "schema": {"type": "string"}})
}

fn security(signed_in: bool, method: Method) -> Json {
    match (signed_in, method) {
        (false, _) => json!([]),
        (true, Method::Get) => json!([{"session": []}]),
        (true, _) => json!([{"session": [], "csrf": []}]),
    }
}

fn json_body(schema: &Json) -> Json {
    json!({"required": true, "content": {"application/json": {"schema": schema}}})
}

fn form_body(parts: &[FormPart]) -> Json {
    let mut properties = Map::new();
    for part in parts {
        let schema = if part.file {
            json!({"description": part.summary, "type": "string",
                "contentMediaType": "application/octet-stream", "x-max-bytes": part.max_bytes})
        } else {
            json!({"description": part.summary, "type": "string", "x-max-bytes": part.max_bytes})
        };
        properties.insert(part.name.clone(), schema);
    }
    let required: Vec<&str> =
        parts.iter().filter(|part| part.required).map(|part| part.name.as_str()).collect();
    json!({"required": true, "content": {"multipart/form-data": {"schema": {
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    }}}})
}

fn parameters_of(contract: &RouteContract) -> Vec<Json> {
    let route = &contract.route;
    let mut found = Vec::new();
    if contract.path_parameters.iter().any(|name| name == "workspace_id") {
        found.push(json!({"$ref": "#/components/parameters/WorkspaceId"}));
    }
    if let WorkspaceSource::SignedLink(link) = &route.workspace {
        found.push(signed_link(link));
    }
    found.extend(route.parameters.iter().map(parameter));
    match route.idempotency {
        Idempotency::None => {}
        Idempotency::Optional => found.push(idempotency_key()),
        Idempotency::Required | Idempotency::KeptByArea => {
            found.push(json!({"$ref": "#/components/parameters/RequiredIdempotencyKey"}));
        }
    }
    if route.writes && matches!(route.method, Method::Put | Method::Patch | Method::Delete) {
        found.push(json!({"$ref": "#/components/parameters/IfMatch"}));
    }
    found
}

fn idempotency_key() -> Json {
    json!({"$ref": "#/components/parameters/IdempotencyKey"})
}

fn parameter(spec: &ParameterSpec) -> Json {
    let mut schema = parameters::schema(&spec.kind);
    if let Some(default) = &spec.default {
        schema["default"] = default.clone();
    }
    let required = spec.required || spec.place == ParameterPlace::Path;
    if !required {
        or_null(&mut schema);
    }
    let place = match spec.place {
        ParameterPlace::Path => "path",
        ParameterPlace::Query => "query",
        ParameterPlace::Header => "header",
    };
    let mut parameter = json!({
        "name": spec.name,
        "in": place,
        "description": spec.summary,
        "required": required,
        "schema": schema,
    });
    if spec.place == ParameterPlace::Query && !required {
        parameter["allowEmptyValue"] = true.into();
    }
    parameter
}

/// `null`, like nothing at all, is no filter.
fn or_null(schema: &mut Json) {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    if let Some(Json::Array(values)) = schema.get_mut("enum") {
        values.push(Json::Null);
    }
}

fn responses(status: u16, schema: Option<Json>, takes_body: bool) -> Json {
    let mut success = json!({
        "description": "Success",
        "headers": {
            "X-Request-Id": {"$ref": "#/components/headers/RequestId"},
            "RateLimit": {"$ref": "#/components/headers/RateLimit"},
            "RateLimit-Policy": {"$ref": "#/components/headers/RateLimitPolicy"},
        },
    });
    if let Some(schema) = schema {
        success["content"] = json!({"application/json": {"schema": schema}});
    }
    let mut all = problem_responses(takes_body);
    all.insert(status.to_string(), success);
    Json::Object(all)
}
