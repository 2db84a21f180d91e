//! Connections and transactions, the same to use on either database.
//!
//! Functions of the store take a `&mut Connection`; a [`Tx`] is one, with a
//! transaction open on it.

use std::ops::{Deref, DerefMut};

use sqlx::{Connection as _, PgConnection, Postgres, Sqlite, SqliteConnection};
use sqlx_core::transaction::TransactionManager;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};

use super::Backend;
use super::error::Error;
use super::pool::Pooled;

type SqliteTransactions = <Sqlite as sqlx::Database>::TransactionManager;
type PostgresTransactions = <Postgres as sqlx::Database>::TransactionManager;

/// Runs one expression on whichever database the connection leads to; inside
/// it the name stands for the connection, to be lent as `&mut *name`.
macro_rules! on {
    ($connection:expr, $name:ident => $body:expr) => {
        match $connection.raw() {
            $crate::store::connection::Raw::Sqlite($name) => $body,
            $crate::store::connection::Raw::Postgres($name) => $body,
        }
    };
}
pub(crate) use on;

/// A borrowed connection of one of the two kinds.
#[derive(Debug)]
pub enum Raw<'c> {
    /// SQLite.
    Sqlite(&'c mut SqliteConnection),
    /// PostgreSQL.
    Postgres(&'c mut PgConnection),
}

/// A connection to the database; each statement on it is a transaction of its
/// own unless it is part of a [`Tx`].
#[derive(Debug)]
pub struct Connection(pub(super) Kind);

#[derive(Debug)]
pub(super) enum Kind {
    /// One of SQLite's readers; with the writer's guard once it writes.
    Reader(Pooled<SqliteConnection>, Option<OwnedMutexGuard<SqliteConnection>>),
    /// SQLite's one writer.
    Writer(OwnedMutexGuard<SqliteConnection>),
    /// PostgreSQL.
    Postgres(Pooled<PgConnection>),
}

impl Connection {
    /// The driver's own connection; see `on!`.
    pub fn raw(&mut self) -> Raw<'_> {
        match &mut self.0 {
            Kind::Reader(reader, _) => Raw::Sqlite(reader),
            Kind::Writer(writer) => Raw::Sqlite(writer),
            Kind::Postgres(connection) => Raw::Postgres(connection),
        }
    }

    /// Which database it leads to.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match &self.0 {
            Kind::Reader(..) | Kind::Writer(_) => Backend::Sqlite,
            Kind::Postgres(_) => Backend::Postgres,
        }
    }

    /// See [`Pooled::set_laden`].
    pub(super) fn set_laden(&mut self, laden: bool) {
        if let Kind::Postgres(connection) = &mut self.0 {
            connection.set_laden(laden);
        }
    }

    /// Passes the turn to write on when what was written is undone: while
    /// another has SQLite's lock, a reader that becomes a writer is refused at
    /// once.
    fn pass_turn_on(self) {
        match self.0 {
            Kind::Reader(reader, Some(turn)) => reader.abandon(turn),
            Kind::Writer(mut writer) => {
                // At shutdown nobody has another turn.
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(async move { writer.ping().await });
                }
            }
            Kind::Reader(_, None) | Kind::Postgres(_) => {}
        }
    }

    /// Gives the connection back; worth calling when its last statement went
    /// well, since a dropped one is asked for its health first.
    pub fn release(self) {
        match self.0 {
            Kind::Reader(reader, _) => reader.release(),
            Kind::Writer(_) => {}
            Kind::Postgres(connection) => connection.release(),
        }
    }
}

/// An open transaction; rolled back when dropped.
#[derive(Debug)]
pub struct Tx {
    connection: Option<Connection>,
    /// Keeps a workspace's other locked calls out until this one has ended.
    gate: Option<(Box<Tx>, OwnedSemaphorePermit)>,
}

impl Tx {
    pub(super) async fn begin(
        connection: Connection,
        statement: &'static str,
    ) -> Result<Self, Error> {
        // Made first, so that a `begin` that is cancelled is rolled back.
        let mut tx = Self { connection: Some(connection), gate: None };
        let statement = Some(sqlx::SqlSafeStr::into_sql_str(statement));
        match tx.raw() {
            Raw::Sqlite(c) => SqliteTransactions::begin(c, statement).await?,
            Raw::Postgres(c) => PostgresTransactions::begin(c, statement).await?,
        }
        Ok(tx)
    }

    pub(super) fn behind(mut self, gate: Tx, turn: OwnedSemaphorePermit) -> Self {
        self.gate = Some((Box::new(gate), turn));
        self
    }

    /// Whether this transaction holds its workspace's gate.
    pub(crate) fn is_gated(&self) -> bool {
        self.gate.is_some()
    }

    /// Marks a place to come back to with [`Tx::go_back`].
    pub(crate) async fn mark(&mut self) -> Result<(), Error> {
        match self.raw() {
            Raw::Sqlite(c) => SqliteTransactions::begin(c, None).await?,
            Raw::Postgres(c) => PostgresTransactions::begin(c, None).await?,
        }
        Ok(())
    }

    /// Undoes what was done since the mark.
    pub(crate) async fn go_back(&mut self) -> Result<(), Error> {
        match self.raw() {
            Raw::Sqlite(c) => SqliteTransactions::rollback(c).await?,
            Raw::Postgres(c) => PostgresTransactions::rollback(c).await?,
        }
        Ok(())
    }

    /// Forgets the mark.
    pub(crate) async fn go_on(&mut self) -> Result<(), Error> {
        match self.raw() {
            Raw::Sqlite(c) => SqliteTransactions::commit(c).await?,
            Raw::Postgres(c) => PostgresTransactions::commit(c).await?,
        }
        Ok(())
    }

    /// Keeps everything.
    pub async fn commit(mut self) -> Result<(), Error> {
        match self.raw() {
            Raw::Sqlite(c) => SqliteTransactions::commit(c).await?,
            Raw::Postgres(c) => PostgresTransactions::commit(c).await?,
        }
        if let Some(connection) = self.connection.take() {
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
        let Some(mut connection) = self.connection.take() else { return };
        match connection.raw() {
            Raw::Sqlite(c) => SqliteTransactions::start_rollback(c),
            Raw::Postgres(c) => PostgresTransactions::start_rollback(c),
        }
        connection.pass_turn_on();
    }
}
