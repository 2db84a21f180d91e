//! Storage: the only module that knows sqlx.
//!
//! One file per noun; a function takes the connection first, so that its
//! caller owns the transaction. Most statements are the same text on both
//! databases and run through `connection::on`.

pub mod apply;
pub mod audit;
pub mod backup;
pub mod blobs;
pub mod connection;
pub mod deployments;
pub mod documents;
pub mod health;
pub mod idempotency;
pub mod indexes;
pub mod installation;
pub mod jobs;
pub mod mail_counts;
pub mod memberships;
pub mod mfa;
pub mod nodes;
pub mod operator_tokens;
pub mod query;
pub mod rate_uses;
pub mod search;
pub mod secrets;
pub mod sessions;
pub mod sign_in_failures;
pub mod sign_in_places;
pub mod trials;
pub mod users;
pub mod workspaces;

mod arms;
mod cursor;
mod error;
mod fields;
mod gates;
mod keyed;
mod keyset;
mod listed;
mod notices;
mod open;
mod outcomes;
mod pool;
mod scope;
mod session;
mod shares;
mod sql;
mod stored_bytes;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};

use self::connection::{Kind, Raw, on};
use self::gates::Gates;
use self::pool::Pool;
use self::shares::Shares;
use self::stored_bytes::StoredBytes;
use crate::domain::id::WorkspaceId;

pub use connection::{Connection, Tx};
pub use error::Error;
pub use gates::OpenGate;
pub use notices::Notices;
pub use open::{Settings, Timeouts};
pub use outcomes::WriteOutcomes;
pub use scope::{CollectionScope, Searched};
pub use shares::Holder;
pub use stored_bytes::{OverQuota, Quota};
pub use wake::Wake;

/// The database and the blob store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

/// Which database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// Embedded.
    Sqlite,
    /// A server, shared by any number of hosts.
    Postgres,
}

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads one snapshot, writes nothing, takes no lock, never loses a race.
    Read,
    /// Serializable, optimistic: reads a snapshot and then writes. May end in
    /// [`Error::RunAgain`]. On SQLite call [`Store::upgrade`] before the first
    /// write.
    Write,
    /// The host's own short writes. SQLite: the write lock from the start;
    /// PostgreSQL: read committed, for statements that lock the rows they need.
    WriteLocked,
}

#[derive(Debug)]
struct Inner {
    databases: Databases,
    blobs: blobs::Blobs,
    timeout: Duration,
    gates: Gates,
    /// Who holds connections that read while its code runs.
    reading: Shares,
    /// The same for those that write.
    writing: Shares,
    wake: Wake,
    outcomes: WriteOutcomes,
    waiting: jobs::Waiting,
    stored_bytes: StoredBytes,
}

#[derive(Debug)]
enum Databases {
    Sqlite {
        readers: Pool<SqliteConnection>,
        /// The one connection that writes, and the turn to write: a reader
        /// that becomes a writer holds the turn too. First come, first served.
        writer: Pool<SqliteConnection>,
    },
    Postgres {
        /// Read committed; reads, and the host's own short writes.
        common: Pool<PgConnection>,
        /// Serializable by default, so that even a single statement is.
        serializable: Pool<PgConnection>,
        /// What `ILIKE` needs to know letters beyond ASCII: nothing, or
        /// ` COLLATE "…"`.
        folding: &'static str,
        /// For the one connection that listens.
        options: Box<PgConnectOptions>,
    },
}

impl Store {
    /// Which database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.0.databases {
            Databases::Sqlite { .. } => Backend::Sqlite,
            Databases::Postgres { .. } => Backend::Postgres,
        }
    }

    /// What `ILIKE` needs to know letters beyond ASCII.
    pub(crate) fn folding(&self) -> &'static str {
        match self.0.databases {
            Databases::Sqlite { .. } => "",
            Databases::Postgres { folding, .. } => folding,
        }
    }

    /// The blob store.
    #[must_use]
    pub fn blobs(&self) -> &blobs::Blobs {
        &self.0.blobs
    }

    /// How calls' writes ended.
    #[must_use]
    pub fn outcomes(&self) -> &WriteOutcomes {
        &self.0.outcomes
    }

    /// To be rung for a lane after a commit that enqueued for it.
    #[must_use]
    pub fn wake(&self) -> &Wake {
        &self.0.wake
    }

    fn stored_bytes(&self) -> &StoredBytes {
        &self.0.stored_bytes
    }

    fn waiting(&self) -> &jobs::Waiting {
        &self.0.waiting
    }

    /// Asks the database whether it is there.
    pub async fn ping(&self) -> Result<(), Error> {
        let mut connection = self.reader().await?;
        on!(connection, c => { sqlx::query("SELECT 1").execute(&mut *c).await?; });
        connection.release();
        Ok(())
    }

    /// Refuses new work and closes what is idle.
    pub async fn close(&self) {
        match &self.0.databases {
            Databases::Sqlite { readers, writer } => {
                readers.close().await;
                writer.close().await;
            }
            Databases::Postgres { common, serializable, .. } => {
                common.close().await;
                serializable.close().await;
            }
        }
    }

    /// A connection for single statements that only read.
    pub async fn reader(&self) -> Result<Connection, Error> {
        Ok(Connection(match &self.0.databases {
            Databases::Sqlite { readers, .. } => Kind::Reader(readers.acquire().await?, None),
            Databases::Postgres { common, .. } => Kind::Postgres(common.acquire().await?),
        }))
    }

    /// A connection for single statements that write. The server has confirmed
    /// that it is outside of a transaction, so each is committed by itself.
    pub async fn writer(&self) -> Result<Connection, Error> {
        let mut connection = self.unconfirmed_writer().await?;
        Box::pin(connection.confirm_idle()).await?;
        Ok(connection)
    }

    /// The same; `None` if somebody else has SQLite's turn to write.
    pub async fn writer_if_free(&self) -> Result<Option<Connection>, Error> {
        match &self.0.databases {
            Databases::Sqlite { writer, .. } => {
                let free = writer.try_acquire().await?;
                Ok(free.map(|writer| Connection(Kind::Writer(writer))))
            }
            Databases::Postgres { .. } => self.writer().await.map(Some),
        }
    }

    async fn unconfirmed_writer(&self) -> Result<Connection, Error> {
        Ok(Connection(match &self.0.databases {
            Databases::Sqlite { writer, .. } => Kind::Writer(writer.acquire().await?),
            Databases::Postgres { common, .. } => Kind::Postgres(common.acquire().await?),
        }))
    }

    /// Opens a transaction for a short piece of the host's own work.
    pub async fn begin(&self, access: Access) -> Result<Tx, Error> {
        let connection = match (&self.0.databases, access) {
            (Databases::Postgres { .. }, Access::Write) => self.serializable().await?,
            (_, Access::WriteLocked) => self.unconfirmed_writer().await?,
            (_, Access::Read | Access::Write) => self.reader().await?,
        };
        Tx::begin(connection, self.begin_statement(access)).await
    }

    /// Opens a transaction that its holder keeps while an area's code runs.
    pub async fn begin_held(&self, access: Access, holder: Holder) -> Result<Tx, Error> {
        let shares = match access {
            Access::Read => &self.0.reading,
            Access::Write | Access::WriteLocked => &self.0.writing,
        };
        let place = self.wait(shares.place(holder)).await?;
        Ok(self.begin(access).await?.at(Some(place)))
    }

    /// PostgreSQL: rolls back first whatever may be open, and marks the
    /// transaction, so that a statement can assert whether it is part of one
    /// ([`apply::apply`]).
    fn begin_statement(&self, access: Access) -> &'static str {
        match (self.backend(), access) {
            (Backend::Sqlite, Access::Read | Access::Write) => "BEGIN",
            (Backend::Sqlite, Access::WriteLocked) => "BEGIN IMMEDIATE",
            (Backend::Postgres, Access::Read) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            (Backend::Postgres, Access::Write | Access::WriteLocked) => {
                "ROLLBACK; BEGIN; SET LOCAL assurance.transaction = 'open'"
            }
        }
    }

    /// Opens a serializable transaction that no other call of the workspace
    /// can make lose: others of this kind wait before they start, optimistic
    /// ones before they write.
    pub async fn begin_locked(&self, holder: Holder) -> Result<Tx, Error> {
        let Databases::Postgres { .. } = &self.0.databases else {
            return self.begin_held(Access::WriteLocked, holder).await;
        };
        // Neither a connection nor a place is held while this waits.
        let gate = self.wait(self.0.gates.queue(holder.workspace)).await?;
        let place = self.wait(self.0.writing.place(holder)).await?;
        let mut connection = self.serializable().await?;
        connection.is_special();
        if let Raw::Postgres(c) = connection.raw() {
            sqlx::raw_sql(AssertSqlSafe(gate.lock())).execute(c).await?;
        }
        let tx = Tx::begin(connection, self.begin_statement(Access::Write)).await?;
        Ok(tx.behind(gate).at(Some(place)))
    }

    /// Waits until no call of this process has the workspace's gate. To be held
    /// for a short write, and given up before [`Store::begin_locked`].
    pub async fn open_gate(&self, workspace: WorkspaceId) -> Result<OpenGate, Error> {
        self.wait(self.0.gates.pass(workspace)).await
    }

    /// Makes an [`Access::Write`] transaction ready to write: on SQLite it
    /// waits for the turn, elsewhere there is nothing to do.
    pub async fn upgrade(&self, tx: &mut Tx) -> Result<(), Error> {
        if let (Kind::Reader(_, turn @ None), Databases::Sqlite { writer, .. }) =
            (&mut tx.0, &self.0.databases)
        {
            *turn = Some(writer.turn().await?);
        }
        Ok(())
    }

    /// A connection on which each statement is a serializable transaction.
    pub(crate) async fn serializable(&self) -> Result<Connection, Error> {
        match &self.0.databases {
            Databases::Sqlite { .. } => self.unconfirmed_writer().await,
            Databases::Postgres { serializable, .. } => {
                Ok(Connection(Kind::Postgres(serializable.acquire().await?)))
            }
        }
    }

    /// Waits no longer than a call waits for a connection: a server that is
    /// out of reach may never say so.
    pub async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.wait(work).await?
    }

    async fn wait<T>(&self, wait: impl Future<Output = T>) -> Result<T, Error> {
        tokio::time::timeout(self.0.timeout, wait)
            .await
            .map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))
    }
}
