//! The call's view of documents: for each document, the state in the database
//! and the state after the call's writes.

use std::collections::{BTreeMap, HashSet};

use assurance_core::domain::document::{Document, DocumentWrite};
use assurance_core::domain::time::Timestamp;
use assurance_store::apply::{
    DocumentDelete, DocumentInsert, DocumentUpdate, Effects, ReadDocument,
};
use assurance_store::documents::DocumentHead;

use super::DocumentError;

/// Documents that one call has read or written, by the collection's full name
/// and the document's id.
#[derive(Debug, Default)]
pub(super) struct DocumentOverlay(BTreeMap<String, BTreeMap<String, DocumentOverlayEntry>>);

#[derive(Clone, Debug)]
struct DocumentOverlayEntry {
    base: StoredDocumentState,
    now: CurrentDocumentState,
}

/// State of a document in the database, as far as the call has read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StoredDocumentState {
    /// The document was not read. The call created it and expects that its id
    /// is free.
    Unknown,
    Absent,
    At(u64),
}

/// State of a document after the call's own writes. `deleted` is the version of
/// the document that the call deleted; 0 if it deleted none.
#[derive(Clone, Debug)]
enum CurrentDocumentState {
    Absent { deleted: u64 },
    Head { version: u64, created_at: Timestamp },
    Whole { document: Document, changed: bool },
}

/// States of documents before one [`DocumentOverlay::write`], with which the write is
/// undone.
#[derive(Debug)]
pub(super) struct DocumentWriteUndo {
    collection: String,
    entries: Vec<(String, Option<DocumentOverlayEntry>)>,
}

/// What the call knows of one document without reading the database.
#[derive(Debug)]
pub(super) enum OverlayLookup<'a> {
    /// The document does not exist, or the call has deleted it.
    Absent,
    /// The complete document, with the call's changes.
    Whole(&'a Document),
    /// The document's content is not known; it must be read from the database.
    Unread,
}

impl DocumentOverlay {
    pub(super) fn look(&self, collection: &str, id: &str) -> OverlayLookup<'_> {
        match self.entry(collection, id).map(|entry| &entry.now) {
            Some(CurrentDocumentState::Absent { .. }) => OverlayLookup::Absent,
            Some(CurrentDocumentState::Whole { document, .. }) => OverlayLookup::Whole(document),
            Some(CurrentDocumentState::Head { .. }) | None => OverlayLookup::Unread,
        }
    }

    /// Records that a document was read completely, or does not exist.
    pub(super) fn read(&mut self, collection: &str, id: &str, found: Option<&Document>) {
        let entry = match found {
            None => DocumentOverlayEntry::ABSENT,
            Some(document) => DocumentOverlayEntry {
                base: StoredDocumentState::At(document.version),
                now: CurrentDocumentState::Whole { document: document.clone(), changed: false },
            },
        };
        self.collection(collection).insert(id.to_owned(), entry);
    }

    /// Records id, version and creation time of the documents of a query's
    /// page. Existing entries are not replaced.
    pub(super) fn note_page(&mut self, collection: &str, documents: &[Document]) {
        let known = self.collection(collection);
        for document in documents {
            known.entry(document.id.clone()).or_insert_with(|| {
                DocumentOverlayEntry::head(document.version, document.created_at)
            });
        }
    }

    /// Returns the ids of documents that must be read before the writes: those
    /// to be changed or deleted that were not read yet and, if the call is
    /// locked (`careful`), those to be created.
    pub(super) fn unread(
        &self,
        collection: &str,
        writes: &[DocumentWrite],
        careful: bool,
    ) -> Vec<String> {
        let mut created = HashSet::new();
        let mut unread = Vec::new();
        for write in writes {
            let (id, look) = match write {
                DocumentWrite::Create { id, .. } => (id, careful),
                // A document created earlier in this list need not exist in the
                // database.
                DocumentWrite::Replace { id, .. } => (id, !created.contains(id)),
                DocumentWrite::Delete { id, .. } => (id, true),
            };
            if matches!(write, DocumentWrite::Create { .. }) {
                created.insert(id);
            }
            let known = self.entry(collection, id).map(|entry| entry.base);
            let deletes = matches!(write, DocumentWrite::Delete { .. });
            let enough = known.is_some_and(|base| base != StoredDocumentState::Unknown || !deletes);
            if look && !enough {
                unread.push(id.clone());
            }
        }
        unread
    }

    /// Records the versions that were read of these documents; those without a
    /// version do not exist. Returns false if a document exists although the
    /// call created it without reading.
    pub(super) fn note_heads(
        &mut self,
        collection: &str,
        ids: &[String],
        heads: Vec<DocumentHead>,
    ) -> bool {
        let mut heads: BTreeMap<String, DocumentHead> =
            heads.into_iter().map(|head| (head.id.clone(), head)).collect();
        let known = self.collection(collection);
        for id in ids {
            match (known.get_mut(id), heads.remove(id)) {
                (None, None) => {
                    known.insert(id.clone(), DocumentOverlayEntry::ABSENT);
                }
                (None, Some(DocumentHead { version, created_at, .. })) => {
                    known.insert(id.clone(), DocumentOverlayEntry::head(version, created_at));
                }
                (Some(entry), None) if entry.base == StoredDocumentState::Unknown => {
                    entry.base = StoredDocumentState::Absent;
                }
                (Some(entry), Some(_)) if entry.base == StoredDocumentState::Unknown => {
                    return false;
                }
                (Some(_), _) => {}
            }
        }
        true
    }

    /// Applies document writes in order, all or none. Returns the new version
    /// of each document, and the data to undo the writes.
    pub(super) fn write(
        &mut self,
        collection: &str,
        writes: Vec<DocumentWrite>,
        now: Timestamp,
    ) -> Result<(Vec<u64>, DocumentWriteUndo), DocumentError> {
        let known = self.collection(collection);
        let mut staged: BTreeMap<String, DocumentOverlayEntry> = BTreeMap::new();
        let mut versions = Vec::with_capacity(writes.len());
        for write in writes {
            let id = match &write {
                DocumentWrite::Create { id, .. }
                | DocumentWrite::Replace { id, .. }
                | DocumentWrite::Delete { id, .. } => id.clone(),
            };
            let entry = staged.get(&id).or_else(|| known.get(&id));
            let (entry, version) = changed(entry, write, now)?;
            staged.insert(id, entry);
            versions.push(version);
        }
        let entries = staged.into_iter().map(|(id, entry)| {
            let before = known.insert(id.clone(), entry);
            (id, before)
        });
        let entries = entries.collect();
        Ok((versions, DocumentWriteUndo { collection: collection.to_owned(), entries }))
    }

    /// Undoes document writes that were not sent to the database and were not
    /// followed by others.
    pub(super) fn undo(&mut self, DocumentWriteUndo { collection, entries }: DocumentWriteUndo) {
        let known = self.collection(&collection);
        for (id, before) in entries {
            match before {
                Some(entry) => known.insert(id, entry),
                None => known.remove(&id),
            };
        }
    }

    /// Returns whether there are pending document writes, in one collection or
    /// in all (`None`).
    pub(super) fn is_dirty(&self, collection: Option<&str>) -> bool {
        let dirty = |known: &BTreeMap<String, DocumentOverlayEntry>| {
            known.values().any(DocumentOverlayEntry::is_dirty)
        };
        match collection {
            Some(name) => self.0.get(name).is_some_and(dirty),
            None => self.0.values().any(dirty),
        }
    }

    /// Moves the pending document writes to `effects` and marks them as
    /// written.
    pub(super) fn take(&mut self, effects: &mut Effects) {
        for (collection, known) in &mut self.0 {
            for (id, entry) in known.iter_mut().filter(|(_, entry)| entry.is_dirty()) {
                entry.take(collection, id, effects);
            }
        }
    }

    /// Adds to `effects` the documents that were read and not written, which
    /// must be unchanged at the commit. Call it before [`DocumentOverlay::take`].
    pub(super) fn checks(&self, effects: &mut Effects) {
        for (collection, known) in &self.0 {
            for (id, entry) in known.iter().filter(|(_, entry)| !entry.is_dirty()) {
                let version = match entry.base {
                    StoredDocumentState::At(version) => Some(version),
                    StoredDocumentState::Absent => None,
                    StoredDocumentState::Unknown => continue,
                };
                let (collection, id) = (collection.clone(), id.clone());
                effects.seen.push(ReadDocument { collection, id, version });
            }
        }
    }

    fn entry(&self, collection: &str, id: &str) -> Option<&DocumentOverlayEntry> {
        self.0.get(collection)?.get(id)
    }

    fn collection(&mut self, name: &str) -> &mut BTreeMap<String, DocumentOverlayEntry> {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), BTreeMap::new());
        }
        self.0.get_mut(name).expect("the collection was inserted above")
    }
}

impl DocumentOverlayEntry {
    const ABSENT: Self = Self {
        base: StoredDocumentState::Absent,
        now: CurrentDocumentState::Absent { deleted: 0 },
    };

    /// Returns the entry of a document whose body was not read.
    fn head(version: u64, created_at: Timestamp) -> Self {
        let now = CurrentDocumentState::Head { version, created_at };
        Self { base: StoredDocumentState::At(version), now }
    }

    fn is_dirty(&self) -> bool {
        match &self.now {
            CurrentDocumentState::Absent { .. } => self.base != StoredDocumentState::Absent,
            CurrentDocumentState::Head { .. } => false,
            CurrentDocumentState::Whole { changed, .. } => *changed,
        }
    }

    fn take(&mut self, collection: &str, id: &str, effects: &mut Effects) {
        let (collection, id) = (collection.to_owned(), id.to_owned());
        match (self.base, &mut self.now) {
            (StoredDocumentState::At(from), CurrentDocumentState::Absent { .. }) => {
                effects.deletes.push(DocumentDelete { collection, id, from });
            }
            (StoredDocumentState::At(from), CurrentDocumentState::Whole { document, .. }) => {
                effects.updates.push(DocumentUpdate {
                    collection,
                    id,
                    from,
                    to: document.version,
                    created_at: document.created_at,
                    body: document.body.clone(),
                });
            }
            (
                StoredDocumentState::Unknown | StoredDocumentState::Absent,
                CurrentDocumentState::Whole { document, .. },
            ) => {
                effects.inserts.push(DocumentInsert {
                    collection,
                    id,
                    version: document.version,
                    body: document.body.clone(),
                });
            }
            (_, CurrentDocumentState::Head { .. })
            | (
                StoredDocumentState::Unknown | StoredDocumentState::Absent,
                CurrentDocumentState::Absent { .. },
            ) => {}
        }
        self.base = match &mut self.now {
            CurrentDocumentState::Absent { .. } => StoredDocumentState::Absent,
            CurrentDocumentState::Head { version, .. } => StoredDocumentState::At(*version),
            CurrentDocumentState::Whole { document, changed } => {
                *changed = false;
                StoredDocumentState::At(document.version)
            }
        };
    }
}

/// Returns the state of a document after a write, and the version that the
/// guest receives. A document that replaces a deleted one continues its
/// versions, so that an `ETag` of the deleted one does not match it.
fn changed(
    entry: Option<&DocumentOverlayEntry>,
    write: DocumentWrite,
    now: Timestamp,
) -> Result<(DocumentOverlayEntry, u64), DocumentError> {
    let base = entry.map_or(StoredDocumentState::Unknown, |entry| entry.base);
    let (there, deleted) = match entry.map(|entry| &entry.now) {
        None => (None, 0),
        Some(CurrentDocumentState::Absent { deleted }) => (None, *deleted),
        Some(CurrentDocumentState::Head { version, created_at }) => {
            (Some((*version, *created_at)), 0)
        }
        Some(CurrentDocumentState::Whole { document, .. }) => {
            (Some((document.version, document.created_at)), 0)
        }
    };
    let (id, body, version, created_at) = match write {
        DocumentWrite::Create { .. } if there.is_some() => {
            return Err(DocumentError::AlreadyExists);
        }
        DocumentWrite::Create { id, body } => (id, body, deleted + 1, now),
        DocumentWrite::Replace { id, expected, body } => {
            let (version, created_at) = there_at(there, expected)?;
            (id, body, version + 1, created_at)
        }
        DocumentWrite::Delete { expected, .. } => {
            let (deleted, _) = there_at(there, expected)?;
            return Ok((
                DocumentOverlayEntry { base, now: CurrentDocumentState::Absent { deleted } },
                0,
            ));
        }
    };
    let document = Document { id, version, body, created_at, updated_at: now };
    Ok((
        DocumentOverlayEntry { base, now: CurrentDocumentState::Whole { document, changed: true } },
        version,
    ))
}

fn there_at(
    there: Option<(u64, Timestamp)>,
    expected: Option<u64>,
) -> Result<(u64, Timestamp), DocumentError> {
    match (there, expected) {
        (None, _) => Err(DocumentError::NotFound),
        (Some((version, _)), Some(expected)) if version != expected => {
            Err(DocumentError::VersionConflict(version))
        }
        (Some(there), _) => Ok(there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_core::domain::id::WorkspaceId;

    fn create(id: &str) -> DocumentWrite {
        DocumentWrite::Create { id: id.to_owned(), body: "{}".to_owned() }
    }

    #[test]
    fn writes_that_are_taken_back_leave_everything_as_it_was() {
        let (mut overlay, now) = (DocumentOverlay::default(), Timestamp(7));
        overlay.write("notes", vec![create("a"), create("b")], now).unwrap();
        overlay.write("tags", vec![create("a")], now).unwrap();
        let mut sent = Effects::new(WorkspaceId::new(), "test", now);
        overlay.take(&mut sent);
        let before = format!("{overlay:?}");
        let replace = DocumentWrite::Replace { id: "a".into(), expected: None, body: "[]".into() };
        let delete = DocumentWrite::Delete { id: "b".into(), expected: None };
        let writes = vec![replace, delete, create("b"), create("c")];
        let (versions, undo) = overlay.write("notes", writes, now).unwrap();
        assert_eq!(versions, [2, 0, 2, 1]);
        overlay.take(&mut sent);
        assert_ne!(format!("{overlay:?}"), before);
        overlay.undo(undo);
        assert_eq!(format!("{overlay:?}"), before);
    }

    #[test]
    fn a_long_list_of_writes_takes_linear_time() {
        let ids: Vec<String> = (0..40_000).map(|n| format!("{n:010}")).collect();
        let replace = |id: &String| {
            let (id, body) = (id.clone(), "{}".to_owned());
            DocumentWrite::Replace { id, expected: None, body }
        };
        let writes: Vec<_> =
            ids.iter().map(|id| create(id)).chain(ids.iter().map(replace)).collect();
        let begun = std::time::Instant::now();
        assert!(DocumentOverlay::default().unread("notes", &writes, false).is_empty());
        assert!(begun.elapsed().as_secs() < 2, "took {:?}", begun.elapsed());
    }
}
