//! Compares the database's results with those of a simple model.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value as Json;

use super::*;
use assurance_core::domain::document::GroupCount;
use assurance_store::testing::{self, on_both};
use assurance_store::{Backend, TransactionAccess};

type Row = (String, BTreeMap<&'static str, FieldValue>);

fn texts() -> impl Strategy<Value = FieldValue> {
    let odd =
        ["", "a", "A", "ab", "aB", "é", "É", "%", "_", "*", "[a]", "\\", "a\u{1}", "\u{10FFFF}"];
    prop_oneof![
        Just(FieldValue::Null),
        prop::sample::select(odd.map(text).to_vec()),
        "[aAbBéÉжЖ%_*?\\[\\]^\\\\]{0,3}".prop_map(FieldValue::Text),
    ]
}

fn integers() -> impl Strategy<Value = FieldValue> {
    prop_oneof![
        Just(FieldValue::Null),
        (-2..3_i64).prop_map(FieldValue::Integer),
        prop::sample::select(vec![FieldValue::Integer(i64::MIN), FieldValue::Integer(i64::MAX)]),
    ]
}

fn booleans() -> impl Strategy<Value = FieldValue> {
    prop_oneof![Just(FieldValue::Null), any::<bool>().prop_map(FieldValue::Boolean)]
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((texts(), integers(), booleans()), 0..14).prop_map(|rows| {
        let row = |(n, (name, rank, done))| {
            (format!("{n:02}"), BTreeMap::from([("name", name), ("rank", rank), ("done", done)]))
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

fn with_nul(values: impl Strategy<Value = FieldValue>) -> impl Strategy<Value = FieldValue> {
    (values, prop::bool::weighted(0.1)).prop_map(|(value, nul)| match value {
        FieldValue::Text(text) if nul => FieldValue::Text(text + "\0x"),
        value => value,
    })
}

fn test_of(values: BoxedStrategy<FieldValue>) -> impl Strategy<Value = FieldTest> {
    let bound = || {
        let some = values.clone().prop_filter("a bound", |value| *value != FieldValue::Null);
        prop::option::of(some)
    };
    prop_oneof![
        values.clone().prop_map(FieldTest::Equals),
        prop::collection::vec(values.clone(), 0..4).prop_map(FieldTest::OneOf),
        (bound(), bound()).prop_map(|(from, to)| FieldTest::Range(from, to)),
    ]
}

fn condition() -> impl Strategy<Value = QueryCondition> {
    let text_fields = prop::sample::select(vec![vec!["name"], vec!["name", "email"]]);
    let text_test = prop_oneof![
        test_of(with_nul(texts()).boxed()),
        needle().prop_map(FieldTest::Prefix),
        needle().prop_map(FieldTest::Contains),
    ];
    let one = |field: &'static str| move |test| (vec![field], test);
    prop_oneof![
        (text_fields, text_test),
        test_of(integers().boxed()).prop_map(one("rank")),
        test_of(booleans().boxed()).prop_map(one("done")),
    ]
    .prop_map(|(fields, test)| QueryCondition {
        fields: fields.into_iter().map(str::to_owned).collect(),
        test,
    })
}

fn order() -> impl Strategy<Value = Vec<&'static str>> {
    let fields = ["name", "-name", "rank", "-rank", "done", "-done"];
    prop::collection::vec(prop::sample::select(fields.to_vec()), 0..3)
}

fn body(row: &Row) -> String {
    let members: serde_json::Map<String, Json> = row
        .1
        .iter()
        .map(|(name, value)| ((*name).to_owned(), serde_json::to_value(value).unwrap()))
        .collect();
    Json::Object(members).to_string()
}

fn passes(value: &FieldValue, test: &FieldTest) -> bool {
    let text = |value: &FieldValue| match value {
        FieldValue::Text(text) => Some(text.clone()),
        _ => None,
    };
    match test {
        FieldTest::Equals(other) => value == other,
        FieldTest::OneOf(others) => others.contains(value),
        FieldTest::Range(from, to) => {
            *value != FieldValue::Null
                && from.as_ref().is_none_or(|from| value >= from)
                && to.as_ref().is_none_or(|to| value < to)
        }
        FieldTest::Prefix(prefix) => text(value).is_some_and(|text| text.starts_with(prefix)),
        FieldTest::Contains(part) => {
            text(value).is_some_and(|text| text.to_lowercase().contains(&part.to_lowercase()))
        }
    }
}

fn matching<'r>(rows: &'r [Row], conditions: &[QueryCondition]) -> Vec<&'r Row> {
    let field = |row: &Row, name: &String| row.1.get(&**name).cloned().unwrap_or(FieldValue::Null);
    let holds = |row: &Row, condition: &QueryCondition| {
        condition.fields.iter().any(|name| passes(&field(row, name), &condition.test))
    };
    rows.iter().filter(|row| conditions.iter().all(|condition| holds(row, condition))).collect()
}

fn sorted(mut rows: Vec<&Row>, order: &[SortField]) -> Vec<String> {
    rows.sort_by(|a, b| {
        let mut by = std::cmp::Ordering::Equal;
        for step in order {
            let one = a.1[&*step.field].cmp(&b.1[&*step.field]);
            by = by.then(if step.descending { one.reverse() } else { one });
        }
        let id = a.0.cmp(&b.0);
        by.then(if order.last().is_none_or(|step| step.descending) { id.reverse() } else { id })
    });
    rows.into_iter().map(|row| row.0.clone()).collect()
}

async fn compare(
    area: &Area,
    rows: Vec<Row>,
    conditions: Vec<QueryCondition>,
    order: &[&str],
    limit: u32,
) {
    area.put(rows.iter().map(|row| create(&row.0, &body(row))).collect()).await.unwrap();
    let mut query = Query { conditions: conditions.clone(), limit, ..by(order) };
    let expected = matching(&rows, &conditions);
    let mut unit = area.unit();
    let count = expected.len() as u64;
    assert_eq!(unit.count("items", &conditions, None).await.unwrap(), count);
    assert_eq!(
        unit.count("items", &conditions, Some(limit)).await.unwrap(),
        count.min(limit.into())
    );
    let mut groups: BTreeMap<Vec<FieldValue>, u64> = BTreeMap::new();
    for row in &expected {
        *groups.entry(vec![row.1["done"].clone(), row.1["name"].clone()]).or_default() += 1;
    }
    let groups: Vec<GroupCount> =
        groups.into_iter().map(|(values, count)| GroupCount { values, count }).collect();
    let by = ["done".to_owned(), "name".to_owned()];
    assert_eq!(unit.count_by("items", &conditions, &by).await.unwrap(), groups);
    let expected = sorted(expected, &query.order);
    for writes in [true, false] {
        query.start = PageStart::First;
        let found = walk(area.with(|spec| spec.writes = writes), query.clone()).await;
        assert_eq!(found, expected, "writes: {writes}");
    }
}

/// Returns the ids of all pages.
async fn walk(mut unit: UnitOfWork, mut query: Query) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let page = unit.query(&query).await.unwrap();
        found.extend(page.documents.into_iter().map(|document| document.id));
        let Some(next) = page.next else { return found };
        query.start = PageStart::Cursor(next);
    }
}

fn needle() -> impl Strategy<Value = String> {
    with_nul(texts()).prop_map(|value| match value {
        FieldValue::Text(text) => text,
        _ => String::new(),
    })
}

/// Rows, conditions with an order, and a page's limit.
type Case = (Vec<Row>, (Vec<QueryCondition>, Vec<&'static str>), u32);

/// Compares many queries, each in a workspace of its own.
async fn compare_many(store: &Store, cases: u32, strategy: impl Strategy<Value = Case>) {
    let area = Area::installed(store).await;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let compared = TestRunner::new(config).run(&strategy, |(rows, (conditions, order), limit)| {
        let area = area.elsewhere();
        tokio::task::block_in_place(|| {
            let compared = compare(&area, rows, conditions, &order, limit);
            tokio::runtime::Handle::current().block_on(compared);
        });
        Ok(())
    });
    compared.unwrap();
}

/// Generates queries that the search table answers.
fn search() -> impl Strategy<Value = (Vec<QueryCondition>, Vec<&'static str>)> {
    (needle(), prop::collection::vec(condition(), 0..2), order()).prop_map(
        |(part, mut conditions, mut order)| {
            conditions.push(is("name", FieldTest::Contains(part)));
            order.insert(0, "name");
            (conditions, order)
        },
    )
}

/// Generates lists of values that an index finds: for its first field, for the
/// order's field, or for both.
fn list() -> impl Strategy<Value = (Vec<QueryCondition>, Vec<&'static str>)> {
    let names = prop::option::of(prop::collection::vec(with_nul(texts()), 0..5));
    let done = prop_oneof![
        booleans().prop_map(FieldTest::Equals),
        prop::collection::vec(booleans(), 0..6).prop_map(FieldTest::OneOf),
    ];
    let ordered = (prop::sample::select(vec!["name", "-name"]), order());
    (names, done, prop::collection::vec(condition(), 0..2), ordered).prop_map(
        |(names, done, mut conditions, (first, mut order))| {
            conditions.extend(names.map(|names| is("name", FieldTest::OneOf(names))));
            conditions.push(is("done", done));
            order.insert(0, first);
            (conditions, order)
        },
    )
}

on_both! {
    async fn answers_are_those_of_a_naive_evaluation(store: &Store) {
        let any = (prop::collection::vec(condition(), 0..3), order());
        compare_many(store, 150, (rows(), any, 1..6_u32)).await;
    }

    async fn so_are_those_of_a_search_in_the_order_of_its_key(store: &Store) {
        compare_many(store, 100, (rows(), search(), 1..4_u32)).await;
    }

    async fn so_are_those_of_lists_that_an_index_finds(store: &Store) {
        compare_many(store, 200, (rows(), list(), 1..4_u32)).await;
    }

    async fn a_declared_index_is_used_in_an_empty_and_a_grown_collection(store: &Store) {
        let area = Area::installed(store).await;
        uses_indexes(&area, "empty").await;
        let writes = (0..3_000).map(|n| {
            create(&format!("{n:04}"), &format!(r#"{{"rank":{n},"done":{},"name":"n{n}"}}"#, n % 2 == 0))
        });
        area.put(writes.collect()).await.unwrap();
        // PostgreSQL reports changes a second later.
        for _ in 0..100 {
            let refreshed = collections::refresh_statistics(store).await.unwrap();
            if refreshed > 0 || store.backend() == Backend::Sqlite {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        uses_indexes(&area, "grown").await;
    }
}

async fn uses_indexes(area: &Area, state: &str) {
    let (from, ranked, named) = match area.store.backend() {
        Backend::Sqlite => (
            format!("\"test.items\" WHERE workspace_id = x'{}'", area.workspace.0.simple()),
            "(body->>'rank') > 2000 ORDER BY (body->>'rank'), id LIMIT 5",
            "(body->>'done') = 1 ORDER BY (body->>'name') DESC, id DESC LIMIT 5",
        ),
        Backend::Postgres => (
            format!(
                "documents WHERE collection = 'test.items' AND workspace_id = '{}'",
                area.workspace
            ),
            "((body->>'rank')::bigint) > 2000 ORDER BY ((body->>'rank')::bigint) NULLS FIRST, id LIMIT 5",
            "((body->>'done')::boolean) = true ORDER BY (body->>'name') COLLATE \"C\" DESC NULLS LAST, id DESC LIMIT 5",
        ),
    };
    for question in [ranked, named] {
        let plan = explain(&area.store, &format!("SELECT id FROM {from} AND {question}")).await;
        let sorts = plan.contains("B-TREE FOR ORDER BY") || plan.contains("Sort Key");
        assert!(plan.contains("index_") && !sorts, "{state}: {plan}");
    }
}

async fn explain(store: &Store, sql: &str) -> String {
    let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
    match store.backend() {
        Backend::Sqlite => {
            let rows: Vec<(i64, i64, i64, String)> =
                testing::rows(&mut tx, &format!("EXPLAIN QUERY PLAN {sql}")).await;
            rows.into_iter().map(|row| row.3 + "\n").collect()
        }
        Backend::Postgres => {
            let rows: Vec<(String,)> = testing::rows(&mut tx, &format!("EXPLAIN {sql}")).await;
            rows.into_iter().map(|row| row.0 + "\n").collect()
        }
    }
}
