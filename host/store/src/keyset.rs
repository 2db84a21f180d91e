//! Keyset pagination: the statement of one page.
//!
//! The documents after a position are a list of disjoint segments in order:
//! first those that equal the position except for the id; then, for each field
//! from the last to the first, those that differ in it (nulls separately). If
//! an index has the order, each segment is a range of that index (one for each
//! of its `branches`), and the page is the start of their union. Otherwise one
//! scan of the documents tests for all segments.

use super::Backend;
use super::cursor::CursorPosition;
use super::documents::columns;
use super::fields::DeclaredField;
use super::listed::{OneOfQuery, listed};
use super::query::{MAX_ORDER, QueryError, QueryTarget, push_matching};
use super::scope::AccessibleCollection;
use super::sql::{Sql, SqlParameter};
use super::union_branches::union_branches;
use assurance_core::domain::document::{FieldValue, Query, SortField};

/// One field of a sort order.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortKey<'a> {
    pub(super) field: DeclaredField<'a>,
    pub(super) descending: bool,
}

pub(super) fn sort_keys<'a>(
    scope: &'a AccessibleCollection,
    order: &[SortField],
) -> Result<Vec<SortKey<'a>>, QueryError> {
    if order.len() > MAX_ORDER {
        return Err(QueryError::Misuse(format!("an order has at most {MAX_ORDER} fields")));
    }
    let key = |step: &SortField| {
        Ok(SortKey { field: scope.field(&step.field)?, descending: step.descending })
    };
    order.iter().map(key).collect()
}

/// Returns the statement of one page of a query: the columns of a document,
/// then those of the sort order. It returns one row more than the page, which
/// shows whether there is a next page.
pub(super) fn page_sql(
    backend: Backend,
    target: QueryTarget<'_>,
    query: &Query,
    keys: &[SortKey<'_>],
    after: Option<&CursorPosition>,
) -> Result<Sql, QueryError> {
    let page = PageSqlBuilder { target, query, keys };
    let mut sql = Sql::new(backend, "");
    let listed = listed(backend, target.scope, query);
    let segments = after.map(|after| segments(keys, after)).unwrap_or_default();
    match (listed, union_branches(target.scope, query)) {
        (Some(listed), _) if after.is_none() => page.push_of_keys(&mut sql, None, listed)?,
        (listed, Some(branches)) if branches.len() > 1 || segments.len() > 1 => {
            let beyond = listed.map(|listed| listed.beyond(after));
            page.push_union(&mut sql, &branches, &segments, beyond)?;
        }
        _ => page.push_filtered(&mut sql, &segments)?,
    }
    Ok(sql)
}

/// Returns the statement of one page of documents with one of these values in
/// the first field of the order. The values are sorted. The documents of the
/// first values are read first, and no more than the page needs.
pub(super) fn page_of_keys_sql(
    backend: Backend,
    target: QueryTarget<'_>,
    query: &Query,
    keys: &[SortKey<'_>],
    (after, values): (Option<&CursorPosition>, Vec<String>),
) -> Result<Sql, QueryError> {
    let mut sql = Sql::new(backend, "");
    let listed = OneOfQuery { values, query: query.clone() };
    PageSqlBuilder { target, query, keys }.push_of_keys(&mut sql, after, listed)?;
    Ok(sql)
}

#[derive(Clone, Copy, Debug)]
struct PageSqlBuilder<'a> {
    target: QueryTarget<'a>,
    query: &'a Query,
    keys: &'a [SortKey<'a>],
}

impl PageSqlBuilder<'_> {
    /// Appends the query of the documents with the listed values in the first
    /// field of the order, value by value.
    fn push_of_keys(
        self,
        sql: &mut Sql,
        after: Option<&CursorPosition>,
        OneOfQuery { values, query }: OneOfQuery,
    ) -> Result<(), QueryError> {
        let branches =
            union_branches(self.target.scope, &query).unwrap_or_else(|| vec![query.clone()]);
        let segments = after.map(|after| segments(self.keys, after)).unwrap_or_default();
        sql.push("SELECT d.* FROM ").push_unnest([SqlParameter::Texts(values)]);
        sql.push(" WITH ORDINALITY AS t(value, place) CROSS JOIN LATERAL (");
        for (at, branch) in branches.iter().enumerate() {
            let page = PageSqlBuilder { query: branch, ..self };
            push_part(sql, at, |sql| page.push_of_value(sql, &segments))?;
        }
        sql.push(") AS d ORDER BY t.place, ");
        self.push_order_and_limit(sql, 0, |at| format!("d.k{at}"), "d.id");
        Ok(())
    }

    /// Appends the query of the documents with one of the listed values in the
    /// first field of the order.
    fn push_of_value(
        self,
        sql: &mut Sql,
        segments: &[RangeAfterCursor<'_>],
    ) -> Result<(), QueryError> {
        self.push_select(sql)?;
        if let Some(first) = self.keys.first() {
            let name = first.field.sql(sql.backend);
            sql.push(" AND ").push(&name).push(" = t.value");
        }
        push_any(sql, segments)?;
        self.push_end(sql, 0);
        Ok(())
    }

    fn push_filtered(
        self,
        sql: &mut Sql,
        segments: &[RangeAfterCursor<'_>],
    ) -> Result<(), QueryError> {
        self.push_select(sql)?;
        push_any(sql, segments)?;
        self.push_end(sql, if let [range] = segments { range.fixed_keys() } else { 0 });
        Ok(())
    }

    /// Appends the union of the index ranges (`segments`) of each branch. If
    /// the order's first field has a list of values, documents after the
    /// position's value come from that list (`beyond`).
    fn push_union(
        self,
        sql: &mut Sql,
        branches: &[Query],
        segments: &[RangeAfterCursor<'_>],
        beyond: Option<OneOfQuery>,
    ) -> Result<(), QueryError> {
        let of_list =
            |segment: &&RangeAfterCursor<'_>| beyond.is_some() && segment.equal.is_empty();
        let ranges: Vec<&[RangeAfterCursor<'_>]> = match segments {
            [] => vec![&[]],
            _ => segments.iter().filter(|s| !of_list(s)).map(std::slice::from_ref).collect(),
        };
        let of_branch =
            |query| ranges.iter().map(move |range| (PageSqlBuilder { query, ..self }, *range));
        let mut parts = 0;
        for (page, range) in branches.iter().flat_map(of_branch) {
            push_part(sql, parts, |sql| page.push_filtered(sql, range))?;
            parts += 1;
        }
        if let Some(beyond) = beyond {
            push_part(sql, parts, |sql| self.push_of_keys(sql, None, beyond))?;
        }
        // Refers to columns by position, because a union has no other names.
        let place = |at: usize| (COLUMNS_BEFORE_KEYS + at + 1).to_string();
        sql.push(" ORDER BY ");
        self.push_order_and_limit(sql, 0, place, "1");
        Ok(())
    }

    fn push_select(self, sql: &mut Sql) -> Result<(), QueryError> {
        let columns = columns(sql.backend);
        sql.push("SELECT ").push(columns);
        for (at, key) in self.keys.iter().enumerate() {
            let name = key.field.sql(sql.backend);
            sql.push(&format!(", {name} AS k{at}"));
        }
        push_matching(sql, self.target, &self.query.conditions)
    }

    fn push_end(self, sql: &mut Sql, fixed_keys: usize) {
        let backend = sql.backend;
        sql.push(" ORDER BY ");
        self.push_order_and_limit(sql, fixed_keys, |at| self.keys[at].field.sql(backend), "id");
    }

    /// Appends the order of the columns with these names, and the limit. The
    /// first `fixed_keys` have one value in all rows and are left out, because
    /// SQLite would sort by them. Nulls are the smallest value: SQLite's
    /// default, `NULLS FIRST` on PostgreSQL.
    fn push_order_and_limit(
        self,
        sql: &mut Sql,
        fixed_keys: usize,
        name: impl Fn(usize) -> String,
        id: &str,
    ) {
        for (at, key) in self.keys.iter().enumerate().skip(fixed_keys) {
            let direction = match (sql.backend, key.descending) {
                (Backend::Sqlite, false) => ", ",
                (Backend::Sqlite, true) => " DESC, ",
                (Backend::Postgres, false) => " NULLS FIRST, ",
                (Backend::Postgres, true) => " DESC NULLS LAST, ",
            };
            sql.push(&name(at)).push(direction);
        }
        sql.push(id).push(if id_descending(self.keys) { " DESC" } else { "" });
        sql.push_limit(self.query.limit + 1);
    }
}

/// Number of a document's columns in a row, which come before those of the sort
/// order.
pub(super) const COLUMNS_BEFORE_KEYS: usize = 5;

/// Returns whether the ids of documents, which break ties, are in descending
/// order.
fn id_descending(keys: &[SortKey<'_>]) -> bool {
    keys.last().is_none_or(|key| key.descending)
}

/// A range of the documents after a cursor position: the first sort keys are
/// equal to the position's, and the next one differs.
#[derive(Debug)]
struct RangeAfterCursor<'a> {
    equal: Vec<(DeclaredField<'a>, &'a FieldValue)>,
    then: NextKeyCondition<'a>,
}

#[derive(Debug)]
enum NextKeyCondition<'a> {
    Beyond(SortKey<'a>, &'a FieldValue),
    Null(DeclaredField<'a>),
    NotNull(DeclaredField<'a>),
    Id { beyond: &'a str, descending: bool },
}

fn segments<'a>(keys: &[SortKey<'a>], after: &'a CursorPosition) -> Vec<RangeAfterCursor<'a>> {
    let equal = |count: usize| -> Vec<(DeclaredField<'a>, &'a FieldValue)> {
        keys.iter().zip(&after.values).take(count).map(|(key, value)| (key.field, value)).collect()
    };
    let ties = NextKeyCondition::Id { beyond: &after.id, descending: id_descending(keys) };
    let mut segments = vec![RangeAfterCursor { equal: equal(keys.len()), then: ties }];
    for (at, (key, value)) in keys.iter().zip(&after.values).enumerate().rev() {
        let thens = match (value, key.descending) {
            (FieldValue::Null, false) => vec![NextKeyCondition::NotNull(key.field)],
            (FieldValue::Null, true) => vec![],
            (_, false) => vec![NextKeyCondition::Beyond(*key, value)],
            (_, true) => {
                vec![NextKeyCondition::Beyond(*key, value), NextKeyCondition::Null(key.field)]
            }
        };
        segments.extend(thens.into_iter().map(|then| RangeAfterCursor { equal: equal(at), then }));
    }
    segments
}

impl RangeAfterCursor<'_> {
    /// Returns the number of sort keys that have one value in the whole range.
    fn fixed_keys(&self) -> usize {
        self.equal.len() + usize::from(matches!(self.then, NextKeyCondition::Null(_)))
    }

    fn push(&self, sql: &mut Sql) -> Result<(), QueryError> {
        sql.push("(");
        for (field, value) in &self.equal {
            sql.push(&field.sql(sql.backend));
            match field.arg(value)? {
                Some(arg) => sql.push(" = ").bind(arg).push(" AND "),
                None => sql.push(" IS NULL AND "),
            };
        }
        match &self.then {
            NextKeyCondition::Null(field) => sql.push(&field.sql(sql.backend)).push(" IS NULL"),
            NextKeyCondition::NotNull(field) => {
                sql.push(&field.sql(sql.backend)).push(" IS NOT NULL")
            }
            NextKeyCondition::Id { beyond, descending } => {
                sql.push(if *descending { "id < " } else { "id > " }).bind(*beyond)
            }
            NextKeyCondition::Beyond(key, value) => {
                sql.push(&key.field.sql(sql.backend));
                sql.push(if key.descending { " < " } else { " > " });
                // Nothing is greater than a null in this direction; `segments`
                // never creates this case.
                sql.bind(key.field.arg(value)?.unwrap_or(SqlParameter::MaybeText(None)))
            }
        };
        sql.push(")");
        Ok(())
    }
}

/// Appends ` AND (…)` with the conditions of all these ranges; nothing if there
/// are none.
fn push_any(sql: &mut Sql, segments: &[RangeAfterCursor<'_>]) -> Result<(), QueryError> {
    for (at, segment) in segments.iter().enumerate() {
        sql.push(if at == 0 { " AND (" } else { " OR " });
        segment.push(sql)?;
    }
    sql.push(if segments.is_empty() { "" } else { ")" });
    Ok(())
}

/// Appends one part of a union with its own order and limit.
fn push_part(
    sql: &mut Sql,
    at: usize,
    part: impl FnOnce(&mut Sql) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    sql.push(if at == 0 { "" } else { " UNION ALL " }).push("SELECT * FROM (");
    part(sql)?;
    sql.push(&format!(") AS s{at}"));
    Ok(())
}
