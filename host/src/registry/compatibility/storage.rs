//! What other areas notice of collections and events, and what an area's own
//! new version would trip over: documents and jobs of the one before.

use super::schema::Side;
use super::{Differences, Findings, Subject, Verdict};
use crate::domain::manifest::{Collection, EventSpec, JobSpec};

/// Compares what is published.
pub(super) fn events(live: &[EventSpec], candidate: &[EventSpec], found: &mut Differences) {
    for event in live {
        let mut findings = Findings { subject: Subject::Event, name: &event.name, found };
        match candidate.iter().find(|other| other.name == event.name) {
            None => findings.breaking("", "", "is not published any more"),
            Some(other) => {
                let schemas = (&event.schema, &other.schema);
                findings.schemas(Verdict::Breaking, "data", Side::Readers, schemas);
            }
        }
    }
}

/// Compares what is kept.
pub(super) fn collections(live: &[Collection], candidate: &[Collection], found: &mut Differences) {
    for collection in live {
        let mut findings = Findings { subject: Subject::Collection, name: &collection.name, found };
        match candidate.iter().find(|other| other.name == collection.name) {
            None if is_published(collection) => {
                findings.forbidden("", "", "is gone, and other areas may read it");
            }
            None => findings.breaking("", "", "is gone, and its documents with it"),
            Some(other) => {
                for_readers(collection, other, &mut findings);
                for_its_own(collection, other, &mut findings);
            }
        }
    }
}

fn for_readers(live: &Collection, candidate: &Collection, findings: &mut Findings<'_>) {
    if !is_published(live) {
        return;
    }
    lost_readers(&live.readers, &candidate.readers, findings);
    let schemas = (&live.schema, &candidate.schema);
    findings.schemas(Verdict::Forbidden, "documents", Side::Readers, schemas);
    for field in &live.fields {
        if !candidate.fields.iter().any(|other| other.name == field.name) {
            let at = format!("/{}", field.name);
            findings.forbidden("fields", &at, "cannot be asked for any more");
        }
    }
}

/// Documents are there already, and stay as they are.
fn for_its_own(live: &Collection, candidate: &Collection, findings: &mut Findings<'_>) {
    let schemas = (&live.schema, &candidate.schema);
    findings.schemas(Verdict::Breaking, "stored documents", Side::Writers, schemas);
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

/// Compares who may read the area's blobs.
pub(super) fn blobs(live: &[String], candidate: &[String], found: &mut Differences) {
    let mut findings = Findings { subject: Subject::Blobs, name: "the area", found };
    lost_readers(live, candidate, &mut findings);
}

fn lost_readers(live: &[String], candidate: &[String], findings: &mut Findings<'_>) {
    let everybody = candidate.iter().any(|reader| reader == "*");
    for reader in live.iter().filter(|reader| !everybody && !candidate.contains(reader)) {
        findings.forbidden("readers", "", format!("{reader} may not read them any more"));
    }
}

/// Compares what may wait in the queue.
pub(super) fn jobs(live: &[JobSpec], candidate: &[JobSpec], found: &mut Differences) {
    for job in live {
        if !candidate.iter().any(|other| other.name == job.name) {
            let mut findings = Findings { subject: Subject::Job, name: &job.name, found };
            findings.breaking("", "", "is not run any more, and some may be waiting");
        }
    }
}

fn is_published(collection: &Collection) -> bool {
    !collection.readers.is_empty()
}

impl Findings<'_> {
    fn forbidden(&mut self, part: &'static str, pointer: &str, what: impl Into<String>) {
        self.at(Verdict::Forbidden, part, pointer.to_owned(), what.into());
    }
}
