//! Questions about a collection, answered by the database: filtered, ordered,
//! paged by key, counted and grouped.

use super::Backend;
use super::connection::Connection;
use super::cursor::{Binding, Position};
use super::documents::{Place, document, push_place, spend};
use super::error::Error;
use super::fields::{Field, push_condition};
use super::keyset::{SortKey, columns_before_keys, page_of_keys_sql, page_sql, sort_keys};
use super::scope::CollectionScope;
use super::search::{self, Search};
use super::sql::{Arg, Row, Sql, each_row, one_row};
use crate::domain::document::{Condition, Document, Group, Page, Query, Start, Value};
use crate::domain::id::WorkspaceId;
use crate::domain::manifest::FieldKind;

const MAX_LIMIT: u32 = 1_000;
const MAX_CONDITIONS: usize = 64;
/// Fields of an order or a grouping.
pub(super) const MAX_ORDER: usize = 8;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The asker's mistake.
    #[error("{0}")]
    Misuse(String),
    /// [`Error::NotFound`] is for the document to start after.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Where a question is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Whose documents.
    pub workspace: WorkspaceId,
    /// Which ones.
    pub scope: &'a CollectionScope,
    /// What `ILIKE` needs on this database; see `Store::folding`.
    pub folding: &'a str,
    /// Whether kept pairs may answer a search (see `store::search`), which are
    /// outside serializable transactions: not for who writes what it concludes.
    pub by_pairs: bool,
}

/// One page. [`Error::TooLarge`] where its bodies are larger than the budget.
pub async fn page(
    connection: &mut Connection,
    asked: Asked<'_>,
    query: &Query,
    cursor_key: &[u8; 32],
    budget: u64,
) -> Result<Page, QueryError> {
    if !(1..=MAX_LIMIT).contains(&query.limit) {
        return Err(QueryError::Misuse(format!("a page has 1 to {MAX_LIMIT} documents")));
    }
    let keys = sort_keys(asked.scope, &query.order)?;
    let binding = Binding {
        key: cursor_key,
        owner: asked.workspace.0,
        collection: &asked.scope.full_name,
        conditions: &query.conditions,
        order: &query.order,
    };
    let after = match &query.start {
        Start::First => None,
        Start::Cursor(cursor) => {
            let position = binding.decode(cursor).filter(|position| fits(&keys, position));
            Some(position.ok_or(Error::InvalidCursor)?)
        }
        Start::After(id) => Some(position_of(connection, asked, &keys, id).await?),
    };
    let mut taken = Taken::new(query.limit, &keys, budget);
    match Search::of(connection.backend(), asked, query) {
        Some(search) => {
            searched_page(connection, asked, query, (search, after.as_ref()), &mut taken).await?;
        }
        None => {
            let sql = page_sql(connection.backend(), asked, query, &keys, after.as_ref())?;
            each_row(connection, sql, |row| taken.add(&row)).await?;
        }
    }
    let next = taken.last.filter(|_| taken.more).map(|position| binding.encode(&position));
    Ok(Page { documents: taken.documents, next })
}

/// Takes documents of the keys that a search finds, key by key, until the page
/// is full.
async fn searched_page(
    connection: &mut Connection,
    asked: Asked<'_>,
    query: &Query,
    (search, after): (Search<'_>, Option<&Position>),
    taken: &mut Taken<'_>,
) -> Result<(), QueryError> {
    let mut from = Search::from(after.and_then(|position| position.values.first()));
    let mut most = query.limit + 1;
    loop {
        let found = search.keys(connection, asked, &from, most).await?;
        let Some(last) = found.last().cloned() else { return Ok(()) };
        let all = found.len() < most as usize;
        let sql = page_of_keys_sql(connection.backend(), asked, query, taken.keys, (after, found))?;
        each_row(connection, sql, |row| taken.add(&row)).await?;
        if all || taken.more {
            return Ok(());
        }
        from = search::Start::After(last);
        most = search::more(most);
    }
}

/// A page as its rows come.
struct Taken<'a> {
    keys: &'a [SortKey<'a>],
    limit: usize,
    budget: u64,
    documents: Vec<Document>,
    /// Behind the last document of a full page.
    last: Option<Position>,
    /// There was a row more.
    more: bool,
}

impl<'a> Taken<'a> {
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
        spend(&mut self.budget, &document)?;
        if self.documents.len() + 1 == self.limit {
            let kinds = self.keys.iter().map(|key| key.field.kind);
            let values = values(row, columns_before_keys(), kinds)?;
            self.last = Some(Position { values, id: document.id.clone() });
        }
        self.documents.push(document);
        Ok(())
    }
}

/// How many documents match; with a bound, no more than that are looked at.
pub async fn count(
    connection: &mut Connection,
    asked: Asked<'_>,
    conditions: &[Condition],
    at_most: Option<u32>,
) -> Result<u64, QueryError> {
    let backend = connection.backend();
    let sql = match at_most {
        None => {
            let mut sql = Sql::new(backend, "SELECT count(*) FROM documents WHERE ");
            push_where(&mut sql, asked, conditions)?;
            sql
        }
        Some(most) => {
            let mut sql = Sql::new(backend, "SELECT count(*) FROM (SELECT 1 FROM documents WHERE ");
            push_where(&mut sql, asked, conditions)?;
            sql.push_limit(most).push(") AS matching");
            sql
        }
    };
    let row = one_row(connection, sql).await?;
    Ok(row.map_or(Ok(0), |row| row.integer(0))?.cast_unsigned())
}

/// How many documents match for each combination of values, ordered by them.
/// [`Error::TooLarge`] where there are more than `limit` combinations.
pub async fn count_by(
    connection: &mut Connection,
    asked: Asked<'_>,
    conditions: &[Condition],
    fields: &[String],
    limit: u32,
) -> Result<Vec<Group>, QueryError> {
    if fields.is_empty() || fields.len() > MAX_ORDER {
        return Err(QueryError::Misuse(format!("counts are grouped by 1 to {MAX_ORDER} fields")));
    }
    let fields: Vec<Field<'_>> =
        fields.iter().map(|name| asked.scope.field(name)).collect::<Result<_, _>>()?;
    let sql = groups_sql(connection.backend(), asked, conditions, &fields, limit)?;
    let mut groups = Vec::new();
    each_row(connection, sql, |row| {
        let values = values(&row, 1, fields.iter().map(|field| field.kind))?;
        groups.push(Group { values, count: row.integer(0)?.cast_unsigned() });
        Ok(())
    })
    .await?;
    if groups.len() > limit as usize {
        return Err(Error::TooLarge.into());
    }
    Ok(groups)
}

/// A row for each combination, and one more than the limit. PostgreSQL is made
/// (by `OFFSET 0`) to take a document's values out of its body once, and not
/// again for every step.
fn groups_sql(
    backend: Backend,
    asked: Asked<'_>,
    conditions: &[Condition],
    fields: &[Field<'_>],
    limit: u32,
) -> Result<Sql, QueryError> {
    let names: Vec<String> = (0..fields.len()).map(|at| format!("g{at}")).collect();
    let value = |(field, name): (&Field<'_>, &String)| format!("{} AS {name}", field.sql(backend));
    let values: Vec<String> = fields.iter().zip(&names).map(value).collect();
    let (all, values) = (names.join(", "), values.join(", "));
    let (begin, end, nulls) = match backend {
        Backend::Sqlite => (values, "", ""),
        Backend::Postgres => {
            (format!("{all} FROM (SELECT {values}"), " OFFSET 0) AS d", " NULLS FIRST")
        }
    };
    let mut sql = Sql::new(backend, "SELECT count(*), ");
    sql.push(&begin).push(" FROM documents WHERE ");
    push_where(&mut sql, asked, conditions)?;
    sql.push(end).push(" GROUP BY ").push(&all).push(" ORDER BY ");
    sql.push(&names.join(&format!("{nulls}, "))).push(nulls).push_limit(limit + 1);
    Ok(sql)
}

/// Whether a position's values are still of the fields' kinds, which a later
/// version of the area may have changed.
fn fits(keys: &[SortKey<'_>], position: &Position) -> bool {
    keys.iter().zip(&position.values).all(|(key, value)| key.field.arg(value).is_ok())
}

fn values(
    row: &Row,
    from: usize,
    kinds: impl Iterator<Item = FieldKind>,
) -> Result<Vec<Value>, Error> {
    let value = |(at, kind)| {
        Ok(match kind {
            FieldKind::Text => row.maybe_text(at)?.map(Value::Text),
            FieldKind::Integer => row.maybe_integer(at)?.map(Value::Integer),
            FieldKind::Boolean => row.maybe_boolean(at)?.map(Value::Boolean),
        }
        .unwrap_or(Value::Null))
    };
    kinds.enumerate().map(|(at, kind)| (from + at, kind)).map(value).collect()
}

/// Where the document of an id stands in an order.
async fn position_of(
    connection: &mut Connection,
    asked: Asked<'_>,
    keys: &[SortKey<'_>],
    id: &str,
) -> Result<Position, QueryError> {
    if id.contains('\0') {
        return Err(Error::NotFound.into());
    }
    let backend = connection.backend();
    let mut sql = Sql::new(backend, "SELECT id");
    for key in keys {
        sql.push(", ").push(&key.field.sql(backend));
    }
    sql.push(" FROM documents WHERE ");
    push_place(&mut sql, asked.place()).push(" AND id = ").bind(Arg::Text(id.to_owned()));
    let row = one_row(connection, sql).await?.ok_or(Error::NotFound)?;
    let values = values(&row, 1, keys.iter().map(|key| key.field.kind))?;
    Ok(Position { values, id: id.to_owned() })
}

impl<'a> Asked<'a> {
    fn place(&self) -> Place<'a> {
        Place { workspace: self.workspace, collection: &self.scope.full_name }
    }
}

/// What follows `WHERE` in every question.
pub(super) fn push_where(
    sql: &mut Sql,
    asked: Asked<'_>,
    conditions: &[Condition],
) -> Result<(), QueryError> {
    if conditions.len() > MAX_CONDITIONS {
        return Err(QueryError::Misuse(format!("a query has at most {MAX_CONDITIONS} conditions")));
    }
    push_place(sql, asked.place());
    for condition in conditions {
        push_condition(sql, asked.scope, asked.folding, condition)?;
    }
    Ok(())
}
