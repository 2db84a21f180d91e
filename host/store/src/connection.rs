//! Connections and transactions with one interface for both databases.
//!
//! Functions of the store take a `&mut Connection`; a [`Tx`] dereferences to
//! one with an open transaction.
//!
//! Invariant: a commit is reported only after the server has confirmed it. On
//! PostgreSQL, `COMMIT` of an aborted transaction succeeds and rolls back, and
//! `COMMIT` outside a transaction succeeds and does nothing. The statement
//! before it in the same message fails in both cases.

use std::ops::{Deref, DerefMut};

use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};
use tokio::sync::OwnedSemaphorePermit;

use super::Backend;
use super::connection_shares::ConnectionPermit;
use super::error::Error;
use super::gates::GateTurn;
use super::pool::{PooledConnection, TransactionStatus};

/// Evaluates one expression for the driver of the connection. Inside it, the
/// name refers to the driver's connection, to be passed as `&mut *name`.
macro_rules! on {
    ($connection:expr, $name:ident => $body:expr) => {
        match $connection.raw() {
            $crate::connection::DriverConnection::Sqlite($name) => $body,
            $crate::connection::DriverConnection::Postgres($name) => $body,
        }
    };
}
pub(crate) use on;

/// Executes a statement with values for its parameters: `execute!(connection,
/// sql, values…)`. Returns the number of rows that it changed.
macro_rules! execute {
    ($connection:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $crate::connection::on!($connection, c => {
            sqlx::query($sql)$(.bind($value))*.execute(&mut *c).await?.rows_affected()
        })
    };
}
pub(crate) use execute;

/// Runs a query with values for its parameters. The macros below choose the
/// kind of query and the number of rows.
macro_rules! fetch {
    ($query:ident.$fetch:ident, $connection:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $crate::connection::on!($connection, c => {
            sqlx::$query($sql)$(.bind($value))*.$fetch(&mut *c).await?
        })
    };
}
pub(crate) use fetch;

/// Returns the only row of a statement with `RETURNING`; takes the same
/// arguments as `execute!`. All rows are read: SQLite checks foreign keys and
/// commits at the end of the statement, and the driver does not report an error
/// of it if the caller stops after the first row.
macro_rules! fetch_one {
    ($($query:tt)+) => {
        $crate::connection::fetch!(query_as.fetch_all, $($query)+)
            .pop()
            .ok_or(sqlx::Error::RowNotFound)?
    };
}
pub(crate) use fetch_one;

/// Returns the row of a query; `None` if there is none.
macro_rules! fetch_optional {
    ($($query:tt)+) => { $crate::connection::fetch!(query_as.fetch_optional, $($query)+) };
}
pub(crate) use fetch_optional;

/// Returns all rows of a query.
macro_rules! fetch_all {
    ($($query:tt)+) => { $crate::connection::fetch!(query_as.fetch_all, $($query)+) };
}
pub(crate) use fetch_all;

/// Returns the only value of a query.
macro_rules! scalar {
    ($($query:tt)+) => { $crate::connection::fetch!(query_scalar.fetch_one, $($query)+) };
}
pub(crate) use scalar;

/// Returns the value of a query; `None` if it has no row.
macro_rules! optional_scalar {
    ($($query:tt)+) => { $crate::connection::fetch!(query_scalar.fetch_optional, $($query)+) };
}
pub(crate) use optional_scalar;

/// Returns the value of each row of a query.
macro_rules! scalars {
    ($($query:tt)+) => { $crate::connection::fetch!(query_scalar.fetch_all, $($query)+) };
}
pub(crate) use scalars;

/// Statement that sets the only savepoint of a transaction.
pub(super) const SAVEPOINT: &str = "SAVEPOINT flush";

/// A borrowed connection of one of the two database drivers.
#[derive(Debug)]
pub(crate) enum DriverConnection<'c> {
    /// A connection of SQLite's driver.
    Sqlite(&'c mut SqliteConnection),
    /// A connection to PostgreSQL. It executes statements with a time limit, but
    /// passed on as a `&mut PgConnection` without one.
    Postgres(&'c mut PooledConnection<PgConnection>),
}

/// A connection to the database. Each statement is a transaction of its own,
/// unless the connection is part of a [`Tx`].
#[derive(Debug)]
pub struct Connection(pub(super) BackendConnection);

#[derive(Debug)]
pub(super) enum BackendConnection {
    /// One of SQLite's readers; holds the write lock once it writes.
    Reader(PooledConnection<SqliteConnection>, Option<OwnedSemaphorePermit>),
    /// SQLite's only connection that writes.
    Writer(PooledConnection<SqliteConnection>),
    /// A connection to PostgreSQL.
    Postgres(PooledConnection<PgConnection>),
}

impl Connection {
    /// Returns the driver's connection; see `on!`.
    pub(crate) fn raw(&mut self) -> DriverConnection<'_> {
        match &mut self.0 {
            BackendConnection::Reader(reader, _) => DriverConnection::Sqlite(reader),
            BackendConnection::Writer(writer) => DriverConnection::Sqlite(writer),
            BackendConnection::Postgres(connection) => DriverConnection::Postgres(connection),
        }
    }

    /// Returns the kind of database.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match &self.0 {
            BackendConnection::Reader(..) | BackendConnection::Writer(_) => Backend::Sqlite,
            BackendConnection::Postgres(_) => Backend::Postgres,
        }
    }

    /// Must be called before the session gets state that outlives a statement:
    /// a transaction, an advisory lock, a setting. If the connection is dropped
    /// before [`Connection::end_session_state`], this state is rolled back and
    /// unlocked.
    pub(super) fn begin_session_state(&mut self) {
        self.set_status(TransactionStatus::Transaction);
    }

    /// Must be called when the server has confirmed that the session has no
    /// state any more that outlives a statement: no transaction, advisory lock
    /// or changed setting.
    pub(super) fn end_session_state(&mut self) {
        self.set_status(TransactionStatus::Statements);
    }

    fn set_status(&mut self, status: TransactionStatus) {
        match &mut self.0 {
            BackendConnection::Reader(one, _) | BackendConnection::Writer(one) => {
                one.set_status(status);
            }
            BackendConnection::Postgres(one) => one.set_status(status),
        }
    }

    /// Makes PostgreSQL confirm that no transaction is open, so that the next
    /// statement is a transaction of its own. SQLite's writer never leaves a
    /// transaction open.
    pub(super) async fn confirm_idle(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            BackendConnection::Postgres(connection) => Ok(connection.confirm_idle().await?),
            BackendConnection::Reader(..) | BackendConnection::Writer(_) => Ok(()),
        }
    }

    /// Removes this process's time limit of statements until the connection is
    /// returned to the pool.
    pub(super) fn remove_time_limit(&mut self) {
        if let BackendConnection::Postgres(connection) = &mut self.0 {
            connection.remove_time_limit();
        }
    }

    /// Returns the connection to the pool. Use it after a successful statement,
    /// because a dropped connection is reset first.
    pub fn release(self) {
        match self.0 {
            BackendConnection::Reader(reader, _) => reader.release(),
            BackendConnection::Writer(writer) => writer.release(),
            BackendConnection::Postgres(connection) => connection.release(),
        }
    }

    /// Returns the connection to the pool, which resets it. The write lock is
    /// released after the rollback, because SQLite refuses another writer
    /// before it.
    fn abandon(self) {
        match self.0 {
            BackendConnection::Reader(reader, Some(turn)) => reader.abandon(turn),
            BackendConnection::Reader(_, None)
            | BackendConnection::Writer(_)
            | BackendConnection::Postgres(_) => {}
        }
    }

    /// Runs a statement that begins or ends a transaction.
    async fn control(&mut self, text: &str) -> Result<(), Error> {
        match self.raw() {
            DriverConnection::Sqlite(c) => {
                sqlx::query(AssertSqlSafe(text)).execute(c).await?;
            }
            // The statement is not prepared, so that one message can contain
            // several statements.
            DriverConnection::Postgres(c) => {
                sqlx::raw_sql(AssertSqlSafe(text)).execute(c).await?;
            }
        }
        Ok(())
    }
}

/// An open transaction; dropping it rolls it back.
#[derive(Debug)]
pub struct Tx {
    connection: Option<Connection>,
    /// The workspace's gate (its lock against other calls); `None` if the
    /// transaction does not hold it.
    gate: Option<GateTurn>,
    /// Permit to hold a connection while an area's code runs; `None` if none
    /// does.
    place: Option<ConnectionPermit>,
}

impl Tx {
    pub(super) async fn begin(
        connection: Connection,
        statement: &'static str,
    ) -> Result<Self, Error> {
        // Created first, so that a cancelled `begin` is rolled back.
        let mut tx = Self { connection: Some(connection), gate: None, place: None };
        tx.begin_session_state();
        tx.control(statement).await?;
        Ok(tx)
    }

    /// Makes the transaction hold a permit, and the workspace's gate if there
    /// is one, until it ends.
    pub(super) fn holding(mut self, gate: Option<GateTurn>, place: ConnectionPermit) -> Self {
        self.gate = gate;
        self.place = Some(place);
        self
    }

    /// Returns whether this transaction holds its workspace's gate.
    pub fn is_gated(&self) -> bool {
        self.gate.is_some()
    }

    /// Sets a savepoint for [`Tx::roll_back_to_savepoint`].
    pub async fn savepoint(&mut self) -> Result<(), Error> {
        self.control(SAVEPOINT).await
    }

    /// Rolls back to the transaction's savepoint. The transaction stays open.
    pub async fn roll_back_to_savepoint(&mut self) -> Result<(), Error> {
        self.control("ROLLBACK TO SAVEPOINT flush").await
    }

    /// Removes the savepoint and keeps the changes made since it was set.
    pub async fn release_savepoint(&mut self) -> Result<(), Error> {
        self.control("RELEASE SAVEPOINT flush").await
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// The server did not confirm the commit. The transaction was rolled back,
    /// unless the connection was lost; then the outcome is unknown.
    pub async fn commit(mut self) -> Result<(), Error> {
        let gate = self.gate.take();
        let statement = match (self.backend(), &gate) {
            (Backend::Sqlite, _) => "COMMIT".to_owned(),
            (Backend::Postgres, None) => "SAVEPOINT confirm; COMMIT".to_owned(),
            (Backend::Postgres, Some(gate)) => {
                format!("SAVEPOINT confirm; COMMIT; {}", gate.unlock())
            }
        };
        self.control(&statement).await?;
        if let Some(mut connection) = self.connection.take() {
            connection.end_session_state();
            connection.release();
        }
        Ok(())
    }
}

impl Deref for Tx {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a transaction holds its connection until it ends")
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a transaction holds its connection until it ends")
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.abandon();
        }
    }
}
