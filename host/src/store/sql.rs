//! Statements whose text depends on the question.
//!
//! Values are always bound, never written into the text. The names that are
//! (collections and declared fields) have been looked at by `indexes::check`.

use std::fmt::Write as _;

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Postgres, Sqlite};
use uuid::Uuid;

use super::Backend;
use super::connection::{Connection, Raw};
use super::error::Error;

/// Microseconds since 1970, by PostgreSQL's own clock.
pub(super) const DATABASE_NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// A value to be bound.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    Uuid(Uuid),
    Text(String),
    MaybeText(Option<String>),
    Integer(i64),
    MaybeInteger(Option<i64>),
    Boolean(bool),
    Bytes(Vec<u8>),
    Uuids(Vec<Uuid>),
    MaybeUuids(Vec<Option<Uuid>>),
    Texts(Vec<String>),
    MaybeTexts(Vec<Option<String>>),
    Integers(Vec<i64>),
    Booleans(Vec<bool>),
    Blobs(Vec<Vec<u8>>),
}

/// A statement being written, with the values bound so far.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    pub(super) backend: Backend,
    pub(super) text: String,
    args: Vec<Arg>,
    /// Whether the plan of an earlier run may serve again.
    kept: bool,
}

impl Sql {
    pub(super) fn new(backend: Backend, text: &str) -> Self {
        Self { backend, text: text.to_owned(), args: Vec::new(), kept: true }
    }

    /// Text that holds no value.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// PostgreSQL plans it for its values, each time, instead of once for any.
    pub(super) fn plan_anew(&mut self) -> &mut Self {
        self.kept = false;
        self
    }

    /// A placeholder, and its value.
    pub(super) fn bind(&mut self, value: Arg) -> &mut Self {
        self.args.push(value);
        match self.backend {
            // Numbered parameters are looked up by name while SQLite parses,
            // which is slow where there are many.
            Backend::Sqlite => self.text.push('?'),
            Backend::Postgres => {
                // Writing to a string does not fail.
                let _ = write!(self.text, "${}", self.args.len());
            }
        }
        self
    }

    /// At most so many rows, not as a placeholder: whenever a limit is bound,
    /// SQLite plans the statement anew; and PostgreSQL, which then takes it for a
    /// tenth of all rows, thinks so little of a plan for any values that it never
    /// keeps one. Either costs more than the rest of a small page.
    pub(super) fn push_limit(&mut self, rows: u32) -> &mut Self {
        self.push(&format!(" LIMIT {rows}"))
    }

    /// A placeholder for any of these: PostgreSQL's array, SQLite's list.
    pub(super) fn bind_any(&mut self, values: Arg) -> &mut Self {
        if self.backend == Backend::Postgres {
            return self.push("= ANY(").bind(values).push(")");
        }
        let json = match &values {
            Arg::Texts(values) => serde_json::to_string(values),
            Arg::Integers(values) => serde_json::to_string(values),
            Arg::Booleans(values) => serde_json::to_string(values),
            other => unreachable!("{other:?} is no list"),
        };
        // Lists of texts and numbers always have a JSON form.
        let json = Arg::Text(json.unwrap_or_default());
        self.push("IN (SELECT value FROM json_each(").bind(json).push("))")
    }

    /// The same text with the values that belong to it, for SQLite.
    pub(super) fn sqlite(self) -> Result<Query<'static, Sqlite, SqliteArguments>, Error> {
        let mut arguments = SqliteArguments::default();
        for arg in self.args {
            add_sqlite(&mut arguments, arg).map_err(encoding)?;
        }
        Ok(sqlx::query_with(AssertSqlSafe(self.text), arguments))
    }

    /// The same for PostgreSQL.
    pub(super) fn postgres(self) -> Result<Query<'static, Postgres, PgArguments>, Error> {
        let mut arguments = PgArguments::default();
        for arg in self.args {
            add_postgres(&mut arguments, arg).map_err(encoding)?;
        }
        Ok(sqlx::query_with(AssertSqlSafe(self.text), arguments).persistent(self.kept))
    }
}

type Added = Result<(), sqlx::error::BoxDynError>;

fn add_sqlite(to: &mut SqliteArguments, arg: Arg) -> Added {
    match arg {
        Arg::Uuid(value) => Arguments::add(to, value),
        Arg::Text(value) => Arguments::add(to, value),
        Arg::MaybeText(value) => Arguments::add(to, value),
        Arg::Integer(value) => Arguments::add(to, value),
        Arg::MaybeInteger(value) => Arguments::add(to, value),
        Arg::Boolean(value) => Arguments::add(to, value),
        Arg::Bytes(value) => Arguments::add(to, value),
        list => Err(format!("SQLite binds no list: {list:?}").into()),
    }
}

fn add_postgres(to: &mut PgArguments, arg: Arg) -> Added {
    match arg {
        Arg::Uuid(value) => Arguments::add(to, value),
        Arg::Text(value) => Arguments::add(to, value),
        Arg::MaybeText(value) => Arguments::add(to, value),
        Arg::Integer(value) => Arguments::add(to, value),
        Arg::MaybeInteger(value) => Arguments::add(to, value),
        Arg::Boolean(value) => Arguments::add(to, value),
        Arg::Bytes(value) => Arguments::add(to, value),
        Arg::Uuids(value) => Arguments::add(to, value),
        Arg::MaybeUuids(value) => Arguments::add(to, value),
        Arg::Texts(value) => Arguments::add(to, value),
        Arg::MaybeTexts(value) => Arguments::add(to, value),
        Arg::Integers(value) => Arguments::add(to, value),
        Arg::Booleans(value) => Arguments::add(to, value),
        Arg::Blobs(value) => Arguments::add(to, value),
    }
}

fn encoding(error: sqlx::error::BoxDynError) -> Error {
    Error::Database(sqlx::Error::Encode(error))
}

/// A row of either database.
#[derive(Debug)]
pub(super) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

macro_rules! column {
    ($(#[$doc:meta])* $name:ident, $kind:ty) => {
        $(#[$doc])*
        pub(super) fn $name(&self, at: usize) -> Result<$kind, Error> {
            use sqlx::Row as _;
            Ok(match self {
                Self::Sqlite(row) => row.try_get_unchecked(at)?,
                Self::Postgres(row) => row.try_get_unchecked(at)?,
            })
        }
    };
}

impl Row {
    column!(text, String);
    column!(integer, i64);
    column!(maybe_text, Option<String>);
    column!(maybe_integer, Option<i64>);
    column!(maybe_boolean, Option<bool>);
}

/// Runs a statement and takes its rows one by one; an error of the taker ends
/// it early.
pub(super) async fn each_row(
    connection: &mut Connection,
    sql: Sql,
    mut take: impl FnMut(Row) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    match connection.raw() {
        Raw::Sqlite(c) => {
            let mut rows = sql.sqlite()?.fetch(c);
            while let Some(row) = rows.try_next().await? {
                take(Row::Sqlite(row))?;
            }
        }
        Raw::Postgres(c) => {
            let mut rows = sql.postgres()?.fetch(c);
            while let Some(row) = rows.try_next().await? {
                take(Row::Postgres(row))?;
            }
        }
    }
    Ok(())
}

/// Runs a statement that has one row at most.
pub(super) async fn one_row(connection: &mut Connection, sql: Sql) -> Result<Option<Row>, Error> {
    Ok(match connection.raw() {
        Raw::Sqlite(c) => sql.sqlite()?.fetch_optional(c).await?.map(Row::Sqlite),
        Raw::Postgres(c) => sql.postgres()?.fetch_optional(c).await?.map(Row::Postgres),
    })
}
