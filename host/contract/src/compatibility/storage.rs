//! Differences in stored data: collections and events that other areas use, and
//! documents and jobs of the previous version that the new version must still
//! read.

use serde_json::Value as Json;

use super::schema::SchemaUser;
use super::{ChangeCollector, ChangeSubject, Comparison, Compatibility};
use crate::schema::is_subscribable;
use assurance_core::domain::manifest::{CollectionSpec, EventSpec, JobSpec};

/// Compares the events that the live version publishes with those of the
/// candidate.
pub(super) fn events(live: &[EventSpec], candidate: &[EventSpec], found: &mut Comparison) {
    for event in live {
        let mut findings =
            ChangeCollector { subject: ChangeSubject::Event, name: &event.name, found };
        match candidate.iter().find(|other| other.name == event.name) {
            None => findings.breaking("", "", "is not published any more"),
            Some(other) => {
                if is_subscribable(event) && !is_subscribable(other) {
                    findings.breaking("", "", "cannot be subscribed to any more");
                }
                let schemas = (&event.schema, &other.schema);
                findings.schemas(Compatibility::Breaking, "data", SchemaUser::Readers, schemas);
            }
        }
    }
}

/// Compares the collections of the live version with those of the candidate,
/// and their indexes.
pub(super) fn collections(
    live: &[CollectionSpec],
    candidate: &[CollectionSpec],
    found: &mut Comparison,
) {
    for collection in live {
        let mut findings =
            ChangeCollector { subject: ChangeSubject::Collection, name: &collection.name, found };
        match candidate.iter().find(|other| other.name == collection.name) {
            None if is_published(collection) => {
                findings.forbidden("", "", "was removed, and other areas may read it");
            }
            None => findings.breaking("", "", "was removed; its documents stay"),
            Some(other) => {
                for_readers(collection, other, &mut findings);
                for_its_own(collection, other, &mut findings);
            }
        }
    }
}

fn for_readers(
    live: &CollectionSpec,
    candidate: &CollectionSpec,
    findings: &mut ChangeCollector<'_>,
) {
    if !is_published(live) {
        return;
    }
    lost_readers(&live.readers, &candidate.readers, findings);
    let schemas = (&live.schema, &candidate.schema);
    findings.schemas(Compatibility::Forbidden, "documents", SchemaUser::Readers, schemas);
    for field in &live.fields {
        if !candidate.fields.iter().any(|other| other.name == field.name) {
            let at = format!("/{}", field.name);
            findings.forbidden("fields", &at, "cannot be queried any more");
        }
    }
}

/// Reports changes that existing documents may violate: schema, field types,
/// unique indexes. A deployment does not convert documents.
fn for_its_own(
    live: &CollectionSpec,
    candidate: &CollectionSpec,
    findings: &mut ChangeCollector<'_>,
) {
    let (mut before, mut now) = (live.schema.clone(), candidate.schema.clone());
    waive_defaults(&mut before);
    waive_defaults(&mut now);
    let schemas = (&before, &now);
    findings.schemas(Compatibility::Breaking, "stored documents", SchemaUser::Writers, schemas);
    for field in &candidate.fields {
        let before = live.fields.iter().find(|other| other.name == field.name);
        if before.is_some_and(|before| before.kind != field.kind) {
            findings.breaking("fields", &format!("/{}", field.name), "is of another type now");
        }
    }
    for index in candidate.indexes.iter().filter(|index| index.unique) {
        if !live.indexes.iter().any(|other| other.unique && other.fields == index.fields) {
            let fields = index.fields.join(", ");
            findings.breaking("indexes", "", format!("{fields} must be unique now"));
        }
    }
}

/// Removes from `required` each member with a `default`: the area reads stored
/// documents without it, and every version since then writes it.
fn waive_defaults(schema: &mut Json) {
    match schema {
        Json::Object(schema) => {
            let members = schema.get("properties").cloned().unwrap_or_default();
            if let Some(Json::Array(names)) = schema.get_mut("required") {
                let has_default = |name: &str| members[name].get("default").is_some();
                names.retain(|name| !name.as_str().is_some_and(has_default));
            }
            schema.values_mut().for_each(waive_defaults);
        }
        Json::Array(items) => items.iter_mut().for_each(waive_defaults),
        _ => {}
    }
}

/// Compares the lists of areas that may read this area's blobs.
pub(super) fn blobs(live: &[String], candidate: &[String], found: &mut Comparison) {
    let mut findings = ChangeCollector { subject: ChangeSubject::Blobs, name: "the area", found };
    lost_readers(live, candidate, &mut findings);
}

fn lost_readers(live: &[String], candidate: &[String], findings: &mut ChangeCollector<'_>) {
    let everybody = candidate.iter().any(|reader| reader == "*");
    for reader in live.iter().filter(|reader| !everybody && !candidate.contains(reader)) {
        findings.forbidden("readers", "", format!("{reader} may not read them any more"));
    }
}

/// Compares the job kinds of the live version with those of the candidate,
/// because jobs that the live version enqueued may run in the candidate.
pub(super) fn jobs(live: &[JobSpec], candidate: &[JobSpec], found: &mut Comparison) {
    for job in live {
        if !candidate.iter().any(|other| other.name == job.name) {
            let mut findings =
                ChangeCollector { subject: ChangeSubject::Job, name: &job.name, found };
            findings.breaking("", "", "was removed, and jobs of this kind may be waiting");
        }
    }
}

fn is_published(collection: &CollectionSpec) -> bool {
    !collection.readers.is_empty()
}

impl ChangeCollector<'_> {
    fn forbidden(&mut self, part: &'static str, pointer: &str, what: impl Into<String>) {
        self.at(Compatibility::Forbidden, part, pointer.to_owned(), what.into());
    }
}
