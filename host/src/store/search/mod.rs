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

mod pairs;
#[cfg(test)]
mod tests;

use super::Backend;
use super::connection::Connection;
use super::error::Error;
use super::fields::like_pattern;
use super::query::Asked;
use super::scope::Searched;
use super::sql::{Arg, Sql, each_row};
use crate::domain::document::{Query, Test, Value};

pub use pairs::keep;
pub(super) use pairs::{ensure, is_missing};

/// Most keys of one look.
const MOST_KEYS: u32 = 1_000;
/// Pairs that are looked at one by one: a few milliseconds.
const NEXT_PAIRS: u32 = 8_000;
/// Pairs that the index of the keys holds whole, so that one by one they are
/// read from it alone; and the others, which are too long for an index's entry.
const SHORT: &str = " AND octet_length(key) + octet_length(folded) <= 2000";
const LONG: &str = " AND octet_length(key) + octet_length(folded) > 2000";

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
        let mut keys = Vec::new();
        each_row(connection, self.keys_sql(asked, from, most), |row| {
            keys.push(row.text(0)?);
            Ok(())
        })
        .await?;
        Ok(keys)
    }

    /// First the next pairs, in order, are looked at: of what is frequent they
    /// have enough. Only where they have not, the trigrams are asked for all
    /// there is. Left to itself, PostgreSQL takes what is found for evenly
    /// spread, and walks through everything before names that begin alike. A
    /// part too short for trigrams is looked for until there are enough.
    fn keys_sql(self, asked: Asked<'_>, from: &Start, most: u32) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "WITH long AS MATERIALIZED (");
        self.push_pairs(&mut sql, asked, from, LONG);
        sql.push(" AND ");
        self.push_contains(&mut sql, asked);
        sql.push("), ");
        if has_trigrams(self.part) {
            self.push_near_and_far(&mut sql, asked, from, most);
        } else {
            self.push_walk(&mut sql, asked, from, most);
        }
        sql.push(" SELECT DISTINCT key FROM (SELECT key FROM near UNION ALL ");
        sql.push("SELECT key FROM long UNION ALL SELECT key FROM far) AS found ORDER BY key");
        sql.push_limit(most);
        // What is rare decides how the trigrams are asked, so it must be known.
        sql.plan_anew();
        sql
    }

    fn push_near_and_far(self, sql: &mut Sql, asked: Asked<'_>, from: &Start, most: u32) {
        let pairs = NEXT_PAIRS.to_string();
        sql.push("next AS MATERIALIZED (");
        self.push_pairs(sql, asked, from, SHORT);
        sql.push(" ORDER BY key LIMIT ").push(&pairs);
        sql.push("), near AS MATERIALIZED (SELECT DISTINCT key FROM next WHERE ");
        self.push_contains(sql, asked);
        sql.push("), far AS MATERIALIZED (");
        self.push_pairs(sql, asked, from, "");
        sql.push(" AND ");
        self.push_contains(sql, asked);
        sql.push(" AND key >= (SELECT max(key) FROM next HAVING count(*) = ").push(&pairs);
        sql.push(") AND (SELECT count(*) FROM near) < ").bind(Arg::Integer(most.into())).push(")");
    }

    fn push_walk(self, sql: &mut Sql, asked: Asked<'_>, from: &Start, most: u32) {
        sql.push("near AS MATERIALIZED (SELECT DISTINCT key FROM (");
        self.push_pairs(sql, asked, from, SHORT);
        sql.push(" AND ");
        self.push_contains(sql, asked);
        sql.push(") AS matching ORDER BY key").push_limit(most);
        sql.push("), far AS (SELECT NULL::text AS key WHERE false)");
    }

    fn push_pairs(self, sql: &mut Sql, asked: Asked<'_>, from: &Start, which: &str) {
        sql.push("SELECT key, folded FROM search_texts");
        self.push_where(sql, asked, from);
        sql.push(which);
    }

    fn push_where(self, sql: &mut Sql, asked: Asked<'_>, from: &Start) {
        sql.push(" WHERE workspace_id = ").bind(Arg::Uuid(asked.workspace.0));
        sql.push(" AND collection = ").bind(Arg::Text(asked.scope.full_name.clone()));
        sql.push(" AND field = ").bind(Arg::Text(self.searched.text.clone()));
        match from {
            Start::First => {}
            Start::At(key) => {
                sql.push(" AND key >= ").bind(Arg::Text(key.clone()));
            }
            Start::After(key) => {
                sql.push(" AND key > ").bind(Arg::Text(key.clone()));
            }
        }
    }

    /// A collation that is named inside would be the comparison's too, and not
    /// that of the index, which then could not be used.
    fn push_contains(self, sql: &mut Sql, asked: Asked<'_>) {
        sql.push("folded LIKE lower(").bind(Arg::Text(like_pattern(self.part)));
        sql.push(asked.folding).push(") COLLATE \"C\"");
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

/// Whether `pg_trgm` finds trigrams in a part of a text: three letters or digits
/// in a row, where an end that the part shows counts for two at the beginning
/// of a word and for one behind it.
fn has_trigrams(part: &str) -> bool {
    let mut words = part.split(|c: char| !c.is_alphanumeric()).peekable();
    let mut before = 0;
    while let Some(word) = words.next() {
        let behind = usize::from(words.peek().is_some());
        if !word.is_empty() && before + word.chars().count() + behind >= 3 {
            return true;
        }
        before = 2;
    }
    false
}

/// How many keys to look for next, where so many had too few documents.
pub(super) fn more(keys: u32) -> u32 {
    keys.saturating_mul(4).min(MOST_KEYS)
}
