//! Builds statements whose text depends on the query.
//!
//! Values are always bound, never written into the text. Collection and field
//! names are written into the text after `indexes::check` has validated them.

use std::fmt::Write as _;

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Postgres, Sqlite};
use uuid::Uuid;

use super::Backend;
use super::collections::table;
use super::connection::{Connection, DriverConnection};
use super::error::Error;
use assurance_core::domain::time::Timestamp;

/// SQL expression of PostgreSQL's clock, in microseconds since 1970.
pub(super) const DATABASE_NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Returns the time of PostgreSQL's clock; `None` on SQLite.
pub(super) async fn database_time(connection: &mut Connection) -> Result<Option<Timestamp>, Error> {
    let DriverConnection::Postgres(c) = connection.raw() else { return Ok(None) };
    let statement = format!("SELECT {DATABASE_NOW}");
    let now = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(c).await?;
    Ok(Some(Timestamp(now)))
}

/// A statement under construction, with its parameters.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    pub(super) backend: Backend,
    pub(super) text: String,
    args: Vec<SqlParameter>,
    /// Whether PostgreSQL may reuse the plan of an earlier execution.
    kept: bool,
}

impl Sql {
    pub(super) fn new(backend: Backend, text: &str) -> Self {
        Self { backend, text: text.to_owned(), args: Vec::new(), kept: true }
    }

    /// Appends SQL text without parameters.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends the table of a collection: the partitioned table on PostgreSQL,
    /// where a condition or value must name the collection, and the
    /// collection's own table on SQLite.
    pub(super) fn push_table(&mut self, collection: &str) -> &mut Self {
        match self.backend {
            Backend::Sqlite => self.push("\"").push(&table(collection)).push("\""),
            Backend::Postgres => self.push("documents"),
        }
    }

    /// Makes PostgreSQL plan the statement for its values each time, instead of
    /// reusing a generic plan.
    pub(super) fn plan_anew(&mut self) -> &mut Self {
        self.kept = false;
        self
    }

    /// Appends a placeholder and binds its value.
    pub(super) fn bind(&mut self, value: impl Into<SqlParameter>) -> &mut Self {
        self.args.push(value.into());
        match self.backend {
            // SQLite looks numbered parameters up by name while parsing, which
            // is slow for many parameters.
            Backend::Sqlite => self.text.push('?'),
            Backend::Postgres => {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "${}", self.args.len());
            }
        }
        self
    }

    /// Appends a limit as a literal. If the limit were a parameter, SQLite
    /// would plan the statement again each time, and PostgreSQL would assume a
    /// tenth of all rows and never reuse a generic plan. Both cost more than
    /// the rest of a small page.
    pub(super) fn push_limit(&mut self, rows: u32) -> &mut Self {
        self.push(&format!(" LIMIT {rows}"))
    }

    /// Appends a placeholder for any of these values: an array on PostgreSQL, a
    /// list on SQLite.
    pub(super) fn bind_any(&mut self, values: impl Into<SqlParameter>) -> &mut Self {
        let values = values.into();
        if self.backend == Backend::Postgres {
            return self.push("= ANY(").bind(values).push(")");
        }
        let json = match &values {
            SqlParameter::Texts(values) => serde_json::to_string(values),
            SqlParameter::Integers(values) => serde_json::to_string(values),
            SqlParameter::Booleans(values) => serde_json::to_string(values),
            other => unreachable!("{other:?} is not a list"),
        };
        // Lists of texts and numbers can always be serialized.
        self.push("IN (SELECT value FROM json_each(").bind(json.unwrap_or_default()).push("))")
    }

    /// Appends `unnest(…)` with these lists, which have the same length. Only
    /// for PostgreSQL.
    pub(super) fn push_unnest(
        &mut self,
        lists: impl IntoIterator<Item = SqlParameter>,
    ) -> &mut Self {
        for (at, list) in lists.into_iter().enumerate() {
            let sql_type = list.list_type();
            self.push(if at == 0 { "unnest(" } else { ", " }).bind(list).push("::").push(sql_type);
        }
        self.push(")")
    }

    /// Returns the query with its parameters for SQLite.
    pub(super) fn sqlite(self) -> Result<Query<'static, Sqlite, SqliteArguments>, Error> {
        let mut arguments = SqliteArguments::default();
        for arg in self.args {
            add_sqlite(&mut arguments, arg).map_err(encoding)?;
        }
        Ok(sqlx::query_with(AssertSqlSafe(self.text), arguments))
    }

    /// Returns the query with its parameters for PostgreSQL.
    pub(super) fn postgres(self) -> Result<Query<'static, Postgres, PgArguments>, Error> {
        let mut arguments = PgArguments::default();
        for arg in self.args {
            add_postgres(&mut arguments, arg).map_err(encoding)?;
        }
        Ok(sqlx::query_with(AssertSqlSafe(self.text), arguments).persistent(self.kept))
    }
}

type BindResult = Result<(), sqlx::error::BoxDynError>;

/// Defines the enum of statement parameters and its conversions: single values,
/// and lists, which only PostgreSQL can bind, with their types there.
macro_rules! parameters {
    ({ $($value:ident($value_type:ty),)* }
     { $($list:ident($list_type:ty) = $sql_type:literal,)* }) => {
        /// Value of a statement's parameter.
        #[derive(Clone, Debug)]
        pub(super) enum SqlParameter {
            $($value($value_type),)*
            $($list($list_type),)*
        }

        $(impl From<$value_type> for SqlParameter {
            fn from(value: $value_type) -> Self {
                Self::$value(value)
            }
        })*

        $(impl From<$list_type> for SqlParameter {
            fn from(list: $list_type) -> Self {
                Self::$list(list)
            }
        })*

        impl SqlParameter {
            fn list_type(&self) -> &'static str {
                match self {
                    $(Self::$list(_) => $sql_type,)*
                    value => unreachable!("{value:?} is not a list"),
                }
            }
        }

        fn add_sqlite(to: &mut SqliteArguments, arg: SqlParameter) -> BindResult {
            match arg {
                $(SqlParameter::$value(value) => Arguments::add(to, value),)*
                list => Err(format!("SQLite binds no list: {list:?}").into()),
            }
        }

        fn add_postgres(to: &mut PgArguments, arg: SqlParameter) -> BindResult {
            match arg {
                $(SqlParameter::$value(value) => Arguments::add(to, value),)*
                $(SqlParameter::$list(list) => Arguments::add(to, list),)*
            }
        }
    };
}

parameters! {
    {
        Uuid(Uuid),
        MaybeUuid(Option<Uuid>),
        Text(String),
        MaybeText(Option<String>),
        Integer(i64),
        MaybeInteger(Option<i64>),
        Boolean(bool),
        Bytes(Vec<u8>),
    }
    {
        Uuids(Vec<Uuid>) = "uuid[]",
        MaybeUuids(Vec<Option<Uuid>>) = "uuid[]",
        Texts(Vec<String>) = "text[]",
        MaybeTexts(Vec<Option<String>>) = "text[]",
        Integers(Vec<i64>) = "bigint[]",
        MaybeIntegers(Vec<Option<i64>>) = "bigint[]",
        Booleans(Vec<bool>) = "boolean[]",
        Blobs(Vec<Vec<u8>>) = "bytea[]",
    }
}

impl From<&str> for SqlParameter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

fn encoding(error: sqlx::error::BoxDynError) -> Error {
    Error::Database(sqlx::Error::Encode(error))
}

/// A result row of either database.
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

/// Runs a statement and passes its rows to `take` one by one; an error of
/// `take` ends it early.
pub(super) async fn each_row(
    connection: &mut Connection,
    sql: Sql,
    mut take: impl FnMut(Row) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    match connection.raw() {
        DriverConnection::Sqlite(c) => {
            let mut rows = sql.sqlite()?.fetch(c);
            while let Some(row) = rows.try_next().await? {
                take(Row::Sqlite(row))?;
            }
        }
        DriverConnection::Postgres(c) => {
            let mut rows = sql.postgres()?.fetch(c);
            while let Some(row) = rows.try_next().await? {
                take(Row::Postgres(row))?;
            }
        }
    }
    Ok(())
}

/// Runs a statement that returns at most one row.
pub(super) async fn one_row(connection: &mut Connection, sql: Sql) -> Result<Option<Row>, Error> {
    Ok(match connection.raw() {
        DriverConnection::Sqlite(c) => sql.sqlite()?.fetch_optional(c).await?.map(Row::Sqlite),
        DriverConnection::Postgres(c) => {
            sql.postgres()?.fetch_optional(c).await?.map(Row::Postgres)
        }
    })
}

/// Runs a statement. Returns the number of rows that it changed.
pub(super) async fn changed_rows(connection: &mut Connection, sql: Sql) -> Result<u64, Error> {
    Ok(match connection.raw() {
        DriverConnection::Sqlite(c) => sql.sqlite()?.execute(c).await?.rows_affected(),
        DriverConnection::Postgres(c) => sql.postgres()?.execute(c).await?.rows_affected(),
    })
}

/// Defines a struct and reads a row of either database into it, field by field.
/// (sqlx's derive macro would compile both drivers a second time.)
macro_rules! from_row {
    ($(#[$meta:meta])* struct $name:ident { $($member:ident: $type:ty,)* }) => {
        $(#[$meta])*
        struct $name { $($member: $type,)* }

        $crate::sql::from_row!(@for sqlx::sqlite::SqliteRow, $name { $($member,)* });
        $crate::sql::from_row!(@for sqlx::postgres::PgRow, $name { $($member,)* });
    };
    (@for $row:ty, $name:ident { $($member:ident,)* }) => {
        impl sqlx::FromRow<'_, $row> for $name {
            fn from_row(row: &$row) -> sqlx::Result<Self> {
                use sqlx::Row as _;
                Ok(Self { $($member: row.try_get(stringify!($member))?,)* })
            }
        }
    };
}
pub(crate) use from_row;
