//! Limits a component's declarations before anything is compiled, indexed or
//! published. A refusal names the item, its cost, the limit and the setting.

mod pattern;
mod schema;

use std::fmt;

use serde_json::Value as Json;

use assurance_core::config::ManifestLimits;
use assurance_core::domain::manifest::{BodyKind, Manifest, ParameterKind, Route};

pub(super) use schema::nodes as schema_nodes;

/// Returns an error message for each part of a manifest that exceeds the
/// operator's limits.
pub(super) fn complaints(manifest: &Manifest, limits: &ManifestLimits) -> Vec<String> {
    let mut check = ManifestCheck { limits, found: Vec::new() };
    check.lists(manifest);
    check.texts(manifest);
    if check.found.is_empty() {
        // Schemas are measured only if their number is within the limit.
        check.schemas(manifest);
    }
    check.found
}

/// Checks one manifest against the operator's limits and collects the error
/// messages.
struct ManifestCheck<'a> {
    limits: &'a ManifestLimits,
    found: Vec<String>,
}

impl ManifestCheck<'_> {
    fn at_most(&mut self, item: impl fmt::Display, cost: u64, unit: &str, limit: (&str, u32)) {
        let (setting, most) = limit;
        if cost > u64::from(most) {
            self.found.push(format!(
                "{item}: {cost} {unit}, and at most {most} are allowed; declare less, or let the \
                 operator raise areas.manifest.{setting}"
            ));
        }
    }

    fn lists(&mut self, manifest: &Manifest) {
        let limits = self.limits;
        let routes = ("max_routes", limits.max_routes);
        self.count("routes", manifest.routes.len(), routes);
        let collections = ("max_collections", limits.max_collections);
        self.count("collections", manifest.collections.len(), collections);
        let indexes = manifest.collections.iter().map(|one| one.indexes.len()).sum();
        self.count("indexes", indexes, ("max_indexes", limits.max_indexes));
        let events = ("max_events", limits.max_events);
        self.count("published events", manifest.publishes.len(), events);
        self.count("subscriptions", manifest.subscriptions.len(), events);
        self.count("job kinds", manifest.jobs.len(), ("max_jobs", limits.max_jobs));
        let entries = ("max_entries", limits.max_entries);
        self.count("blob readers", manifest.blob_readers.len(), entries);
        self.count("capabilities", manifest.capabilities.len(), entries);
        for one in &manifest.collections {
            let fields = ("max_fields", limits.max_fields);
            self.count(format!("fields of {}", one.name), one.fields.len(), fields);
            self.count(format!("readers of {}", one.name), one.readers.len(), entries);
            let longest = one.indexes.iter().map(|index| index.fields.len()).max();
            let longest = longest.unwrap_or_default();
            self.count(format!("fields of an index of {}", one.name), longest, fields);
        }
        for route in &manifest.routes {
            self.lists_of(route);
        }
    }

    fn lists_of(&mut self, route: &Route) {
        let limits = self.limits;
        let about = |what: &str| format!("route {}: {what}", route.operation_id);
        let parameters = ("max_parameters", limits.max_parameters);
        self.count(about("parameters"), route.parameters.len(), parameters);
        let entries = ("max_entries", limits.max_entries);
        self.count(about("problem codes"), route.problem_codes.len(), entries);
        if let BodyKind::Multipart(parts) = &route.body {
            self.count(about("form parts"), parts.len(), entries);
        }
        for parameter in &route.parameters {
            if let ParameterKind::OneOf { values } = &parameter.kind {
                let what = format!("values of parameter {:?}", parameter.name);
                self.count(about(&what), values.len(), entries);
            }
        }
    }

    fn count(&mut self, item: impl fmt::Display, count: usize, limit: (&str, u32)) {
        self.at_most(item, count as u64, "entries", limit);
    }

    fn texts(&mut self, manifest: &Manifest) {
        let whole = serde_json::to_value(manifest).unwrap_or_default();
        let (bytes, most) = (whole.to_string().len() as u64, self.limits.max_bytes);
        self.at_most("the manifest", bytes, "bytes", ("max_bytes", most));
        if bytes > most.into() {
            return;
        }
        let most = ("max_text_bytes", self.limits.max_text_bytes);
        for (pointer, length) in long_texts(&whole, self.limits.max_text_bytes as usize) {
            self.at_most(format!("the text at {pointer}"), length as u64, "bytes", most);
        }
    }

    fn schemas(&mut self, manifest: &Manifest) {
        let (mut nodes, mut programs) = (0_u64, 0_u64);
        for (item, schema) in schemas(manifest) {
            match schema::nodes(&schema, self.limits.max_schema_nodes.into()) {
                Ok(cost) => {
                    let most = ("max_schema_nodes", self.limits.max_schema_nodes);
                    self.at_most(&item, cost, "nodes when its references are followed", most);
                    nodes = nodes.saturating_add(cost);
                }
                Err(why) => self.found.push(format!("{item}: {why}")),
            }
            programs = programs.saturating_add(self.patterns(&item, &schema));
        }
        let most = ("max_total_schema_nodes", self.limits.max_total_schema_nodes);
        self.at_most("all schemas", nodes, "nodes when their references are followed", most);
        let most = ("max_total_pattern_bytes", self.limits.max_total_pattern_bytes);
        self.at_most("all regular expressions", programs, "bytes when compiled", most);
    }

    /// Returns the total size of a schema's compiled regular expressions, in
    /// bytes. One that exceeds its limit is not fully compiled, and counts as
    /// the limit.
    fn patterns(&mut self, item: &str, schema: &Json) -> u64 {
        let (most, all) = (self.limits.max_pattern_bytes, self.limits.max_total_pattern_bytes);
        let mut sum = 0_u64;
        for pattern in pattern::all(schema) {
            if sum > u64::from(all) {
                break;
            }
            sum += match pattern::program_bytes(pattern, most) {
                Some(bytes) => bytes,
                None => {
                    self.found.push(format!(
                        "{item}: the regular expression {pattern:?} takes more than {most} bytes \
                         when compiled; shorten its repetitions, or let the operator raise \
                         areas.manifest.max_pattern_bytes"
                    ));
                    u64::from(most)
                }
            };
        }
        sum
    }
}

/// Returns every schema of a manifest in the form in which it will be compiled,
/// with a name for error messages.
fn schemas(manifest: &Manifest) -> impl Iterator<Item = (String, Json)> {
    let requests = manifest.routes.iter().filter_map(|route| {
        let mut closed = super::schema::of_body(route)?.clone();
        super::schema::close(&mut closed);
        Some((format!("request schema of route {}", route.operation_id), closed))
    });
    let responses = manifest.routes.iter().filter_map(|route| {
        let name = format!("response schema of route {}", route.operation_id);
        Some((name, route.response.clone()?))
    });
    let collections = manifest
        .collections
        .iter()
        .map(|one| (format!("schema of collection {}", one.name), one.schema.clone()));
    let events = manifest
        .publishes
        .iter()
        .map(|event| (format!("schema of event {}", event.name), event.schema.clone()));
    requests.chain(responses).chain(collections).chain(events)
}

/// Returns the location and length of each text and member name that is longer
/// than `most` bytes.
fn long_texts(value: &Json, most: usize) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut waiting = vec![(String::new(), value)];
    while let Some((at, value)) = waiting.pop() {
        match value {
            Json::String(text) if text.len() > most => found.push((at, text.len())),
            Json::Array(items) => {
                let items = items.iter().enumerate();
                waiting.extend(items.map(|(index, item)| (format!("{at}/{index}"), item)));
            }
            Json::Object(members) => {
                for (name, member) in members {
                    if name.len() > most {
                        found.push((at.clone(), name.len()));
                    } else {
                        waiting.push((format!("{at}/{name}"), member));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests;
