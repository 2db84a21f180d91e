//! What an area can reach, given which other areas are live: its own
//! collections, those others let it read, and who hears its events.

use std::collections::BTreeMap;

use crate::domain::job::Lane;
use crate::domain::manifest::{Collection, JobSpec, LinkHolder, Manifest, Route, WorkspaceSource};
use crate::store::Searched;
use crate::work::{AreaScope, CollectionScope, Habits, Limits, Subscriber};

/// The job kind that runs for each delivered event.
pub const EVENT_JOB: &str = "event";

/// Attempts of an event delivery where the subscriber does not declare the
/// kind `event`.
const EVENT_ATTEMPTS: u32 = 10;

/// Wall-clock milliseconds of one such attempt.
const EVENT_TIMEOUT_MS: u32 = 30_000;

/// The reach of one area among the live ones, itself included.
pub(super) fn of(manifest: &Manifest, live: &[&Manifest], limits: Limits) -> AreaScope {
    AreaScope {
        area: manifest.name.clone(),
        version: manifest.version.to_string(),
        digest: String::new(),
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
        habits: Habits::default(),
        meets_secrets: manifest.meets_secrets(),
    }
}

fn collections(manifest: &Manifest, live: &[&Manifest]) -> BTreeMap<String, CollectionScope> {
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

fn collection_scope(area: &str, collection: &Collection, own: bool) -> CollectionScope {
    CollectionScope {
        full_name: format!("{area}.{}", collection.name),
        own,
        fields: collection.fields.iter().map(|field| (field.name.clone(), field.kind)).collect(),
        indexes: collection.indexes.clone(),
        searched: searched(collection),
    }
}

/// Texts whose schema says that they are searched, by `x-searched`.
fn searched(collection: &Collection) -> Vec<Searched> {
    let members = collection.schema["properties"].as_object();
    let searched = members.into_iter().flatten().filter_map(|(text, schema)| {
        let by = schema["x-searched"]["by"].as_str()?.to_owned();
        let unless = schema["x-searched"]["unless"].as_array().into_iter().flatten();
        let unless = unless.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        Some(Searched { text: text.clone(), by, unless })
    });
    searched.collect()
}

fn subscribers(event: &str, live: &[&Manifest]) -> Vec<Subscriber> {
    live.iter()
        .filter(|area| area.subscriptions.iter().any(|name| name == "*" || name == event))
        .map(|area| subscriber(area))
        .collect()
}

fn subscriber(area: &Manifest) -> Subscriber {
    let declared = area.jobs.iter().find(|job| job.name == EVENT_JOB);
    Subscriber {
        area: area.name.clone(),
        lane: declared.map_or(Lane::Events, |job: &JobSpec| job.lane),
        max_attempts: declared.map_or(EVENT_ATTEMPTS, |job| job.max_attempts),
        timeout_ms: declared.map_or(EVENT_TIMEOUT_MS, |job| job.timeout_ms),
    }
}
