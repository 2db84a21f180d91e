//! Paging by key: the statement of one page.
//!
//! What comes after a position is a list of segments, in order and disjoint:
//! the rest of those equal to it, then for each field, from the last to the
//! first, what differs there, nulls apart. Where an index can walk the order,
//! each segment is a range of that index (one for each of its `arms`), and the
//! page is the beginning of their union; elsewhere one pass over the documents
//! tests for all of them.

use super::Backend;
use super::arms::arms;
use super::cursor::Position;
use super::documents::columns;
use super::fields::Field;
use super::listed::{Listed, listed};
use super::query::{Asked, MAX_ORDER, QueryError, push_where};
use super::scope::CollectionScope;
use super::sql::{Arg, Sql};
use crate::domain::document::{Order, Query, Value};

/// One step of an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortKey<'a> {
    pub(super) field: Field<'a>,
    pub(super) descending: bool,
}

pub(super) fn sort_keys<'a>(
    scope: &'a CollectionScope,
    order: &[Order],
) -> Result<Vec<SortKey<'a>>, QueryError> {
    if order.len() > MAX_ORDER {
        return Err(QueryError::Misuse(format!("an order has at most {MAX_ORDER} fields")));
    }
    let key = |step: &Order| {
        Ok(SortKey { field: scope.field(&step.field)?, descending: step.descending })
    };
    order.iter().map(key).collect()
}

/// The statement of one page: the columns of a document, then those of the
/// order, and one row more than the page, which tells whether there is a next.
pub(super) fn page_sql(
    backend: Backend,
    asked: Asked<'_>,
    query: &Query,
    keys: &[SortKey<'_>],
    after: Option<&Position>,
) -> Result<Sql, QueryError> {
    let page = PageSql { asked, query, keys };
    let mut sql = Sql::new(backend, "");
    let listed = listed(backend, asked.scope, query);
    let segments = after.map(|after| segments(keys, after)).unwrap_or_default();
    match (listed, arms(asked.scope, query)) {
        (Some(listed), _) if after.is_none() => page.push_of_keys(&mut sql, None, listed)?,
        (listed, Some(arms)) if arms.len() > 1 || segments.len() > 1 => {
            let beyond = listed.map(|listed| listed.beyond(after));
            page.push_union(&mut sql, &arms, &segments, beyond)?;
        }
        _ => page.push_filtered(&mut sql, &segments)?,
    }
    Ok(sql)
}

/// The statement of one page of documents that have one of these values in the
/// first field of the order, which are in order themselves: what the first of
/// them have is read first, and no more than the page takes.
pub(super) fn page_of_keys_sql(
    backend: Backend,
    asked: Asked<'_>,
    query: &Query,
    keys: &[SortKey<'_>],
    (after, values): (Option<&Position>, Vec<String>),
) -> Result<Sql, QueryError> {
    let mut sql = Sql::new(backend, "");
    let listed = Listed { values, query: query.clone() };
    PageSql { asked, query, keys }.push_of_keys(&mut sql, after, listed)?;
    Ok(sql)
}

#[derive(Clone, Copy, Debug)]
struct PageSql<'a> {
    asked: Asked<'a>,
    query: &'a Query,
    keys: &'a [SortKey<'a>],
}

impl PageSql<'_> {
    /// Documents of listed values, value after value.
    fn push_of_keys(
        self,
        sql: &mut Sql,
        after: Option<&Position>,
        Listed { values, query }: Listed,
    ) -> Result<(), QueryError> {
        let arms = arms(self.asked.scope, &query).unwrap_or_else(|| vec![query.clone()]);
        let segments = after.map(|after| segments(self.keys, after)).unwrap_or_default();
        sql.push("SELECT d.* FROM unnest(").bind(Arg::Texts(values));
        sql.push("::text[]) WITH ORDINALITY AS t(value, place) CROSS JOIN LATERAL (");
        for (at, arm) in arms.iter().enumerate() {
            let page = PageSql { query: arm, ..self };
            push_part(sql, at, |sql| page.push_of_value(sql, &segments))?;
        }
        let names: Vec<String> = (0..self.keys.len()).map(|at| format!("d.k{at}")).collect();
        sql.push(") AS d");
        self.push_order(sql, Some("t.place"), &names, "d.id");
        self.push_limit(sql);
        Ok(())
    }

    /// What one of the listed values has.
    fn push_of_value(self, sql: &mut Sql, segments: &[Segment<'_>]) -> Result<(), QueryError> {
        self.push_select(sql)?;
        if let Some(first) = self.keys.first() {
            let name = first.field.sql(sql.backend);
            sql.push(" AND ").push(&name).push(" = t.value");
        }
        push_any(sql, segments)?;
        self.push_end(sql);
        Ok(())
    }

    fn push_filtered(self, sql: &mut Sql, segments: &[Segment<'_>]) -> Result<(), QueryError> {
        self.push_select(sql)?;
        push_any(sql, segments)?;
        self.push_end(sql);
        Ok(())
    }

    /// Segment by segment of each arm; where the order's first field has a list,
    /// what is beyond the position's value is of the list.
    fn push_union(
        self,
        sql: &mut Sql,
        arms: &[Query],
        segments: &[Segment<'_>],
        beyond: Option<Listed>,
    ) -> Result<(), QueryError> {
        let of_list = |segment: &&Segment<'_>| beyond.is_some() && segment.equal.is_empty();
        let ranges: Vec<&[Segment<'_>]> = match segments {
            [] => vec![&[]],
            _ => segments.iter().filter(|s| !of_list(s)).map(std::slice::from_ref).collect(),
        };
        let of_arm = |query| ranges.iter().map(move |range| (PageSql { query, ..self }, *range));
        let mut parts = 0;
        for (page, range) in arms.iter().flat_map(of_arm) {
            push_part(sql, parts, |sql| page.push_filtered(sql, range))?;
            parts += 1;
        }
        if let Some(beyond) = beyond {
            push_part(sql, parts, |sql| self.push_of_keys(sql, None, beyond))?;
        }
        // By the place of the columns, which is all a union knows of them.
        let place = |at: usize| (columns_before_keys() + at + 1).to_string();
        let names: Vec<String> = (0..self.keys.len()).map(place).collect();
        self.push_order(sql, None, &names, "1");
        self.push_limit(sql);
        Ok(())
    }

    fn push_select(self, sql: &mut Sql) -> Result<(), QueryError> {
        let columns = columns(sql.backend);
        sql.push("SELECT ").push(columns);
        for (at, key) in self.keys.iter().enumerate() {
            let name = key.field.sql(sql.backend);
            sql.push(&format!(", {name} AS k{at}"));
        }
        sql.push(" FROM documents WHERE ");
        push_where(sql, self.asked, &self.query.conditions)
    }

    fn push_end(self, sql: &mut Sql) {
        let names: Vec<String> = self.keys.iter().map(|key| key.field.sql(sql.backend)).collect();
        self.push_order(sql, None, &names, "id");
        self.push_limit(sql);
    }

    /// Nulls are the least value: SQLite's habit, and so PostgreSQL is told.
    fn push_order(self, sql: &mut Sql, before: Option<&str>, names: &[String], id: &str) {
        sql.push(" ORDER BY ");
        if let Some(before) = before {
            sql.push(before).push(", ");
        }
        for (name, key) in names.iter().zip(self.keys) {
            let direction = match (sql.backend, key.descending) {
                (Backend::Sqlite, false) => ", ",
                (Backend::Sqlite, true) => " DESC, ",
                (Backend::Postgres, false) => " NULLS FIRST, ",
                (Backend::Postgres, true) => " DESC NULLS LAST, ",
            };
            sql.push(name).push(direction);
        }
        sql.push(id).push(if id_descending(self.keys) { " DESC" } else { "" });
    }

    fn push_limit(self, sql: &mut Sql) {
        sql.push_limit(self.query.limit + 1);
    }
}

/// How many columns of a document stand before those of the order.
pub(super) const fn columns_before_keys() -> usize {
    5
}

/// The direction of the id, which breaks ties.
fn id_descending(keys: &[SortKey<'_>]) -> bool {
    keys.last().is_none_or(|key| key.descending)
}

/// Some of what comes after a position: the first keys are equal to it, and
/// the next differs.
#[derive(Debug)]
struct Segment<'a> {
    equal: Vec<(Field<'a>, &'a Value)>,
    then: Then<'a>,
}

#[derive(Debug)]
enum Then<'a> {
    Beyond(SortKey<'a>, &'a Value),
    Null(Field<'a>),
    NotNull(Field<'a>),
    Id { beyond: &'a str, descending: bool },
}

fn segments<'a>(keys: &[SortKey<'a>], after: &'a Position) -> Vec<Segment<'a>> {
    let equal = |count: usize| -> Vec<(Field<'a>, &'a Value)> {
        keys.iter().zip(&after.values).take(count).map(|(key, value)| (key.field, value)).collect()
    };
    let ties = Then::Id { beyond: &after.id, descending: id_descending(keys) };
    let mut segments = vec![Segment { equal: equal(keys.len()), then: ties }];
    for (at, (key, value)) in keys.iter().zip(&after.values).enumerate().rev() {
        let thens = match (value, key.descending) {
            (Value::Null, false) => vec![Then::NotNull(key.field)],
            (Value::Null, true) => vec![],
            (_, false) => vec![Then::Beyond(*key, value)],
            (_, true) => vec![Then::Beyond(*key, value), Then::Null(key.field)],
        };
        segments.extend(thens.into_iter().map(|then| Segment { equal: equal(at), then }));
    }
    segments
}

impl Segment<'_> {
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
            Then::Null(field) => sql.push(&field.sql(sql.backend)).push(" IS NULL"),
            Then::NotNull(field) => sql.push(&field.sql(sql.backend)).push(" IS NOT NULL"),
            Then::Id { beyond, descending } => sql
                .push(if *descending { "id < " } else { "id > " })
                .bind(Arg::Text((*beyond).to_owned())),
            Then::Beyond(key, value) => {
                sql.push(&key.field.sql(sql.backend));
                sql.push(if key.descending { " < " } else { " > " });
                // A null is never beyond anything; `segments` sees to it.
                sql.bind(key.field.arg(value)?.unwrap_or(Arg::MaybeText(None)))
            }
        };
        sql.push(")");
        Ok(())
    }
}

/// Writes ` AND (…)`: in one of the segments, where there are any.
fn push_any(sql: &mut Sql, segments: &[Segment<'_>]) -> Result<(), QueryError> {
    for (at, segment) in segments.iter().enumerate() {
        sql.push(if at == 0 { " AND (" } else { " OR " });
        segment.push(sql)?;
    }
    sql.push(if segments.is_empty() { "" } else { ")" });
    Ok(())
}

/// Writes one part of a union, whose order and limit are its own.
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
