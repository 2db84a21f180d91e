//! Documents of the workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::check_document;
use super::overlay::Known;
use super::reading::{Lease, What};
use super::scope::AreaScope;
use super::tape::Answer;
use super::{DocumentError, Fault, UnitOfWork};
use crate::domain::document::{Condition, Document, Group, Page, Query, Start, Write};
use crate::store::documents::{self, Head, Place};
use crate::store::query::{self, Asked, QueryError};
use crate::store::{CollectionScope, Error};

type Reply<T> = Result<T, Fault<DocumentError>>;

/// Characters of a document's id.
const MAX_ID: usize = 200;

impl UnitOfWork {
    /// The document, or nothing.
    pub async fn get(&mut self, collection: &str, id: &str) -> Reply<Option<Document>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(None) };
        if !is_id(id) {
            return Ok(None);
        }
        match self.documents.look(&scope.full_name, id) {
            Known::Absent => return Ok(None),
            Known::Whole(document) => return Ok(Some(document.clone())),
            Known::Unread => {}
        }
        let found = match self.recall_document(&scope.full_name, id) {
            Some(found) => found,
            None => self.read_one(scope, id).await?,
        };
        self.charge(found.as_slice())?;
        if self.spec.writes {
            self.documents.read(&scope.full_name, id, found.as_ref());
        }
        Ok(found)
    }

    /// Those that exist, in the order of the ids.
    pub async fn get_many(&mut self, collection: &str, ids: &[String]) -> Reply<Vec<Document>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(Vec::new()) };
        let unread = |id: &&String| {
            is_id(id) && matches!(self.documents.look(&scope.full_name, id), Known::Unread)
        };
        let missing: Vec<String> = ids.iter().filter(unread).cloned().collect();
        let found = self.read_many(scope, missing).await?;
        let one = |id: &String| match self.documents.look(&scope.full_name, id) {
            Known::Whole(document) => Some(document.clone()),
            Known::Absent => None,
            Known::Unread => found.get(id).cloned(),
        };
        Ok(ids.iter().filter_map(one).collect())
    }

    /// One page of the documents that match.
    pub async fn query(&mut self, query: &Query) -> Reply<Page> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, &query.collection)? else { return Ok(Page::default()) };
        let question = || format!("{query:?}");
        let page = match self.recall(question) {
            Some(Answer::Page(page)) => page,
            _ => self.read_page(scope, query).await?,
        };
        self.note(question, || Answer::Page(page.clone()));
        self.charge(&page.documents)?;
        if self.spec.writes && scope.own {
            self.documents.passed(&scope.full_name, &page.documents);
        }
        Ok(page)
    }

    async fn read_page(&mut self, scope: &CollectionScope, query: &Query) -> Reply<Page> {
        self.flush_before_query(scope).await?;
        let statements = if matches!(query.start, Start::After(_)) { 2 } else { 1 };
        let (cursor_key, budget) = (self.keys.derive("query cursor"), self.bytes_left());
        let mut lease = self.lease(What::Other, statements).await?;
        let asked = self.asked(scope);
        let page = query::page(lease.connection(), asked, query, &cursor_key, budget).await;
        self.answered(lease, page)
    }

    /// How many documents match, or `at_most` where there are more.
    pub async fn count(
        &mut self,
        collection: &str,
        conditions: &[Condition],
        at_most: Option<u32>,
    ) -> Reply<u64> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(0) };
        let question = || format!("{collection} {conditions:?} at most {at_most:?}");
        if let Some(Answer::Count(count)) = self.recall(question) {
            return Ok(count);
        }
        self.flush_before_query(scope).await?;
        let mut lease = self.lease(What::Other, 1).await?;
        let count = query::count(lease.connection(), self.asked(scope), conditions, at_most).await;
        let count = self.answered(lease, count)?;
        self.note(question, || Answer::Count(count));
        Ok(count)
    }

    /// How many documents match, for each combination of the fields' values.
    pub async fn count_by(
        &mut self,
        collection: &str,
        conditions: &[Condition],
        fields: &[String],
    ) -> Reply<Vec<Group>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(Vec::new()) };
        let question = || format!("{collection} {conditions:?} by {fields:?}");
        if let Some(Answer::Groups(groups)) = self.recall(question) {
            return Ok(groups);
        }
        self.flush_before_query(scope).await?;
        let limit = self.spec.limits.max_documents.saturating_sub(self.used.documents);
        let mut lease = self.lease(What::Other, 1).await?;
        let asked = self.asked(scope);
        let groups = query::count_by(lease.connection(), asked, conditions, fields, limit).await;
        let groups = self.answered(lease, groups)?;
        self.note(question, || Answer::Groups(groups.clone()));
        Ok(groups)
    }

    /// Applies the writes in order, all or none of them; the new version of
    /// each, 0 for a deletion.
    pub async fn write(&mut self, collection: &str, writes: Vec<Write>) -> Reply<Vec<u64>> {
        let area = Arc::clone(&self.spec.area);
        let scope = scope(&area, collection)?;
        self.check_writes(scope, &writes)?;
        let name = &scope.full_name;
        let mut unseen = self.documents.unseen(name, &writes, self.spec.locked);
        unseen.retain(|id| is_id(id));
        if !unseen.is_empty() {
            let heads = self.heads(scope, &unseen).await?;
            if !self.documents.looked(name, &unseen, heads) {
                return Err(Fault::Abort(Error::AlreadyExists));
            }
        }
        let written = self.documents.write(name, writes, self.spec.call.now);
        let (versions, undo) = written.map_err(Fault::Refused)?;
        if !self.spec.locked {
            return Ok(versions);
        }
        // Nothing else waits to be written: a careful call sends each write.
        match self.flush_carefully().await {
            Ok(()) => Ok(versions),
            Err(Error::UniqueConflict { fields, .. }) => {
                self.documents.undo(undo);
                Err(Fault::Refused(DocumentError::UniqueConflict(fields)))
            }
            Err(error) => Err(Fault::Abort(error)),
        }
    }

    async fn heads(&mut self, scope: &CollectionScope, ids: &[String]) -> Reply<Vec<Head>> {
        let question = || format!("{} heads {ids:?}", scope.full_name);
        if let Some(Answer::Heads(heads)) = self.recall(question) {
            return Ok(heads);
        }
        let mut lease = self.lease(What::Documents, ids.len().div_ceil(1_000)).await?;
        let heads = documents::heads(lease.connection(), self.place(scope), ids).await?;
        self.done(lease);
        self.note(question, || Answer::Heads(heads.clone()));
        Ok(heads)
    }

    async fn read_one(&mut self, scope: &CollectionScope, id: &str) -> Reply<Option<Document>> {
        let mut lease = self.lease(What::Documents, 1).await?;
        let found = documents::get(lease.connection(), self.place(scope), id).await?;
        self.done(lease);
        self.note_document(&scope.full_name, id, found.as_ref());
        Ok(found)
    }

    fn check_writes(&mut self, scope: &CollectionScope, writes: &[Write]) -> Reply<()> {
        if !self.spec.writes {
            return misuse("the route writes nothing");
        }
        if !scope.own {
            return misuse(&format!("{} belongs to another area", scope.full_name));
        }
        let mut bytes = 0;
        for write in writes {
            if let Write::Create { id, .. } = write
                && !is_id(id)
            {
                return misuse(&format!(
                    "{id:?} is no id; 1 to {MAX_ID} characters without U+0000"
                ));
            }
            if let Write::Create { body, .. } | Write::Replace { body, .. } = write {
                bytes += body.len() as u64;
                if let Err(what) = check_document(scope, body) {
                    return misuse(&format!("{}: {what}", scope.full_name));
                }
            }
        }
        self.charge_for(writes.len(), bytes)
    }

    async fn read_many(
        &mut self,
        scope: &CollectionScope,
        ids: Vec<String>,
    ) -> Reply<BTreeMap<String, Document>> {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for id in &ids {
            match self.recall_document(&scope.full_name, id) {
                Some(known) => found.extend(known),
                None => unknown.push(id.clone()),
            }
        }
        if !unknown.is_empty() {
            found.extend(self.read_unknown(scope, &unknown).await?);
        }
        self.charge(&found)?;
        let found: BTreeMap<_, _> = found.into_iter().map(|d| (d.id.clone(), d)).collect();
        for id in &ids {
            self.note_document(&scope.full_name, id, found.get(id));
            if self.spec.writes {
                self.documents.read(&scope.full_name, id, found.get(id));
            }
        }
        Ok(found)
    }

    async fn read_unknown(
        &mut self,
        scope: &CollectionScope,
        ids: &[String],
    ) -> Reply<Vec<Document>> {
        let budget = self.bytes_left();
        let mut lease = self.lease(What::Documents, ids.len().div_ceil(1_000)).await?;
        let found = documents::get_many(lease.connection(), self.place(scope), ids, budget).await;
        self.answered(lease, found.map_err(QueryError::Store))
    }

    async fn flush_before_query(&mut self, scope: &CollectionScope) -> Result<(), Error> {
        let dirty = self.documents.is_dirty(Some(&scope.full_name)) && !self.is_playing();
        if dirty { self.flush().await } else { Ok(()) }
    }

    /// Takes the lease back unless the database failed, and sorts out whom a
    /// failure is told to.
    fn answered<T>(&mut self, lease: Lease, answer: Result<T, QueryError>) -> Reply<T> {
        let refusal = match answer {
            Ok(answer) => {
                self.done(lease);
                return Ok(answer);
            }
            Err(QueryError::Misuse(what)) => DocumentError::Misuse(what),
            Err(QueryError::Store(Error::NotFound)) => DocumentError::NotFound,
            Err(QueryError::Store(Error::InvalidCursor)) => DocumentError::InvalidCursor,
            Err(QueryError::Store(Error::TooLarge)) => DocumentError::LimitExceeded,
            Err(QueryError::Store(error)) => return Err(Fault::Abort(error)),
        };
        self.done(lease);
        Err(Fault::Refused(refusal))
    }

    fn place<'a>(&self, scope: &'a CollectionScope) -> Place<'a> {
        Place { workspace: self.spec.call.workspace, collection: &scope.full_name }
    }

    fn asked<'a>(&self, scope: &'a CollectionScope) -> Asked<'a> {
        Asked {
            workspace: self.spec.call.workspace,
            scope,
            folding: self.store.folding(),
            by_pairs: !self.spec.writes,
        }
    }

    fn bytes_left(&self) -> u64 {
        self.spec.limits.max_bytes.saturating_sub(self.used.bytes)
    }

    fn charge(&mut self, documents: &[Document]) -> Reply<()> {
        let bytes = documents.iter().map(|document| document.body.len() as u64).sum();
        self.charge_for(documents.len(), bytes)
    }

    fn charge_for(&mut self, documents: usize, bytes: u64) -> Reply<()> {
        let documents = u32::try_from(documents).unwrap_or(u32::MAX);
        self.used.documents = self.used.documents.saturating_add(documents);
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        let limits = &self.spec.limits;
        if self.used.documents > limits.max_documents || self.used.bytes > limits.max_bytes {
            return Err(Fault::Refused(DocumentError::LimitExceeded));
        }
        Ok(())
    }
}

fn scope<'a>(area: &'a AreaScope, collection: &str) -> Reply<&'a CollectionScope> {
    area.collections.get(collection).ok_or_else(|| {
        let what = format!("{} may not reach the collection {collection:?}", area.area);
        Fault::Refused(DocumentError::Misuse(what))
    })
}

/// The collection as it may be read; nothing where it is one of an area that
/// is not live, and so holds nothing for others.
fn reach<'a>(area: &'a AreaScope, collection: &str) -> Reply<Option<&'a CollectionScope>> {
    match collection.split_once('.') {
        Some((owner, _)) if !area.live.contains(owner) => Ok(None),
        _ => scope(area, collection).map(Some),
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= MAX_ID && !id.contains('\0')
}

fn misuse<T>(what: &str) -> Reply<T> {
    Err(Fault::Refused(DocumentError::Misuse(what.to_owned())))
}
