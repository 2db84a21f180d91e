//! Lists of values (`one_of`) that an index has before the query's order.
//!
//! For one value the index is in that order, for several it is not: a database
//! left to itself reads all documents of all of them and sorts. So a page of a
//! few values is the beginning of the union of one page for each.

use super::scope::CollectionScope;
use crate::domain::document::{Query, Test, Value};

/// Most ranges of an index that a page is put together from.
const MOST: usize = 4;

/// Queries whose documents together are those of this one, each in the order
/// of an index: the query alone where no list is in the way. Nothing where no
/// index walks the order.
pub(super) fn arms(scope: &CollectionScope, query: &Query) -> Option<Vec<Query>> {
    let first = query.order.first()?;
    let of_index = |fields: &[String]| {
        let at = fields.iter().position(|field| *field == first.field)?;
        split(query, &fields[..at])
    };
    scope.indexes.iter().filter_map(|index| of_index(&index.fields)).min_by_key(Vec::len)
}

/// The query for each value of the fields that stand before its order in an
/// index, where it fixes or lists them all.
fn split(query: &Query, before: &[String]) -> Option<Vec<Query>> {
    let mut arms = vec![query.clone()];
    for field in before {
        let fixed = tests(query, field).any(|(_, test)| matches!(test, Test::Equals(_)));
        if fixed {
            continue;
        }
        let (at, values) = tests(query, field).find_map(|(at, test)| Some((at, listed(test)?)))?;
        if arms.len() * values.len() > MOST {
            return None;
        }
        let of_values = |arm: Query| values.iter().map(move |value| with(arm.clone(), at, value));
        arms = arms.into_iter().flat_map(of_values).collect();
    }
    Some(arms)
}

/// What the query asks of this field alone, and which condition that is.
fn tests<'q>(query: &'q Query, field: &'q str) -> impl Iterator<Item = (usize, &'q Test)> {
    let conditions = query.conditions.iter().enumerate();
    conditions
        .filter(move |(_, condition)| condition.fields == [field])
        .map(|(at, condition)| (at, &condition.test))
}

/// The values of a list, each once.
fn listed(test: &Test) -> Option<Vec<&Value>> {
    let Test::OneOf(values) = test else { return None };
    if values.is_empty() || values.len() > MOST {
        return None;
    }
    let mut values: Vec<&Value> = values.iter().collect();
    values.sort_unstable();
    values.dedup();
    Some(values)
}

fn with(mut query: Query, at: usize, value: &Value) -> Query {
    query.conditions[at].test = Test::Equals(value.clone());
    query
}

#[cfg(test)]
mod tests {
    use super::super::keyset::{page_sql, sort_keys};
    use super::super::query::Asked;
    use super::super::sql::{Row, each_row};
    use super::*;
    use crate::domain::document::{Condition, Order, Start};
    use crate::domain::id::WorkspaceId;
    use crate::domain::manifest::{FieldKind, Index};
    use crate::store::Backend;
    use crate::store::connection::Raw;
    use crate::store::cursor::Position;
    use crate::store::indexes::ensure_indexes;
    use crate::store::testing::fresh;

    fn scope() -> CollectionScope {
        let kinds = [("done", FieldKind::Boolean), ("name", FieldKind::Text)];
        CollectionScope {
            full_name: "a.b".into(),
            own: true,
            fields: kinds.map(|(name, kind)| (name.to_owned(), kind)).into(),
            indexes: vec![Index { fields: vec!["done".into(), "name".into()], unique: false }],
            searched: vec![],
        }
    }

    fn query(done: Test) -> Query {
        Query {
            collection: "a.b".into(),
            conditions: vec![Condition { fields: vec!["done".into()], test: done }],
            order: vec![Order { field: "name".into(), descending: false }],
            limit: 9,
            start: Start::First,
        }
    }

    fn truths(values: &[bool]) -> Test {
        Test::OneOf(values.iter().copied().map(Value::Boolean).collect())
    }

    #[test]
    fn each_value_is_asked_for_once_unless_they_are_many() {
        let count = |test| arms(&scope(), &query(test)).map(|arms| arms.len());
        assert_eq!(count(Test::Equals(Value::Null)), Some(1));
        assert_eq!(count(truths(&[true, false, true])), Some(2));
        assert_eq!(count(truths(&[])), None);
        assert_eq!(count(truths(&[true; MOST + 1])), None);
        assert_eq!(count(Test::Range(None, None)), None);
    }

    /// How many documents each index scan of a page gave.
    async fn rows_read(query: &Query, after: Option<&Position>) -> Option<Vec<u32>> {
        let fresh = fresh(Backend::Postgres).await?;
        let (workspace, scope) = (WorkspaceId::new(), scope());
        ensure_indexes(&fresh.store, std::slice::from_ref(&scope)).await.unwrap();
        let mut connection = fresh.store.writer().await.unwrap();
        let Raw::Postgres(c) = connection.raw() else { return None };
        let fill = "INSERT INTO documents SELECT $1, 'a.b', n::text, 1, 0, 0, \
                    jsonb_build_object('name', 'n' || n, 'done', n % 3 = 0) \
                    FROM generate_series(1, 3000) AS n";
        sqlx::query(fill).bind(workspace.0).execute(c).await.unwrap();
        let asked = Asked { workspace, scope: &scope, folding: "", by_pairs: false };
        let keys = sort_keys(&scope, &query.order).unwrap();
        let mut sql = page_sql(Backend::Postgres, asked, query, &keys, after).unwrap();
        sql.text.insert_str(0, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ");
        let mut read = Vec::new();
        let take = |row: Row| {
            let line = row.text(0)?;
            if line.contains("Scan using doc_") {
                let rows = line.split("rows=").nth(1).and_then(|rows| rows.split(' ').next());
                read.extend(rows.and_then(|rows| rows.parse::<u32>().ok()));
            }
            Ok(())
        };
        each_row(&mut connection, sql, take).await.unwrap();
        Some(read)
    }

    #[tokio::test]
    async fn no_more_of_a_value_is_read_than_a_page_takes() {
        let query = query(truths(&[true, false]));
        let last = Position { values: vec![Value::Text("n17".into())], id: "17".into() };
        for (after, ranges) in [(None, 2), (Some(&last), 4)] {
            let Some(read) = rows_read(&query, after).await else { return };
            assert_eq!(read.len(), ranges, "{read:?}");
            assert!(read.iter().all(|rows| *rows <= query.limit + 1), "{read:?}");
        }
    }
}
