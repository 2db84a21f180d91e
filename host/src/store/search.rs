//! Parts of texts, on PostgreSQL: which keys have a text that contains one.
//!
//! A page in the order of a key, of documents whose text contains something,
//! is slow by any index of the documents alone: either it walks through all
//! that do not contain it, or it sorts all that do. So each pair of key and
//! text is kept once, beside the documents: there are far fewer, they are
//! short, and their trigrams are indexed. A page asks for the next keys first,
//! and then for the documents of those.
//!
//! Pairs are written before the documents, by a statement of their own: inside
//! serializable transactions, imports of the same names would lose races to
//! each other. A pair that outlives its documents, or whose documents were
//! never written, costs a look; no answer is wrong by it.
//!
//! SQLite, for less data, tests each document.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, PgConnection};

use super::apply::Effects;
use super::connection::{Connection, Raw};
use super::error::Error;
use super::fields::like_pattern;
use super::query::Asked;
use super::scope::{CollectionScope, Searched};
use super::sql::{Arg, Sql, each_row};
use super::{Backend, Store};
use crate::domain::document::{Query, Test, Value};

/// Most keys of one look.
const MOST_KEYS: u32 = 1_000;

/// Where keys begin.
#[derive(Clone, Debug)]
pub(super) enum Start {
    First,
    /// This one too.
    At(String),
    After(String),
}

/// A search that the pairs answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'a> {
    searched: &'a Searched,
    part: &'a str,
}

impl<'a> Search<'a> {
    /// The search of a query whose order begins with the key of a text that it
    /// looks into.
    pub(super) fn of(backend: Backend, asked: Asked<'a>, query: &'a Query) -> Option<Self> {
        if backend == Backend::Sqlite || !asked.by_pairs {
            return None;
        }
        let first = query.order.first().filter(|first| !first.descending)?;
        let of = |searched: &&Searched| searched.by == first.field && !searched.is_narrow(query);
        asked.scope.searched.iter().filter(of).find_map(|searched| {
            let part = query.conditions.iter().find_map(|condition| match &condition.test {
                Test::Contains(part) if condition.fields == [searched.text.as_str()] => Some(part),
                _ => None,
            })?;
            (!part.contains('\0')).then_some(Self { searched, part })
        })
    }

    /// Where the page after a position begins; nothing where the position is
    /// of a null, which has no text.
    pub(super) fn from(key: Option<&Value>) -> Start {
        match key {
            Some(Value::Text(key)) => Start::At(key.clone()),
            _ => Start::First,
        }
    }

    /// The next keys, in order: so many at most.
    pub(super) async fn keys(
        self,
        connection: &mut Connection,
        asked: Asked<'_>,
        from: &Start,
        most: u32,
    ) -> Result<Vec<String>, Error> {
        let mut sql = Sql::new(connection.backend(), "SELECT DISTINCT key FROM search_texts ");
        sql.push("WHERE workspace_id = ").bind(Arg::Uuid(asked.workspace.0));
        sql.push(" AND collection = ").bind(Arg::Text(asked.scope.full_name.clone()));
        sql.push(" AND field = ").bind(Arg::Text(self.searched.text.clone()));
        sql.push(" AND folded LIKE lower(").bind(Arg::Text(like_pattern(self.part)));
        sql.push(asked.folding).push(")");
        match from {
            Start::First => {}
            Start::At(key) => {
                sql.push(" AND key >= ").bind(Arg::Text(key.clone()));
            }
            Start::After(key) => {
                sql.push(" AND key > ").bind(Arg::Text(key.clone()));
            }
        }
        sql.push(" ORDER BY key").push_limit(most);
        // What is rare decides between walk and trigrams, so it must be known.
        sql.plan_anew();
        let mut keys = Vec::new();
        each_row(connection, sql, |row| {
            keys.push(row.text(0)?);
            Ok(())
        })
        .await?;
        Ok(keys)
    }
}

impl Searched {
    /// Whether the query fixes a field that leaves few documents.
    fn is_narrow(&self, query: &Query) -> bool {
        query.conditions.iter().any(|condition| match (&condition.test, &*condition.fields) {
            (Test::Equals(value), [field]) => *value != Value::Null && self.unless.contains(field),
            _ => false,
        })
    }
}

/// How many keys to look for next, where so many had too few documents.
pub(super) fn more(keys: u32) -> u32 {
    keys.saturating_mul(4).min(MOST_KEYS)
}

/// Keeps the pairs of documents that are about to be written.
pub async fn keep<'a>(
    store: &Store,
    scopes: impl Iterator<Item = &'a CollectionScope>,
    effects: &Effects,
) -> Result<(), Error> {
    if store.backend() == Backend::Sqlite {
        return Ok(());
    }
    let mut pairs = Pairs::default();
    for scope in scopes.filter(|scope| !scope.searched.is_empty()) {
        let new = effects.inserts.iter().map(|one| (&one.collection, &one.body));
        let all = new.chain(effects.updates.iter().map(|one| (&one.collection, &one.body)));
        for (_, body) in all.filter(|(collection, _)| **collection == scope.full_name) {
            pairs.add(scope, body);
        }
    }
    if pairs.keys.is_empty() {
        return Ok(());
    }
    let mut connection = store.writer().await?;
    if let Raw::Postgres(c) = connection.raw() {
        pairs.insert(store.folding(), effects).postgres()?.execute(c).await?;
    }
    connection.release();
    Ok(())
}

/// Columns of pairs to be written.
#[derive(Default)]
struct Pairs {
    collections: Vec<String>,
    fields: Vec<String>,
    keys: Vec<String>,
    texts: Vec<String>,
}

impl Pairs {
    fn add(&mut self, scope: &CollectionScope, body: &str) {
        // Bodies have been checked; one that cannot be read has no texts.
        let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(body) else { return };
        let text = |name: &String| {
            serde_json::from_str::<Option<String>>(members.get(name)?.get()).ok().flatten()
        };
        for searched in &scope.searched {
            let (Some(key), Some(value)) = (text(&searched.by), text(&searched.text)) else {
                continue;
            };
            self.collections.push(scope.full_name.clone());
            self.fields.push(searched.text.clone());
            self.keys.push(key);
            self.texts.push(value);
        }
    }

    /// In order, so that two of these never wait for each other.
    fn insert(self, folding: &str, effects: &Effects) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "INSERT INTO search_texts ");
        sql.push("(workspace_id, collection, field, key, folded) SELECT DISTINCT ");
        sql.bind(Arg::Uuid(effects.workspace.0)).push("::uuid, u.collection, u.field, u.key, ");
        sql.push(&format!("lower(u.text{folding}) COLLATE \"C\" AS folded FROM unnest("));
        sql.bind(Arg::Texts(self.collections)).push("::text[], ");
        sql.bind(Arg::Texts(self.fields)).push("::text[], ");
        sql.bind(Arg::Texts(self.keys)).push("::text[], ");
        sql.bind(Arg::Texts(self.texts)).push("::text[]) AS u(collection, field, key, text) ");
        sql.push("ORDER BY 2, 3, 4, 5 ON CONFLICT DO NOTHING");
        sql
    }
}

/// Makes the index of trigrams, where the extension is to be had, and the
/// pairs of what is there already. Once for each declaration: what a version
/// without it still writes afterwards, on a node that has not yet followed, is
/// found once it is written again.
pub(super) async fn ensure(
    c: &mut PgConnection,
    folding: &str,
    scopes: &[CollectionScope],
) -> Result<(), Error> {
    for scope in scopes {
        for searched in &scope.searched {
            let (name, Searched { text, by, .. }) = (&scope.full_name, searched);
            let query = "SELECT EXISTS (SELECT FROM searched_fields \
                         WHERE collection = $1 AND field = $2 AND key_field = $3)";
            let known = sqlx::query_scalar(query).bind(name).bind(text).bind(by);
            if known.fetch_one(&mut *c).await? {
                continue;
            }
            index_trigrams(c).await?;
            // Both are declared fields, whose names `indexes::check` has seen.
            let fill = format!(
                "INSERT INTO search_texts (workspace_id, collection, field, key, folded) \
                 SELECT DISTINCT workspace_id, collection, '{text}', body->>'{by}', \
                 lower((body->>'{text}'){folding}) COLLATE \"C\" FROM documents \
                 WHERE collection = '{name}' AND body->>'{text}' IS NOT NULL \
                 AND body->>'{by}' IS NOT NULL ON CONFLICT DO NOTHING"
            );
            sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut *c).await?;
            let done = "INSERT INTO searched_fields VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            sqlx::query(done).bind(name).bind(text).bind(by).execute(&mut *c).await?;
        }
    }
    Ok(())
}

/// `pg_trgm` comes with PostgreSQL, and an owner of the database may add it.
/// Where it is not installed, searches walk through the pairs.
async fn index_trigrams(c: &mut PgConnection) -> Result<(), Error> {
    if let Err(error) =
        sqlx::raw_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm").execute(&mut *c).await
    {
        tracing::warn!(%error, "without the extension pg_trgm, searches are slow");
        return Ok(());
    }
    // Without a list of what is pending, which every search would read.
    let index = "CREATE INDEX IF NOT EXISTS search_texts_trigrams ON search_texts \
                 USING gin (folded gin_trgm_ops) WITH (fastupdate = off)";
    sqlx::raw_sql(index).execute(c).await?;
    Ok(())
}
