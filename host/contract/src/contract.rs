//! Compiles a manifest into routes that the host can serve. All declarations
//! are validated first; each error message names the fix.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::Semaphore;

use super::meter::OperationRequestDurations;
use super::schema::CompiledSchema;
use super::{checks, cost, schema};
use assurance_core::access::IsolationProfile;
use assurance_core::config::{Config, ManifestLimits};
use assurance_core::domain::manifest::{BodyKind, FormPart, Manifest, Route};

/// JSON Schema keyword of a response body that can be used only once, such as a signed link. The
/// host does not store such a response for an `Idempotency-Key`; the keyword is not published.
pub(crate) const SINGLE_USE: &str = "x-single-use";

/// Maximum total size of the boundaries and part headers of a multipart form, in bytes.
const FORM_OVERHEAD_BYTES: u64 = 64 << 10;

/// Maximum number of concurrent body validations of one version on blocking threads.
const LONG_CHECKS: usize = 2;

/// Operator's limits for manifests and their routes, with defaults for routes that set none.
#[derive(Clone, Copy, Debug)]
pub struct ContractLimits {
    /// Deadline of a route that sets none, in milliseconds.
    pub deadline_ms: u32,
    /// Longest deadline that a route may set, in milliseconds.
    pub max_deadline_ms: u32,
    /// Largest JSON body of a route that sets no limit, in bytes.
    pub body_bytes: u64,
    /// Largest form or blob of a route that sets no limit, and the largest limit that a route may
    /// set, in bytes.
    pub max_body_bytes: u64,
    /// Limits on the number and size of a manifest's declarations.
    pub manifest: ManifestLimits,
}

impl Default for ContractLimits {
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

impl From<&Config> for ContractLimits {
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

/// A route that is ready to serve requests: schemas compiled, limits resolved.
#[derive(Debug)]
pub struct CompiledRoute {
    /// Route as the manifest declares it.
    pub route: Route,
    /// Parameter names of the path template, in order.
    pub path_parameters: Vec<String>,
    /// Request schema as compiled and published, for JSON bodies; `None` for other bodies.
    pub body: Option<Arc<CompiledSchema>>,
    /// Number of schema nodes that validation of a request body may visit.
    pub body_nodes: u64,
    /// Response schema as compiled and published; `None` if the response has no body. It checks
    /// replies in development mode.
    pub response: Option<CompiledSchema>,
    /// Permits for long body validations; shared by all routes of the area's version.
    pub long_checks: Arc<Semaphore>,
    /// Deadline of one call of the route's handler.
    pub deadline: Duration,
    /// Largest request body that the route accepts, after decompression, in bytes.
    pub max_body_bytes: u64,
    /// Isolation profile of the route's earlier calls.
    pub isolation_profile: Arc<IsolationProfile>,
    /// Durations of requests to the route's operation, exported as metrics.
    pub meter: Arc<OperationRequestDurations>,
}

impl CompiledRoute {
    /// Returns whether the host may store the response and return it again to a retry with the
    /// same `Idempotency-Key`.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        self.response.as_ref().is_none_or(|response| response.schema()[SINGLE_USE] != true)
    }
}

/// Error of a manifest that is rejected; each complaint names the item and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the manifest of area {area:?} cannot be used:\n- {}", complaints.join("\n- "))]
pub struct InvalidManifest {
    /// Name of the area whose manifest is rejected.
    pub area: String,
    /// Error messages about the manifest for the area's author, at least one.
    pub complaints: Vec<String>,
}

/// Validates a manifest and compiles its routes; `events` are the events of all live areas.
///
/// # Errors
/// The manifest is invalid; the error has all complaints.
pub fn compile(
    manifest: &Manifest,
    events: &[String],
    limits: &ContractLimits,
) -> Result<Vec<CompiledRoute>, InvalidManifest> {
    let too_large = cost::complaints(manifest, &limits.manifest);
    if !too_large.is_empty() {
        // Stop here: a manifest that exceeds the limits is not compiled.
        return Err(InvalidManifest { area: manifest.name.clone(), complaints: too_large });
    }
    let mut complaints = checks::manifest(manifest, limits);
    let mut routes = Vec::with_capacity(manifest.routes.len());
    let long_checks = Arc::new(Semaphore::new(LONG_CHECKS));
    for route in &manifest.routes {
        let long_checks = Arc::clone(&long_checks);
        match compile_route(&manifest.name, route, events, limits, long_checks) {
            Ok(contract) => routes.push(contract),
            Err(complaint) => complaints.push(complaint),
        }
    }
    if complaints.is_empty() {
        Ok(routes)
    } else {
        Err(InvalidManifest { area: manifest.name.clone(), complaints })
    }
}

/// Returns whether the manifest's request or response schemas depend on the events of live areas.
pub fn depends_on_events(manifest: &Manifest) -> bool {
    manifest.routes.iter().any(|route| {
        schema::of_body(route).into_iter().chain(&route.response).any(schema::names_events)
    })
}

fn compile_route(
    area: &str,
    route: &Route,
    events: &[String],
    limits: &ContractLimits,
    long_checks: Arc<Semaphore>,
) -> Result<CompiledRoute, String> {
    let name = &route.operation_id;
    let body_schema = schema::of_body(route).map(|declared| {
        let mut schema = schema::with_events(declared, events);
        schema::close(&mut schema);
        schema
    });
    let response_schema = route.response.as_ref().map(|s| schema::with_events(s, events));
    let compiled = |schema: Option<Json>, which: &str| {
        schema
            .map(CompiledSchema::new)
            .transpose()
            .map_err(|error| format!("route {name}: the {which} schema does not compile: {error}"))
    };
    let most = limits.manifest.max_schema_nodes.into();
    Ok(CompiledRoute {
        path_parameters: checks::template_parameters(&route.path),
        body_nodes: body_schema
            .as_ref()
            .map_or(0, |schema| cost::schema_nodes(schema, most).unwrap_or(0)),
        body: compiled(body_schema, "request")?.map(Arc::new),
        long_checks,
        response: compiled(response_schema, "response")?,
        deadline: deadline(route, limits),
        max_body_bytes: max_body_bytes(route, limits),
        isolation_profile: Arc::default(),
        meter: Arc::new(OperationRequestDurations::new(area, &route.operation_id)),
        route: route.clone(),
    })
}

fn deadline(route: &Route, limits: &ContractLimits) -> Duration {
    let wished = if route.deadline_ms == 0 { limits.deadline_ms } else { route.deadline_ms };
    Duration::from_millis(u64::from(wished.min(limits.max_deadline_ms)))
}

/// Returns the largest request body that a route accepts, in bytes, after decompression.
pub(super) fn max_body_bytes(route: &Route, limits: &ContractLimits) -> u64 {
    match (route.max_body_bytes, &route.body) {
        (0, BodyKind::None | BodyKind::Json(_)) => limits.body_bytes,
        (0, BodyKind::Multipart(parts)) => form_bytes(parts).min(limits.max_body_bytes),
        (0, BodyKind::Blob) => limits.max_body_bytes,
        (bytes, _) => bytes,
    }
}

fn form_bytes(parts: &[FormPart]) -> u64 {
    parts.iter().fold(FORM_OVERHEAD_BYTES, |sum, part| sum.saturating_add(part.max_bytes))
}
