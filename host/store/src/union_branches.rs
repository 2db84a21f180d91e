//! Queries with lists of values (`one_of`) for fields that an index has before
//! the query's order.
//!
//! For one value, the index has the query's order; for several, it does not,
//! and the database would read and sort all documents of all values. So a page
//! of a few values is the start of the union of one page for each value.

use super::scope::AccessibleCollection;
use assurance_core::domain::document::{FieldTest, FieldValue, Query};

/// Maximum number of index ranges whose union forms a page of a query.
const MAX_BRANCHES: usize = 4;

/// Splits a query with lists of values (`one_of`) into queries whose results
/// together are those of this one, each in the order of an index. Returns the
/// query alone if it has no list before its order; `None` if no index has the
/// order.
pub(super) fn union_branches(scope: &AccessibleCollection, query: &Query) -> Option<Vec<Query>> {
    let first = query.order.first()?;
    let of_index = |fields: &[String]| {
        let at = fields.iter().position(|field| *field == first.field)?;
        split(query, &fields[..at])
    };
    scope.indexes.iter().filter_map(|index| of_index(&index.fields)).min_by_key(Vec::len)
}

/// Returns the query for each combination of values of the `before` fields;
/// `None` if it neither fixes nor lists one of them, or for more than
/// [`MAX_BRANCHES`] combinations.
fn split(query: &Query, before: &[String]) -> Option<Vec<Query>> {
    let mut branches = vec![query.clone()];
    for field in before {
        let fixed = tests(query, field).any(|(_, test)| matches!(test, FieldTest::Equals(_)));
        if fixed {
            continue;
        }
        let (at, values) = tests(query, field).find_map(|(at, test)| Some((at, listed(test)?)))?;
        if branches.len() * values.len() > MAX_BRANCHES {
            return None;
        }
        let of_values =
            |branch: Query| values.iter().map(move |value| with(branch.clone(), at, value));
        branches = branches.into_iter().flat_map(of_values).collect();
    }
    Some(branches)
}

/// Returns the query's tests of this field alone, each with the index of its
/// condition.
fn tests<'q>(query: &'q Query, field: &'q str) -> impl Iterator<Item = (usize, &'q FieldTest)> {
    let conditions = query.conditions.iter().enumerate();
    conditions
        .filter(move |(_, condition)| condition.fields == [field])
        .map(|(at, condition)| (at, &condition.test))
}

/// Returns the distinct values of a `one_of` test; `None` for other tests, an
/// empty list, or more than [`MAX_BRANCHES`] values.
fn listed(test: &FieldTest) -> Option<Vec<&FieldValue>> {
    let FieldTest::OneOf(values) = test else { return None };
    if values.is_empty() || values.len() > MAX_BRANCHES {
        return None;
    }
    let mut values: Vec<&FieldValue> = values.iter().collect();
    values.sort_unstable();
    values.dedup();
    Some(values)
}

fn with(mut query: Query, at: usize, value: &FieldValue) -> Query {
    query.conditions[at].test = FieldTest::Equals(value.clone());
    query
}

#[cfg(test)]
mod tests {
    use super::super::keyset::{page_sql, sort_keys};
    use super::super::query::QueryTarget;
    use super::*;
    use crate::Backend;
    use crate::collections::ensure;
    use crate::connection::DriverConnection;
    use crate::cursor::CursorPosition;
    use crate::sql::{Row, each_row};
    use crate::testing::{explained, fresh};
    use assurance_core::domain::document::{PageStart, QueryCondition, SortField};
    use assurance_core::domain::id::WorkspaceId;
    use assurance_core::domain::manifest::{FieldKind, IndexSpec};

    fn scope() -> AccessibleCollection {
        let kinds = [("done", FieldKind::Boolean), ("name", FieldKind::Text)];
        AccessibleCollection {
            full_name: "a.b".into(),
            fields: kinds.map(|(name, kind)| (name.to_owned(), kind)).into(),
            indexes: vec![IndexSpec { fields: vec!["done".into(), "name".into()], unique: false }],
            ..AccessibleCollection::default()
        }
    }

    fn query(done: FieldTest) -> Query {
        Query {
            collection: "a.b".into(),
            conditions: vec![QueryCondition { fields: vec!["done".into()], test: done }],
            order: vec![SortField { field: "name".into(), descending: false }],
            limit: 9,
            start: PageStart::First,
        }
    }

    fn truths(values: &[bool]) -> FieldTest {
        FieldTest::OneOf(values.iter().copied().map(FieldValue::Boolean).collect())
    }

    #[test]
    fn each_value_is_asked_for_once_unless_they_are_many() {
        let count = |test| union_branches(&scope(), &query(test)).map(|branches| branches.len());
        assert_eq!(count(FieldTest::Equals(FieldValue::Null)), Some(1));
        assert_eq!(count(truths(&[true, false, true])), Some(2));
        assert_eq!(count(truths(&[])), None);
        assert_eq!(count(truths(&[true; MAX_BRANCHES + 1])), None);
        assert_eq!(count(FieldTest::Range(None, None)), None);
    }

    /// Returns the number of documents that each index scan of a page returned.
    async fn rows_read(query: &Query, after: Option<&CursorPosition>) -> Option<Vec<u32>> {
        let fresh = fresh(Backend::Postgres).await?;
        let (workspace, scope) = (WorkspaceId::new(), scope());
        ensure(&fresh.store, std::slice::from_ref(&scope)).await.unwrap();
        let mut connection = fresh.store.writer().await.unwrap();
        let DriverConnection::Postgres(c) = connection.raw() else { return None };
        let fill = "INSERT INTO documents SELECT $1, 'a.b', n::text, 1, 0, 0, \
                    jsonb_build_object('name', 'n' || n, 'done', n % 3 = 0) \
                    FROM generate_series(1, 3000) AS n";
        sqlx::query(fill).bind(workspace.0).execute(&mut *c).await.unwrap();
        sqlx::raw_sql("ANALYZE documents").execute(c).await.unwrap();
        let target = QueryTarget { workspace, scope: &scope, folding: "", use_search_table: false };
        let keys = sort_keys(&scope, &query.order).unwrap();
        let sql = page_sql(Backend::Postgres, target, query, &keys, after).unwrap();
        let plan = explained(&mut connection, sql).await;
        let scans = plan.iter().filter(|line| line.contains("Scan using index_"));
        let rows = |line: &String| line.split("rows=").nth(1)?.split(' ').next()?.parse().ok();
        Some(scans.filter_map(rows).collect())
    }

    #[tokio::test]
    async fn no_more_of_a_value_is_read_than_a_page_takes() {
        let query = query(truths(&[true, false]));
        let last = CursorPosition { values: vec![FieldValue::Text("n17".into())], id: "17".into() };
        for (after, ranges) in [(None, 2), (Some(&last), 4)] {
            let Some(read) = rows_read(&query, after).await else { return };
            assert_eq!(read.len(), ranges, "{read:?}");
            assert!(read.iter().all(|rows| *rows <= query.limit + 1), "{read:?}");
        }
    }

    #[tokio::test]
    async fn documents_with_one_value_are_read_in_the_order_of_the_index() {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let (workspace, scope) = (WorkspaceId::new(), scope());
        ensure(&fresh.store, std::slice::from_ref(&scope)).await.unwrap();
        let target = QueryTarget { workspace, scope: &scope, folding: "", use_search_table: false };
        let mut connection = fresh.store.reader().await.unwrap();
        for descending in [false, true] {
            let mut query = query(FieldTest::Equals(FieldValue::Boolean(true)));
            query.order[0].descending = descending;
            let keys = sort_keys(&scope, &query.order).unwrap();
            let name = FieldValue::Text("n".into());
            let after = CursorPosition { values: vec![name], id: "17".into() };
            let mut sql = page_sql(Backend::Sqlite, target, &query, &keys, Some(&after)).unwrap();
            sql.text.insert_str(0, "EXPLAIN QUERY PLAN ");
            let mut steps = Vec::new();
            let step = |row: Row| {
                steps.push((row.integer(1)?, row.text(3)?));
                Ok(())
            };
            each_row(&mut connection, sql, step).await.unwrap();
            let searches = steps.iter().filter(|(_, step)| step.starts_with("SEARCH"));
            for (parent, search) in searches {
                let sorts = |(of, step): &&(i64, String)| of == parent && step.contains("ORDER BY");
                assert_eq!(steps.iter().find(sorts), None, "{search}");
            }
        }
    }
}
