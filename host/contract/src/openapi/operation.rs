//! Generates the OpenAPI operation object of one operation.

use serde_json::{Map, Value as Json, json};

use super::HostOperation;
use super::components::{IF_MATCH, VERSIONED, common_headers, header, problem_responses};
use super::schemas::{SchemaComponents, SchemaNamingContext};
use crate::contract::CompiledRoute;
use crate::parameters;
use crate::schema::CompiledSchema;
use assurance_core::domain::manifest::{
    BodyKind, FormPart, IdempotencyMode, LinkHolder, Manifest, Method, ParameterPlace,
    ParameterSpec, RateClass, Route, SignedLinkSpec, WorkspaceSource,
};

const JSON: &str = "application/json";

/// Media type of a request body that is stored as a blob, without conversion.
const BYTES: &str = "application/octet-stream";

/// Returns the OpenAPI operation object of an operation that the host
/// implements.
pub(super) fn of_host(described: &HostOperation, components: &mut SchemaComponents) -> Json {
    let mut operation = json!({
        "operationId": described.operation_id,
        "summary": described.summary,
        "description": described.description,
        "tags": [described.tag.name],
        "x-contract": described.in_contract,
        "parameters": described.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "security": security(described.signed_in, described.takes_access_token, described.method),
    });
    if let Some(role) = described.least_role {
        operation["x-least-role"] = json!(role);
    }
    if described.signed_in {
        let reads = described.method == Method::Get;
        operation["x-rate-class"] =
            json!(if reads { RateClass::Light } else { RateClass::Standard });
    }
    if described.idempotent
        && let Some(parameters) = operation["parameters"].as_array_mut()
    {
        parameters.push(idempotency_key());
    }
    let usage = SchemaNamingContext {
        owner: described.tag.name,
        name: described.operation_id,
        in_contract: described.in_contract,
        is_request: false,
    };
    if let Some(schema) = &described.body {
        let schema = components.hoist(SchemaNamingContext { is_request: true, ..usage }, schema);
        operation["requestBody"] = body(JSON, &schema, given(&described.example["request"]));
    }
    let response = described.response.as_ref().map(|schema| components.hoist(usage, schema));
    operation["responses"] = Success {
        status: described.success_status,
        schema: response,
        example: given(&described.example["response"]),
        versioned: false,
        idempotent: described.idempotent,
        sets_cookie: described.sets_cookie,
    }
    .responses(described.body.is_some());
    operation
}

/// Returns the OpenAPI operation object of an area's route.
pub(super) fn of_area(
    manifest: &Manifest,
    contract: &CompiledRoute,
    components: &mut SchemaComponents,
) -> Json {
    let route = &contract.route;
    let name = &manifest.name;
    let response_name = format!("{}_response", route.operation_id);
    let usage = SchemaNamingContext {
        owner: name,
        name: &response_name,
        in_contract: route.in_contract,
        is_request: false,
    };
    let mut operation = json!({
        "operationId": route.operation_id,
        "summary": route.summary,
        "description": description(route),
        "tags": [name],
        "x-contract": route.in_contract,
        "x-least-role": route.least_role,
        "x-rate-class": route.rate,
        "parameters": parameters_of(contract),
        "security": security(
            !by_link_alone(route),
            route.workspace == WorkspaceSource::Path,
            route.method,
        ),
    });
    if !route.problem_codes.is_empty() {
        operation["x-problem-codes"] = json!(route.problem_codes);
    }
    match &route.body {
        BodyKind::None => {}
        BodyKind::Json(declared) => {
            let schema = contract.body.as_ref().map_or(declared, |body| body.schema());
            let name = format!("{}_request", route.operation_id);
            let usage = SchemaNamingContext { is_request: true, name: &name, ..usage };
            operation["requestBody"] =
                body(JSON, &components.hoist(usage, schema), example(schema));
        }
        BodyKind::Multipart(parts) => {
            let usage =
                SchemaNamingContext { is_request: true, name: &route.operation_id, ..usage };
            let form = components.hoist(usage, &form_schema(&route.operation_id, parts));
            operation["requestBody"] = body("multipart/form-data", &form, None);
        }
        BodyKind::Blob => {
            let bytes = json!({"type": "string", "format": "binary"});
            operation["requestBody"] = body(BYTES, &bytes, None);
        }
    }
    let schema = contract.response.as_ref().map(CompiledSchema::schema);
    let versioned = schema.is_some_and(|schema| schema[VERSIONED] == true);
    operation["responses"] = Success {
        status: route.success_status,
        versioned,
        example: schema.and_then(example),
        schema: schema.map(|schema| components.hoist(usage, schema)),
        idempotent: route.idempotency != IdempotencyMode::None,
        sets_cookie: false,
    }
    .responses(reads_body(route));
    if versioned && route.method == Method::Get && !route.writes {
        add_conditional_read(&mut operation);
    }
    operation
}

/// Adds the header parameter `If-None-Match` and the response 304 to an
/// operation object.
fn add_conditional_read(operation: &mut Json) {
    operation["responses"]["304"] = json!({"$ref": "#/components/responses/NotModified"});
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters.push(json!({"$ref": "#/components/parameters/IfNoneMatch"}));
    }
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

/// Returns whether the host reads the request body, so that the problems of
/// bodies (413, 415) are possible. The host ignores only the body of a GET or
/// DELETE that declares none.
fn reads_body(route: &Route) -> bool {
    !matches!((&route.body, route.method), (BodyKind::None, Method::Get | Method::Delete))
}

/// Returns the OpenAPI query parameter for a signed link, with a description of
/// who may use the link.
fn signed_link(link: &SignedLinkSpec) -> Json {
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

fn security(signed_in: bool, takes_access_token: bool, method: Method) -> Json {
    if !signed_in {
        return json!([]);
    }
    let mut choices = match method {
        Method::Get => vec![json!({"session": []})],
        _ => vec![json!({"session": [], "csrf": []})],
    };
    if takes_access_token {
        choices.push(json!({"access_token": []}));
    }
    Json::Array(choices)
}

fn body(media_type: &str, schema: &Json, example: Option<&Json>) -> Json {
    json!({"required": true, "content": {media_type: media(schema, example)}})
}

/// Returns an OpenAPI media type object with this schema and example.
fn media(schema: &Json, example: Option<&Json>) -> Json {
    match example {
        Some(example) => json!({"schema": schema, "example": example}),
        None => json!({"schema": schema}),
    }
}

/// Returns the first example in the schema; `None` if it has none.
fn example(schema: &Json) -> Option<&Json> {
    schema["examples"].get(0)
}

fn given(value: &Json) -> Option<&Json> {
    Some(value).filter(|value| !value.is_null())
}

/// Returns the JSON Schema of a multipart form: an object with one property for
/// each part.
fn form_schema(operation: &str, parts: &[FormPart]) -> Json {
    let mut properties = Map::new();
    for part in parts {
        let schema = if part.file {
            json!({"description": part.summary, "type": "string", "format": "binary",
                "x-max-bytes": part.max_bytes})
        } else {
            json!({"description": part.summary, "type": "string", "x-max-bytes": part.max_bytes})
        };
        properties.insert(part.name.clone(), schema);
    }
    let required: Vec<&str> =
        parts.iter().filter(|part| part.required).map(|part| part.name.as_str()).collect();
    json!({"type": "object", "title": format!("{operation}_form"), "properties": properties,
        "required": required, "additionalProperties": false})
}

fn parameters_of(contract: &CompiledRoute) -> Vec<Json> {
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
        IdempotencyMode::None => {}
        IdempotencyMode::Optional => found.push(idempotency_key()),
        IdempotencyMode::Required | IdempotencyMode::KeptByArea => {
            found.push(json!({"$ref": "#/components/parameters/RequiredIdempotencyKey"}));
        }
    }
    if reads_if_match(contract) {
        found.push(json!({"$ref": "#/components/parameters/IfMatch"}));
    }
    found
}

/// Returns whether the operation checks `If-Match`: it replaces, changes or
/// deletes a resource, or its response schema declares it. An upload of a blob
/// does not check it.
fn reads_if_match(contract: &CompiledRoute) -> bool {
    let route = &contract.route;
    let declared =
        contract.response.as_ref().is_some_and(|response| response.schema()[IF_MATCH] == true);
    let replaces = route.writes
        && matches!(route.method, Method::Put | Method::Patch | Method::Delete)
        && !matches!(route.body, BodyKind::Blob);
    declared || replaces
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

/// Allows `null` in an optional parameter's schema; `null` means the same as an
/// absent parameter.
fn or_null(schema: &mut Json) {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    if let Some(Json::Array(values)) = schema.get_mut("enum") {
        values.push(Json::Null);
    }
}

/// Successful response of an operation, to be described in the OpenAPI
/// document.
struct Success<'a> {
    status: u16,
    schema: Option<Json>,
    example: Option<&'a Json>,
    /// Whether the response has an `ETag`.
    versioned: bool,
    /// Whether the operation accepts an `Idempotency-Key`.
    idempotent: bool,
    /// Whether the response sets or deletes cookies.
    sets_cookie: bool,
}

impl Success<'_> {
    /// Returns the OpenAPI responses object: the success and the shared
    /// problems.
    fn responses(self, reads_body: bool) -> Json {
        let mut headers = common_headers();
        if self.versioned {
            headers.insert("ETag".into(), header("ETag"));
        }
        if self.idempotent {
            headers.insert("Idempotent-Replayed".into(), header("IdempotentReplayed"));
        }
        if self.sets_cookie {
            headers.insert("Set-Cookie".into(), header("SetCookie"));
        }
        let mut success = json!({"description": "Success", "headers": headers});
        if let Some(schema) = self.schema {
            success["content"] = json!({JSON: media(&schema, self.example)});
        }
        let mut all = problem_responses(reads_body);
        all.insert(self.status.to_string(), success);
        Json::Object(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{contract, creating, manifest, route};

    fn described(route: Route) -> Json {
        let manifest = manifest("notes", Vec::new());
        of_area(&manifest, &contract(route), &mut SchemaComponents::default())
    }

    #[test]
    fn if_match_is_listed_where_it_is_checked() {
        const NOTE: &str = "/v1/workspaces/{workspace_id}/note";
        let post = creating("close_note", NOTE);
        let declared = Some(json!({"type": "object", "x-if-match": true}));
        let declared = Route { response: declared, ..post.clone() };
        let patch = Route { method: Method::Patch, ..post.clone() };
        let blob = Route { method: Method::Put, body: BodyKind::Blob, ..post.clone() };
        let read = route("get_note", NOTE);
        let cases = [(read, false), (post, false), (declared, true), (patch, true), (blob, false)];
        for (route, listed) in cases {
            let reference = json!({"$ref": "#/components/parameters/IfMatch"});
            let operation = described(route);
            let parameters = operation["parameters"].as_array().unwrap();
            assert_eq!(parameters.contains(&reference), listed, "{operation}");
            assert!(!operation["responses"].to_string().contains("x-if-match"), "{operation}");
        }
    }

    #[test]
    fn the_problems_of_bodies_are_listed_where_a_body_is_read() {
        const NOTE: &str = "/v1/workspaces/{workspace_id}/note";
        let read = route("get_note", NOTE);
        let post = creating("close_note", NOTE);
        let without = |method| Route { method, body: BodyKind::None, ..post.clone() };
        for (route, listed) in [
            (read, false),
            (without(Method::Delete), false),
            (without(Method::Post), true),
            (without(Method::Put), true),
            (without(Method::Patch), true),
            (post.clone(), true),
        ] {
            let operation = described(route);
            for status in ["413", "415"] {
                assert_eq!(operation["responses"][status].is_object(), listed, "{operation}");
            }
        }
    }

    #[test]
    fn only_reads_are_conditional() {
        let versioned = Some(json!({"type": "object", "x-versioned": true}));
        let read = route("get_note", "/v1/workspaces/{workspace_id}/note");
        let read = Route { response: versioned, ..read };
        assert!(described(read.clone())["responses"]["304"].is_object());
        let link = SignedLinkSpec { parameter: "state".into(), holder: LinkHolder::SameSession };
        let writing = Route {
            path: "/v1/note/link".into(),
            workspace: WorkspaceSource::SignedLink(link),
            writes: true,
            ..read
        };
        assert!(described(writing)["responses"]["304"].is_null());
    }
}
