//! Iterator over all documents of a query, loaded page by page.

use super::{Document, DocumentError, Query, Stored};

/// Iterator over all documents of a query; see [`Query::all`].
#[derive(Debug)]
#[must_use]
pub struct AllDocuments<'a, T> {
    /// Query of the next page of documents; `None` after the last page or an error.
    query: Option<Query<'a, T>>,
    page: std::vec::IntoIter<Stored<T>>,
}

impl<'a, T> AllDocuments<'a, T> {
    pub(super) fn of(query: Query<'a, T>) -> Self {
        Self { query: Some(query), page: Vec::new().into_iter() }
    }
}

impl<T: Document> Iterator for AllDocuments<'_, T> {
    type Item = Result<Stored<T>, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(stored) = self.page.next() {
                return Some(Ok(stored));
            }
            let Query { scope, of, query } = self.query.take()?;
            let page = match (Query { scope, of, query: query.clone() }).page() {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            self.page = page.items.into_iter();
            self.query =
                page.next_cursor.map(|cursor| Query { scope, of, query }.cursor(Some(cursor)));
        }
    }
}
