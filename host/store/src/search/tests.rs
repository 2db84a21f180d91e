//! Tests of which keys a search finds, and of the query plan that finds them.

use sqlx::AssertSqlSafe;

use super::super::connection::DriverConnection;
use super::super::scope::AccessibleCollection;
use super::*;
use crate::collections::{LiveOrCandidate, ensure, ensure_for};
use crate::testing::{TestStore, explained, fresh, texts};
use crate::{Store, testing};
use assurance_core::domain::document::{PageStart as First, QueryCondition, SortField};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::FieldKind;

fn scope() -> AccessibleCollection {
    AccessibleCollection {
        full_name: "a.b".into(),
        fields: [("name".to_owned(), FieldKind::Text)].into(),
        searched: vec![SubstringIndexSpec {
            text: "name".into(),
            by: "name".into(),
            unless: vec![],
        }],
        ..AccessibleCollection::default()
    }
}

fn query(part: &str) -> Query {
    Query {
        collection: "a.b".into(),
        conditions: vec![QueryCondition {
            fields: vec!["name".into()],
            test: FieldTest::Contains(part.into()),
        }],
        order: vec![SortField { field: "name".into(), descending: false }],
        limit: 10,
        start: First::First,
    }
}

/// Two pairs for each key. The last ones are frequent and sort after all
/// others.
async fn fill(connection: &mut Connection, workspace: WorkspaceId) {
    let DriverConnection::Postgres(c) = connection.raw() else { return };
    let pairs = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', md5((n / 2)::text), \
                 md5(n::text) FROM generate_series(1, 24000) AS n";
    sqlx::query(pairs).bind(workspace.0).execute(&mut *c).await.unwrap();
    // Two pairs that are too long for the key index.
    let long = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', md5(n::text), \
                repeat('-', 4000) || 'abcdef' FROM generate_series(1, 2) AS n";
    sqlx::query(long).bind(workspace.0).execute(&mut *c).await.unwrap();
    // Pairs that differ only in punctuation and single digits.
    let versions = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', md5('v' || n), \
                    'name_' || n || '@1.2.' || n FROM generate_series(1, 40) AS n";
    sqlx::query(versions).bind(workspace.0).execute(&mut *c).await.unwrap();
    let late = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', 'z' || n, \
                'late_' || n FROM generate_series(1, 6000) AS n";
    sqlx::query(late).bind(workspace.0).execute(&mut *c).await.unwrap();
    let marked =
        format!("UPDATE search_texts SET folded = translate(folded, '{MARKS}', '{CAPITALS}')");
    sqlx::raw_sql(AssertSqlSafe(marked)).execute(&mut *c).await.unwrap();
    // Not vacuumed: an index-only scan still reads the table.
    sqlx::raw_sql("ANALYZE search_texts").execute(c).await.unwrap();
}

/// Returns a database with all these pairs; `None` if there is no PostgreSQL.
async fn filled(
    workspace: WorkspaceId,
    scope: &AccessibleCollection,
) -> Option<(TestStore, Connection)> {
    let fresh = fresh(Backend::Postgres).await?;
    ensure(&fresh.store, std::slice::from_ref(scope)).await.unwrap();
    let mut connection = fresh.store.writer().await.unwrap();
    fill(&mut connection, workspace).await;
    Some((fresh, connection))
}

/// Returns the expected result of [`SubstringSearch::keys`] by testing every pair.
async fn all_keys(connection: &mut Connection, part: &str, from: &KeyStart) -> Vec<String> {
    let sql = format!(
        "SELECT DISTINCT key FROM search_texts \
         WHERE strpos(translate(folded, '{CAPITALS}', '{MARKS}'), "
    );
    let mut sql = Sql::new(Backend::Postgres, &sql);
    sql.bind(part).push(") > 0 ORDER BY key");
    let mut keys = texts(connection, sql).await;
    match from {
        KeyStart::First => {}
        KeyStart::At(key) => keys.retain(|other| other >= key),
        KeyStart::After(key) => keys.retain(|other| other > key),
    }
    keys
}

#[tokio::test]
async fn trigrams_are_asked_for_a_sample_and_for_all_whatever_folds_the_letters() {
    let (workspace, scope, query) = (WorkspaceId::new(), scope(), query("abcdef"));
    let Some((_fresh, mut connection)) = filled(workspace, &scope).await else { return };
    for folding in ["", " COLLATE \"und-x-icu\"", " COLLATE \"C.utf8\""] {
        let target = QueryTarget { workspace, scope: &scope, folding, use_search_table: true };
        let search = SubstringSearch::of(Backend::Postgres, target, &query).unwrap();
        for (index, mut sql) in [
            ("search_texts_sample", search.sample_sql(target, &KeyStart::First)),
            ("search_texts_trigrams", search.trigrams_sql(target, &KeyStart::First, 10)),
        ] {
            sql.text.insert_str(0, "EXPLAIN ");
            let plan = texts(&mut connection, sql).await.join("\n");
            assert!(plan.contains(index), "{folding}: {plan}");
        }
    }
}

#[tokio::test]
async fn pairs_are_read_in_order_from_their_index_alone_and_no_more_than_needed() {
    let (workspace, scope) = (WorkspaceId::new(), scope());
    let Some((_fresh, mut connection)) = filled(workspace, &scope).await else { return };
    let target = QueryTarget { workspace, scope: &scope, folding: "", use_search_table: true };
    for (part, fewest, most) in [("a", 10, 100), ("abc", 10, 10_000), ("late", 24_000, 25_000)] {
        let query = query(part);
        let search = SubstringSearch::of(Backend::Postgres, target, &query).unwrap();
        let plan = explained(&mut connection, search.walk_sql(target, &KeyStart::First, 10)).await;
        let read = read_in_order(&plan);
        assert!((fewest..=most).contains(&read), "{part}, {read}: {plan:#?}");
    }
}

/// Returns the number of pairs that the key scan read: returned ones and
/// filtered ones.
fn read_in_order(plan: &[String]) -> u32 {
    let scan =
        plan.iter().position(|line| line.contains("Index Only Scan using search_texts_walk"));
    let lines = &plan[scan.unwrap_or_else(|| panic!("no index-only scan: {plan:#?}"))..];
    let end = lines.iter().position(|line| line.contains("search_texts_long")).unwrap();
    let after = |line: &String, label| {
        let (_, number) = line.split_once(label)?;
        number.split(' ').next()?.parse::<u32>().ok()
    };
    let removed = lines[..end].iter().find_map(|line| after(line, "Rows Removed by Filter: "));
    after(&lines[0], "rows=").unwrap() + removed.unwrap_or(0)
}

#[tokio::test]
async fn what_is_frequent_is_known_from_the_sample_and_only_behind_the_position() {
    let (workspace, scope) = (WorkspaceId::new(), scope());
    let Some((_fresh, mut connection)) = filled(workspace, &scope).await else { return };
    let target = QueryTarget { workspace, scope: &scope, folding: "", use_search_table: true };
    for (part, from, expected) in [
        ("late", KeyStart::First, true),
        ("late_77", KeyStart::First, false),
        ("late", KeyStart::After("z9".into()), false),
        ("abcdef", KeyStart::First, false),
        ("nowhere", KeyStart::First, false),
    ] {
        let query = query(part);
        let search = SubstringSearch::of(Backend::Postgres, target, &query).unwrap();
        let frequent = search.is_frequent(&mut connection, target, &from).await.unwrap();
        assert_eq!(frequent, expected, "{part} from {from:?}");
    }
}

#[test]
fn a_part_has_trigrams_as_pg_trgm_finds_them() {
    for part in ["abc", "é1x", " a", "ab@", "a@b", "@1.2.3", "a.b.", "_.-", "%_"] {
        assert!(has_trigrams(part), "{part}");
    }
    for part in ["", "a", "ab", "@", "a@", "@a", "a ", ".-", "% \\"] {
        assert!(!has_trigrams(part), "{part}");
    }
}

const PARTS: [&str; 13] = [
    "a", "ab", "abc", "0123", "abcdef", "%", "xyz", "@1.2.3", "e_1", "2.", "e%1", "late", "late_77",
];

#[tokio::test]
async fn the_next_keys_are_those_that_a_look_at_every_pair_finds() {
    let (workspace, scope) = (WorkspaceId::new(), scope());
    let Some((_fresh, mut connection)) = filled(workspace, &scope).await else { return };
    let target = QueryTarget { workspace, scope: &scope, folding: "", use_search_table: true };
    for part in PARTS {
        let query = query(part);
        let search = SubstringSearch::of(Backend::Postgres, target, &query).unwrap();
        let mut from = KeyStart::First;
        for most in [1, 3, 200, 1_000] {
            let keys = search.keys(&mut connection, target, &from, most).await.unwrap();
            let mut all = all_keys(&mut connection, part, &from).await;
            all.truncate(most as usize);
            assert_eq!(keys, all, "{part}, {most} from {from:?}");
            let Some(last) = keys.into_iter().next_back() else { break };
            from = if most == 1 { KeyStart::At(last) } else { KeyStart::After(last) };
        }
    }
}

/// Creates a document as a version does that declares no substring index.
async fn put(store: &Store, name: &str) {
    testing::put(store, name, &format!(r#"{{"name":"{name}"}}"#)).await;
}

async fn pairs(store: &Store) -> Vec<String> {
    let mut reader = store.reader().await.unwrap();
    let sql = Sql::new(Backend::Postgres, "SELECT key FROM search_texts ORDER BY key");
    texts(&mut reader, sql).await
}

#[tokio::test]
async fn pairs_that_the_live_version_did_not_write_are_created_when_another_goes_live() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let (store, searched) = (&fresh.store, [scope()]);
    let unsearched = [AccessibleCollection { searched: vec![], ..scope() }];
    ensure(store, &unsearched).await.unwrap();
    put(store, "a").await;
    ensure_for(store, &searched, LiveOrCandidate::Candidate).await.unwrap();
    assert_eq!(pairs(store).await, ["a"]);
    put(store, "b").await;
    ensure(store, &searched).await.unwrap();
    assert_eq!(pairs(store).await, ["a", "b"]);
    // Without another live version in between, this runs once.
    put(store, "c").await;
    ensure_for(store, &unsearched, LiveOrCandidate::Candidate).await.unwrap();
    ensure(store, &searched).await.unwrap();
    assert_eq!(pairs(store).await, ["a", "b"]);
    ensure(store, &unsearched).await.unwrap();
    ensure(store, &searched).await.unwrap();
    assert_eq!(pairs(store).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn pairs_that_a_version_did_not_write_are_created_again_when_they_are_forgotten() {
    let Some(fresh) = fresh(Backend::Postgres).await else { return };
    let (store, searched) = (&fresh.store, [scope()]);
    let unsearched = [AccessibleCollection { searched: vec![], ..scope() }];
    ensure(store, &searched).await.unwrap();
    put(store, "a").await;
    for (written, expected) in [(&searched, vec![]), (&unsearched, vec!["a"])] {
        store.write(async |c| forget_unwritten(c, written).await).await.unwrap();
        ensure(store, &searched).await.unwrap();
        assert_eq!(pairs(store).await, expected);
    }
}
