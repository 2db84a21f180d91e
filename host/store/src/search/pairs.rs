//! Maintains the pairs of key and text, and their trigram index.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::apply::Effects;
use super::super::collections::LiveOrCandidate;
use super::super::connection::{Connection, DriverConnection};
use super::super::error::Error;
use super::super::scope::{AccessibleCollection, SubstringIndexSpec};
use super::super::sql::{Sql, SqlParameter};
use super::super::{Backend, Store};
use super::{SAMPLE, folded};
use assurance_core::domain::id::WorkspaceId;

/// Pairs of key and text for the substring search, taken from the documents
/// that a call is about to write, in the form of one insert.
#[derive(Debug)]
pub struct SearchPairsToInsert {
    workspace: WorkspaceId,
    collections: Vec<String>,
    fields: Vec<String>,
    keys: Vec<String>,
    texts: Vec<String>,
}

impl SearchPairsToInsert {
    /// Collects the pairs of key and text from the documents that `effects`
    /// writes. There are none on SQLite, which does not use them.
    pub fn of<'a>(
        store: &Store,
        scopes: impl Iterator<Item = &'a AccessibleCollection>,
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

    /// Inserts the pairs of key and text by a separate statement, which must
    /// end before their documents are committed.
    pub async fn keep(self, store: &Store) -> Result<(), Error> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let mut connection = store.writer().await?;
        if let DriverConnection::Postgres(c) = connection.raw() {
            self.insert(store.folding()).postgres()?.execute(c).await?;
        }
        connection.release();
        Ok(())
    }

    fn add(&mut self, scope: &AccessibleCollection, body: &str) {
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

    /// Returns the statement that inserts the pairs of key and text. They are
    /// sorted, so that two concurrent inserts cannot deadlock.
    fn insert(self, folding: &str) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "INSERT INTO search_texts ");
        sql.push("(workspace_id, collection, field, key, folded) SELECT DISTINCT ");
        sql.bind(self.workspace.0).push("::uuid, u.collection, u.field, u.key, ");
        let [before, after] = folded(folding);
        sql.push(&format!("{before}u.text{after} AS folded FROM "));
        let lists = [self.collections, self.fields, self.keys, self.texts];
        sql.push_unnest(lists.map(SqlParameter::Texts));
        sql.push(" AS u(collection, field, key, text) ORDER BY 2, 3, 4, 5 ON CONFLICT DO NOTHING");
        sql
    }
}

/// Creates the trigram index if the extension `pg_trgm` is available, and the
/// search pairs of existing documents, unless they are recorded as complete. A
/// live version's pairs are recorded when no older version runs any more;
/// documents that it still writes on another node become searchable then.
pub(crate) async fn ensure(
    c: &mut PgConnection,
    folding: &str,
    scopes: &[AccessibleCollection],
    version: LiveOrCandidate,
) -> Result<(), Error> {
    for scope in scopes {
        let complete = complete(c, scope).await?;
        for SubstringIndexSpec { text, by, .. } in &scope.searched {
            if complete.contains(&(text.clone(), by.clone())) {
                continue;
            }
            let name = &scope.full_name;
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
        }
        if version == LiveOrCandidate::Live {
            record_complete(c, scope).await?;
        }
    }
    Ok(())
}

/// Returns whether the search pairs of these collections are complete, so that
/// [`ensure`] has nothing to do.
pub(crate) async fn is_complete(
    c: &mut PgConnection,
    scopes: &[AccessibleCollection],
    version: LiveOrCandidate,
) -> Result<bool, Error> {
    for scope in scopes {
        let complete = complete(c, scope).await?;
        let declared: BTreeSet<_> = declared(scope).collect();
        let done = match version {
            LiveOrCandidate::Live => complete == declared,
            LiveOrCandidate::Candidate => complete.is_superset(&declared),
        };
        if !done {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the text field and the key field of each substring index that a
/// collection declares.
fn declared(scope: &AccessibleCollection) -> impl Iterator<Item = (String, String)> {
    scope.searched.iter().map(|searched| (searched.text.clone(), searched.by.clone()))
}

/// Returns the text field and the key field of each substring index of a
/// collection whose pairs are complete.
async fn complete(
    c: &mut PgConnection,
    scope: &AccessibleCollection,
) -> Result<BTreeSet<(String, String)>, Error> {
    let query = "SELECT field, key_field FROM searched_fields WHERE collection = $1";
    let complete: Vec<(String, String)> =
        sqlx::query_as(query).bind(&scope.full_name).fetch_all(c).await?;
    Ok(complete.into_iter().collect())
}

/// Records that the search pairs of these collections are not complete for
/// substring indexes that the collections do not declare: a version with these
/// declarations did not write them. Does nothing on SQLite.
///
/// # Errors
/// The database is unavailable.
pub async fn forget_unwritten(
    connection: &mut Connection,
    scopes: &[AccessibleCollection],
) -> Result<(), Error> {
    if let DriverConnection::Postgres(c) = connection.raw() {
        for scope in scopes {
            forget_others(c, scope).await?;
        }
    }
    Ok(())
}

async fn forget_others(c: &mut PgConnection, scope: &AccessibleCollection) -> Result<(), Error> {
    let (texts, keys): (Vec<_>, Vec<_>) = declared(scope).unzip();
    let sql = "DELETE FROM searched_fields WHERE collection = $1 AND (field, key_field) NOT IN \
               (SELECT * FROM unnest($2::text[], $3::text[]))";
    sqlx::query(sql).bind(&scope.full_name).bind(&texts).bind(&keys).execute(c).await?;
    Ok(())
}

/// Records that the search pairs of a collection's declared substring indexes
/// are complete, and those of no others: the version does not write them.
async fn record_complete(c: &mut PgConnection, scope: &AccessibleCollection) -> Result<(), Error> {
    forget_others(c, scope).await?;
    let (texts, keys): (Vec<_>, Vec<_>) = declared(scope).unzip();
    let sql = "INSERT INTO searched_fields SELECT $1, * FROM unnest($2::text[], $3::text[]) \
               ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind(&scope.full_name).bind(&texts).bind(&keys).execute(c).await?;
    Ok(())
}

/// Creates the trigram indexes of all search pairs and of the sample.
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
