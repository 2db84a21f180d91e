//! Tests of pagination while documents are created and deleted.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::DocumentError;
use assurance_store::testing::on_both;

/// Changes between two pages: up to `go` documents of earlier changes are
/// deleted, and the documents `come` are created, spread over the order.
#[derive(Clone, Debug)]
struct Traffic {
    come: Vec<(u16, Option<i64>, Option<bool>)>,
    go: usize,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let document = (any::<u16>(), prop::option::of(-3..4_i64), prop::option::of(any::<bool>()));
    (prop::collection::vec(document, 0..4), 0..4_usize).prop_map(|(come, go)| Traffic { come, go })
}

fn body(rank: Option<i64>, done: Option<bool>) -> String {
    serde_json::json!({"rank": rank, "done": done, "name": "n"}).to_string()
}

on_both! {
    async fn stable_documents_are_seen_once_while_others_come_and_go(store: &Store) {
        let area = Area::installed(store).await;
        let orders: [&[&str]; 7] =
            [&[], &["rank"], &["-rank"], &["done", "-rank"], &["-done", "rank"], &["-done", "-rank"], &["name"]];
        let stable = prop::collection::vec((prop::option::of(-3..4_i64), prop::option::of(any::<bool>())), 0..12);
        let strategy = (stable, prop::sample::select(orders.to_vec()), 1..5_u32, prop::collection::vec(traffic(), 16));
        let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
        runner.run(&strategy, |(stable, order, limit, traffic)| {
            let area = area.elsewhere();
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(walk(&area, stable, order, limit, traffic));
            });
            Ok(())
        }).unwrap();
    }

    async fn a_page_can_begin_after_a_document(store: &Store) {
        let area = Area::installed(store).await;
        let writes = ["a", "b", "c", "d"].iter().enumerate()
            .map(|(n, id)| create(id, &format!(r#"{{"rank":{}}}"#, n / 2))).collect();
        area.put(writes).await.unwrap();
        let after = async |order: &[&str], id: &str| {
            let query = Query { start: PageStart::After(id.into()), ..by(order) };
            let page = area.unit().query(&query).await.unwrap();
            page.documents.into_iter().map(|d| d.id).collect::<Vec<_>>()
        };
        assert_eq!(after(&[], "c").await, ["b", "a"]);
        assert_eq!(after(&["rank"], "b").await, ["c", "d"]);
        assert_eq!(after(&["-rank"], "d").await, ["c", "b", "a"]);
        let unknown = Query { start: PageStart::After("x".into()), ..by(&[]) };
        assert_eq!(refused(area.unit().query(&unknown).await), DocumentError::NotFound);
    }

    async fn a_cursor_is_good_for_its_query_only(store: &Store) {
        let area = Area::installed(store).await;
        area.put((0..5).map(|n| create(&n.to_string(), "{}")).collect()).await.unwrap();
        let query = Query { limit: 2, ..by(&["rank"]) };
        let cursor = area.unit().query(&query).await.unwrap().next.unwrap();
        let with = |query: Query, cursor: &str| Query { start: PageStart::Cursor(cursor.into()), ..query };
        let page = area.unit().query(&with(query.clone(), &cursor)).await.unwrap();
        assert_eq!(page.documents.len(), 2);
        let foreign = [
            with(by(&["-rank"]), &cursor),
            with(Query { conditions: vec![is("done", FieldTest::Equals(FieldValue::Null))], ..query.clone() }, &cursor),
            with(query.clone(), &cursor[1..]),
            with(query.clone(), "nonsense"),
        ];
        for query in foreign {
            assert_eq!(refused(area.unit().query(&query).await), DocumentError::InvalidCursor);
        }
        let elsewhere = area.elsewhere().unit().query(&with(query.clone(), &cursor)).await;
        assert_eq!(refused(elsewhere), DocumentError::InvalidCursor);
        // A full page without further documents is the last one.
        let all = area.unit().query(&Query { limit: 5, ..query }).await.unwrap();
        assert_eq!((all.documents.len(), all.next), (5, None));
    }
}

/// Reads all pages. Stable documents must be returned exactly once and in
/// order; the others at most once.
async fn walk(
    area: &Area,
    stable: Vec<(Option<i64>, Option<bool>)>,
    order: &[&str],
    limit: u32,
    traffic: Vec<Traffic>,
) {
    let stable: Vec<(String, String)> = stable
        .into_iter()
        .enumerate()
        .map(|(n, (rank, done))| (format!("{:05}-stable", n * 5_000), body(rank, done)))
        .collect();
    area.put(stable.iter().map(|(id, body)| create(id, body)).collect()).await.unwrap();
    let whole = area.unit().query(&Query { limit: 1_000, ..by(order) }).await.unwrap();
    let expected: Vec<String> = whole.documents.into_iter().map(|d| d.id).collect();

    let (mut seen, mut passing) = (Vec::new(), BTreeSet::new());
    let mut query = Query { limit, ..by(order) };
    let mut traffic = traffic.into_iter();
    loop {
        let page = area.unit().query(&query).await.unwrap();
        seen.extend(page.documents.into_iter().map(|d| d.id));
        let Some(next) = page.next else { break };
        query.start = PageStart::Cursor(next);
        if let Some(Traffic { come, go }) = traffic.next() {
            churn(area, &mut passing, come, go).await;
        }
    }
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "a document came twice: {seen:?}");
    let stable: Vec<String> = seen.into_iter().filter(|id| id.ends_with("stable")).collect();
    assert_eq!(stable, expected);
}

async fn churn(
    area: &Area,
    passing: &mut BTreeSet<String>,
    come: Vec<(u16, Option<i64>, Option<bool>)>,
    go: usize,
) {
    let mut writes = Vec::new();
    for id in passing.iter().take(go).cloned().collect::<Vec<_>>() {
        passing.remove(&id);
        writes.push(delete(&id));
    }
    for (n, rank, done) in come {
        let id = format!("{n:05}-passing-{}", uuid::Uuid::new_v4());
        writes.push(create(&id, &body(rank, done)));
        passing.insert(id);
    }
    area.put(writes).await.unwrap();
}
