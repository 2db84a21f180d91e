//! Computes an area's scope among the live areas: its own collections, the collections it may read,
//! and the subscribers of its events.

use std::collections::BTreeMap;

use assurance_core::access::JobIsolationProfiles;
use assurance_core::domain::job::{
    EVENT_KIND, Lane, MERGED_EVENTS_KIND, RequestedEventsDocumentField,
};
use assurance_core::domain::manifest::{
    CollectionSpec, JobSpec, LinkHolder, Manifest, Route, WorkspaceSource,
};
use assurance_store::SubstringIndexSpec;
use assurance_work::{AccessibleCollection, AreaPolicy, EventSubscriber, UnitOfWorkLimits};

/// Maximum attempts of an event delivery if the subscriber does not declare the job kind `event`.
const EVENT_ATTEMPTS: u32 = 10;

/// Timeout of an event delivery if the subscriber does not declare the job kind `event`, in
/// milliseconds.
const EVENT_TIMEOUT_MS: u32 = 30_000;

/// Returns the scope of one area's calls. `live` has the manifests of all live areas, including its
/// own.
pub(super) fn of(
    manifest: &Manifest,
    digest: &str,
    live: &[&Manifest],
    limits: UnitOfWorkLimits,
) -> AreaPolicy {
    AreaPolicy {
        area: manifest.name.clone(),
        version: manifest.version.to_string(),
        digest: digest.to_owned(),
        collections: collections(manifest, live),
        shared_blobs: live
            .iter()
            .filter(|other| may_read(manifest, &other.blob_readers))
            .map(|other| other.name.clone())
            .collect(),
        links: manifest.routes.iter().filter_map(link).collect(),
        live: live.iter().map(|area| area.name.clone()).collect(),
        events: manifest
            .publishes
            .iter()
            .map(|event| (event.name.clone(), subscribers(&event.name, live)))
            .collect(),
        jobs: manifest.jobs.iter().map(|job| (job.name.clone(), job.clone())).collect(),
        limits,
        isolation_profiles: JobIsolationProfiles::default(),
        can_obtain_secrets: manifest.can_obtain_secrets(),
    }
}

fn collections(manifest: &Manifest, live: &[&Manifest]) -> BTreeMap<String, AccessibleCollection> {
    let mut reach = BTreeMap::new();
    for other in live.iter().filter(|other| other.name != manifest.name) {
        for collection in &other.collections {
            if may_read(manifest, &collection.readers) {
                let scope = collection_scope(&other.name, collection, false);
                reach.insert(scope.full_name.clone(), scope);
            }
        }
    }
    for collection in &manifest.collections {
        reach.insert(collection.name.clone(), collection_scope(&manifest.name, collection, true));
    }
    reach
}

fn may_read(manifest: &Manifest, readers: &[String]) -> bool {
    readers.iter().any(|reader| reader == "*" || *reader == manifest.name)
}

fn link(route: &Route) -> Option<(String, LinkHolder)> {
    match &route.workspace {
        WorkspaceSource::SignedLink(link) => Some((route.operation_id.clone(), link.holder)),
        WorkspaceSource::Path | WorkspaceSource::BodyMember(_) => None,
    }
}

fn collection_scope(area: &str, collection: &CollectionSpec, own: bool) -> AccessibleCollection {
    AccessibleCollection {
        full_name: format!("{area}.{}", collection.name),
        own,
        fields: collection.fields.iter().map(|field| (field.name.clone(), field.kind)).collect(),
        indexes: collection.indexes.clone(),
        searched: searched(collection),
    }
}

/// Returns the fields of a collection whose schema has `x-searched`, which get a substring index.
fn searched(collection: &CollectionSpec) -> Vec<SubstringIndexSpec> {
    let members = collection.schema["properties"].as_object();
    let searched = members.into_iter().flatten().filter_map(|(text, schema)| {
        let by = schema["x-searched"]["by"].as_str()?.to_owned();
        let unless = schema["x-searched"]["unless"].as_array().into_iter().flatten();
        let unless = unless.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        Some(SubstringIndexSpec { text: text.clone(), by, unless })
    });
    searched.collect()
}

fn subscribers(event: &str, live: &[&Manifest]) -> Vec<EventSubscriber> {
    live.iter()
        .filter(|area| names(area, "*") || names(area, event))
        .map(|area| subscriber(event, area))
        .collect()
}

/// Returns the field that lists the events that a workspace requests of a subscribing area. Returns
/// `None` if there is none, or if the area subscribes to the event by its name, so that it receives
/// the event in any case.
fn requests(event: &str, area: &Manifest) -> Option<RequestedEventsDocumentField> {
    if names(area, event) {
        return None;
    }
    area.collections.iter().find_map(|collection| {
        let member = collection.requests_events()?.to_owned();
        let collection = format!("{}.{}", area.name, collection.name);
        Some(RequestedEventsDocumentField { collection, member })
    })
}

/// Whether the area subscribes to the event by its name.
fn names(area: &Manifest, event: &str) -> bool {
    area.subscriptions.iter().any(|name| name == event)
}

fn subscriber(event: &str, area: &Manifest) -> EventSubscriber {
    let job = |kind: &str| area.jobs.iter().find(|job| job.name == kind);
    let merged = job(MERGED_EVENTS_KIND).filter(|_| !names(area, event));
    let declared = merged.or_else(|| job(EVENT_KIND));
    EventSubscriber {
        area: area.name.clone(),
        merged: merged.is_some(),
        lane: declared.map_or(Lane::Events, |job: &JobSpec| job.lane),
        max_attempts: declared.map_or(EVENT_ATTEMPTS, |job| job.max_attempts),
        timeout_ms: declared.map_or(EVENT_TIMEOUT_MS, |job| job.timeout_ms),
        requests: requests(event, area),
    }
}
