//! Converts a manifest and checks the form of its values. The registry checks
//! whether they are consistent.

use serde_json::Value as Json;

use super::super::bindings::assurance::area::manifest as wit;
use super::same;
use assurance_core::domain::job::Lane;
use assurance_core::domain::manifest::{
    BodyKind, Capability, CollectionSpec, EventSpec, FieldKind, FieldSpec, FormPart,
    IdempotencyMode, IndexSpec, JobSpec, LinkHolder, Manifest, Method, ParameterKind,
    ParameterPlace, ParameterSpec, RateClass, Route, SignedLinkSpec, WorkspaceSource,
};

/// Result of the conversion of a manifest or a part of it. The error names the
/// invalid member and the reason.
type ManifestResult<T> = Result<T, String>;

pub(in super::super) fn manifest(manifest: wit::Manifest) -> ManifestResult<Manifest> {
    Ok(Manifest {
        name: snake_case(manifest.name, "name", 40)?,
        version: semver::Version::parse(&manifest.version)
            .map_err(|error| format!("version {:?}: {error}", manifest.version))?,
        summary: manifest.summary,
        routes: each(manifest.routes, route)?,
        collections: each(manifest.collections, collection)?,
        blob_readers: manifest.blob_readers,
        publishes: each(manifest.publishes, event)?,
        subscriptions: manifest.subscriptions,
        jobs: each(manifest.jobs, job)?,
        capabilities: manifest.capabilities.into_iter().map(capability).collect(),
    })
}

fn each<A, B>(items: Vec<A>, convert: impl Fn(A) -> ManifestResult<B>) -> ManifestResult<Vec<B>> {
    items.into_iter().map(convert).collect()
}

/// Returns the name if it is snake_case of at most `most` characters, as URLs,
/// SQL and metrics require; otherwise an error.
fn snake_case(name: String, what: &str, most: usize) -> ManifestResult<String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(good)
        && name.len() <= most
    {
        return Ok(name);
    }
    Err(format!("{what} {name:?} is not 1 to {most} characters of snake_case"))
}

fn json(text: &str, what: &str) -> ManifestResult<Json> {
    serde_json::from_str(text).map_err(|error| format!("{what} is not JSON: {error}"))
}

fn route(route: wit::Route) -> ManifestResult<Route> {
    let id = snake_case(route.operation_id, "operation id", 60)?;
    let within = |why: String| format!("route {id}: {why}");
    Ok(Route {
        method: route.method.into(),
        path: route.path,
        summary: route.summary,
        description: route.description,
        in_contract: route.in_contract,
        workspace: workspace(route.workspace),
        least_role: route.least_role.into(),
        feature_flag: route.feature_flag,
        parameters: each(route.parameters, parameter).map_err(within)?,
        body: body(route.body).map_err(within)?,
        max_body_bytes: route.max_body_bytes,
        success_status: route.success_status,
        response: route.response.map(|text| json(&text, "response")).transpose().map_err(within)?,
        problem_codes: route.problem_codes,
        idempotency: route.idempotency.into(),
        rate: route.rate.into(),
        writes: route.writes,
        deadline_ms: route.deadline_ms,
        operation_id: id,
    })
}

same!(wit::Method => Method { Get, Post, Put, Patch, Delete });
same!(wit::LinkHolder => LinkHolder { Bearer, SignedIn, SameSession });
same!(wit::Idempotency => IdempotencyMode { None, Optional, Required, KeptByArea });
same!(wit::RateClass => RateClass { Light, Standard, Heavy });
same!(wit::ParameterPlace => ParameterPlace { Path, Query, Header });
same!(wit::FieldKind => FieldKind { Text, Integer, Boolean });

fn workspace(source: wit::WorkspaceSource) -> WorkspaceSource {
    match source {
        wit::WorkspaceSource::Path => WorkspaceSource::Path,
        wit::WorkspaceSource::BodyMember(name) => WorkspaceSource::BodyMember(name),
        wit::WorkspaceSource::SignedLink(wit::Link { parameter, holder }) => {
            WorkspaceSource::SignedLink(SignedLinkSpec { parameter, holder: holder.into() })
        }
    }
}

fn body(body: wit::BodyKind) -> ManifestResult<BodyKind> {
    Ok(match body {
        wit::BodyKind::None => BodyKind::None,
        wit::BodyKind::Json(schema) => BodyKind::Json(json(&schema, "body schema")?),
        wit::BodyKind::Multipart(parts) => BodyKind::Multipart(
            parts
                .into_iter()
                .map(|part| FormPart {
                    name: part.name,
                    summary: part.summary,
                    required: part.required,
                    file: part.file,
                    max_bytes: part.max_bytes,
                })
                .collect(),
        ),
        wit::BodyKind::Blob => BodyKind::Blob,
    })
}

fn parameter(parameter: wit::Parameter) -> ManifestResult<ParameterSpec> {
    let default = parameter.default.map(|text| json(&text, "default")).transpose();
    Ok(ParameterSpec {
        default: default.map_err(|why| format!("parameter {}: {why}", parameter.name))?,
        name: parameter.name,
        place: parameter.place.into(),
        summary: parameter.summary,
        kind: match parameter.kind {
            wit::ParameterType::Text(bounds) => {
                ParameterKind::Text { min_length: bounds.min_length, max_length: bounds.max_length }
            }
            wit::ParameterType::Integer(bounds) => {
                ParameterKind::Integer { minimum: bounds.minimum, maximum: bounds.maximum }
            }
            wit::ParameterType::Boolean => ParameterKind::Boolean,
            wit::ParameterType::Uuid => ParameterKind::Uuid,
            wit::ParameterType::Timestamp => ParameterKind::Timestamp,
            wit::ParameterType::OneOf(values) => ParameterKind::OneOf { values },
        },
        required: parameter.required,
    })
}

fn collection(collection: wit::Collection) -> ManifestResult<CollectionSpec> {
    let name = snake_case(collection.name, "collection", 60)?;
    Ok(CollectionSpec {
        summary: collection.summary,
        schema: json(&collection.schema, "schema")
            .map_err(|why| format!("collection {name}: {why}"))?,
        fields: each(collection.fields, field)?,
        indexes: collection
            .indexes
            .into_iter()
            .map(|index| IndexSpec { fields: index.fields, unique: index.unique })
            .collect(),
        readers: collection.readers,
        name,
    })
}

fn field(field: wit::Field) -> ManifestResult<FieldSpec> {
    Ok(FieldSpec { name: snake_case(field.name, "field", 60)?, kind: field.kind.into() })
}

fn event(event: wit::Event) -> ManifestResult<EventSpec> {
    Ok(EventSpec {
        schema: json(&event.schema, "schema")
            .map_err(|why| format!("event {}: {why}", event.name))?,
        name: event.name,
        summary: event.summary,
    })
}

fn job(job: wit::JobKind) -> ManifestResult<JobSpec> {
    let lane = job.lane.parse().map_err(|why| format!("job {}: {why}", job.name))?;
    if lane == Lane::Events {
        return Err(format!(
            "job {}: the lane events is for the delivery of events alone",
            job.name
        ));
    }
    Ok(JobSpec {
        name: snake_case(job.name, "job", 60)?,
        lane,
        max_attempts: job.max_attempts,
        timeout_ms: job.timeout_ms,
    })
}

/// Converts a capability of the WIT contract by its position: both enums are
/// generated from the same list, in the same order.
fn capability(capability: wit::Capability) -> Capability {
    Capability::IMPORTED[capability as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_keeps_its_name() {
        assert_eq!(capability(wit::Capability::Documents), Capability::Documents);
        assert_eq!(capability(wit::Capability::Egress), Capability::Egress);
        assert_eq!(capability(wit::Capability::Mail), Capability::Mail);
    }
}
