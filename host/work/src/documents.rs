//! Reads documents of the call's workspace, and counts them against the call's
//! limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::overlay::OverlayLookup;
use super::read_log::RepeatableQueryResult;
use super::reading::{ReadConnection, ReadKind};
use super::scope::AreaPolicy;
use super::{DocumentError, HostCallError, UnitOfWork};
use assurance_core::domain::document::{
    Document, DocumentPage, FieldTest, FieldValue, GroupCount, PageStart, Query, QueryCondition,
};
use assurance_store::documents::{self, CollectionKey};
use assurance_store::query::{self, QueryError, QueryTarget};
use assurance_store::{AccessibleCollection, Error};

pub(super) type DocumentHostCallResult<T> = Result<T, HostCallError<DocumentError>>;

/// Maximum length of a document's id, in characters.
pub(super) const MAX_ID: usize = 200;
/// Bytes that a read id without a document counts against the call's limit, in addition to the id's
/// length: the call remembers that the document does not exist.
const ABSENT_BYTES: u64 = 256;
/// Maximum total size of the texts in a query's conditions, in bytes. A statement repeats a text
/// for each field of its condition.
const MAX_CONDITION_BYTES: usize = 1 << 20;

impl UnitOfWork {
    /// Returns the document of a collection with this id; `None` if there is none.
    pub async fn get(
        &mut self,
        collection: &str,
        id: &str,
    ) -> DocumentHostCallResult<Option<Document>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(None) };
        if !is_id(id) {
            return Ok(None);
        }
        match self.documents.look(&scope.full_name, id) {
            OverlayLookup::Absent => return Ok(None),
            OverlayLookup::Whole(document) => return Ok(Some(document.clone())),
            OverlayLookup::Unread => {}
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

    /// Returns those documents of `ids` that exist, in the order of `ids`. Refuses
    /// more ids, and a larger result, than the call's limits of documents and
    /// bytes.
    pub async fn get_many(
        &mut self,
        collection: &str,
        ids: &[String],
    ) -> DocumentHostCallResult<Vec<Document>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(Vec::new()) };
        let limits = self.spec.limits;
        if ids.len() > limits.max_documents as usize {
            return Err(HostCallError::Refused(DocumentError::LimitExceeded));
        }
        let unread = |id: &&String| {
            is_id(id) && matches!(self.documents.look(&scope.full_name, id), OverlayLookup::Unread)
        };
        let mut missing: Vec<String> = ids.iter().filter(unread).cloned().collect();
        missing.sort_unstable();
        missing.dedup();
        let found = self.read_many(scope, missing).await?;
        let one = |id: &String| match self.documents.look(&scope.full_name, id) {
            OverlayLookup::Whole(document) => Some(document),
            OverlayLookup::Absent => None,
            OverlayLookup::Unread => found.get(id),
        };
        let found: Vec<&Document> = ids.iter().filter_map(one).collect();
        // An id may be listed several times.
        if bytes_of(found.iter().copied()) > limits.max_bytes {
            return Err(HostCallError::Refused(DocumentError::LimitExceeded));
        }
        Ok(found.into_iter().cloned().collect())
    }

    /// Returns one page of the documents that match a query.
    pub async fn query(&mut self, query: &Query) -> DocumentHostCallResult<DocumentPage> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, &query.collection)? else {
            return Ok(DocumentPage::default());
        };
        check_texts(&query.conditions)?;
        let question = || format!("{query:?}");
        let page = match self.logged_result(question) {
            Some(RepeatableQueryResult::Page(page)) => page,
            _ => self.read_page(scope, query).await?,
        };
        self.note(question, || RepeatableQueryResult::Page(page.clone()));
        self.charge(&page.documents)?;
        if self.spec.writes && scope.own {
            self.documents.note_page(&scope.full_name, &page.documents);
        }
        Ok(page)
    }

    async fn read_page(
        &mut self,
        scope: &AccessibleCollection,
        query: &Query,
    ) -> DocumentHostCallResult<DocumentPage> {
        self.flush_before_query(scope).await?;
        let statements = if matches!(query.start, PageStart::After(_)) { 2 } else { 1 };
        let (cursor_key, budget) = (self.keys.derive("query cursor"), self.bytes_left());
        let mut lease = self.lease(ReadKind::Other, statements).await?;
        let asked = self.asked(scope);
        let page = query::page(lease.connection(), asked, query, &cursor_key, budget).await;
        self.answered(lease, page)
    }

    /// Returns the number of documents that match the conditions, up to `at_most`.
    pub async fn count(
        &mut self,
        collection: &str,
        conditions: &[QueryCondition],
        at_most: Option<u32>,
    ) -> DocumentHostCallResult<u64> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(0) };
        check_texts(conditions)?;
        let question = || format!("{collection} {conditions:?} at most {at_most:?}");
        if let Some(RepeatableQueryResult::Count(count)) = self.logged_result(question) {
            return Ok(count);
        }
        self.flush_before_query(scope).await?;
        let mut lease = self.lease(ReadKind::Other, 1).await?;
        let count = query::count(lease.connection(), self.asked(scope), conditions, at_most).await;
        let count = self.answered(lease, count)?;
        self.note(question, || RepeatableQueryResult::Count(count));
        Ok(count)
    }

    /// Returns the number of documents that match the conditions, for each combination of the
    /// fields' values.
    pub async fn count_by(
        &mut self,
        collection: &str,
        conditions: &[QueryCondition],
        fields: &[String],
    ) -> DocumentHostCallResult<Vec<GroupCount>> {
        let area = Arc::clone(&self.spec.area);
        let Some(scope) = reach(&area, collection)? else { return Ok(Vec::new()) };
        check_texts(conditions)?;
        let question = || format!("{collection} {conditions:?} by {fields:?}");
        if let Some(RepeatableQueryResult::Groups(groups)) = self.logged_result(question) {
            return Ok(groups);
        }
        self.flush_before_query(scope).await?;
        let limit = self.spec.limits.max_documents.saturating_sub(self.used.documents);
        let budget = self.bytes_left();
        let mut lease = self.lease(ReadKind::Other, 1).await?;
        let asked = self.asked(scope);
        let groups =
            query::count_by(lease.connection(), asked, conditions, fields, limit, budget).await;
        let groups = self.answered(lease, groups)?;
        self.note(question, || RepeatableQueryResult::Groups(groups.clone()));
        Ok(groups)
    }

    async fn read_one(
        &mut self,
        scope: &AccessibleCollection,
        id: &str,
    ) -> DocumentHostCallResult<Option<Document>> {
        let mut lease = self.lease(ReadKind::Documents, 1).await?;
        let found = documents::get(lease.connection(), self.place(scope), id).await?;
        self.done(lease);
        self.note_document(&scope.full_name, id, found.as_ref());
        Ok(found)
    }

    async fn read_many(
        &mut self,
        scope: &AccessibleCollection,
        ids: Vec<String>,
    ) -> DocumentHostCallResult<BTreeMap<String, Document>> {
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
            let document = found.get(id);
            if document.is_none() {
                self.charge_for(0, ABSENT_BYTES + id.len() as u64)?;
            }
            self.note_document(&scope.full_name, id, document);
            if self.spec.writes {
                self.documents.read(&scope.full_name, id, document);
            }
        }
        Ok(found)
    }

    async fn read_unknown(
        &mut self,
        scope: &AccessibleCollection,
        ids: &[String],
    ) -> DocumentHostCallResult<Vec<Document>> {
        let budget = self.bytes_left();
        let mut lease = self.lease(ReadKind::Documents, ids.len().div_ceil(1_000)).await?;
        let found = documents::get_many(lease.connection(), self.place(scope), ids, budget).await;
        self.answered(lease, found.map_err(QueryError::Store))
    }

    async fn flush_before_query(&mut self, scope: &AccessibleCollection) -> Result<(), Error> {
        let dirty = self.documents.is_dirty(Some(&scope.full_name)) && !self.is_replaying();
        if dirty { self.flush().await } else { Ok(()) }
    }

    /// Ends a read: returns the connection to the unit of work unless the database failed, and
    /// converts an error for the guest or for the host.
    fn answered<T>(
        &mut self,
        lease: ReadConnection,
        answer: Result<T, QueryError>,
    ) -> DocumentHostCallResult<T> {
        let refusal = match answer {
            Ok(answer) => {
                self.done(lease);
                return Ok(answer);
            }
            Err(QueryError::Misuse(what)) => DocumentError::Misuse(what),
            Err(QueryError::Store(Error::NotFound)) => DocumentError::NotFound,
            Err(QueryError::Store(Error::InvalidCursor)) => DocumentError::InvalidCursor,
            Err(QueryError::Store(Error::TooLarge)) => DocumentError::LimitExceeded,
            Err(QueryError::Store(error)) => return Err(HostCallError::Abort(error)),
        };
        self.done(lease);
        Err(HostCallError::Refused(refusal))
    }

    pub(super) fn place<'a>(&self, scope: &'a AccessibleCollection) -> CollectionKey<'a> {
        CollectionKey { workspace: self.spec.call.workspace, collection: &scope.full_name }
    }

    fn asked<'a>(&self, scope: &'a AccessibleCollection) -> QueryTarget<'a> {
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

    fn charge(&mut self, documents: &[Document]) -> DocumentHostCallResult<()> {
        self.charge_for(documents.len(), bytes_of(documents))
    }

    /// Counts documents and bytes against the call's limits, because the call holds them in memory
    /// until the commit.
    pub(super) fn charge_for(
        &mut self,
        documents: usize,
        bytes: u64,
    ) -> DocumentHostCallResult<()> {
        let documents = u32::try_from(documents).unwrap_or(u32::MAX);
        self.used.documents = self.used.documents.saturating_add(documents);
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        let limits = &self.spec.limits;
        if self.used.documents > limits.max_documents || self.used.bytes > limits.max_bytes {
            return Err(HostCallError::Refused(DocumentError::LimitExceeded));
        }
        Ok(())
    }
}

pub(super) fn scope<'a>(
    area: &'a AreaPolicy,
    collection: &str,
) -> DocumentHostCallResult<&'a AccessibleCollection> {
    match area.collections.get(collection) {
        Some(scope) => Ok(scope),
        None => misuse(format!("{} has no access to the collection {collection:?}", area.area)),
    }
}

/// Returns the scope of a collection that the area may read; `None` if the collection's area is not
/// live, so that it contains nothing for others.
fn reach<'a>(
    area: &'a AreaPolicy,
    collection: &str,
) -> DocumentHostCallResult<Option<&'a AccessibleCollection>> {
    match collection.split_once('.') {
        Some((owner, _)) if !area.live.contains(owner) => Ok(None),
        _ => scope(area, collection).map(Some),
    }
}

/// Returns the total size of the documents' bodies, in bytes.
fn bytes_of<'a>(documents: impl IntoIterator<Item = &'a Document>) -> u64 {
    documents.into_iter().map(|document| document.body.len() as u64).sum()
}

/// Refuses a query whose conditions have larger texts than a statement can repeat.
fn check_texts(conditions: &[QueryCondition]) -> DocumentHostCallResult<()> {
    let bytes: usize = conditions.iter().map(|condition| text_bytes(&condition.test)).sum();
    if bytes <= MAX_CONDITION_BYTES {
        return Ok(());
    }
    misuse(format!("the conditions hold {bytes} bytes of text; use at most {MAX_CONDITION_BYTES}"))
}

/// Returns the size of the texts that a condition compares a field with, in bytes.
fn text_bytes(test: &FieldTest) -> usize {
    let text = |value: &FieldValue| match value {
        FieldValue::Text(text) => text.len(),
        _ => 0,
    };
    match test {
        FieldTest::Equals(value) => text(value),
        FieldTest::OneOf(values) => values.iter().map(text).sum(),
        FieldTest::Range(from, to) => from.iter().chain(to).map(text).sum(),
        FieldTest::Prefix(text) | FieldTest::Contains(text) => text.len(),
    }
}

pub(super) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= MAX_ID && !id.contains('\0')
}

pub(super) fn misuse<T>(what: impl Into<String>) -> DocumentHostCallResult<T> {
    Err(HostCallError::Refused(DocumentError::Misuse(what.into())))
}
