//! Paging by key: the statement of one page.
//!
//! What comes after a position is a list of segments, in order and disjoint:
//! the rest of those equal to it, then for each field, from the last to the
//! first, what differs there, nulls apart. Where an index can walk the order,
//! each segment is a range of that index, and the page is the beginning of
//! their union; elsewhere one pass over the documents tests for all of them.

use super::Backend;
use super::cursor::Position;
use super::documents::columns;
use super::fields::Field;
use super::listed::{Listed, is_indexed, listed};
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
    match (after.map(|after| segments(keys, after)), listed) {
        (None, Some(listed)) => page.push_of_keys(&mut sql, None, listed)?,
        (None, None) => page.push_all(&mut sql)?,
        (Some(segments), listed) if segments.len() > 1 && is_indexed(asked.scope, query) => {
            let beyond = listed.map(|listed| listed.beyond(after));
            page.push_union(&mut sql, &segments, beyond)?;
        }
        (Some(segments), _) => page.push_filtered(&mut sql, &segments)?,
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
    fn push_all(self, sql: &mut Sql) -> Result<(), QueryError> {
        self.push_select(sql)?;
        self.push_end(sql);
        Ok(())
    }

    /// Documents of listed values, value after value.
    fn push_of_keys(
        self,
        sql: &mut Sql,
        after: Option<&Position>,
        Listed { values, query }: Listed,
    ) -> Result<(), QueryError> {
        let page = PageSql { query: &query, ..self };
        sql.push("SELECT d.* FROM unnest(").bind(Arg::Texts(values));
        sql.push("::text[]) WITH ORDINALITY AS t(value, place) CROSS JOIN LATERAL (");
        page.push_select(sql)?;
        if let Some(first) = self.keys.first() {
            let name = first.field.sql(sql.backend);
            sql.push(" AND ").push(&name).push(" = t.value");
        }
        if let Some(after) = after {
            push_any(sql, &segments(self.keys, after))?;
        }
        page.push_end(sql);
        let names: Vec<String> = (0..self.keys.len()).map(|at| format!("d.k{at}")).collect();
        sql.push(") AS d");
        page.push_order(sql, Some("t.place"), &names, "d.id");
        page.push_limit(sql);
        Ok(())
    }

    fn push_filtered(self, sql: &mut Sql, segments: &[Segment<'_>]) -> Result<(), QueryError> {
        self.push_select(sql)?;
        push_any(sql, segments)?;
        self.push_end(sql);
        Ok(())
    }

    /// With a list, what is beyond the first field's value is of the list.
    fn push_union(
        self,
        sql: &mut Sql,
        segments: &[Segment<'_>],
        beyond: Option<Listed>,
    ) -> Result<(), QueryError> {
        let of_list = |segment: &&Segment<'_>| beyond.is_some() && segment.equal.is_empty();
        for (at, segment) in segments.iter().filter(|segment| !of_list(segment)).enumerate() {
            sql.push(if at == 0 { "" } else { " UNION ALL " }).push("SELECT * FROM (");
            self.push_select(sql)?;
            sql.push(" AND ");
            segment.push(sql)?;
            self.push_end(sql);
            sql.push(&format!(") AS s{at}"));
        }
        if let Some(beyond) = beyond {
            sql.push(" UNION ALL SELECT * FROM (");
            self.push_of_keys(sql, None, beyond)?;
            sql.push(") AS listed");
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

/// Writes ` AND (…)`: in one of the segments.
fn push_any(sql: &mut Sql, segments: &[Segment<'_>]) -> Result<(), QueryError> {
    sql.push(" AND (");
    for (at, segment) in segments.iter().enumerate() {
        sql.push(if at == 0 { "" } else { " OR " });
        segment.push(sql)?;
    }
    sql.push(")");
    Ok(())
}
