//! Storage: the only crate that uses sqlx.
//!
//! There is one file for each noun. Functions take the connection as their
//! first argument, so that callers control transactions. Most statements have
//! the same text for both databases and run through the macros of `connection`.

pub mod access_tokens;
pub mod apply;
pub mod audit;
pub mod backup;
pub mod blobs;
pub mod collections;
pub mod connection;
pub mod deployments;
pub mod documents;
pub mod documents_move;
pub mod health;
pub mod idempotency;
pub mod indexes;
pub mod installation;
pub mod jobs;
pub mod mail_counts;
pub mod memberships;
pub mod mfa;
mod migrations;
pub mod nodes;
pub mod operator_tokens;
pub mod query;
pub mod rate_limits;
pub mod search;
pub mod secrets;
pub mod sessions;
pub mod sign_in_failures;
pub mod sign_in_places;
pub mod trials;
pub mod users;
pub mod workspaces;

mod checkpoint;
mod connection_shares;
mod cursor;
mod error;
mod fields;
mod first_connection;
mod gates;
mod group_commit;
mod keyed_locks;
mod keyset;
mod lane_waker;
mod listed;
mod notifications;
mod open;
mod outcomes;
mod pool;
mod scope;
mod session;
mod sql;
mod stored_bytes;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod union_branches;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};
use tokio_util::task::AbortOnDropHandle;

use self::connection::{BackendConnection, DriverConnection};
use self::connection_shares::ConnectionShares;
use self::gates::WorkspaceGates;
use self::group_commit::GroupCommit;
use self::pool::Pool;
use self::stored_bytes::StoredBytesByWorkspace;
use assurance_core::domain::id::WorkspaceId;

pub use connection::{Connection, Tx};
pub use connection_shares::ConnectionHolder;
pub use error::Error;
pub use gates::GatePass;
pub use lane_waker::LaneWaker;
pub use notifications::NotificationListener;
pub use open::{PostgresSessionTimeouts, Settings};
pub use outcomes::WriteFailureTracker;
pub use scope::{AccessibleCollection, SubstringIndexSpec};
pub use stored_bytes::{OverQuota, Quota};

/// The database and the blob store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

/// Kind of database that the store uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// SQLite, embedded in this process.
    Sqlite,
    /// PostgreSQL, shared by any number of hosts.
    Postgres,
}

/// Kind of access that a transaction needs; it decides the isolation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionAccess {
    /// Reads one snapshot. It writes nothing, takes no lock and never causes a
    /// write conflict.
    Read,
    /// Serializable and optimistic: reads a snapshot, then writes. May fail
    /// with [`Error::RunAgain`]. On SQLite, call [`Store::upgrade`] before the
    /// first write.
    Write,
    /// Short writes of the host. SQLite: takes the write lock at the start;
    /// PostgreSQL: read committed, with row locks.
    WriteLocked,
}

#[derive(Debug)]
struct Inner {
    databases: ConnectionPools,
    blobs: blobs::Blobs,
    timeout: Duration,
    gates: WorkspaceGates,
    group_commit: GroupCommit,
    /// Permits to hold reading connections while an area's code runs.
    reading: ConnectionShares,
    /// Permits to hold writing connections while an area's code runs.
    writing: ConnectionShares,
    wake: LaneWaker,
    outcomes: WriteFailureTracker,
    waiting: jobs::WaitingJobCounts,
    stored_bytes: StoredBytesByWorkspace,
}

#[derive(Debug)]
enum ConnectionPools {
    Sqlite {
        readers: Pool<SqliteConnection>,
        /// Pool of the only SQLite connection that writes, which is also the
        /// queue for the write lock. A reader that begins to write takes the
        /// lock too. Callers get the lock in the order of their requests.
        writer: Pool<SqliteConnection>,
        /// Task that makes checkpoints of SQLite's write-ahead log.
        _checkpoints: AbortOnDropHandle<()>,
    },
    Postgres {
        /// PostgreSQL connections with the isolation level read committed, for
        /// reads and for the host's own short writes.
        common: Pool<PgConnection>,
        /// PostgreSQL connections whose default isolation is serializable, also
        /// for single statements.
        serializable: Pool<PgConnection>,
        /// Suffix that `ILIKE` needs for letters beyond ASCII: empty, or `
        /// COLLATE "…"`.
        folding: &'static str,
        /// Options for the connection that listens for notifications.
        options: Box<PgConnectOptions>,
    },
}

impl Store {
    /// Returns the kind of database.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.0.databases {
            ConnectionPools::Sqlite { .. } => Backend::Sqlite,
            ConnectionPools::Postgres { .. } => Backend::Postgres,
        }
    }

    /// Returns the suffix that `ILIKE` needs for letters beyond ASCII.
    pub fn folding(&self) -> &'static str {
        match self.0.databases {
            ConnectionPools::Sqlite { .. } => "",
            ConnectionPools::Postgres { folding, .. } => folding,
        }
    }

    /// Returns the blob store.
    #[must_use]
    pub fn blobs(&self) -> &blobs::Blobs {
        &self.0.blobs
    }

    /// Returns the tracker of this process's failed writes.
    #[must_use]
    pub fn outcomes(&self) -> &WriteFailureTracker {
        &self.0.outcomes
    }

    /// Returns the waker of this process's dispatchers; call it after a commit
    /// that enqueued jobs.
    #[must_use]
    pub fn wake(&self) -> &LaneWaker {
        &self.0.wake
    }

    /// Refuses new work and closes idle connections.
    pub async fn close(&self) {
        match &self.0.databases {
            ConnectionPools::Sqlite { readers, writer, .. } => {
                readers.close().await;
                writer.close().await;
            }
            ConnectionPools::Postgres { common, serializable, .. } => {
                common.close().await;
                serializable.close().await;
            }
        }
    }

    /// Returns a connection for single statements that only read.
    pub async fn reader(&self) -> Result<Connection, Error> {
        Ok(Connection(match &self.0.databases {
            ConnectionPools::Sqlite { readers, .. } => {
                BackendConnection::Reader(readers.acquire().await?, None)
            }
            ConnectionPools::Postgres { common, .. } => {
                BackendConnection::Postgres(common.acquire().await?)
            }
        }))
    }

    /// Returns a connection for single statements that write. The server has
    /// confirmed that no transaction is open on it, so each statement commits
    /// by itself.
    pub async fn writer(&self) -> Result<Connection, Error> {
        let mut connection = self.unconfirmed_writer().await?;
        Box::pin(connection.confirm_idle()).await?;
        Ok(connection)
    }

    /// Runs single statements that only read, on one connection.
    pub async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut connection = self.reader().await?;
        let found = work(&mut connection).await?;
        connection.release();
        Ok(found)
    }

    /// Runs single statements that write, each of which commits by itself, on
    /// one connection.
    pub async fn write<T>(
        &self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut connection = self.writer().await?;
        let written = work(&mut connection).await?;
        connection.release();
        Ok(written)
    }

    /// Returns a connection for single statements that write; `None` if another
    /// call holds SQLite's write lock. PostgreSQL always returns one.
    pub async fn writer_if_free(&self) -> Result<Option<Connection>, Error> {
        match &self.0.databases {
            ConnectionPools::Sqlite { writer, .. } => {
                let free = writer.try_acquire().await?;
                Ok(free.map(|writer| Connection(BackendConnection::Writer(writer))))
            }
            ConnectionPools::Postgres { .. } => self.writer().await.map(Some),
        }
    }

    async fn unconfirmed_writer(&self) -> Result<Connection, Error> {
        Ok(Connection(match &self.0.databases {
            ConnectionPools::Sqlite { writer, .. } => {
                BackendConnection::Writer(writer.acquire().await?)
            }
            ConnectionPools::Postgres { common, .. } => {
                BackendConnection::Postgres(common.acquire().await?)
            }
        }))
    }

    /// Begins a transaction for a short operation of the host.
    pub async fn begin(&self, access: TransactionAccess) -> Result<Tx, Error> {
        let connection = match (&self.0.databases, access) {
            (ConnectionPools::Postgres { .. }, TransactionAccess::Write) => {
                self.serializable().await?
            }
            (_, TransactionAccess::WriteLocked) => self.unconfirmed_writer().await?,
            (_, TransactionAccess::Read | TransactionAccess::Write) => self.reader().await?,
        };
        Tx::begin(connection, self.begin_statement(access)).await
    }

    /// Begins a transaction that is held while an area's code runs.
    pub async fn begin_held(
        &self,
        access: TransactionAccess,
        holder: ConnectionHolder,
    ) -> Result<Tx, Error> {
        let shares = match (self.backend(), access) {
            // On SQLite, both begin on a reader.
            (_, TransactionAccess::Read) | (Backend::Sqlite, TransactionAccess::Write) => {
                &self.0.reading
            }
            (_, TransactionAccess::Write | TransactionAccess::WriteLocked) => &self.0.writing,
        };
        let place = self.wait(shares.place(holder)).await?;
        Ok(self.begin(access).await?.holding(None, place))
    }

    /// Returns the `BEGIN` statement. On PostgreSQL, it first rolls back any
    /// open transaction (after a `BEGIN`, because the server logs a warning for
    /// a `ROLLBACK` without one) and sets a marker, so that a later statement can assert
    /// that it runs inside a transaction ([`apply::apply`]).
    fn begin_statement(&self, access: TransactionAccess) -> &'static str {
        match (self.backend(), access) {
            (Backend::Sqlite, TransactionAccess::Read | TransactionAccess::Write) => "BEGIN",
            (Backend::Sqlite, TransactionAccess::WriteLocked) => "BEGIN IMMEDIATE",
            (Backend::Postgres, TransactionAccess::Read) => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            }
            (Backend::Postgres, TransactionAccess::Write | TransactionAccess::WriteLocked) => {
                "BEGIN; ROLLBACK; BEGIN; SET LOCAL assurance.transaction = 'open'"
            }
        }
    }

    /// Begins a serializable transaction that cannot conflict with other calls
    /// of the workspace: other locked calls wait before they start, optimistic
    /// calls before they write.
    pub async fn begin_locked(&self, holder: ConnectionHolder) -> Result<Tx, Error> {
        let ConnectionPools::Postgres { .. } = &self.0.databases else {
            return self.begin_held(TransactionAccess::WriteLocked, holder).await;
        };
        // The call holds neither a connection nor a permit while it waits.
        let gate = self.wait(self.0.gates.queue(holder.workspace)).await?;
        let place = self.wait(self.0.writing.place(holder)).await?;
        let mut connection = self.serializable().await?;
        connection.begin_session_state();
        if let DriverConnection::Postgres(c) = connection.raw() {
            sqlx::raw_sql(AssertSqlSafe(gate.lock())).execute(c).await?;
        }
        let tx = Tx::begin(connection, self.begin_statement(TransactionAccess::Write)).await?;
        Ok(tx.holding(Some(gate), place))
    }

    /// Waits until no call of this process holds the workspace's gate (its lock
    /// against other calls). Hold the returned guard only for a short write,
    /// and drop it before [`Store::begin_locked`].
    pub async fn open_gate(&self, workspace: WorkspaceId) -> Result<GatePass, Error> {
        self.wait(self.0.gates.pass(workspace)).await
    }

    /// Prepares an [`TransactionAccess::Write`] transaction for writing: on SQLite it
    /// waits for the write lock, on PostgreSQL it does nothing.
    pub async fn upgrade(&self, tx: &mut Tx) -> Result<(), Error> {
        if let (BackendConnection::Reader(_, turn @ None), ConnectionPools::Sqlite { writer, .. }) =
            (&mut tx.0, &self.0.databases)
        {
            *turn = Some(writer.turn().await?);
        }
        Ok(())
    }

    /// Returns a connection on which each statement is a serializable
    /// transaction.
    pub async fn serializable(&self) -> Result<Connection, Error> {
        match &self.0.databases {
            ConnectionPools::Sqlite { .. } => self.unconfirmed_writer().await,
            ConnectionPools::Postgres { serializable, .. } => {
                Ok(Connection(BackendConnection::Postgres(serializable.acquire().await?)))
            }
        }
    }

    /// Runs `work`, but at most for the time that a call may wait for a
    /// connection (`acquire_timeout_ms`), because an unreachable server may
    /// never respond.
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
