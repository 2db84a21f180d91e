//! Queries with a list of values (`one_of`) for the first field of their order.

use super::Backend;
use super::cursor::CursorPosition;
use super::fields::MAX_VALUES;
use super::scope::AccessibleCollection;
use super::union_branches::union_branches;
use assurance_core::domain::document::{FieldTest, FieldValue, Query};
use assurance_core::domain::manifest::FieldKind;

/// Values that a query lists for the first field of its order, sorted, and the
/// query without that list.
#[derive(Debug)]
pub(super) struct OneOfQuery {
    pub(super) values: Vec<String>,
    pub(super) query: Query,
}

/// Returns the values that a query lists for the first field of its order, if
/// an index finds each of them.
///
/// Without this, PostgreSQL uses the index for the order or for the list, never
/// for both: it reads the documents of all values, in order, until the page is
/// full.
pub(super) fn listed(
    backend: Backend,
    scope: &AccessibleCollection,
    query: &Query,
) -> Option<OneOfQuery> {
    let first = query.order.first()?;
    let is_text = scope.fields.get(&first.field) == Some(&FieldKind::Text);
    if backend == Backend::Sqlite || !is_text || union_branches(scope, query).is_none() {
        return None;
    }
    let at = query.conditions.iter().position(|condition| {
        matches!(&condition.test, FieldTest::OneOf(values) if values.len() <= MAX_VALUES)
            && condition.fields == [first.field.as_str()]
    })?;
    let descending = first.descending;
    let mut query = query.clone();
    let FieldTest::OneOf(values) = query.conditions.remove(at).test else { return None };
    let text = |value| match value {
        FieldValue::Text(text) => Some(text),
        _ => None,
    };
    let mut values: Vec<String> = values.into_iter().map(text).collect::<Option<_>>()?;
    // Stored text never contains U+0000.
    values.retain(|text| !text.contains('\0'));
    values.sort_unstable();
    values.dedup();
    if descending {
        values.reverse();
    }
    Some(OneOfQuery { values, query })
}

impl OneOfQuery {
    /// Keeps only the listed values after the value of a cursor position, in
    /// the query's order.
    pub(super) fn beyond(mut self, after: Option<&CursorPosition>) -> Self {
        let descending = self.query.order.first().is_some_and(|first| first.descending);
        match after.and_then(|after| after.values.first()) {
            Some(FieldValue::Text(last)) => {
                self.values.retain(|value| if descending { value < last } else { value > last });
            }
            // Null is the smallest value.
            Some(FieldValue::Null) if descending => self.values.clear(),
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyset::{page_sql, sort_keys};
    use super::super::query::QueryTarget;
    use super::*;
    use crate::collections::ensure;
    use crate::testing::{explained, fresh, put_numbered};
    use assurance_core::domain::document::{PageStart, QueryCondition, SortField};
    use assurance_core::domain::id::WorkspaceId;
    use assurance_core::domain::manifest::IndexSpec;

    fn scope() -> AccessibleCollection {
        AccessibleCollection {
            full_name: "a.b".into(),
            fields: [("name".to_owned(), FieldKind::Text)].into(),
            indexes: vec![IndexSpec { fields: vec!["name".into()], unique: false }],
            ..AccessibleCollection::default()
        }
    }

    fn query(names: &[&str]) -> Query {
        let values = names.iter().map(|name| FieldValue::Text((*name).to_owned())).collect();
        Query {
            collection: "a.b".into(),
            conditions: vec![QueryCondition {
                fields: vec!["name".into()],
                test: FieldTest::OneOf(values),
            }],
            order: vec![SortField { field: "name".into(), descending: false }],
            limit: 100,
            start: PageStart::First,
        }
    }

    #[test]
    fn no_listed_value_comes_after_null_in_descending_order() {
        let after = |value| CursorPosition { values: vec![value], id: "1".into() };
        for (descending, null, text) in [(false, 3, 1), (true, 0, 1)] {
            let mut query = query(&["a", "b", "c"]);
            query.order[0].descending = descending;
            let beyond = |value| {
                let listed = listed(Backend::Postgres, &scope(), &query).unwrap();
                listed.beyond(Some(&after(value))).values.len()
            };
            assert_eq!(beyond(FieldValue::Null), null, "descending: {descending}");
            assert_eq!(beyond(FieldValue::Text("b".into())), text, "descending: {descending}");
        }
    }

    #[tokio::test]
    async fn documents_of_other_values_are_not_read_even_before_anything_is_known_of_them() {
        let Some(fresh) = fresh(Backend::Postgres).await else { return };
        let (workspace, scope) = (WorkspaceId(uuid::Uuid::nil()), scope());
        ensure(&fresh.store, std::slice::from_ref(&scope)).await.unwrap();
        let mut connection = fresh.store.writer().await.unwrap();
        put_numbered(&mut connection, 5_000).await;
        let query = query(&["n4000", "n17", "n3", "none"]);
        let target = QueryTarget { workspace, scope: &scope, folding: "", use_search_table: false };
        let keys = sort_keys(&scope, &query.order).unwrap();
        let last = CursorPosition { values: vec![FieldValue::Text("n17".into())], id: "17".into() };
        for after in [None, Some(&last)] {
            let sql = page_sql(Backend::Postgres, target, &query, &keys, after).unwrap();
            let plan = explained(&mut connection, sql).await.join("\n");
            assert!(!plan.contains("Seq Scan") && !plan.contains("Removed by"), "{plan}");
        }
    }
}
