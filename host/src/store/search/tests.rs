//! Which keys a search finds, and by what.

use sqlx::AssertSqlSafe;

use super::super::connection::Raw;
use super::super::scope::CollectionScope;
use super::super::sql::Row;
use super::*;
use crate::domain::document::{Condition, Order, Start as First};
use crate::domain::id::WorkspaceId;
use crate::domain::manifest::FieldKind;
use crate::store::indexes::ensure_indexes;
use crate::store::testing::{Fresh, fresh};

fn scope() -> CollectionScope {
    CollectionScope {
        full_name: "a.b".into(),
        own: true,
        fields: [("name".to_owned(), FieldKind::Text)].into(),
        indexes: vec![],
        searched: vec![Searched { text: "name".into(), by: "name".into(), unless: vec![] }],
    }
}

fn query(part: &str) -> Query {
    Query {
        collection: "a.b".into(),
        conditions: vec![Condition {
            fields: vec!["name".into()],
            test: Test::Contains(part.into()),
        }],
        order: vec![Order { field: "name".into(), descending: false }],
        limit: 10,
        start: First::First,
    }
}

/// Two of each key. What is written last is frequent, and behind everything
/// else.
async fn fill(connection: &mut Connection, workspace: WorkspaceId) {
    let Raw::Postgres(c) = connection.raw() else { return };
    let pairs = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', md5((n / 2)::text), \
                 md5(n::text) FROM generate_series(1, 24000) AS n";
    sqlx::query(pairs).bind(workspace.0).execute(&mut *c).await.unwrap();
    // Two that no index of keys can hold.
    let long = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', md5(n::text), \
                repeat('-', 4000) || 'abcdef' FROM generate_series(1, 2) AS n";
    sqlx::query(long).bind(workspace.0).execute(&mut *c).await.unwrap();
    // Some that are told apart by marks and single digits.
    let versions = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', md5('v' || n), \
                    'name_' || n || '@1.2.' || n FROM generate_series(1, 40) AS n";
    sqlx::query(versions).bind(workspace.0).execute(&mut *c).await.unwrap();
    let late = "INSERT INTO search_texts SELECT $1, 'a.b', 'name', 'z' || n, \
                'late_' || n FROM generate_series(1, 6000) AS n";
    sqlx::query(late).bind(workspace.0).execute(&mut *c).await.unwrap();
    let marked =
        format!("UPDATE search_texts SET folded = translate(folded, '{MARKS}', '{CAPITALS}')");
    sqlx::raw_sql(AssertSqlSafe(marked)).execute(&mut *c).await.unwrap();
    sqlx::raw_sql("VACUUM ANALYZE search_texts").execute(c).await.unwrap();
}

/// A database with all that; nothing where there is no PostgreSQL.
async fn filled(workspace: WorkspaceId, scope: &CollectionScope) -> Option<(Fresh, Connection)> {
    let fresh = fresh(Backend::Postgres).await?;
    ensure_indexes(&fresh.store, std::slice::from_ref(scope)).await.unwrap();
    let mut connection = fresh.store.writer().await.unwrap();
    fill(&mut connection, workspace).await;
    Some((fresh, connection))
}

async fn texts(connection: &mut Connection, sql: Sql) -> Vec<String> {
    let mut texts = Vec::new();
    let take = |row: Row| row.text(0).map(|text| texts.push(text));
    each_row(connection, sql, take).await.unwrap();
    texts
}

/// What [`Search::keys`] finds, by looking at every pair.
async fn all_keys(connection: &mut Connection, part: &str, from: &Start) -> Vec<String> {
    let sql = format!(
        "SELECT DISTINCT key FROM search_texts \
         WHERE strpos(translate(folded, '{CAPITALS}', '{MARKS}'), "
    );
    let mut sql = Sql::new(Backend::Postgres, &sql);
    sql.bind(Arg::Text(part.into())).push(") > 0 ORDER BY key");
    let mut keys = texts(connection, sql).await;
    match from {
        Start::First => {}
        Start::At(key) => keys.retain(|other| other >= key),
        Start::After(key) => keys.retain(|other| other > key),
    }
    keys
}

#[tokio::test]
async fn trigrams_are_asked_for_a_sample_and_for_all_whatever_folds_the_letters() {
    let (workspace, scope, query) = (WorkspaceId::new(), scope(), query("abcdef"));
    let Some((_fresh, mut connection)) = filled(workspace, &scope).await else { return };
    for folding in ["", " COLLATE \"und-x-icu\"", " COLLATE \"C.utf8\""] {
        let asked = Asked { workspace, scope: &scope, folding, by_pairs: true };
        let search = Search::of(Backend::Postgres, asked, &query).unwrap();
        for (index, mut sql) in [
            ("search_texts_sample", search.sample_sql(asked, &Start::First)),
            ("search_texts_trigrams", search.trigrams_sql(asked, &Start::First, 10)),
        ] {
            sql.text.insert_str(0, "EXPLAIN ");
            let plan = texts(&mut connection, sql).await.join("\n");
            assert!(plan.contains(index), "{folding}: {plan}");
        }
    }
}

/// The lines of a plan, with what PostgreSQL really looked at.
async fn explained(connection: &mut Connection, mut sql: Sql) -> Vec<String> {
    sql.text.insert_str(0, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ");
    texts(connection, sql).await
}

#[tokio::test]
async fn pairs_are_read_in_order_from_their_index_alone_and_no_more_than_needed() {
    let (workspace, scope) = (WorkspaceId::new(), scope());
    let Some((_fresh, mut connection)) = filled(workspace, &scope).await else { return };
    let asked = Asked { workspace, scope: &scope, folding: "", by_pairs: true };
    for (part, fewest, most) in [("a", 10, 100), ("abc", 10, 10_000), ("late", 24_000, 25_000)] {
        let query = query(part);
        let search = Search::of(Backend::Postgres, asked, &query).unwrap();
        let plan = explained(&mut connection, search.walk_sql(asked, &Start::First, 10)).await;
        let read = read_in_order(&plan);
        assert!((fewest..=most).contains(&read), "{part}, {read}: {plan:#?}");
    }
}

/// How many pairs were read from the index of the walk: those that it gave, and
/// those that its own filter removed.
fn read_in_order(plan: &[String]) -> u32 {
    let scan =
        plan.iter().position(|line| line.contains("Index Only Scan using search_texts_walk"));
    let lines = &plan[scan.unwrap()..];
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
    let asked = Asked { workspace, scope: &scope, folding: "", by_pairs: true };
    for (part, from, expected) in [
        ("late", Start::First, true),
        ("late_77", Start::First, false),
        ("late", Start::After("z9".into()), false),
        ("abcdef", Start::First, false),
        ("nowhere", Start::First, false),
    ] {
        let query = query(part);
        let search = Search::of(Backend::Postgres, asked, &query).unwrap();
        let frequent = search.is_frequent(&mut connection, asked, &from).await.unwrap();
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
    let asked = Asked { workspace, scope: &scope, folding: "", by_pairs: true };
    for part in PARTS {
        let query = query(part);
        let search = Search::of(Backend::Postgres, asked, &query).unwrap();
        let mut from = Start::First;
        for most in [1, 3, 200, 1_000] {
            let keys = search.keys(&mut connection, asked, &from, most).await.unwrap();
            let mut all = all_keys(&mut connection, part, &from).await;
            all.truncate(most as usize);
            assert_eq!(keys, all, "{part}, {most} from {from:?}");
            let Some(last) = keys.into_iter().next_back() else { break };
            from = if most == 1 { Start::At(last) } else { Start::After(last) };
        }
    }
}
