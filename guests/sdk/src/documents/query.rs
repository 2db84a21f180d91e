//! Queries of a collection.

use std::fmt;
use std::marker::PhantomData;

use super::{Document, DocumentError, Documents, Page, Stored, Value, wit};
use crate::context::Scope;
use crate::paging::Paging;

/// Maximum number of characters of a text that a service searches for.
pub(crate) const MAX_SEARCH_TEXT: usize = 1_000;

/// A query of a collection. Conditions and orders use fields that the manifest declares; all
/// conditions must hold.
#[derive(Debug)]
#[must_use]
pub struct Query<'a, T> {
    pub(super) scope: &'a Scope,
    pub(super) of: PhantomData<fn() -> T>,
    pub(super) query: wit::Query,
}

impl<T: Document> Query<'_, T> {
    fn test(mut self, fields: &[&str], test: wit::Test) -> Self {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        self.query.conditions.push(wit::Condition { fields, test });
        self
    }

    /// Requires that the field equals this value.
    pub fn equals(self, field: &str, value: impl Into<Value>) -> Self {
        self.test(&[field], wit::Test::Equals(value.into()))
    }

    /// Requires that the field equals this value; no condition if it is `None`.
    pub fn equals_if(self, field: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.equals(field, value),
            None => self,
        }
    }

    /// Requires that the field equals one of these values.
    pub fn one_of(self, field: &str, values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.test(&[field], wit::Test::OneOf(values))
    }

    /// Requires that the field is at least `from` and less than `below`.
    pub fn range(self, field: &str, from: Option<Value>, below: Option<Value>) -> Self {
        self.test(&[field], wit::Test::Range((from, below)))
    }

    /// Requires that the field's text starts with this text.
    pub fn prefix(self, field: &str, text: &str) -> Self {
        self.test(&[field], wit::Test::Prefix(text.to_owned()))
    }

    /// Requires that the text of one of these fields contains this text, ignoring case. More than
    /// 1,000 characters are [`DocumentError::SearchTextTooLong`], a 422 for the client.
    pub fn contains(self, fields: &[&str], text: &str) -> Self {
        self.test(fields, wit::Test::Contains(text.to_owned()))
    }

    /// Requires that the text of one of these fields contains this text, ignoring case; no
    /// condition if it is `None`.
    pub fn contains_if(self, fields: &[&str], text: Option<&str>) -> Self {
        match text {
            Some(text) => self.contains(fields, text),
            None => self,
        }
    }

    fn order(mut self, field: &str, descending: bool) -> Self {
        self.query.order.push(wit::Order { field: field.to_owned(), descending });
        self
    }

    /// Orders the documents by this field, smallest first.
    pub fn ascending(self, field: &str) -> Self {
        self.order(field, false)
    }

    /// Orders the documents by this field, largest first.
    pub fn descending(self, field: &str) -> Self {
        self.order(field, true)
    }

    /// Sets the maximum number of documents of a page; the default is 50.
    pub fn limit(mut self, limit: u32) -> Self {
        self.query.limit = limit;
        self
    }

    /// Continues after the page that returned this cursor; `None` starts at the first page.
    pub fn cursor(mut self, cursor: Option<String>) -> Self {
        if let Some(cursor) = cursor {
            self.query.start = wit::Start::Cursor(cursor);
        }
        self
    }

    /// Selects the page that the request asks for: its limit and cursor.
    pub fn paging<const LIMIT: u32, const MAX_LIMIT: u32, const MAX_CURSOR: u32>(
        self,
        paging: Paging<LIMIT, MAX_LIMIT, MAX_CURSOR>,
    ) -> Self {
        self.limit(paging.limit).cursor(paging.cursor)
    }

    /// Continues after the document with this id, in the query's order; `None` starts at the first
    /// page.
    pub fn after(mut self, id: Option<impl fmt::Display>) -> Self {
        if let Some(id) = id {
            self.query.start = wit::Start::After(id.to_string());
        }
        self
    }

    /// Refuses a search text that is too long, which may be a client's, before the host reports it
    /// as misuse.
    fn check(&self) -> Result<(), DocumentError> {
        let is_too_long = |test: &wit::Test| match test {
            wit::Test::Contains(text) => text.chars().count() > MAX_SEARCH_TEXT,
            _ => false,
        };
        if self.query.conditions.iter().any(|condition| is_too_long(&condition.test)) {
            return Err(DocumentError::SearchTextTooLong);
        }
        Ok(())
    }

    /// Returns one page of matching documents.
    ///
    /// # Errors
    /// [`DocumentError::InvalidCursor`], [`DocumentError::SearchTextTooLong`], and when the call's
    /// limits are used up.
    #[track_caller]
    pub fn page(self) -> Result<Page<Stored<T>>, DocumentError> {
        self.check()?;
        let page = self.scope.host.documents_find(&self.query)?;
        Ok(Page {
            items: page.documents.into_iter().map(Stored::read).collect(),
            next_cursor: page.next,
        })
    }

    /// Returns the documents of one page without a cursor.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    #[track_caller]
    pub fn list(self) -> Result<Vec<Stored<T>>, DocumentError> {
        Ok(self.page()?.items)
    }

    /// Deletes the documents of one page and returns their number. A job that deletes all of them
    /// runs again until the number is 0.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    #[track_caller]
    pub fn delete_page(self) -> Result<usize, DocumentError> {
        let documents = Documents::<T>::new(self.scope);
        let page = self.list()?;
        documents.delete_all(&page)?;
        Ok(page.len())
    }

    /// Returns an iterator over all matching documents. It loads page by page; `limit` is the size
    /// of a page. After an error it ends.
    pub fn all(self) -> impl Iterator<Item = Result<Stored<T>, DocumentError>> {
        let Self { scope, of, query } = self;
        let mut next = Some(query);
        let pages = std::iter::from_fn(move || {
            let query = next.take()?;
            let page = Query { scope, of, query: query.clone() }.page();
            if let Ok(Page { next_cursor: Some(cursor), .. }) = &page {
                next = Some(wit::Query { start: wit::Start::Cursor(cursor.clone()), ..query });
            }
            Some(page)
        });
        pages.flat_map(|page| {
            let (items, error) = match page {
                Ok(page) => (page.items, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            items.into_iter().map(Ok).chain(error)
        })
    }

    /// Returns the first matching document.
    ///
    /// # Errors
    /// As for [`page`](Self::page).
    #[track_caller]
    pub fn first(self) -> Result<Option<Stored<T>>, DocumentError> {
        Ok(self.limit(1).list()?.pop())
    }

    /// Returns the number of matching documents, regardless of the limit.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn count(self) -> Result<u64, DocumentError> {
        self.check()?;
        Ok(self.scope.host.documents_count(T::COLLECTION, &self.query.conditions, None)?)
    }

    /// Returns the number of matching documents, at most `most`. Faster than [`count`](Self::count)
    /// for many documents; for limits and texts such as "more than 1,000".
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn count_up_to(self, most: u32) -> Result<u64, DocumentError> {
        self.check()?;
        Ok(self.scope.host.documents_count(T::COLLECTION, &self.query.conditions, Some(most))?)
    }

    /// Returns the number of matching documents for each combination of the fields' values.
    ///
    /// # Errors
    /// When the call's limits are used up.
    #[track_caller]
    pub fn count_by(self, fields: &[&str]) -> Result<Vec<(Vec<Value>, u64)>, DocumentError> {
        self.check()?;
        let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
        let groups =
            self.scope.host.documents_count_by(T::COLLECTION, &self.query.conditions, &fields)?;
        Ok(groups.into_iter().map(|group| (group.values, group.count)).collect())
    }
}
