//! Connections and transactions, the same to use on either database.
//!
//! Functions of the store take a `&mut Connection`; a [`Tx`] is one, with a
//! transaction open on it.
//!
//! Invariant: a commit is reported only after the server has confirmed it. On
//! PostgreSQL a `COMMIT` of an aborted transaction succeeds and rolls back, and
//! one outside of a transaction succeeds and does nothing; the statement before
//! it in the same message fails in both cases.

use std::ops::{Deref, DerefMut};

use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};
use tokio::sync::OwnedSemaphorePermit;

use super::Backend;
use super::error::Error;
use super::gates::GatePass;
use super::pool::Pooled;
use super::shares::Place;

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
    /// One of SQLite's readers; with the turn to write once it writes.
    Reader(Pooled<SqliteConnection>, Option<OwnedSemaphorePermit>),
    /// SQLite's one writer.
    Writer(Pooled<SqliteConnection>),
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

    /// To be called before the session is given something that outlives a
    /// statement: a transaction, an advisory lock, a setting. Dropped before
    /// [`Connection::is_plain_again`], it is rolled back and unlocked.
    pub(super) fn is_special(&mut self) {
        match &mut self.0 {
            Kind::Reader(one, _) | Kind::Writer(one) => one.begins_transaction(),
            Kind::Postgres(one) => one.begins_transaction(),
        }
    }

    /// To be called when the server has confirmed the end of that.
    pub(super) fn is_plain_again(&mut self) {
        match &mut self.0 {
            Kind::Reader(one, _) | Kind::Writer(one) => one.ended_transaction(),
            Kind::Postgres(one) => one.ended_transaction(),
        }
    }

    /// Has PostgreSQL confirm that what is written next is a transaction of its
    /// own. SQLite's writer has only ever whole transactions.
    pub(super) async fn confirm_idle(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Kind::Postgres(connection) => Ok(connection.confirm_idle().await?),
            Kind::Reader(..) | Kind::Writer(_) => Ok(()),
        }
    }

    /// Gives the connection back; worth calling when its last statement went
    /// well, since a dropped one is settled first.
    pub fn release(self) {
        match self.0 {
            Kind::Reader(reader, _) => reader.release(),
            Kind::Writer(writer) => writer.release(),
            Kind::Postgres(connection) => connection.release(),
        }
    }

    /// Settles it. The turn to write is passed on when what was written has
    /// been rolled back: a reader that becomes a writer before is refused.
    fn abandon(self) {
        match self.0 {
            Kind::Reader(reader, Some(turn)) => reader.abandon(turn),
            Kind::Reader(_, None) | Kind::Writer(_) | Kind::Postgres(_) => {}
        }
    }

    /// Runs a statement that begins or ends a transaction.
    async fn control(&mut self, text: &str) -> Result<(), Error> {
        match self.raw() {
            Raw::Sqlite(c) => {
                sqlx::query(AssertSqlSafe(text)).execute(c).await?;
            }
            // Not prepared, so that it may be several statements in one message.
            Raw::Postgres(c) => {
                sqlx::raw_sql(AssertSqlSafe(text)).execute(c).await?;
            }
        }
        Ok(())
    }
}

/// An open transaction; rolled back when dropped.
#[derive(Debug)]
pub struct Tx {
    connection: Option<Connection>,
    /// Keeps other locked calls of the workspace out until this one has ended.
    gate: Option<GatePass>,
    /// The unit of work's place among those that hold connections.
    place: Option<Place>,
}

impl Tx {
    pub(super) async fn begin(
        connection: Connection,
        statement: &'static str,
    ) -> Result<Self, Error> {
        // Made first, so that a `begin` that is cancelled is rolled back.
        let mut tx = Self { connection: Some(connection), gate: None, place: None };
        tx.is_special();
        tx.control(statement).await?;
        Ok(tx)
    }

    pub(super) fn behind(mut self, gate: GatePass) -> Self {
        self.gate = Some(gate);
        self
    }

    pub(super) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// Whether this transaction holds its workspace's gate.
    pub(crate) fn is_gated(&self) -> bool {
        self.gate.is_some()
    }

    /// Sets a savepoint for [`Tx::roll_back_to_savepoint`].
    pub(crate) async fn savepoint(&mut self) -> Result<(), Error> {
        self.control("SAVEPOINT flush").await
    }

    /// Rolls back to the savepoint; the transaction goes on.
    pub(crate) async fn roll_back_to_savepoint(&mut self) -> Result<(), Error> {
        self.control("ROLLBACK TO SAVEPOINT flush").await
    }

    /// Releases the savepoint.
    pub(crate) async fn release_savepoint(&mut self) -> Result<(), Error> {
        self.control("RELEASE SAVEPOINT flush").await
    }

    /// Commits.
    ///
    /// # Errors
    /// If the server did not confirm it: then everything is rolled back, unless
    /// the connection was lost and nobody can know.
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
            connection.is_plain_again();
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
