//! Queries of a collection: filter, sort, keyset pagination, count, group.

use super::Backend;
use super::connection::Connection;
use super::cursor::{CursorBinding, CursorPosition};
use super::documents::{CollectionKey, document, push_from, spend};
use super::error::Error;
use super::fields::{DeclaredField, push_condition};
use super::keyset::{COLUMNS_BEFORE_KEYS, SortKey, page_of_keys_sql, page_sql, sort_keys};
use super::scope::AccessibleCollection;
use super::search::{self, SubstringSearch};
use super::sql::{Row, Sql, each_row, one_row};
use assurance_core::domain::document::{
    Document, DocumentPage, FieldValue, GroupCount, PageStart, Query, QueryCondition,
};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::FieldKind;

const MAX_LIMIT: u32 = 1_000;
const MAX_CONDITIONS: usize = 64;
/// Maximum number of fields in an order or grouping.
pub(super) const MAX_ORDER: usize = 8;

/// Reason why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The query is invalid; the message is for the area's author.
    #[error("{0}")]
    Misuse(String),
    /// The store failed; [`Error::NotFound`] if the document to start after
    /// does not exist.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Workspace and collection that a query reads.
#[derive(Clone, Copy, Debug)]
pub struct QueryTarget<'a> {
    /// Id of the workspace.
    pub workspace: WorkspaceId,
    /// The collection with its declared fields and indexes.
    pub scope: &'a AccessibleCollection,
    /// Suffix that `ILIKE` needs on this database; see `Store::folding`.
    pub folding: &'a str,
    /// Whether the search table may answer a text search (see `store::search`).
    /// It is not covered by serializable transactions, so a call that writes
    /// must not use it.
    pub use_search_table: bool,
}

/// Returns one page of the documents that match a query. Returns
/// [`Error::TooLarge`] if their bodies exceed `budget` bytes.
pub async fn page(
    connection: &mut Connection,
    target: QueryTarget<'_>,
    query: &Query,
    cursor_key: &[u8; 32],
    budget: u64,
) -> Result<DocumentPage, QueryError> {
    if !(1..=MAX_LIMIT).contains(&query.limit) {
        return Err(QueryError::Misuse(format!("a page has 1 to {MAX_LIMIT} documents")));
    }
    let keys = sort_keys(target.scope, &query.order)?;
    let binding = CursorBinding {
        key: cursor_key,
        owner: target.workspace.0,
        collection: &target.scope.full_name,
        conditions: &query.conditions,
        order: &query.order,
    };
    let after = match &query.start {
        PageStart::First => None,
        PageStart::Cursor(cursor) => {
            let position = binding.decode(cursor).filter(|position| fits(&keys, position));
            Some(position.ok_or(Error::InvalidCursor)?)
        }
        PageStart::After(id) => Some(position_of(connection, target, &keys, id).await?),
    };
    let mut taken = PageCollector::new(query.limit, &keys, budget);
    match SubstringSearch::of(connection.backend(), target, query) {
        Some(search) => {
            searched_page(connection, target, query, (search, after.as_ref()), &mut taken).await?;
        }
        None => {
            let sql = page_sql(connection.backend(), target, query, &keys, after.as_ref())?;
            each_row(connection, sql, |row| taken.add(&row)).await?;
        }
    }
    let next = taken.last.filter(|_| taken.more).map(|position| binding.encode(&position));
    Ok(DocumentPage { documents: taken.documents, next })
}

/// Adds the documents of the keys that a substring search finds, key by key,
/// until the page is full.
async fn searched_page(
    connection: &mut Connection,
    target: QueryTarget<'_>,
    query: &Query,
    (search, after): (SubstringSearch<'_>, Option<&CursorPosition>),
    taken: &mut PageCollector<'_>,
) -> Result<(), QueryError> {
    let mut from = SubstringSearch::from(after.and_then(|position| position.values.first()));
    let mut most = query.limit + 1;
    loop {
        let found = search.keys(connection, target, &from, most).await?;
        let Some(last) = found.last().cloned() else { return Ok(()) };
        let all = found.len() < most as usize;
        let sql =
            page_of_keys_sql(connection.backend(), target, query, taken.keys, (after, found))?;
        each_row(connection, sql, |row| taken.add(&row)).await?;
        if all || taken.more {
            return Ok(());
        }
        from = search::KeyStart::After(last);
        most = search::more(most);
    }
}

/// Documents of a page that is being read.
struct PageCollector<'a> {
    keys: &'a [SortKey<'a>],
    limit: usize,
    budget: u64,
    documents: Vec<Document>,
    /// Cursor position after the last document of a full page.
    last: Option<CursorPosition>,
    /// Whether the query returned one row more than the page, so that there is
    /// a next page.
    more: bool,
}

impl<'a> PageCollector<'a> {
    fn new(limit: u32, keys: &'a [SortKey<'a>], budget: u64) -> Self {
        let limit = limit as usize;
        Self { keys, limit, budget, documents: Vec::new(), last: None, more: false }
    }

    fn add(&mut self, row: &Row) -> Result<(), Error> {
        if self.documents.len() == self.limit {
            self.more = true;
            return Ok(());
        }
        let document = document(row)?;
        spend(&mut self.budget, document.body.len())?;
        if self.documents.len() + 1 == self.limit {
            let kinds = self.keys.iter().map(|key| key.field.kind);
            let values = values(row, COLUMNS_BEFORE_KEYS, kinds)?;
            self.last = Some(CursorPosition { values, id: document.id.clone() });
        }
        self.documents.push(document);
        Ok(())
    }
}

/// Returns the number of documents that match the conditions, up to `at_most`
/// if it is set.
pub async fn count(
    connection: &mut Connection,
    target: QueryTarget<'_>,
    conditions: &[QueryCondition],
    at_most: Option<u32>,
) -> Result<u64, QueryError> {
    let mut sql = Sql::new(connection.backend(), "SELECT count(*)");
    if at_most.is_some() {
        sql.push(" FROM (SELECT 1");
    }
    push_matching(&mut sql, target, conditions)?;
    if let Some(most) = at_most {
        sql.push_limit(most).push(") AS matching");
    }
    let row = one_row(connection, sql).await?;
    Ok(row.map_or(Ok(0), |row| row.integer(0))?.cast_unsigned())
}

/// Returns the number of matching documents for each combination of the fields'
/// values, ordered by the values. Returns [`Error::TooLarge`] if there are more
/// than `limit` combinations, or if their texts exceed `budget` bytes.
pub async fn count_by(
    connection: &mut Connection,
    target: QueryTarget<'_>,
    conditions: &[QueryCondition],
    fields: &[String],
    limit: u32,
    mut budget: u64,
) -> Result<Vec<GroupCount>, QueryError> {
    if fields.is_empty() || fields.len() > MAX_ORDER {
        return Err(QueryError::Misuse(format!("counts are grouped by 1 to {MAX_ORDER} fields")));
    }
    let fields: Vec<DeclaredField<'_>> =
        fields.iter().map(|name| target.scope.field(name)).collect::<Result<_, _>>()?;
    let sql = groups_sql(connection.backend(), target, conditions, &fields, limit)?;
    let mut groups = Vec::new();
    each_row(connection, sql, |row| {
        let values = values(&row, 1, fields.iter().map(|field| field.kind))?;
        spend(&mut budget, values.iter().map(text_bytes).sum())?;
        groups.push(GroupCount { values, count: row.integer(0)?.cast_unsigned() });
        Ok(())
    })
    .await?;
    if groups.len() > limit as usize {
        return Err(Error::TooLarge.into());
    }
    Ok(groups)
}

/// Returns the statement that counts documents for each combination of the
/// fields' values, at most one combination more than the limit. `OFFSET 0`
/// makes PostgreSQL extract a document's values from its body once instead of
/// at every step.
fn groups_sql(
    backend: Backend,
    target: QueryTarget<'_>,
    conditions: &[QueryCondition],
    fields: &[DeclaredField<'_>],
    limit: u32,
) -> Result<Sql, QueryError> {
    let names: Vec<String> = (0..fields.len()).map(|at| format!("g{at}")).collect();
    let value =
        |(field, name): (&DeclaredField<'_>, &String)| format!("{} AS {name}", field.sql(backend));
    let values: Vec<String> = fields.iter().zip(&names).map(value).collect();
    let (all, values) = (names.join(", "), values.join(", "));
    let (begin, end, nulls) = match backend {
        Backend::Sqlite => (values, "", ""),
        Backend::Postgres => {
            (format!("{all} FROM (SELECT {values}"), " OFFSET 0) AS d", " NULLS FIRST")
        }
    };
    let mut sql = Sql::new(backend, "SELECT count(*), ");
    sql.push(&begin);
    push_matching(&mut sql, target, conditions)?;
    sql.push(end).push(" GROUP BY ").push(&all).push(" ORDER BY ");
    sql.push(&names.join(&format!("{nulls}, "))).push(nulls).push_limit(limit + 1);
    Ok(sql)
}

/// Returns whether the values of a cursor position still have the fields'
/// types, which a later version of the area may have changed.
fn fits(keys: &[SortKey<'_>], position: &CursorPosition) -> bool {
    keys.iter().zip(&position.values).all(|(key, value)| key.field.arg(value).is_ok())
}

fn values(
    row: &Row,
    from: usize,
    kinds: impl Iterator<Item = FieldKind>,
) -> Result<Vec<FieldValue>, Error> {
    let value = |(at, kind)| {
        Ok(match kind {
            FieldKind::Text => row.maybe_text(at)?.map(FieldValue::Text),
            FieldKind::Integer => row.maybe_integer(at)?.map(FieldValue::Integer),
            FieldKind::Boolean => row.maybe_boolean(at)?.map(FieldValue::Boolean),
        }
        .unwrap_or(FieldValue::Null))
    };
    kinds.enumerate().map(|(at, kind)| (from + at, kind)).map(value).collect()
}

fn text_bytes(value: &FieldValue) -> usize {
    match value {
        FieldValue::Text(text) => text.len(),
        _ => 0,
    }
}

/// Returns the cursor position of the document with this id in a sort order.
async fn position_of(
    connection: &mut Connection,
    target: QueryTarget<'_>,
    keys: &[SortKey<'_>],
    id: &str,
) -> Result<CursorPosition, QueryError> {
    if id.contains('\0') {
        return Err(Error::NotFound.into());
    }
    let backend = connection.backend();
    let mut sql = Sql::new(backend, "SELECT id");
    for key in keys {
        sql.push(", ").push(&key.field.sql(backend));
    }
    push_from(&mut sql, target.place()).push(" AND id = ").bind(id);
    let row = one_row(connection, sql).await?.ok_or(Error::NotFound)?;
    let values = values(&row, 1, keys.iter().map(|key| key.field.kind))?;
    Ok(CursorPosition { values, id: id.to_owned() })
}

impl<'a> QueryTarget<'a> {
    fn place(&self) -> CollectionKey<'a> {
        CollectionKey { workspace: self.workspace, collection: &self.scope.full_name }
    }
}

/// Appends ` FROM … WHERE …` with the collection, the workspace and the query's
/// conditions.
pub(super) fn push_matching(
    sql: &mut Sql,
    target: QueryTarget<'_>,
    conditions: &[QueryCondition],
) -> Result<(), QueryError> {
    if conditions.len() > MAX_CONDITIONS {
        return Err(QueryError::Misuse(format!("a query has at most {MAX_CONDITIONS} conditions")));
    }
    push_from(sql, target.place());
    for condition in conditions {
        push_condition(sql, target.scope, target.folding, condition)?;
    }
    Ok(())
}
