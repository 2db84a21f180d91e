//! Generates the OpenAPI 3.1 document from the host's own operations and the
//! manifests of the live areas.

mod components;
mod names;
mod operation;
mod schemas;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::contract::CompiledRoute;
use crate::schema::is_subscribable;
use assurance_core::domain::manifest::{EventSpec, Manifest, Method, ParameterSpec};
use assurance_core::domain::role::Role;
use schemas::{SchemaComponents, SchemaNamingContext};

/// A live area, whose operations and events are included in the OpenAPI
/// document.
#[derive(Clone, Copy, Debug)]
pub struct PublishedArea<'a> {
    /// Manifest of the area's live version.
    pub manifest: &'a Manifest,
    /// Compiled routes of the area's live version.
    pub routes: &'a [CompiledRoute],
}

/// Group of the host's own operations: a tag of the OpenAPI document.
#[derive(Clone, Copy, Debug)]
pub struct OperationGroup {
    /// Name of the OpenAPI tag.
    pub name: &'static str,
    /// Description of the OpenAPI tag, in one line.
    pub summary: &'static str,
}

/// Documentation of an operation that the host itself implements, as opposed to
/// an area.
#[derive(Clone, Debug)]
pub struct HostOperation {
    /// HTTP method of the operation.
    pub method: Method,
    /// Path template of the operation, such as `/v1/workspaces/{workspace_id}`.
    pub path: &'static str,
    /// OpenAPI `operationId`; unique among all operations of the host and the
    /// areas.
    pub operation_id: &'static str,
    /// OpenAPI tag that the operation is listed under.
    pub tag: OperationGroup,
    /// Summary of the operation, in one line.
    pub summary: &'static str,
    /// Description of the operation in Markdown; can have several lines.
    pub description: &'static str,
    /// Whether the operation is part of the published contract (`x-contract:
    /// true`).
    pub in_contract: bool,
    /// Whether the operation requires a session or an access token. If false,
    /// anyone may call it.
    pub signed_in: bool,
    /// Whether clients may send an access token instead of a session cookie.
    pub takes_access_token: bool,
    /// Lowest role in the workspace that may call the operation; `None` if it
    /// is not about a workspace.
    pub least_role: Option<Role>,
    /// Path and query parameters of the operation.
    pub parameters: Vec<ParameterSpec>,
    /// Whether the operation accepts the header `Idempotency-Key`.
    pub idempotent: bool,
    /// JSON Schema of the request body; `None` if the operation has no body.
    pub body: Option<Json>,
    /// HTTP status of a successful response.
    pub success_status: u16,
    /// JSON Schema of the body of a successful response; `None` if it has no
    /// body.
    pub response: Option<Json>,
    /// Whether a successful response sets or deletes cookies.
    pub sets_cookie: bool,
    /// Recorded example of a call, an object with the members `request` (if
    /// there is a request body) and `response`.
    pub example: Json,
}

/// OpenAPI document of the host and of the areas that are live when it is
/// generated.
#[derive(Debug)]
pub struct OpenApiDocument {
    /// The OpenAPI document as a JSON value, for code that reads parts of it.
    pub value: Json,
    /// The OpenAPI document as JSON text, as clients receive it.
    pub text: Bytes,
    /// First half of the SHA-256 of the document's text, in hex; serves as its
    /// `ETag`.
    pub digest: String,
}

impl OpenApiDocument {
    /// Generates the OpenAPI document; `base_url` is the URL of the server.
    pub fn of<'a>(
        host: &[HostOperation],
        areas: impl Iterator<Item = PublishedArea<'a>> + Clone,
        base_url: &str,
    ) -> Self {
        let value = document(host, areas, base_url);
        let text = Bytes::from(value.to_string());
        let digest = hex::encode(&Sha256::digest(&text)[..16]);
        Self { value, text, digest }
    }
}

/// Returns the whole OpenAPI document as JSON.
fn document<'a>(
    host: &[HostOperation],
    areas: impl Iterator<Item = PublishedArea<'a>> + Clone,
    base_url: &str,
) -> Json {
    let mut components = SchemaComponents::default();
    let mut paths: BTreeMap<String, Map<String, Json>> = BTreeMap::new();
    let mut place = |path: &str, method: Method, operation: Json| {
        let at = paths.entry(path.to_owned()).or_default();
        at.insert(method.as_str().to_ascii_lowercase(), operation);
    };
    for described in host {
        let operation = operation::of_host(described, &mut components);
        place(described.path, described.method, operation);
    }
    for area in areas.clone() {
        for contract in area.routes {
            let operation = operation::of_area(area.manifest, contract, &mut components);
            place(&contract.route.path, contract.route.method, operation);
        }
    }
    let webhooks = webhooks(areas.clone(), &mut components);
    let mut document = json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Workspace Assurance Service",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Operations marked `x-contract: true` are the published contract, \
                version 1; the others exist so that there is something for them to read.",
            "contact": {"name": "The operators of this service", "url": base_url},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "externalDocs": {"description": "The same, to read", "url": format!("{base_url}/reference")},
        "tags": tags(host, areas),
        "security": [{"session": []}],
        "paths": paths,
        "webhooks": webhooks,
    });
    let schemas = components.finish(&mut document);
    document["components"] = components::all(schemas);
    document
}

fn tags<'a>(host: &[HostOperation], areas: impl Iterator<Item = PublishedArea<'a>>) -> Vec<Json> {
    let host: BTreeMap<&str, &str> =
        host.iter().map(|operation| (operation.tag.name, operation.tag.summary)).collect();
    let host =
        host.into_iter().map(|(name, summary)| json!({"name": name, "description": summary}));
    let areas = areas.map(|area| {
        json!({
            "name": area.manifest.name,
            "description": area.manifest.summary,
            "x-area-version": area.manifest.version.to_string(),
        })
    });
    host.chain(areas).collect()
}

/// Describes one webhook for each event that an area publishes, in the envelope
/// of Standard Webhooks 1.0.
fn webhooks<'a>(
    areas: impl Iterator<Item = PublishedArea<'a>>,
    components: &mut SchemaComponents,
) -> Map<String, Json> {
    let mut found = Map::new();
    for area in areas {
        for event in &area.manifest.publishes {
            let schema = delivery(area.manifest, event, components);
            let described = json!({"post": {
                "operationId": format!("on_{}", event.name.replace('.', "_")),
                "summary": event.summary,
                "description": format!("The service sends this request to {}. It is retried until \
                    the response has a status from 200 to 299.", receivers(event)),
                "tags": [area.manifest.name],
                "parameters": components::webhook_headers(),
                "requestBody": {"required": true, "content": {
                    "application/json": {"schema": schema},
                }},
                "responses": {"2XX": {"description": "Delivered; anything else is tried again."}},
            }});
            found.insert(event.name.clone(), described);
        }
    }
    found
}

/// Returns the receivers of an event, for its description.
fn receivers(event: &EventSpec) -> &'static str {
    match is_subscribable(event) {
        true => "webhooks that subscribe to the event",
        false => "one webhook, which needs no subscription; `events` of a webhook cannot name it",
    }
}

/// Returns a reference to the schema of a webhook's request body for this
/// event.
fn delivery(manifest: &Manifest, event: &EventSpec, components: &mut SchemaComponents) -> Json {
    let usage = |name| SchemaNamingContext {
        owner: &manifest.name,
        name,
        in_contract: false,
        is_request: false,
    };
    let (data_name, name) = (format!("{}.data", event.name), format!("{}.event", event.name));
    let data = components.hoist(usage(&data_name), &event.schema);
    let schema = json!({
        "type": "object",
        "required": ["type", "timestamp", "workspace_id", "data"],
        "properties": {
            "type": {"type": "string", "const": event.name, "description": "Name of the event."},
            "timestamp": {"type": "string", "format": "date-time",
                "description": "When the event happened."},
            "workspace_id": {"type": "string", "format": "uuid",
                "description": "Workspace in which the event happened."},
            "data": data,
        },
    });
    components.hoist(usage(&name), &schema)
}
