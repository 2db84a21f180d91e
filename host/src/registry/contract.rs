//! From a manifest to routes the host can answer by: every declaration is
//! checked first, and every complaint names what to mend.

use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value as Json;
use tokio::sync::Semaphore;

use super::meter::Meter;
use super::{checks, cost, schema};
use crate::config::{Config, ManifestLimits};
use crate::domain::manifest::{BodyKind, FormPart, Manifest, Route};
use crate::work::Habit;

/// What a form's own boundaries and part headers may take, in bytes.
const FORM_OVERHEAD_BYTES: u64 = 64 << 10;

/// Bodies of one version of an area that are checked away from the serving
/// threads at a time.
const LONG_CHECKS: usize = 2;

/// Bounds the operator sets on what manifests may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Ceilings {
    /// How long a route may take where it does not say, in milliseconds.
    pub deadline_ms: u32,
    /// Longest deadline of a route, in milliseconds.
    pub max_deadline_ms: u32,
    /// Largest body where a route does not say, in bytes.
    pub body_bytes: u64,
    /// Largest streamed body, and the largest any route may ask for, in bytes.
    pub max_body_bytes: u64,
    /// How much a manifest may declare.
    pub manifest: ManifestLimits,
}

impl Default for Ceilings {
    fn default() -> Self {
        Self {
            deadline_ms: 1_000,
            max_deadline_ms: 30_000,
            body_bytes: 1 << 20,
            max_body_bytes: 100 << 20,
            manifest: ManifestLimits::default(),
        }
    }
}

impl From<&Config> for Ceilings {
    fn from(config: &Config) -> Self {
        Self {
            deadline_ms: config.limits.deadline_ms,
            max_deadline_ms: config.limits.max_deadline_ms,
            body_bytes: config.limits.max_body_bytes,
            max_body_bytes: config.limits.max_upload_bytes,
            manifest: config.areas.manifest,
        }
    }
}

/// One route, ready to answer by.
#[derive(Debug)]
pub struct RouteContract {
    /// As declared.
    pub route: Route,
    /// The parameters of the path template, in its order.
    pub path_parameters: Vec<String>,
    /// Checks a JSON body.
    pub body: Option<Arc<Validator>>,
    /// Nodes that the request schema expands to.
    pub body_nodes: u64,
    /// Checks a reply, in development.
    pub response: Option<Validator>,
    /// Admits checks of bodies that take long; all routes of the version share
    /// it.
    pub long_checks: Arc<Semaphore>,
    /// The request schema as compiled and published.
    pub body_schema: Option<Json>,
    /// The response schema as compiled and published.
    pub response_schema: Option<Json>,
    /// How long a call may take.
    pub deadline: Duration,
    /// Largest body, decompressed.
    pub max_body_bytes: u64,
    /// What its calls have shown so far.
    pub habit: Arc<Habit>,
    /// How long they take.
    pub meter: Arc<Meter>,
}

/// What is wrong with a manifest, each complaint naming the item to mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the manifest of area {area:?} cannot be used:\n- {}", complaints.join("\n- "))]
pub struct BadManifest {
    /// As the manifest calls itself.
    pub area: String,
    /// At least one.
    pub complaints: Vec<String>,
}

/// Checks a manifest and makes its routes ready.
///
/// # Errors
/// Every complaint at once.
pub(super) fn compile(
    manifest: &Manifest,
    events: &[String],
    ceilings: &Ceilings,
) -> Result<Vec<RouteContract>, BadManifest> {
    let too_large = cost::complaints(manifest, &ceilings.manifest);
    if !too_large.is_empty() {
        // Nothing of it is compiled.
        return Err(BadManifest { area: manifest.name.clone(), complaints: too_large });
    }
    let mut complaints = checks::manifest(manifest, ceilings);
    let mut routes = Vec::with_capacity(manifest.routes.len());
    let long_checks = Arc::new(Semaphore::new(LONG_CHECKS));
    for route in &manifest.routes {
        let long_checks = Arc::clone(&long_checks);
        match compile_route(&manifest.name, route, events, ceilings, long_checks) {
            Ok(contract) => routes.push(contract),
            Err(complaint) => complaints.push(complaint),
        }
    }
    if complaints.is_empty() {
        Ok(routes)
    } else {
        Err(BadManifest { area: manifest.name.clone(), complaints })
    }
}

/// True where the manifest's schemas change with the live events.
pub(super) fn depends_on_events(manifest: &Manifest) -> bool {
    manifest.routes.iter().any(|route| {
        let body = match &route.body {
            BodyKind::Json(schema) => schema::names_events(schema),
            BodyKind::None | BodyKind::Multipart(_) | BodyKind::Blob => false,
        };
        body || route.response.as_ref().is_some_and(schema::names_events)
    })
}

fn compile_route(
    area: &str,
    route: &Route,
    events: &[String],
    ceilings: &Ceilings,
    long_checks: Arc<Semaphore>,
) -> Result<RouteContract, String> {
    let name = &route.operation_id;
    let body_schema = match &route.body {
        BodyKind::Json(declared) => {
            let mut schema = schema::with_events(declared, events);
            schema::close(&mut schema);
            Some(schema)
        }
        BodyKind::None | BodyKind::Multipart(_) | BodyKind::Blob => None,
    };
    let response_schema = route.response.as_ref().map(|s| schema::with_events(s, events));
    let validator =
        |schema: &Option<Json>, which: &str| {
            schema.as_ref().map(schema::compile).transpose().map_err(|error| {
                format!("route {name}: the {which} schema does not compile: {error}")
            })
        };
    let most = ceilings.manifest.max_schema_nodes.into();
    Ok(RouteContract {
        path_parameters: checks::template_parameters(&route.path),
        body: validator(&body_schema, "request")?.map(Arc::new),
        body_nodes: body_schema
            .as_ref()
            .map_or(0, |schema| cost::schema_nodes(schema, most).unwrap_or(0)),
        long_checks,
        response: validator(&response_schema, "response")?,
        body_schema,
        response_schema,
        deadline: deadline(route, ceilings),
        max_body_bytes: max_body_bytes(route, ceilings),
        habit: Arc::default(),
        meter: Arc::new(Meter::new(area, &route.operation_id)),
        route: route.clone(),
    })
}

fn deadline(route: &Route, ceilings: &Ceilings) -> Duration {
    let wished = if route.deadline_ms == 0 { ceilings.deadline_ms } else { route.deadline_ms };
    Duration::from_millis(u64::from(wished.min(ceilings.max_deadline_ms)))
}

fn max_body_bytes(route: &Route, ceilings: &Ceilings) -> u64 {
    match (route.max_body_bytes, &route.body) {
        (0, BodyKind::None | BodyKind::Json(_)) => ceilings.body_bytes,
        (0, BodyKind::Multipart(parts)) => form_bytes(parts).min(ceilings.max_body_bytes),
        (0, BodyKind::Blob) => ceilings.max_body_bytes,
        (bytes, _) => bytes,
    }
}

fn form_bytes(parts: &[FormPart]) -> u64 {
    parts.iter().fold(FORM_OVERHEAD_BYTES, |sum, part| sum.saturating_add(part.max_bytes))
}
