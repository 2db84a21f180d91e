//! What a call knows and wants of documents: for each it has met, how it is in
//! the database and how the call wants it to be.

use std::collections::BTreeMap;

use crate::domain::document::{Document, Write};
use crate::domain::time::Timestamp;
use crate::store::apply::{Delete, Effects, Insert, Seen, Update};
use crate::store::documents::Head;

use super::DocumentError;

/// The documents of one call, by collection's full name and id.
#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<String, BTreeMap<String, Entry>>);

#[derive(Clone, Debug)]
struct Entry {
    base: Base,
    now: Now,
}

/// How a document is in the database, as this call's snapshot has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    /// Not looked at; the call made it, and hopes it is new.
    Unknown,
    Absent,
    At(u64),
}

/// How the call sees it.
#[derive(Clone, Debug)]
enum Now {
    Absent,
    Head { version: u64, created_at: Timestamp },
    Whole { document: Document, changed: bool },
}

/// How the documents of one [`Overlay::write`] were known before it.
#[derive(Debug)]
pub(super) struct Undo {
    collection: String,
    entries: Vec<(String, Option<Entry>)>,
}

/// What the overlay knows of a document.
#[derive(Debug)]
pub(super) enum Known<'a> {
    /// There is none.
    Absent,
    /// All of it.
    Whole(&'a Document),
    /// Not enough: it must be read.
    Unread,
}

impl Overlay {
    pub(super) fn look(&self, collection: &str, id: &str) -> Known<'_> {
        match self.entry(collection, id).map(|entry| &entry.now) {
            Some(Now::Absent) => Known::Absent,
            Some(Now::Whole { document, .. }) => Known::Whole(document),
            Some(Now::Head { .. }) | None => Known::Unread,
        }
    }

    /// A document was read whole, or found missing.
    pub(super) fn read(&mut self, collection: &str, id: &str, found: Option<&Document>) {
        let entry = match found {
            None => Entry { base: Base::Absent, now: Now::Absent },
            Some(document) => Entry {
                base: Base::At(document.version),
                now: Now::Whole { document: document.clone(), changed: false },
            },
        };
        self.collection(collection).insert(id.to_owned(), entry);
    }

    /// Documents went by in a page; what was known better stays.
    pub(super) fn passed(&mut self, collection: &str, documents: &[Document]) {
        let known = self.collection(collection);
        for document in documents {
            known.entry(document.id.clone()).or_insert_with(|| Entry {
                base: Base::At(document.version),
                now: Now::Head { version: document.version, created_at: document.created_at },
            });
        }
    }

    /// Those of the writes' documents that must be looked at first: what is to
    /// be changed or deleted and has not been seen, and, where the call is
    /// careful, what is to be created.
    pub(super) fn unseen(&self, collection: &str, writes: &[Write], careful: bool) -> Vec<String> {
        let mut created: Vec<&str> = Vec::new();
        let mut unseen = Vec::new();
        for write in writes {
            let (id, look) = match write {
                Write::Create { id, .. } => (id, careful),
                // Made earlier in this list, it need not be there yet.
                Write::Replace { id, .. } => (id, !created.contains(&id.as_str())),
                Write::Delete { id, .. } => (id, true),
            };
            if matches!(write, Write::Create { .. }) {
                created.push(id);
            }
            let known = self.entry(collection, id).map(|entry| entry.base);
            let deletes = matches!(write, Write::Delete { .. });
            let enough = known.is_some_and(|base| base != Base::Unknown || !deletes);
            if look && !enough {
                unseen.push(id.clone());
            }
        }
        unseen
    }

    /// Documents were looked at; those without a head are not there. False
    /// where one is that the call believed to have made.
    pub(super) fn looked(&mut self, collection: &str, ids: &[String], heads: Vec<Head>) -> bool {
        let mut heads: BTreeMap<String, Head> =
            heads.into_iter().map(|head| (head.id.clone(), head)).collect();
        let known = self.collection(collection);
        for id in ids {
            match (known.get_mut(id), heads.remove(id)) {
                (None, None) => {
                    known.insert(id.clone(), Entry { base: Base::Absent, now: Now::Absent });
                }
                (None, Some(head)) => {
                    let Head { version, created_at, .. } = head;
                    let now = Now::Head { version, created_at };
                    known.insert(id.clone(), Entry { base: Base::At(version), now });
                }
                (Some(entry), None) if entry.base == Base::Unknown => entry.base = Base::Absent,
                (Some(entry), Some(_)) if entry.base == Base::Unknown => return false,
                (Some(_), _) => {}
            }
        }
        true
    }

    /// Applies writes in order, all or none; the new version of each, and what
    /// takes them back.
    pub(super) fn write(
        &mut self,
        collection: &str,
        writes: Vec<Write>,
        now: Timestamp,
    ) -> Result<(Vec<u64>, Undo), DocumentError> {
        let known = self.collection(collection);
        let mut staged: BTreeMap<String, Entry> = BTreeMap::new();
        let mut versions = Vec::with_capacity(writes.len());
        for write in writes {
            let id = match &write {
                Write::Create { id, .. } | Write::Replace { id, .. } | Write::Delete { id, .. } => {
                    id.clone()
                }
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
        Ok((versions, Undo { collection: collection.to_owned(), entries }))
    }

    /// Takes writes back that were not sent to the database after all, and
    /// after which there were no others.
    pub(super) fn undo(&mut self, Undo { collection, entries }: Undo) {
        let known = self.collection(&collection);
        for (id, before) in entries {
            match before {
                Some(entry) => known.insert(id, entry),
                None => known.remove(&id),
            };
        }
    }

    /// Whether anything waits to be written, of one collection or of all.
    pub(super) fn is_dirty(&self, collection: Option<&str>) -> bool {
        let dirty = |known: &BTreeMap<String, Entry>| known.values().any(Entry::is_dirty);
        match collection {
            Some(name) => self.0.get(name).is_some_and(dirty),
            None => self.0.values().any(dirty),
        }
    }

    /// Hands over what waits to be written, and takes it for written.
    pub(super) fn take(&mut self, effects: &mut Effects) {
        for (collection, known) in &mut self.0 {
            for (id, entry) in known.iter_mut().filter(|(_, entry)| entry.is_dirty()) {
                entry.take(collection, id, effects);
            }
        }
    }

    /// What was read and is left alone must still be so when the rest is
    /// written; to be asked before [`Overlay::take`].
    pub(super) fn checks(&self, effects: &mut Effects) {
        for (collection, known) in &self.0 {
            for (id, entry) in known.iter().filter(|(_, entry)| !entry.is_dirty()) {
                let version = match entry.base {
                    Base::At(version) => Some(version),
                    Base::Absent => None,
                    Base::Unknown => continue,
                };
                let (collection, id) = (collection.clone(), id.clone());
                effects.seen.push(Seen { collection, id, version });
            }
        }
    }

    fn entry(&self, collection: &str, id: &str) -> Option<&Entry> {
        self.0.get(collection)?.get(id)
    }

    fn collection(&mut self, name: &str) -> &mut BTreeMap<String, Entry> {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), BTreeMap::new());
        }
        self.0.get_mut(name).expect("the collection was put there just now")
    }
}

impl Entry {
    fn is_dirty(&self) -> bool {
        match &self.now {
            Now::Absent => self.base != Base::Absent,
            Now::Head { .. } => false,
            Now::Whole { changed, .. } => *changed,
        }
    }

    fn take(&mut self, collection: &str, id: &str, effects: &mut Effects) {
        let (collection, id) = (collection.to_owned(), id.to_owned());
        match (self.base, &mut self.now) {
            (Base::At(from), Now::Absent) => effects.deletes.push(Delete { collection, id, from }),
            (Base::At(from), Now::Whole { document, .. }) => effects.updates.push(Update {
                collection,
                id,
                from,
                to: document.version,
                created_at: document.created_at,
                body: document.body.clone(),
            }),
            (Base::Unknown | Base::Absent, Now::Whole { document, .. }) => {
                effects.inserts.push(Insert {
                    collection,
                    id,
                    version: document.version,
                    body: document.body.clone(),
                });
            }
            (_, Now::Head { .. }) | (Base::Unknown | Base::Absent, Now::Absent) => {}
        }
        self.base = match &mut self.now {
            Now::Absent => Base::Absent,
            Now::Head { version, .. } => Base::At(*version),
            Now::Whole { document, changed } => {
                *changed = false;
                Base::At(document.version)
            }
        };
    }
}

/// A document after a write, and the version the guest is told.
fn changed(
    entry: Option<&Entry>,
    write: Write,
    now: Timestamp,
) -> Result<(Entry, u64), DocumentError> {
    let base = entry.map_or(Base::Unknown, |entry| entry.base);
    let there = match entry.map(|entry| &entry.now) {
        None | Some(Now::Absent) => None,
        Some(Now::Head { version, created_at }) => Some((*version, *created_at)),
        Some(Now::Whole { document, .. }) => Some((document.version, document.created_at)),
    };
    let (id, body, version, created_at) = match write {
        Write::Create { .. } if there.is_some() => return Err(DocumentError::AlreadyExists),
        Write::Create { id, body } => (id, body, 1, now),
        Write::Replace { id, expected, body } => {
            let (version, created_at) = there_at(there, expected)?;
            (id, body, version + 1, created_at)
        }
        Write::Delete { expected, .. } => {
            there_at(there, expected)?;
            return Ok((Entry { base, now: Now::Absent }, 0));
        }
    };
    let document = Document { id, version, body, created_at, updated_at: now };
    Ok((Entry { base, now: Now::Whole { document, changed: true } }, version))
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
    use crate::domain::id::WorkspaceId;

    fn create(id: &str) -> Write {
        Write::Create { id: id.to_owned(), body: "{}".to_owned() }
    }

    #[test]
    fn writes_that_are_taken_back_leave_everything_as_it_was() {
        let (mut overlay, now) = (Overlay::default(), Timestamp(7));
        overlay.write("notes", vec![create("a"), create("b")], now).unwrap();
        overlay.write("tags", vec![create("a")], now).unwrap();
        let mut sent = Effects::new(WorkspaceId::new(), "test", now);
        overlay.take(&mut sent);
        let before = format!("{overlay:?}");
        let replace = Write::Replace { id: "a".into(), expected: None, body: "[]".into() };
        let delete = Write::Delete { id: "b".into(), expected: None };
        let writes = vec![replace, delete, create("b"), create("c")];
        let (versions, undo) = overlay.write("notes", writes, now).unwrap();
        assert_eq!(versions, [2, 0, 1, 1]);
        overlay.take(&mut sent);
        assert_ne!(format!("{overlay:?}"), before);
        overlay.undo(undo);
        assert_eq!(format!("{overlay:?}"), before);
    }
}
