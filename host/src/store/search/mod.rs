//! Parts of texts, on PostgreSQL: which keys have a text that contains one.
//!
//! A page in the order of a key, of documents whose text contains something,
//! is slow by any index of the documents alone: either it walks through all
//! that do not contain it, or it sorts all that do. So each pair of key and
//! text is kept once, beside the documents: there are far fewer, they are
//! short, and their trigrams are indexed. A page asks for the next keys first,
//! and then for the documents of those.
//!
//! Pairs are there before the documents are, by a statement of their own: inside
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
use super::sql::{Arg, Sql, each_row, one_row};
use crate::domain::document::{Query, Test, Value};

pub use pairs::Pairs;
pub(super) use pairs::{ensure, is_missing};

/// Most keys of one look.
const MOST_KEYS: u32 = 1_000;
/// One pair of 64, by what it hashes to; these have an index of trigrams of their
/// own, which tells how frequent a part is in a fraction of the time.
const SAMPLE: &str = "md5(key || folded) < '04'";
/// Pairs of the sample from which on a part is frequent: of all pairs, those are
/// about 4,000, which the trigrams take ten milliseconds to find.
const FREQUENT: u32 = 63;
/// Marks that are letters to the index of trigrams, each kept as a capital,
/// which no text in lower case has: versions and paths are told apart by them.
const MARKS: &str = "._@/-:+~";
const CAPITALS: &str = "JVXZQWKY";
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
    ///
    /// What is frequent is soon come by among the pairs in their order; of what
    /// is rare, the trigrams find all there is, which is then put in order.
    pub(super) async fn keys(
        self,
        connection: &mut Connection,
        asked: Asked<'_>,
        from: &Start,
        most: u32,
    ) -> Result<Vec<String>, Error> {
        let by_trigrams =
            has_trigrams(self.part) && !self.is_frequent(connection, asked, from).await?;
        let sql = if by_trigrams {
            self.trigrams_sql(asked, from, most)
        } else {
            self.walk_sql(asked, from, most)
        };
        let mut keys = Vec::new();
        each_row(connection, sql, |row| row.text(0).map(|key| keys.push(key))).await?;
        Ok(keys)
    }

    async fn is_frequent(
        self,
        connection: &mut Connection,
        asked: Asked<'_>,
        from: &Start,
    ) -> Result<bool, Error> {
        let row = one_row(connection, self.sample_sql(asked, from)).await?;
        Ok(row.map(|row| row.integer(0)).transpose()? >= Some(FREQUENT.into()))
    }

    /// How many pairs of the sample have it, up to what makes it frequent. How
    /// many are counted must not decide how they are found.
    fn sample_sql(self, asked: Asked<'_>, from: &Start) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "WITH found AS MATERIALIZED (");
        self.push_pairs(&mut sql, asked, from, &format!(" AND {SAMPLE}"));
        self.push_like(&mut sql, asked);
        sql.push(") SELECT count(*) FROM (SELECT FROM found");
        sql.push_limit(FREQUENT).push(") AS counted").plan_anew();
        sql
    }

    /// The keys of the next pairs in order, and of the long ones.
    fn walk_sql(self, asked: Asked<'_>, from: &Start, most: u32) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "SELECT DISTINCT key FROM (");
        sql.push("(SELECT DISTINCT key FROM (");
        self.push_pairs(&mut sql, asked, from, SHORT);
        sql.push(" ORDER BY key) AS next WHERE ");
        self.push_contains(&mut sql, asked);
        sql.push(" ORDER BY key").push_limit(most).push(") UNION ALL SELECT key FROM (");
        self.push_pairs(&mut sql, asked, from, LONG);
        sql.push(") AS long WHERE ");
        self.push_contains(&mut sql, asked);
        sql.push(") AS found ORDER BY key").push_limit(most).plan_anew();
        sql
    }

    /// The first keys of what the index of trigrams finds. What is rare decides
    /// how it is asked, so it must be known, and how many are taken must not be.
    fn trigrams_sql(self, asked: Asked<'_>, from: &Start, most: u32) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "WITH found AS MATERIALIZED (");
        self.push_pairs(&mut sql, asked, from, "");
        self.push_like(&mut sql, asked);
        sql.push(") SELECT DISTINCT key FROM found ORDER BY key").push_limit(most).plan_anew();
        sql
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

    fn push_like(self, sql: &mut Sql, asked: Asked<'_>) {
        sql.push(" AND folded LIKE ");
        push_folded(sql, like_pattern(self.part), asked.folding);
    }

    /// Written so that no index of texts can answer it.
    fn push_contains(self, sql: &mut Sql, asked: Asked<'_>) {
        sql.push("strpos(folded, ");
        push_folded(sql, self.part.to_owned(), asked.folding);
        sql.push(") > 0");
    }
}

/// What is looked for, as the texts are kept.
fn push_folded(sql: &mut Sql, part: String, folding: &str) {
    let [before, after] = folded(folding);
    sql.push(&before).bind(Arg::Text(part)).push(&after);
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

/// What is around a text to fold it: in lower case, marks as capitals. A
/// collation that is named inside would be the comparison's too, and not that of
/// the index, which then could not be used.
fn folded(folding: &str) -> [String; 2] {
    let after = format!("{folding}) COLLATE \"C\", '{MARKS}', '{CAPITALS}')");
    ["translate(lower(".to_owned(), after]
}

/// Whether `pg_trgm` finds trigrams in a part of a text: three letters, digits
/// or marks in a row, where an end that the part shows counts for two at the
/// beginning of a word and for one behind it.
fn has_trigrams(part: &str) -> bool {
    let parts_words = |c: char| !c.is_alphanumeric() && !MARKS.contains(c);
    let mut words = part.split(parts_words).peekable();
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
