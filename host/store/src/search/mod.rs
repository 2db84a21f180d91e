//! Substring search on PostgreSQL.
//!
//! A query for a page in the order of a key, of documents whose text contains a
//! substring, is slow with any index on the documents: it either scans all
//! documents without the substring, or sorts all documents with it. So each
//! distinct pair of key and text is also stored in the table `search_texts`.
//! The pairs are fewer and shorter than the documents, and have a trigram
//! index. A query first finds the next keys, then reads the documents with
//! those keys.
//!
//! Pairs are written before their documents, by a separate statement: in
//! serializable transactions, imports of the same names would conflict. A pair
//! without documents costs one lookup but never changes a result.
//!
//! SQLite, meant for less data, tests each document.

mod pairs;
#[cfg(test)]
mod tests;

use super::Backend;
use super::connection::Connection;
use super::error::Error;
use super::fields::like_pattern;
use super::query::QueryTarget;
use super::scope::SubstringIndexSpec;
use super::sql::{Sql, each_row, one_row};
use assurance_core::domain::document::{FieldTest, FieldValue, Query};

pub use pairs::{SearchPairsToInsert, forget_unwritten};
pub(super) use pairs::{ensure, is_complete};

/// Maximum number of keys that one statement of a substring search returns.
const MOST_KEYS: u32 = 1_000;
/// SQL condition for a sample of one in 64 pairs of key and text, by hash. The
/// sample has its own trigram index, which shows quickly how frequent a
/// substring is.
const SAMPLE: &str = "md5(key || folded) < '04'";
/// Number of matches in the sample above which a substring is frequent. That is
/// about 4,000 of all pairs, which the trigram index finds in about 10 ms.
const FREQUENT: u32 = 63;
/// Punctuation that the trigram index must distinguish, for example in versions
/// and paths. Each character is stored as a capital letter, which folded text
/// does not contain.
const MARKS: &str = "._@/-:+~";
/// Capital letters that replace [`MARKS`], in the same order.
const CAPITALS: &str = "JVXZQWKY";
/// SQL condition for pairs of key and text that fit into an entry of the key
/// index, so that the index alone answers.
const SHORT: &str = " AND octet_length(key) + octet_length(folded) <= 2000";
/// SQL condition for pairs of key and text that are too long for the key index.
/// They are queried separately.
const LONG: &str = " AND octet_length(key) + octet_length(folded) > 2000";

/// Where a page of a substring search starts in the order of keys.
#[derive(Clone, Debug)]
pub(super) enum KeyStart {
    First,
    /// The page starts at this key, inclusive.
    At(String),
    After(String),
}

/// A substring search that the pairs of key and text in `search_texts` can
/// answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubstringSearch<'a> {
    searched: &'a SubstringIndexSpec,
    part: &'a str,
}

impl<'a> SubstringSearch<'a> {
    /// Returns the search that answers a query for a substring, ordered by the
    /// key of that text's index; `None` if the search cannot answer it.
    pub(super) fn of(backend: Backend, target: QueryTarget<'a>, query: &'a Query) -> Option<Self> {
        if backend == Backend::Sqlite || !target.use_search_table {
            return None;
        }
        let first = query.order.first().filter(|first| !first.descending)?;
        let of = |searched: &&SubstringIndexSpec| {
            searched.by == first.field && !searched.is_narrow(query)
        };
        target.scope.searched.iter().filter(of).find_map(|searched| {
            let part = query.conditions.iter().find_map(|condition| match &condition.test {
                FieldTest::Contains(part) if condition.fields == [searched.text.as_str()] => {
                    Some(part)
                }
                _ => None,
            })?;
            (!part.contains('\0')).then_some(Self { searched, part })
        })
    }

    /// Returns where the page after a cursor position with this key starts.
    /// Without a key, the page starts at the first one.
    pub(super) fn from(key: Option<&FieldValue>) -> KeyStart {
        match key {
            Some(FieldValue::Text(key)) => KeyStart::At(key.clone()),
            _ => KeyStart::First,
        }
    }

    /// Returns the next keys of texts with the substring, in order, at most
    /// `most`.
    ///
    /// Frequent substrings are found by scanning the pairs in key order. For
    /// rare ones, the trigram index returns all matches, which are then sorted.
    pub(super) async fn keys(
        self,
        connection: &mut Connection,
        target: QueryTarget<'_>,
        from: &KeyStart,
        most: u32,
    ) -> Result<Vec<String>, Error> {
        let by_trigrams =
            has_trigrams(self.part) && !self.is_frequent(connection, target, from).await?;
        let sql = if by_trigrams {
            self.trigrams_sql(target, from, most)
        } else {
            self.walk_sql(target, from, most)
        };
        let mut keys = Vec::new();
        each_row(connection, sql, |row| row.text(0).map(|key| keys.push(key))).await?;
        Ok(keys)
    }

    async fn is_frequent(
        self,
        connection: &mut Connection,
        target: QueryTarget<'_>,
        from: &KeyStart,
    ) -> Result<bool, Error> {
        let row = one_row(connection, self.sample_sql(target, from)).await?;
        Ok(row.map(|row| row.integer(0)).transpose()? >= Some(FREQUENT.into()))
    }

    /// Returns the statement that counts matches in the sample, up to
    /// `FREQUENT`. The planner must not choose another plan because of this
    /// limit.
    fn sample_sql(self, target: QueryTarget<'_>, from: &KeyStart) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "WITH found AS MATERIALIZED (");
        self.push_pairs(&mut sql, target, from, &format!(" AND {SAMPLE}"));
        self.push_like(&mut sql, target);
        sql.push(") SELECT count(*) FROM (SELECT FROM found");
        sql.push_limit(FREQUENT).push(") AS counted").plan_anew();
        sql
    }

    /// Returns the statement that scans the next pairs in key order, and all
    /// long pairs. The limit is in the same query as the pairs: for a subquery,
    /// the planner chooses what is cheapest for all of them, which is to sort
    /// them while the index alone cannot answer, before the next `VACUUM`.
    fn walk_sql(self, target: QueryTarget<'_>, from: &KeyStart, most: u32) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "SELECT DISTINCT key FROM (");
        sql.push("(SELECT DISTINCT key FROM search_texts");
        self.push_where(&mut sql, target, from);
        sql.push(SHORT).push(" AND ");
        self.push_contains(&mut sql, target);
        sql.push(" ORDER BY key").push_limit(most).push(") UNION ALL SELECT key FROM (");
        self.push_pairs(&mut sql, target, from, LONG);
        sql.push(") AS long WHERE ");
        self.push_contains(&mut sql, target);
        sql.push(") AS found ORDER BY key").push_limit(most).plan_anew();
        sql
    }

    /// Returns the statement that sorts the matches of the trigram index. The
    /// search text is visible to the planner; the limit is not, because it must
    /// not change the plan.
    fn trigrams_sql(self, target: QueryTarget<'_>, from: &KeyStart, most: u32) -> Sql {
        let mut sql = Sql::new(Backend::Postgres, "WITH found AS MATERIALIZED (");
        self.push_pairs(&mut sql, target, from, "");
        self.push_like(&mut sql, target);
        sql.push(") SELECT DISTINCT key FROM found ORDER BY key").push_limit(most).plan_anew();
        sql
    }

    fn push_pairs(self, sql: &mut Sql, target: QueryTarget<'_>, from: &KeyStart, which: &str) {
        sql.push("SELECT key, folded FROM search_texts");
        self.push_where(sql, target, from);
        sql.push(which);
    }

    fn push_where(self, sql: &mut Sql, target: QueryTarget<'_>, from: &KeyStart) {
        sql.push(" WHERE workspace_id = ").bind(target.workspace.0);
        sql.push(" AND collection = ").bind(target.scope.full_name.clone());
        sql.push(" AND field = ").bind(self.searched.text.clone());
        match from {
            KeyStart::First => {}
            KeyStart::At(key) => {
                sql.push(" AND key >= ").bind(key.clone());
            }
            KeyStart::After(key) => {
                sql.push(" AND key > ").bind(key.clone());
            }
        }
    }

    fn push_like(self, sql: &mut Sql, target: QueryTarget<'_>) {
        sql.push(" AND folded LIKE ");
        push_folded(sql, like_pattern(self.part), target.folding);
    }

    /// Writes the condition that the text contains the substring, in a form
    /// that no text index can answer.
    fn push_contains(self, sql: &mut Sql, target: QueryTarget<'_>) {
        sql.push("strpos(folded, ");
        push_folded(sql, self.part.to_owned(), target.folding);
        sql.push(") > 0");
    }
}

/// Appends the search text as a parameter, folded like the stored texts.
fn push_folded(sql: &mut Sql, part: String, folding: &str) {
    let [before, after] = folded(folding);
    sql.push(&before).bind(part).push(&after);
}

impl SubstringIndexSpec {
    /// Returns whether the query requires one value of a field with few
    /// documents per value.
    fn is_narrow(&self, query: &Query) -> bool {
        query.conditions.iter().any(|condition| match (&condition.test, &*condition.fields) {
            (FieldTest::Equals(value), [field]) => {
                *value != FieldValue::Null && self.unless.contains(field)
            }
            _ => false,
        })
    }
}

/// Returns the SQL before and after a text that folds it: lower case,
/// punctuation as capitals. A collation inside would also apply to the
/// comparison; the index has another one and could not be used.
fn folded(folding: &str) -> [String; 2] {
    let after = format!("{folding}) COLLATE \"C\", '{MARKS}', '{CAPITALS}')");
    ["translate(lower(".to_owned(), after]
}

/// Returns whether `pg_trgm` can extract trigrams from a substring: three
/// letters, digits or marks in a row. A word boundary counts as two characters
/// before a word and as one after it.
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

/// Returns the maximum number of keys for the next statement of a search, after
/// one with `keys` keys found too few documents.
pub(super) fn more(keys: u32) -> u32 {
    keys.saturating_mul(4).min(MOST_KEYS)
}
