//! The OpenAPI 3.1 document: the host's own operations and whatever the live
//! areas declare, so that it is always true.

mod components;
mod operation;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::snapshot::AreaVersion;
use crate::domain::manifest::{Method, ParameterSpec};
use components::Components;

/// An operation the host answers itself, as it is documented.
#[derive(Clone, Debug)]
pub struct HostOperation {
    /// Which method.
    pub method: Method,
    /// A path template.
    pub path: &'static str,
    /// Unique among all operations.
    pub operation_id: &'static str,
    /// Groups operations in the document.
    pub tag: &'static str,
    /// One line.
    pub summary: &'static str,
    /// As many as it takes.
    pub description: &'static str,
    /// One of the 22.
    pub in_contract: bool,
    /// False: anyone may call it.
    pub signed_in: bool,
    /// In path and query.
    pub parameters: Vec<ParameterSpec>,
    /// Takes an `Idempotency-Key`.
    pub idempotent: bool,
    /// Schema of a JSON body.
    pub body: Option<Json>,
    /// Status of a success.
    pub success_status: u16,
    /// Schema of the success body.
    pub response: Option<Json>,
}

/// The document of one moment.
#[derive(Debug)]
pub struct Document {
    /// For whoever reads parts of it.
    pub value: Json,
    /// As it is sent.
    pub text: Bytes,
    /// Tells this text from others, in hex.
    pub digest: String,
}

impl Document {
    pub(super) fn of<'a>(
        host: &[HostOperation],
        areas: impl Iterator<Item = &'a Arc<AreaVersion>> + Clone,
        base_url: &str,
    ) -> Self {
        let value = document(host, areas, base_url);
        let text = Bytes::from(value.to_string());
        let digest = hex::encode(&Sha256::digest(&text)[..16]);
        Self { value, text, digest }
    }
}

/// The whole document.
fn document<'a>(
    host: &[HostOperation],
    areas: impl Iterator<Item = &'a Arc<AreaVersion>> + Clone,
    base_url: &str,
) -> Json {
    let mut components = Components::new();
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
        for contract in area.routes.iter() {
            let operation = operation::of_area(&area.manifest, contract, &mut components);
            place(&contract.route.path, contract.route.method, operation);
        }
    }
    let webhooks = webhooks(areas.clone(), &mut components);
    json!({
        "openapi": "3.1.1",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Workspace Assurance Service",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Operations marked `x-contract: true` are the published contract, \
                version 1; the others exist so that there is something for them to read.",
        },
        "servers": [{"url": base_url}],
        "externalDocs": {"description": "The same, to read", "url": format!("{base_url}/reference")},
        "tags": tags(host, areas),
        "security": [{"session": []}],
        "paths": paths,
        "webhooks": webhooks,
        "components": components.into_json(),
    })
}

fn tags<'a>(
    host: &[HostOperation],
    areas: impl Iterator<Item = &'a Arc<AreaVersion>>,
) -> Vec<Json> {
    let mut names: Vec<&str> = host.iter().map(|operation| operation.tag).collect();
    names.sort_unstable();
    names.dedup();
    let host = names.into_iter().map(|name| json!({"name": name}));
    let areas = areas.map(|area| {
        json!({
            "name": area.manifest.name,
            "description": area.manifest.summary,
            "x-area-version": area.manifest.version.to_string(),
        })
    });
    host.chain(areas).collect()
}

/// One webhook an event, in the envelope of Standard Webhooks 1.0.
fn webhooks<'a>(
    areas: impl Iterator<Item = &'a Arc<AreaVersion>>,
    components: &mut Components,
) -> Map<String, Json> {
    let mut found = Map::new();
    for area in areas {
        for event in &area.manifest.publishes {
            let data =
                components.hoist(&area.manifest.name, &event.name.replace('.', "_"), &event.schema);
            let described = json!({"post": {
                "summary": event.summary,
                "tags": [area.manifest.name],
                "parameters": components::webhook_headers(),
                "requestBody": {"required": true, "content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["type", "timestamp", "data"],
                    "properties": {
                        "type": {"const": event.name},
                        "timestamp": {"type": "string", "format": "date-time"},
                        "data": data,
                    },
                }}}},
                "responses": {"2XX": {"description": "Delivered; anything else is tried again."}},
            }});
            found.insert(event.name.clone(), described);
        }
    }
    found
}
