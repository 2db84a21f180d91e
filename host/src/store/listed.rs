//! Lists of values (`one_of`) that a query's order begins with.

use super::Backend;
use super::arms::arms;
use super::cursor::Position;
use super::fields::MAX_VALUES;
use super::scope::CollectionScope;
use crate::domain::document::{Query, Test, Value};
use crate::domain::manifest::FieldKind;

/// Values of the first field of an order, in that order, and what else is asked
/// of their documents.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) values: Vec<String>,
    pub(super) query: Query,
}

/// The values that a query lists for the first field of its order, where an
/// index finds each.
///
/// Left to itself, PostgreSQL takes the index for the order or for the list,
/// never for both: it reads the documents of all values, in order, until the
/// page is full.
pub(super) fn listed(backend: Backend, scope: &CollectionScope, query: &Query) -> Option<Listed> {
    let first = query.order.first()?;
    let is_text = scope.fields.get(&first.field) == Some(&FieldKind::Text);
    if backend == Backend::Sqlite || !is_text || arms(scope, query).is_none() {
        return None;
    }
    let at = query.conditions.iter().position(|condition| {
        matches!(&condition.test, Test::OneOf(values) if values.len() <= MAX_VALUES)
            && condition.fields == [first.field.as_str()]
    })?;
    let descending = first.descending;
    let mut query = query.clone();
    let Test::OneOf(values) = query.conditions.remove(at).test else { return None };
    let text = |value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let mut values: Vec<String> = values.into_iter().map(text).collect::<Option<_>>()?;
    // No stored text has U+0000.
    values.retain(|text| !text.contains('\0'));
    values.sort_unstable();
    values.dedup();
    if descending {
        values.reverse();
    }
    Some(Listed { values, query })
}

impl Listed {
    /// What comes after the position's own value.
    pub(super) fn beyond(mut self, after: Option<&Position>) -> Self {
        if let Some(Value::Text(last)) = after.and_then(|after| after.values.first()) {
            let descending = self.query.order.first().is_some_and(|first| first.descending);
            self.values.retain(|value| if descending { value < last } else { value > last });
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyset::{page_sql, sort_keys};
    use super::super::query::Asked;
    use super::super::sql::{Row, each_row};
    use super::*;
    use crate::domain::document::{Condition, Order, Start};
    use crate::domain::id::WorkspaceId;
    use crate::domain::manifest::Index;
    use crate::store::connection::Raw;
    use crate::store::indexes::ensure_indexes;
    use crate::store::testing::fresh;

    fn scope() -> CollectionScope {
        CollectionScope {
            full_name: "a.b".into(),
            own: true,
            fields: [("name".to_owned(), FieldKind::Text)].into(),
            indexes: vec![Index { fields: vec!["name".into()], unique: false }],
            searched: vec![],
        }
    }

    fn query(names: &[&str]) -> Query {
        let values = names.iter().map(|name| Value::Text((*name).to_owned())).collect();
        Query {
            collection: "a.b".into(),
            conditions: vec![Condition { fields: vec!["name".into()], test: Test::OneOf(values) }],
            order: vec![Order { field: "name".into(), descending: false }],
            limit: 100,
            start: Start::First,
        }
    }

    #[tokio::test]
    async fn documents_of_other_values_are_not_read_even_before_anything_is_known_of_them() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let (workspace, scope) = (WorkspaceId::new(), scope());
        ensure_indexes(&fresh.store, std::slice::from_ref(&scope)).await.unwrap();
        let mut connection = fresh.store.writer().await.unwrap();
        let Raw::Postgres(c) = connection.raw() else { return };
        let fill = "INSERT INTO documents SELECT $1, 'a.b', n::text, 1, 0, 0, \
                    jsonb_build_object('name', 'n' || n) FROM generate_series(1, 5000) AS n";
        sqlx::query(fill).bind(workspace.0).execute(c).await.unwrap();
        let query = query(&["n4000", "n17", "n3", "none"]);
        let asked = Asked { workspace, scope: &scope, folding: "", by_pairs: false };
        let keys = sort_keys(&scope, &query.order).unwrap();
        let last = Position { values: vec![Value::Text("n17".into())], id: "17".into() };
        for after in [None, Some(&last)] {
            let mut sql = page_sql(Backend::Postgres, asked, &query, &keys, after).unwrap();
            sql.text.insert_str(0, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ");
            let mut plan = Vec::new();
            let take = |row: Row| row.text(0).map(|line| plan.push(line));
            each_row(&mut connection, sql, take).await.unwrap();
            let plan = plan.join("\n");
            assert!(!plan.contains("Seq Scan") && !plan.contains("Removed by"), "{plan}");
        }
    }
}
