//! Reads and writes documents of the call's workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::check_document;
use super::overlay::KnownDocument;
use super::read_log::ReadResult;
use super::reading::{ReadConnection, ReadKind};
use super::scope::AreaPolicy;
use super::{DocumentError, OperationError, UnitOfWork};
use assurance_core::domain::document::{
    Condition, Document, DocumentPage, DocumentWrite, GroupCount, PageStart, Query,
};
use assurance_store::documents::{self, CollectionKey, DocumentHead};
use assurance_store::query::{self, QueryError, QueryTarget};
use assurance_store::{CollectionScope, Error};

type DocumentsResult<T> = Result<T, OperationError<DocumentError>>;

/// Maximum length of a document's id, in characters.
const MAX_ID: usize = 200;

impl UnitOfWork {
    /// Returns the document with this id; `None` if there is none.
    pub async fn get(&mut self, collection: &str, id: &str) -> DocumentsResult<Option<Document>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(None) };
        if !is_id(id) {
            return Ok(None);
        }
        match self.documents.look(&scope.full_name, id) {
            KnownDocument::Absent => return Ok(None),
            KnownDocument::Whole(document) => return Ok(Some(document.clone())),
            KnownDocument::Unread => {}
        }
        let found = match self.logged_document(&scope.full_name, id) {
            Some(found) => found,
            None => self.read_one(scope, id).await?,
        };
        self.charge(found.as_slice())?;
        if self.spec.writes {
            self.documents.read(&scope.full_name, id, found.as_ref());
        }
        Ok(found)
    }

    /// Returns those documents of `ids` that exist, in the order of `ids`.
    pub async fn get_many(
        &mut self,
        collection: &str,
        ids: &[String],
    ) -> DocumentsResult<Vec<Document>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(Vec::new()) };
        let unread = |id: &&String| {
            is_id(id) && matches!(self.documents.look(&scope.full_name, id), KnownDocument::Unread)
        };
        let missing: Vec<String> = ids.iter().filter(unread).cloned().collect();
        let found = self.read_many(scope, missing).await?;
        let one = |id: &String| match self.documents.look(&scope.full_name, id) {
            KnownDocument::Whole(document) => Some(document.clone()),
            KnownDocument::Absent => None,
            KnownDocument::Unread => found.get(id).cloned(),
        };
        Ok(ids.iter().filter_map(one).collect())
    }

    /// Returns one page of the matching documents.
    pub async fn query(&mut self, query: &Query) -> DocumentsResult<DocumentPage> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, &query.collection)? else {
            return Ok(DocumentPage::default());
        };
        let question = || format!("{query:?}");
        let page = match self.logged_result(question) {
            Some(ReadResult::Page(page)) => page,
            _ => self.read_page(scope, query).await?,
        };
        self.note(question, || ReadResult::Page(page.clone()));
        self.charge(&page.documents)?;
        if self.spec.writes && scope.own {
            self.documents.note_page(&scope.full_name, &page.documents);
        }
        Ok(page)
    }

    async fn read_page(
        &mut self,
        scope: &CollectionScope,
        query: &Query,
    ) -> DocumentsResult<DocumentPage> {
        self.flush_before_query(scope).await?;
        let statements = if matches!(query.start, PageStart::After(_)) { 2 } else { 1 };
        let (cursor_key, budget) = (self.keys.derive("query cursor"), self.bytes_left());
        let mut lease = self.lease(ReadKind::Other, statements).await?;
        let asked = self.asked(scope);
        let page = query::page(lease.connection(), asked, query, &cursor_key, budget).await;
        self.answered(lease, page)
    }

    /// Returns the number of matching documents, up to `at_most`.
    pub async fn count(
        &mut self,
        collection: &str,
        conditions: &[Condition],
        at_most: Option<u32>,
    ) -> DocumentsResult<u64> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(0) };
        let question = || format!("{collection} {conditions:?} at most {at_most:?}");
        if let Some(ReadResult::Count(count)) = self.logged_result(question) {
            return Ok(count);
        }
        self.flush_before_query(scope).await?;
        let mut lease = self.lease(ReadKind::Other, 1).await?;
        let count = query::count(lease.connection(), self.asked(scope), conditions, at_most).await;
        let count = self.answered(lease, count)?;
        self.note(question, || ReadResult::Count(count));
        Ok(count)
    }

    /// Returns the number of matching documents for each combination of the
    /// fields' values.
    pub async fn count_by(
        &mut self,
        collection: &str,
        conditions: &[Condition],
        fields: &[String],
    ) -> DocumentsResult<Vec<GroupCount>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(Vec::new()) };
        let question = || format!("{collection} {conditions:?} by {fields:?}");
        if let Some(ReadResult::Groups(groups)) = self.logged_result(question) {
            return Ok(groups);
        }
        self.flush_before_query(scope).await?;
        let limit = self.spec.limits.max_documents.saturating_sub(self.used.documents);
        let mut lease = self.lease(ReadKind::Other, 1).await?;
        let asked = self.asked(scope);
        let groups = query::count_by(lease.connection(), asked, conditions, fields, limit).await;
        let groups = self.answered(lease, groups)?;
        self.note(question, || ReadResult::Groups(groups.clone()));
        Ok(groups)
    }

    /// Applies the writes in order, all or none. Returns the new version of
    /// each document, 0 for a deletion.
    pub async fn write(
        &mut self,
        collection: &str,
        writes: Vec<DocumentWrite>,
    ) -> DocumentsResult<Vec<u64>> {
        let area = Arc::clone(&self.spec.area);
        let scope = scope(&area, collection)?;
        self.check_writes(scope, &writes)?;
        let name = &scope.full_name;
        let mut unseen = self.documents.unread(name, &writes, self.spec.locked);
        unseen.retain(|id| is_id(id));
        if !unseen.is_empty() {
            let heads = self.heads(scope, &unseen).await?;
            if !self.documents.note_heads(name, &unseen, heads) {
                return Err(OperationError::Abort(Error::AlreadyExists));
            }
        }
        let written = self.documents.write(name, writes, self.spec.call.now);
        let (versions, undo) = written.map_err(OperationError::Refused)?;
        if !self.spec.locked {
            return Ok(versions);
        }
        // No other write is pending: a locked call sends each write at once.
        match self.flush_with_savepoint().await {
            Ok(()) => Ok(versions),
            Err(Error::UniqueConflict { fields, .. }) => {
                self.documents.undo(undo);
                Err(OperationError::Refused(DocumentError::UniqueConflict(fields)))
            }
            Err(error) => Err(OperationError::Abort(error)),
        }
    }

    async fn heads(
        &mut self,
        scope: &CollectionScope,
        ids: &[String],
    ) -> DocumentsResult<Vec<DocumentHead>> {
        let question = || format!("{} heads {ids:?}", scope.full_name);
        if let Some(ReadResult::Heads(heads)) = self.logged_result(question) {
            return Ok(heads);
        }
        let mut lease = self.lease(ReadKind::Documents, ids.len().div_ceil(1_000)).await?;
        let heads = documents::heads(lease.connection(), self.place(scope), ids).await?;
        self.done(lease);
        self.note(question, || ReadResult::Heads(heads.clone()));
        Ok(heads)
    }

    async fn read_one(
        &mut self,
        scope: &CollectionScope,
        id: &str,
    ) -> DocumentsResult<Option<Document>> {
        let mut lease = self.lease(ReadKind::Documents, 1).await?;
        let found = documents::get(lease.connection(), self.place(scope), id).await?;
        self.done(lease);
        self.note_document(&scope.full_name, id, found.as_ref());
        Ok(found)
    }

    fn check_writes(
        &mut self,
        scope: &CollectionScope,
        writes: &[DocumentWrite],
    ) -> DocumentsResult<()> {
        if !self.spec.writes {
            return misuse("the route is read-only; set `writes` to true in the manifest");
        }
        if !scope.own {
            return misuse(&format!("{} belongs to another area", scope.full_name));
        }
        let mut bytes = 0;
        for write in writes {
            if let DocumentWrite::Create { id, .. } = write
                && !is_id(id)
            {
                return misuse(&format!(
                    "{id:?} is not a valid id; use 1 to {MAX_ID} characters without U+0000"
                ));
            }
            if let DocumentWrite::Create { body, .. } | DocumentWrite::Replace { body, .. } = write
            {
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
    ) -> DocumentsResult<BTreeMap<String, Document>> {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for id in &ids {
            match self.logged_document(&scope.full_name, id) {
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
    ) -> DocumentsResult<Vec<Document>> {
        let budget = self.bytes_left();
        let mut lease = self.lease(ReadKind::Documents, ids.len().div_ceil(1_000)).await?;
        let found = documents::get_many(lease.connection(), self.place(scope), ids, budget).await;
        self.answered(lease, found.map_err(QueryError::Store))
    }

    async fn flush_before_query(&mut self, scope: &CollectionScope) -> Result<(), Error> {
        let dirty = self.documents.is_dirty(Some(&scope.full_name)) && !self.is_replaying();
        if dirty { self.flush().await } else { Ok(()) }
    }

    /// Returns the connection to the unit unless the database failed. Converts
    /// the error for the guest or for the host.
    fn answered<T>(
        &mut self,
        lease: ReadConnection,
        answer: Result<T, QueryError>,
    ) -> DocumentsResult<T> {
        let refusal = match answer {
            Ok(answer) => {
                self.done(lease);
                return Ok(answer);
            }
            Err(QueryError::Misuse(what)) => DocumentError::Misuse(what),
            Err(QueryError::Store(Error::NotFound)) => DocumentError::NotFound,
            Err(QueryError::Store(Error::InvalidCursor)) => DocumentError::InvalidCursor,
            Err(QueryError::Store(Error::TooLarge)) => DocumentError::LimitExceeded,
            Err(QueryError::Store(error)) => return Err(OperationError::Abort(error)),
        };
        self.done(lease);
        Err(OperationError::Refused(refusal))
    }

    fn place<'a>(&self, scope: &'a CollectionScope) -> CollectionKey<'a> {
        CollectionKey { workspace: self.spec.call.workspace, collection: &scope.full_name }
    }

    fn asked<'a>(&self, scope: &'a CollectionScope) -> QueryTarget<'a> {
        QueryTarget {
            workspace: self.spec.call.workspace,
            scope,
            folding: self.store.folding(),
            use_search_table: !self.spec.writes,
        }
    }

    fn bytes_left(&self) -> u64 {
        self.spec.limits.max_bytes.saturating_sub(self.used.bytes)
    }

    fn charge(&mut self, documents: &[Document]) -> DocumentsResult<()> {
        let bytes = documents.iter().map(|document| document.body.len() as u64).sum();
        self.charge_for(documents.len(), bytes)
    }

    fn charge_for(&mut self, documents: usize, bytes: u64) -> DocumentsResult<()> {
        let documents = u32::try_from(documents).unwrap_or(u32::MAX);
        self.used.documents = self.used.documents.saturating_add(documents);
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        let limits = &self.spec.limits;
        if self.used.documents > limits.max_documents || self.used.bytes > limits.max_bytes {
            return Err(OperationError::Refused(DocumentError::LimitExceeded));
        }
        Ok(())
    }
}

fn scope<'a>(area: &'a AreaPolicy, collection: &str) -> DocumentsResult<&'a CollectionScope> {
    area.collections.get(collection).ok_or_else(|| {
        let what = format!("{} has no access to the collection {collection:?}", area.area);
        OperationError::Refused(DocumentError::Misuse(what))
    })
}

/// Returns the collection if the area may read it; `None` if its area is not
/// live, so that it contains nothing for others.
fn reach<'a>(
    area: &'a AreaPolicy,
    collection: &str,
) -> DocumentsResult<Option<&'a CollectionScope>> {
    match collection.split_once('.') {
        Some((owner, _)) if !area.live.contains(owner) => Ok(None),
        _ => scope(area, collection).map(Some),
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= MAX_ID && !id.contains('\0')
}

fn misuse<T>(what: &str) -> DocumentsResult<T> {
    Err(OperationError::Refused(DocumentError::Misuse(what.to_owned())))
}
