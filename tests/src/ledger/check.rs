//! Compares the responses to clients with the content of the database.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::book::{Effect, Entry, Marker, Outcome, RequestLog};
use super::database::{Database, Event, StoredDocument};
use super::mix::{CREATIONS, Change, Target};
use super::report::Report;

/// An acknowledged change: its version, the operation, its body and its marker.
type AcknowledgedChange<'a> = (Option<u64>, &'static Change, &'a Map<String, Value>, Marker);

/// Collection and id of a document.
type Key = (String, String);

/// One check of the requests since the previous check.
pub(crate) struct Check<'a> {
    book: &'a RequestLog,
    entries: HashMap<Marker, Entry>,
    documents: HashMap<Key, (StoredDocument, Value)>,
    /// Number of events by name and document.
    events: HashMap<(String, String), u64>,
    /// Documents that a request deletes, acknowledged or not.
    deleted: HashSet<String>,
    report: &'a mut Report,
}

/// Changes of one document.
#[derive(Default)]
pub(crate) struct History<'a> {
    /// Acknowledged changes, sorted by version.
    pub acknowledged: Vec<AcknowledgedChange<'a>>,
    /// Number of changes with an unknown outcome.
    pub in_doubt: u64,
}

/// Versions of the contended documents at the last check.
pub(crate) type Versions = HashMap<String, u64>;

impl<'a> Check<'a> {
    /// Reads everything that was written since `since`.
    pub(crate) async fn read(
        book: &'a RequestLog,
        database: &mut Database,
        since: i64,
        report: &'a mut Report,
    ) -> Check<'a> {
        let entries = book.take();
        let documents = database.documents(since).await.into_iter().map(|stored| {
            let body = serde_json::from_str(&stored.text).expect("JSON");
            ((stored.collection.clone(), stored.id.clone()), (stored, body))
        });
        let documents = documents.collect();
        let events = tally(&database.events(since).await, report);
        let deletions = entries.values().filter_map(|entry| match &entry.effect {
            Effect::Deletes(_, id) if !matches!(entry.outcome, Outcome::Refused(_)) => Some(id),
            _ => None,
        });
        let deleted = deletions.cloned().collect();
        Self { book, entries, documents, events, deleted, report }
    }

    /// Runs all comparisons. Returns the created documents that exist.
    pub(crate) async fn run(
        mut self,
        database: &mut Database,
        versions: &mut Versions,
    ) -> Vec<(String, Entry)> {
        self.count();
        self.creations();
        self.changes(versions);
        self.events_of_changes();
        self.deletions(database).await;
        self.markers();
        self.events_have_documents();
        let made = std::mem::take(&mut self.entries).into_values().filter_map(|entry| {
            let Outcome::Acknowledged(id, _) = &entry.outcome else { return None };
            Some((id.clone(), entry))
        });
        let stays = |(id, entry): &(String, Entry)| match &entry.effect {
            Effect::Creates(kind, _) => {
                let key = (kind.collection.to_owned(), id.clone());
                self.documents.contains_key(&key) && !self.deleted.contains(id)
            }
            _ => false,
        };
        made.filter(stays).collect()
    }

    fn count(&mut self) {
        for entry in self.entries.values() {
            match entry.outcome {
                Outcome::Unknown => self.report.unknown += 1,
                Outcome::Refused(_) => self.report.refused += 1,
                Outcome::Acknowledged(..) => self.report.acknowledged += 1,
            }
        }
    }

    /// Checks that each acknowledged document exists with its content and its event. A document
    /// with an unknown outcome must have its event if it exists.
    fn creations(&mut self) {
        let changed = changed_members(&self.entries);
        let by_marker = by_marker(self.book, &self.documents);
        for (marker, entry) in &self.entries {
            let Effect::Creates(kind, content) = &entry.effect else { continue };
            let name = format!("{} {}", entry.operation, self.book.text(*marker));
            let found: &[String] =
                by_marker.get(&(kind.collection, *marker)).map_or(&[][..], Vec::as_slice);
            if found.len() > 1 {
                self.report.doubled.push(format!("{name}: {found:?}"));
            }
            let id = match &entry.outcome {
                Outcome::Acknowledged(id, _) => id,
                Outcome::Refused(_) => continue,
                Outcome::Unknown => match found.first() {
                    Some(id) => id,
                    None => continue,
                },
            };
            let key = (kind.collection.to_owned(), id.clone());
            match self.documents.get(&key) {
                None if self.deleted.contains(id) => {}
                None => self.report.lost.push(format!("{name}: {id}")),
                Some((_, body)) => {
                    let kept = content
                        .iter()
                        .filter(|(member, _)| !changed.contains(&(id.as_str(), member.as_str())));
                    self.report.compare(&name, kept, body);
                }
            }
            if let Some((event, _)) = kind.event {
                let seen = self.events.get(&(event.to_owned(), id.clone())).copied();
                self.report.events(&name, event, seen.unwrap_or(0), 1, 1);
            }
        }
    }

    /// Checks that every version is one acknowledged change, and that the last one's content is
    /// stored.
    fn changes(&mut self, versions: &mut Versions) {
        let mut histories: HashMap<(&str, &str), History<'_>> = HashMap::new();
        for (marker, entry) in &self.entries {
            let Effect::Changes(kind, id, content) = &entry.effect else { continue };
            let history = histories.entry((kind.collection, id.as_str())).or_default();
            match &entry.outcome {
                Outcome::Acknowledged(_, version) => {
                    let version = version.filter(|_| !kind.may_change_nothing());
                    history.acknowledged.push((version, kind, content, *marker));
                }
                Outcome::Unknown => history.in_doubt += 1,
                Outcome::Refused(_) => {}
            }
        }
        for ((collection, id), mut history) in histories {
            let key = (collection.to_owned(), id.to_owned());
            let Some((stored, body)) = self.documents.get(&key) else {
                // A change without effect is not among the recent writes.
                let changed = history.acknowledged.iter().any(|it| !it.1.may_change_nothing());
                if changed && !self.deleted.contains(id) {
                    self.report.lost.push(format!("changes of {collection} {id}"));
                }
                continue;
            };
            history.acknowledged.sort_by_key(|change| change.0);
            self.report.history(self.book, &history, (stored, body), versions);
        }
    }

    /// Checks that each acknowledged change has an event.
    fn events_of_changes(&mut self) {
        let mut expected: HashMap<(&str, &str), (u64, u64)> = HashMap::new();
        for entry in self.entries.values() {
            let Effect::Changes(kind, id, _) = &entry.effect else { continue };
            let Some((event, _)) = kind.event else { continue };
            let counts = expected.entry((event, id.as_str())).or_default();
            match entry.outcome {
                Outcome::Acknowledged(..) => counts.0 += 1,
                Outcome::Unknown => counts.1 += 1,
                Outcome::Refused(_) => {}
            }
        }
        for ((event, id), (least, in_doubt)) in expected {
            let key = (event.to_owned(), id.to_owned());
            let seen = self.events.get(&key).copied().unwrap_or(0);
            self.report.events(id, event, seen, least, least + in_doubt);
        }
    }

    async fn deletions(&mut self, database: &mut Database) {
        for entry in self.entries.values() {
            let (Effect::Deletes(kind, id), Outcome::Acknowledged(..)) =
                (&entry.effect, &entry.outcome)
            else {
                continue;
            };
            if database.has(kind.collection, id).await {
                self.report.lost.push(format!("{} of {id}: it is there", entry.operation));
            }
            if let Some((event, _)) = kind.event {
                let seen = self.events.get(&(event.to_owned(), id.clone())).copied();
                self.report.events(id, event, seen.unwrap_or(0), 1, 1);
            }
        }
    }

    /// Checks that nothing of a refused request is stored, and nothing in another workspace than
    /// its request's.
    fn markers(&mut self) {
        for (stored, _) in self.documents.values() {
            for marker in self.book.markers(&stored.text) {
                let place = format!("{} {}", stored.collection, stored.id);
                if !self.book.knows(marker) {
                    self.report.foreign.push(format!("{place}: nobody sent {marker:?}"));
                }
                let Some(entry) = self.entries.get(&marker) else { continue };
                if let Outcome::Refused(status) = entry.outcome {
                    let what = format!("{} ({status}): {place}", entry.operation);
                    self.report.refused_but_there.push(what);
                }
                if entry.workspace != stored.workspace {
                    self.report.foreign.push(format!("{}: {place}", entry.operation));
                }
            }
        }
    }

    /// Checks that events refer to existing documents.
    fn events_have_documents(&mut self) {
        for kind in CREATIONS {
            let Some((name, _)) = kind.event else { continue };
            let ids = self.events.keys().filter(|(event, _)| event == name).map(|(_, id)| id);
            let ids: BTreeSet<&String> = ids.collect();
            for id in ids {
                let key = (kind.collection.to_owned(), id.clone());
                if !self.documents.contains_key(&key) && !self.deleted.contains(id) {
                    self.report.unmatched_events.push(format!("{name} of {id}: no document"));
                }
            }
        }
    }
}

impl History<'_> {
    /// Whether only clients change the document, so that all its versions are known.
    pub(crate) fn is_contended(&self) -> bool {
        self.acknowledged.iter().any(|(_, kind, ..)| kind.target == Target::Contended)
    }
}

/// Returns members of documents that a request changed after their creation.
fn changed_members(entries: &HashMap<Marker, Entry>) -> HashSet<(&str, &str)> {
    let changes = entries.values().filter_map(|entry| match &entry.effect {
        Effect::Changes(_, id, content) => Some((id, content)),
        _ => None,
    });
    changes
        .flat_map(|(id, content)| content.keys().map(|name| (id.as_str(), name.as_str())))
        .collect()
}

/// Returns the documents with this marker in the creation's member.
fn by_marker(
    book: &RequestLog,
    documents: &HashMap<Key, (StoredDocument, Value)>,
) -> HashMap<(&'static str, Marker), Vec<String>> {
    let mut found: HashMap<_, Vec<String>> = HashMap::new();
    for kind in CREATIONS {
        let Some(marked) = kind.kept.first() else { continue };
        for ((_, id), (stored, body)) in documents {
            if stored.collection != kind.collection {
                continue;
            }
            for marker in book.markers(body[*marked].as_str().unwrap_or_default()) {
                found.entry((kind.collection, marker)).or_default().push(id.clone());
            }
        }
    }
    found
}

/// Counts events by name and document. Reports events that are queued twice.
fn tally(events: &[Event], report: &mut Report) -> HashMap<(String, String), u64> {
    let members = super::mix::events();
    let (mut counts, mut ids) = (HashMap::new(), HashSet::new());
    for event in events {
        if !ids.insert(&event.id) {
            report.doubled.push(format!("event {} {}", event.name, event.id));
        }
        let Some(member) = members.get(event.name.as_str()) else { continue };
        let about = event.data[*member].as_str().unwrap_or_default().to_owned();
        *counts.entry((event.name.clone(), about)).or_default() += 1;
    }
    counts
}
