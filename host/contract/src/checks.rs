//! Validation rules of manifests, one function for each. Each error message
//! names the item and the fix.

use std::collections::BTreeSet;

use super::contract::ContractLimits;
use super::{parameters, schema};
use assurance_core::domain::manifest::{
    BodyKind, CollectionSpec, FormPart, IdempotencyMode, LinkHolder, Manifest, Method,
    ParameterPlace, ParameterSpec, Route, WorkspaceSource,
};

/// Headers that the host itself interprets, so areas must not declare them.
const HOST_HEADERS: [&str; 17] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "origin",
    "traceparent",
    "transfer-encoding",
    "x-csrf-token",
    "x-request-id",
];

/// Returns the error messages for a manifest, except those that depend on other
/// areas.
pub(super) fn manifest(manifest: &Manifest, limits: &ContractLimits) -> Vec<String> {
    let mut complaints = Vec::new();
    if !is_snake(&manifest.name, 40) || manifest.name == "host" {
        complaints.push(format!(
            "name {:?}: use 1 to 40 characters of snake_case, not `host`",
            manifest.name
        ));
    }
    for route in &manifest.routes {
        let about = format!("route {}", route.operation_id);
        let mut found = route_complaints(route, limits);
        complaints.extend(found.drain(..).map(|complaint| format!("{about}: {complaint}")));
    }
    repeated(
        manifest.routes.iter().map(|r| r.operation_id.as_str()),
        "operation id",
        &mut complaints,
    );
    repeated(
        manifest.routes.iter().map(|r| format!("{} {}", r.method.as_str(), template_key(&r.path))),
        "method and path",
        &mut complaints,
    );
    storage(manifest, &mut complaints);
    events_and_jobs(manifest, &mut complaints);
    complaints
}

/// Maximum length of a route's path template, in bytes.
const MAX_PATH_BYTES: usize = 512;

/// Returns the parameter names of a path template, in order.
pub(super) fn template_parameters(path: &str) -> Vec<String> {
    path.split('/').filter_map(parameter_of).map(str::to_owned).collect()
}

/// Returns the path template with its parameters replaced by numbers. Two
/// templates that match the same paths have the same key, so it detects
/// conflicting routes.
#[must_use]
pub fn template_key(path: &str) -> String {
    let mut count = 0;
    let segments = path.split('/').map(|segment| {
        if parameter_of(segment).is_some() {
            count += 1;
            format!("{{p{count}}}")
        } else {
            segment.to_owned()
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

fn parameter_of(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn route_complaints(route: &Route, limits: &ContractLimits) -> Vec<String> {
    let mut found = Vec::new();
    if !is_snake(&route.operation_id, 80) {
        found.push("an operation id is 1 to 80 characters of snake_case".into());
    }
    path(route, &mut found);
    workspace(route, &mut found);
    method(route, &mut found);
    route_parameters(route, &mut found);
    answer(route, &mut found);
    if let BodyKind::Multipart(parts) = &route.body {
        form(parts, &mut found);
    }
    if route.max_body_bytes > limits.max_body_bytes {
        found.push(format!(
            "max-body-bytes {} exceeds the operator's limit of {}",
            route.max_body_bytes, limits.max_body_bytes
        ));
    }
    if let Some(flag) = route.feature_flag.as_deref().filter(|flag| !is_snake(flag, 64)) {
        found.push(format!("feature-flag {flag:?} is not snake_case"));
    }
    found
}

fn path(route: &Route, found: &mut Vec<String>) {
    let path = &route.path;
    if path.len() > MAX_PATH_BYTES {
        // Every further complaint would repeat the path.
        found.push(format!("a path of {} bytes; the limit is {MAX_PATH_BYTES}", path.len()));
        return;
    }
    if !path.starts_with("/v1/") || path.ends_with('/') {
        found.push(format!("path {path:?} must begin with `/v1/` and not end with `/`"));
        return;
    }
    reserved(path, found);
    for segment in path.split('/').skip(1) {
        let fits = match parameter_of(segment) {
            Some(name) => is_snake(name, 64),
            None => {
                !segment.is_empty()
                    && segment
                        .bytes()
                        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
            }
        };
        if !fits {
            found.push(format!(
                "path {path:?}: segment {segment:?} must be lower-case letters, digits, `-`, `_`, \
                 `.`, or a whole `{{snake_case}}` parameter"
            ));
        }
    }
    repeated(template_parameters(path).iter(), "path parameter", found);
}

/// Reports a path that belongs to the host, or that could be mistaken for one.
fn reserved(path: &str, found: &mut Vec<String>) {
    let mut segments = path.split('/').skip(2);
    let first = segments.next().unwrap_or_default();
    if first == "auth" {
        found.push(format!("path {path:?}: everything under /v1/auth is the host's"));
    }
    if parameter_of(first).is_some() {
        found.push(format!(
            "path {path:?}: the segment after /v1/ must be literal; a parameter there also \
             matches the host's own paths, such as /v1/auth"
        ));
    }
    if first == "workspaces" {
        reserved_of_workspaces(path, segments.next().is_some(), segments.next(), found);
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        found.push(format!("path {path:?}: clients resolve the segments `.` and `..` themselves"));
    }
}

/// Reports a path of the host's own routes for workspaces, their members and access tokens.
/// `of_one`: the path continues after `/v1/workspaces`; `below` is the segment
/// after the workspace's id.
fn reserved_of_workspaces(path: &str, of_one: bool, below: Option<&str>, found: &mut Vec<String>) {
    if !of_one {
        found.push(format!("path {path:?} is the host's"));
    }
    match below {
        Some(below @ ("members" | "access-tokens")) => found.push(format!(
            "path {path:?}: everything under /v1/workspaces/{{workspace_id}}/{below} is the \
             host's; choose another path"
        )),
        Some(below) if parameter_of(below).is_some() => found.push(format!(
            "path {path:?}: the segment after the workspace must be literal; a parameter there \
             also matches the host's own paths, such as /v1/workspaces/{{workspace_id}}/members"
        )),
        _ => {}
    }
}

fn workspace(route: &Route, found: &mut Vec<String>) {
    let in_path = template_parameters(&route.path).iter().any(|name| name == "workspace_id");
    match (&route.workspace, &route.body) {
        (WorkspaceSource::Path, _) if !in_path => {
            found.push("its workspace comes from the path, which has no {workspace_id}".into());
        }
        (WorkspaceSource::BodyMember(member), BodyKind::Json(schema)) => {
            let required = schema["required"].as_array().into_iter().flatten();
            if !required.into_iter().any(|name| name.as_str() == Some(member)) {
                found.push(format!(
                    "its workspace comes from body member {member:?}, which the schema does not \
                     require"
                ));
            }
        }
        (WorkspaceSource::BodyMember(_), _) => {
            found.push("its workspace comes from the body, which is not JSON".into());
        }
        (WorkspaceSource::SignedLink(link), _) => {
            if in_path {
                found.push("its workspace comes from a link; take {workspace_id} out".into());
            }
            if !is_snake(&link.parameter, 64) {
                found.push(format!("link parameter {:?} is not snake_case", link.parameter));
            }
            if route.parameters.iter().any(|parameter| parameter.name == link.parameter) {
                found.push(format!(
                    "parameter {:?} carries the link and is the host's; do not declare it",
                    link.parameter
                ));
            }
        }
        (WorkspaceSource::Path, _) => {}
    }
}

fn method(route: &Route, found: &mut Vec<String>) {
    let keyless = route.idempotency == IdempotencyMode::None;
    if matches!(route.method, Method::Get | Method::Delete) && route.body != BodyKind::None {
        found.push(format!("a {} takes no body", route.method.as_str()));
    }
    if route.method == Method::Get && route.writes && !bound_to_session(route) {
        found.push("a GET must not write, except through a link bound to the session".into());
    }
    if !keyless && route.method == Method::Get {
        found.push("a GET takes no idempotency key; set `idempotency` to none".into());
    }
    if route.method == Method::Post && route.writes && keyless {
        found.push(
            "a POST that writes supports Idempotency-Key; set `idempotency` to optional".into(),
        );
    }
    if !keyless && !route.writes {
        found.push("an idempotency key is kept with what is written; set `writes` to true".into());
    }
}

/// Returns whether the route can only be called from the user's own session, so
/// that other sites cannot make a browser call it.
fn bound_to_session(route: &Route) -> bool {
    matches!(&route.workspace,
        WorkspaceSource::SignedLink(link) if link.holder == LinkHolder::SameSession)
}

fn route_parameters(route: &Route, found: &mut Vec<String>) {
    let in_template = template_parameters(&route.path);
    for parameter in &route.parameters {
        one_parameter(parameter, &in_template, found);
    }
    for name in in_template.iter().filter(|name| *name != "workspace_id") {
        let declared =
            route.parameters.iter().any(|p| p.place == ParameterPlace::Path && p.name == *name);
        if !declared {
            found.push(format!("path parameter {name:?} is not declared"));
        }
    }
    repeated(route.parameters.iter().map(|p| p.name.as_str()), "parameter", found);
}

fn one_parameter(parameter: &ParameterSpec, in_template: &[String], found: &mut Vec<String>) {
    let name = &parameter.name;
    match parameter.place {
        ParameterPlace::Path if name == "workspace_id" => {
            found.push("parameter \"workspace_id\" is the host's; do not declare it".into());
        }
        ParameterPlace::Path if !in_template.contains(name) => {
            found.push(format!("path parameter {name:?} is not in the path"));
        }
        ParameterPlace::Query if !is_snake(name, 64) => {
            found.push(format!("query parameter {name:?} is not snake_case"));
        }
        ParameterPlace::Header if !is_header(name) => {
            found.push(format!(
                "header parameter {name:?} is not a valid header name or is reserved for the host"
            ));
        }
        ParameterPlace::Path | ParameterPlace::Query | ParameterPlace::Header => {}
    }
    if parameter.required && parameter.default.is_some() {
        found.push(format!("parameter {name:?} is required and has a default; choose one"));
    }
    if let Some(complaint) = parameters::complaint(&parameter.kind, parameter.default.as_ref()) {
        found.push(format!("parameter {name:?}: {complaint}"));
    }
}

fn answer(route: &Route, found: &mut Vec<String>) {
    if !(200..=299).contains(&route.success_status) {
        found.push(format!("success-status {} is not from 200 to 299", route.success_status));
    }
    if (route.success_status == 204) != route.response.is_none() {
        found.push("a response schema belongs to every success but 204, and to no 204".into());
    }
    for code in route.problem_codes.iter().filter(|code| !is_snake(code, 64)) {
        found.push(format!("problem code {code:?} is not snake_case"));
    }
}

fn form(parts: &[FormPart], found: &mut Vec<String>) {
    repeated(parts.iter().map(|part| part.name.as_str()), "form part", found);
    for part in parts.iter().filter(|part| part.max_bytes == 0) {
        found
            .push(format!("form part {:?} has max-bytes 0; set it to the largest size", part.name));
    }
}

fn readers(readers: &[String], found: &mut Vec<String>) {
    for reader in readers.iter().filter(|reader| *reader != "*" && !is_snake(reader, 40)) {
        found.push(format!("reader {reader:?} is neither an area's name nor `*`"));
    }
}

fn storage(manifest: &Manifest, found: &mut Vec<String>) {
    readers(&manifest.blob_readers, found);
    repeated(manifest.collections.iter().map(|c| c.name.as_str()), "collection", found);
    for collection in &manifest.collections {
        let about = format!("collection {}", collection.name);
        let mut complaints = collection_complaints(collection);
        found.extend(complaints.drain(..).map(|complaint| format!("{about}: {complaint}")));
    }
}

fn collection_complaints(collection: &CollectionSpec) -> Vec<String> {
    let mut found = Vec::new();
    if !is_snake(&collection.name, 64) {
        found.push("a collection's name is 1 to 64 characters of snake_case".into());
    }
    repeated(collection.fields.iter().map(|f| f.name.as_str()), "field", &mut found);
    for field in collection.fields.iter().filter(|field| !is_snake(&field.name, 64)) {
        found.push(format!("field {:?} is not snake_case", field.name));
    }
    for index in &collection.indexes {
        if index.fields.is_empty() {
            found.push("an index needs at least one field".into());
        }
        repeated(index.fields.iter().map(String::as_str), "index field", &mut found);
        for name in &index.fields {
            if !collection.fields.iter().any(|field| field.name == *name) {
                found.push(format!("an index names {name:?}, which is not a declared field"));
            }
        }
    }
    readers(&collection.readers, &mut found);
    if let Err(error) = schema::compile(&collection.schema) {
        found.push(format!("its schema does not compile: {error}"));
    }
    if let Some(member) = collection.requests_events()
        && collection.schema["properties"][member]["type"] != "array"
    {
        found.push(format!("x-requests-events names {member:?}, which is not a list"));
    }
    found
}

fn events_and_jobs(manifest: &Manifest, found: &mut Vec<String>) {
    repeated(manifest.publishes.iter().map(|e| e.name.as_str()), "published event", found);
    for event in &manifest.publishes {
        if !is_event(&event.name) {
            found.push(format!(
                "event {:?} must be dotted lower case, such as support_case.created",
                event.name
            ));
        }
        if let Err(error) = schema::compile(&event.schema) {
            found.push(format!("event {}: its schema does not compile: {error}", event.name));
        }
    }
    repeated(manifest.subscriptions.iter(), "subscription", found);
    for name in manifest.subscriptions.iter().filter(|name| *name != "*" && !is_event(name)) {
        found.push(format!("subscription {name:?} is neither an event's name nor `*`"));
    }
    repeated(manifest.jobs.iter().map(|job| job.name.as_str()), "job kind", found);
    for job in &manifest.jobs {
        if !is_snake(&job.name, 64) {
            found.push(format!("job kind {:?} is not snake_case", job.name));
        }
        if !(1..=100).contains(&job.max_attempts) {
            found.push(format!("job kind {}: max-attempts must be from 1 to 100", job.name));
        }
        if job.timeout_ms == 0 {
            found.push(format!("job kind {}: timeout-ms must not be 0", job.name));
        }
    }
}

fn repeated<T: Ord + std::fmt::Display>(
    names: impl Iterator<Item = T>,
    what: &str,
    found: &mut Vec<String>,
) {
    let mut seen = BTreeSet::new();
    for name in names {
        if let Some(name) = seen.replace(name) {
            found.push(format!("{what} {name} is declared twice"));
        }
    }
}

fn is_snake(text: &str, most: usize) -> bool {
    text.len() <= most
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn is_event(text: &str) -> bool {
    text.len() <= 100 && text.contains('.') && text.split('.').all(|word| is_snake(word, 64))
}

fn is_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !lower.is_empty()
        && lower.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !HOST_HEADERS.contains(&lower.as_str())
}
