//! Maintains the pairs of key and text, and their trigram index.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::apply::Effects;
use super::super::connection::Raw;
use super::super::error::Error;
use super::super::scope::{CollectionScope, SubstringIndexSpec};
use super::super::sql::Sql;
use super::super::{Backend, Store};
use super::{SAMPLE, folded};
use assurance_core::domain::id::WorkspaceId;

/// Pairs of key and text of the documents that a call is about to write, as
/// columns for one insert.
#[derive(Debug)]
pub struct PairColumns {
    workspace: WorkspaceId,
    collections: Vec<String>,
    fields: Vec<String>,
    keys: Vec<String>,
    texts: Vec<String>,
}

impl PairColumns {
    /// Collects the pairs. There are none on SQLite, which does not use them.
    pub fn of<'a>(
        store: &Store,
        scopes: impl Iterator<Item = &'a CollectionScope>,
        effects: &Effects,
    ) -> Self {
        let (collections, fields, keys, texts) = Default::default();
        let mut pairs = Self { workspace: effects.workspace, collections, fields, keys, texts };
        if store.backend() == Backend::Sqlite {
            return pairs;
        }
        for scope in scopes.filter(|scope| !scope.searched.is_empty()) {
            let new = effects.inserts.iter().map(|one| (&one.collection, &one.body));
            let all = new.chain(effects.updates.iter().map(|one| (&one.collection, &one.body)));
            for (_, body) in all.filter(|(collection, _)| **collection == scope.full_name) {
                pairs.add(scope, body);
            }
        }
        pairs
    }

    /// Inserts the pairs by a separate statement, which must end before their
    /// documents are committed.
    pub async fn keep(self, store: &Store) -> Result<(), Error> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let mut connection = store.writer().await?;
        if let Raw::Postgres(c) = connection.raw() {
            self.insert(store.folding()).postgres()?.execute(c).await?;
        }
        connection.release();
        Ok(())
    }

    fn add(&mut self, scope: &CollectionScope, body: &str) {
        // The bodies are already validated. A body that cannot be parsed has no
        // texts.
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

    /// Returns the statement that inserts the pairs. They are sorted, so that
    /// two concurrent inserts cannot deadlock.
    fn insert(self, folding: &str) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "INSERT INTO search_texts ");
        sql.push("(workspace_id, collection, field, key, folded) SELECT DISTINCT ");
        sql.bind(self.workspace.0).push("::uuid, u.collection, u.field, u.key, ");
        let [before, after] = folded(folding);
        sql.push(&format!("{before}u.text{after} AS folded FROM unnest("));
        sql.bind(self.collections).push("::text[], ");
        sql.bind(self.fields).push("::text[], ");
        sql.bind(self.keys).push("::text[], ");
        sql.bind(self.texts).push("::text[]) AS u(collection, field, key, text) ");
        sql.push("ORDER BY 2, 3, 4, 5 ON CONFLICT DO NOTHING");
        sql
    }
}

/// Creates the trigram index if the extension is available, and the pairs of
/// existing documents. This runs once for each declaration. Documents that an
/// older version still writes on another node become searchable when they are
/// written again.
pub(crate) async fn ensure(
    c: &mut PgConnection,
    folding: &str,
    scopes: &[CollectionScope],
) -> Result<(), Error> {
    for scope in scopes {
        for searched in &scope.searched {
            if is_known(c, &scope.full_name, searched).await? {
                continue;
            }
            let (name, SubstringIndexSpec { text, by, .. }) = (&scope.full_name, searched);
            index_trigrams(c).await?;
            // Both are declared fields, whose names `indexes::check` has
            // validated.
            let [before, after] = folded(folding);
            let fill = format!(
                "INSERT INTO search_texts (workspace_id, collection, field, key, folded) \
                 SELECT DISTINCT workspace_id, collection, '{text}', body->>'{by}', \
                 {before}(body->>'{text}'){after} FROM documents \
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

/// Returns whether [`ensure`] has anything to do.
pub(crate) async fn is_missing(
    c: &mut PgConnection,
    scopes: &[CollectionScope],
) -> Result<bool, Error> {
    for scope in scopes {
        for searched in &scope.searched {
            if !is_known(c, &scope.full_name, searched).await? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

async fn is_known(
    c: &mut PgConnection,
    collection: &str,
    searched: &SubstringIndexSpec,
) -> Result<bool, Error> {
    let query = "SELECT EXISTS (SELECT FROM searched_fields \
                 WHERE collection = $1 AND field = $2 AND key_field = $3)";
    let known = sqlx::query_scalar(query).bind(collection).bind(&searched.text).bind(&searched.by);
    Ok(known.fetch_one(c).await?)
}

/// Creates the trigram indexes of all pairs and of the sample.
///
/// `pg_trgm` is part of PostgreSQL, and the owner of a database may install it.
/// Without it, searches scan the pairs.
async fn index_trigrams(c: &mut PgConnection) -> Result<(), Error> {
    if let Err(error) =
        sqlx::raw_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm").execute(&mut *c).await
    {
        tracing::warn!(%error, "without the extension pg_trgm, searches are slow");
        return Ok(());
    }
    // Indexing new texts one by one would dominate the time of an import, so
    // they go to the pending list first. The list is short (in kB), because
    // each search scans it.
    let index = "CREATE INDEX IF NOT EXISTS search_texts_trigrams ON search_texts \
                 USING gin (folded gin_trgm_ops) WITH (gin_pending_list_limit = 512)";
    sqlx::raw_sql(index).execute(&mut *c).await?;
    let sample = format!(
        "CREATE INDEX IF NOT EXISTS search_texts_sample ON search_texts \
         USING gin (folded gin_trgm_ops) WITH (gin_pending_list_limit = 64) WHERE {SAMPLE}"
    );
    sqlx::raw_sql(AssertSqlSafe(sample)).execute(c).await?;
    Ok(())
}
